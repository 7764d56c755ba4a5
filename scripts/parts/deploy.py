"""Run what deploy/ hands out, with the programs that will read it.

    scripts/ci deploy                      all of it
    scripts/ci deploy unit                 the unit, by systemd-analyze
    scripts/ci deploy prometheus           the rules, a scrape, every query of the dashboard
    scripts/ci deploy kubernetes           the manifests, by their schemas and by kubectl kustomize

What cannot be had here is skipped aloud. Exit code: how many checks failed.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from fetchstash.cli.demo._tour import ask
from fetchstash.cli.demo.site import Site
from scripts.drive.service import free_port, running
from scripts.drive.tools import ROOT
from scripts.parts.packages import fault_of, report

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "fetchstash.service"
COMMAND = Path(sys.executable).with_name("fetchstash")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fetchstash" / "deploy"
EXPOSURE = 1.5
"""The most that `systemd-analyze security` may say; it counts from 0 (safe) to 10."""
START_SECONDS = 120


def run(command: Sequence[object], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return what it said."""
    words = [str(word) for word in command]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options
    )


def debian(package: str, program: str) -> str | None:
    """Return the path of a program, unpacked from Debian's package where it is not installed."""
    if found := shutil.which(program):
        return found
    folder = CACHE / package
    unpacked = folder / "usr" / "bin" / program
    if not unpacked.exists() and shutil.which("apt-get"):
        folder.mkdir(parents=True, exist_ok=True)
        run(["apt-get", "download", package], cwd=folder)
        for archive in folder.glob("*.deb"):
            run(["dpkg", "-x", archive, folder])
    return str(unpacked) if unpacked.exists() else None


def metrics(port: int) -> str:
    """Return the metrics of a service on this machine."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


async def fetches(url: str, token: str, page: str) -> str:
    """Fetch a PDF over a service, and return what is wrong ("" if nothing)."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport) as client:
            answer = await ask(client, "fetch_content", url=page)
            await ask(client, "artifact_info")
    return "" if "[Fetched PDF artifact" in answer.text else answer.text[:500]


def check_unit() -> int:
    """Let systemd read the unit, and count what it leaves a service to do."""
    if not shutil.which("systemd-analyze"):
        print("SKIPPED: there is no systemd-analyze here")
        return 0
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / UNIT.name
        text = UNIT.read_text(encoding="utf-8")
        copy.write_text(text.replace("/opt/fetchstash/bin/fetchstash", str(COMMAND)), "utf-8")
        failed = report(
            "systemd-analyze verify", lambda: fault_of(["systemd-analyze", "verify", copy])
        )
    security = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE * 10:g}"]
    failed += report(
        f"systemd-analyze security: at most {EXPOSURE}", lambda: fault_of([*security, UNIT])
    )
    return failed


def check_prometheus() -> int:
    """Check the rules, scrape a service, and ask every query of the dashboard and the rules."""
    promtool, prometheus = debian("prometheus", "promtool"), debian("prometheus", "prometheus")
    if promtool is None or prometheus is None:
        print("SKIPPED: Debian's prometheus cannot be had here")
        return 0
    rules = [promtool, "check", "rules", "--lint=all", "--lint-fatal", DEPLOY / "alerts.yaml"]
    failed = report("promtool check rules", lambda: fault_of(rules))
    with tempfile.TemporaryDirectory() as name:
        return failed + asyncio.run(_check_scraped(Path(name), promtool, prometheus))


async def _check_scraped(folder: Path, promtool: str, prometheus: str) -> int:
    async with Site() as site:
        environment = os.environ | {
            "FETCHSTASH_STORE_FOLDER": str(folder / "store"),
            "FETCHSTASH_FETCH_ALLOW_HOSTS": f"127.0.0.1:{site.port}",
        }
        return await asyncio.to_thread(
            _check_queries, folder, promtool, prometheus, environment, site.url("/report.pdf")
        )


def _check_queries(
    folder: Path, promtool: str, prometheus: str, environment: Mapping[str, str], page: str
) -> int:
    made = [COMMAND, "token", "create", "--tenant", "acme", "--name", "alice"]
    token = run(made, env=environment).stdout.strip()
    metrics_port = free_port()
    served, scraped = f"127.0.0.1:{free_port()}", f"127.0.0.1:{metrics_port}"
    own = f"127.0.0.1:{free_port()}"
    service = [str(COMMAND), "serve", "--http", served]
    environment = {
        **environment,
        "FETCHSTASH_HTTP_METRICS": scraped,
        "FETCHSTASH_EXTRACT_CONFINE": "auto",  # also on a kernel without Landlock
    }
    job = {"job_name": "fetchstash", "static_configs": [{"targets": [scraped]}]}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(DEPLOY / "alerts.yaml")],
        "scrape_configs": [job],
    }
    (folder / "prometheus.yaml").write_text(json.dumps(config), encoding="utf-8")
    collect = [
        prometheus,
        f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={own}",
    ]
    with (
        running(service, "serves MCP at", environment, folder / "service.log"),
        running(collect, "ready to receive", os.environ, folder / "prometheus.log"),
    ):
        failed = 0
        end = time.monotonic() + START_SECONDS
        broken, empty = [""], [""]
        while (broken or empty) and time.monotonic() < end:  # a rate needs two scrapes
            asyncio.run(fetches(f"http://{served}", token, page))
            time.sleep(1.5)
            broken, empty = asked_of_dashboard(f"http://{own}")
        checked = subprocess.run(
            [promtool, "check", "metrics"],
            input=metrics(metrics_port),
            capture_output=True,
            text=True,
            check=False,
        )
        # Its naming advice is not OpenTelemetry's; a text that it cannot parse is a fault.
        unreadable = "error while linting" in checked.stderr
        failed += report("promtool check metrics", lambda: checked.stderr if unreadable else "")
        failed += report("every query of the dashboard is answered", lambda: "; ".join(broken))
        failed += report("the panels of a service at work are not empty", lambda: ", ".join(empty))
        with urllib.request.urlopen(f"http://{own}/api/v1/rules", timeout=30) as answer:
            groups = json.load(answer)["data"]["groups"]
        unhealthy = [r["name"] for g in groups for r in g["rules"] if r["health"] == "err"]
        return failed + report("every rule is evaluated", lambda: ", ".join(unhealthy))


def asked_of_dashboard(prometheus: str) -> tuple[list[str], list[str]]:
    """Return the queries of the dashboard that are refused, and the panels that are empty.

    Panels of what goes wrong are empty where nothing does.
    """
    board = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    broken: list[str] = []
    empty: list[str] = []
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"].replace("$__rate_interval", "30s")
            data = asked(prometheus, re.sub(r"\$(job|instance)", ".*", query))
            if data is None:
                broken.append(target["expr"])
            elif not data and not re.search(
                "quota|token|died|Failed|Bucket|Errors", panel["title"]
            ):
                empty.append(panel["title"])
    return broken, empty


def asked(prometheus: str, query: str) -> list[Any] | None:
    """Return what a query gives now, None where Prometheus refuses it."""
    words = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/query?{words}", timeout=30) as answer:
            result: list[Any] = json.load(answer)["data"]["result"]
            return result
    except urllib.error.HTTPError:
        return None


def check_kubernetes() -> int:
    """Check the manifests, as they are and as kubectl puts them together, against the schemas."""
    folder = CACHE / "kubernetes"
    program = folder / "bin" / "kubernetes-validate"
    if not program.exists():
        venv.create(folder, with_pip=True)
        installed = run(
            [folder / "bin" / "python", "-m", "pip", "install", "-q", "kubernetes-validate"]
        )
        if installed.returncode:
            print("SKIPPED: kubernetes-validate cannot be installed here")
            return 0
    files = DEPLOY / "kubernetes.yaml", DEPLOY / "autoscaler.yaml"
    failed = report(
        "the manifests keep the schemas of Kubernetes",
        lambda: fault_of([program, "--strict", *files]),
    )
    kubectl = debian("kubernetes-client", "kubectl")
    if kubectl is None:
        print("SKIPPED: kubectl cannot be had here")
        return failed

    def fault_of_all() -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as together:
            built = run([kubectl, "kustomize", DEPLOY])
            if built.returncode:
                return built.stderr
            kinds = re.findall(r"(?m)^kind: (\w+)", built.stdout)
            asked = re.findall(r"(?m)^kind: (\w+)", "".join(file.read_text() for file in files))
            if sorted(kinds) != sorted(asked):
                return f"it has {kinds}, not {asked}"
            together.write(built.stdout)
            together.flush()
            return fault_of([program, "--strict", together.name])

    return failed + report("kubectl kustomize accepts the kustomization", fault_of_all)


CHECKS = {"unit": check_unit, "prometheus": check_prometheus, "kubernetes": check_kubernetes}


def main() -> int:
    """Run the checks that are named, or all; return how many failed."""
    names = sys.argv[1:] or list(CHECKS)
    if unknown := set(names) - set(CHECKS):
        print(f"There is no {', '.join(unknown)} here, but: {', '.join(CHECKS)}.", file=sys.stderr)
        return 2
    return sum(CHECKS[name]() for name in names)


if __name__ == "__main__":
    sys.exit(main())
