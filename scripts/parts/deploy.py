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
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from fetchstash.cli.demo._tour import ask, command
from fetchstash.cli.demo.site import Site
from scripts.drive.programs import check, failures, fault_of, options, output_of
from scripts.drive.service import free_port, running, serving, token_of
from scripts.drive.tools import ROOT, debian, python_tool

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "fetchstash.service"
EXPOSURE = 1.5
"""The most that `systemd-analyze security` may say; it counts from 0 (safe) to 10."""
START_SECONDS = 120


async def fetches(url: str, token: str, page: str) -> str:
    """Fetch a PDF over a service, and return what is wrong ("" if nothing)."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport) as client:
            answer = await ask(client, "fetch_content", url=page)
            await ask(client, "artifact_info")
    return "" if "[Fetched PDF artifact" in answer.text else answer.text[:500]


def check_unit() -> None:
    """Let systemd read the unit, and count what it leaves a service to do."""
    if not shutil.which("systemd-analyze"):
        print("SKIPPED: there is no systemd-analyze here")
        return
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / UNIT.name
        text = UNIT.read_text(encoding="utf-8")
        copy.write_text(text.replace("/opt/fetchstash/bin/fetchstash", command()), "utf-8")
        check("systemd-analyze verify", fault_of(["systemd-analyze", "verify", copy]))
    security = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE * 10:g}"]
    check(f"systemd-analyze security: at most {EXPOSURE}", fault_of([*security, UNIT]))


def check_prometheus() -> None:
    """Check the rules, scrape a service, and ask every query of the dashboard and the rules."""
    if not debian("prometheus", "prometheus"):
        return
    rules = ["promtool", "check", "rules", "--lint=all", "--lint-fatal", DEPLOY / "alerts.yaml"]
    check("promtool check rules", fault_of(rules))
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(_check_scraped(Path(name)))


async def _check_scraped(folder: Path) -> None:
    async with Site() as site:
        environment = os.environ | {
            "FETCHSTASH_STORE_FOLDER": str(folder / "store"),
            "FETCHSTASH_FETCH_ALLOW_HOSTS": f"127.0.0.1:{site.port}",
        }
        page = site.url("/report.pdf")
        await asyncio.to_thread(_check_queries, folder, environment, page)


def _check_queries(folder: Path, environment: Mapping[str, str], page: str) -> None:
    token = token_of("acme", environment=environment)
    port = free_port()
    scraped, own = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    environment = {**environment, "FETCHSTASH_HTTP_METRICS": scraped}
    job = {"job_name": "fetchstash", "static_configs": [{"targets": [scraped]}]}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(DEPLOY / "alerts.yaml")],
        "scrape_configs": [job],
    }
    (folder / "prometheus.yaml").write_text(json.dumps(config), encoding="utf-8")
    collect = ["prometheus", f"--config.file={folder}/prometheus.yaml"]
    collect += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address={own}"]
    with (
        serving(port, folder / "service.log", environment=environment),
        running(collect, "ready to receive", os.environ, folder / "prometheus.log"),
    ):
        end = time.monotonic() + START_SECONDS
        broken, empty = [""], [""]
        while (broken or empty) and time.monotonic() < end:  # a rate needs two scrapes
            asyncio.run(fetches(f"http://127.0.0.1:{port}", token, page))
            time.sleep(1.5)
            broken, empty = asked_of_dashboard(f"http://{own}")
        metrics = folder / "metrics"
        metrics.write_text(httpx2.get(f"http://{scraped}/metrics").text)
        with metrics.open() as text:
            checked = output_of(["promtool", "check", "metrics"], stdin=text)
        # Its naming advice is not OpenTelemetry's; a text that it cannot parse is a fault.
        unreadable = "error while linting" in checked.stderr
        check("promtool check metrics", unreadable and checked.stderr)
        check("every query of the dashboard is answered", "; ".join(broken))
        check("the panels of a service at work are not empty", ", ".join(empty))
        groups = httpx2.get(f"http://{own}/api/v1/rules").json()["data"]["groups"]
        unhealthy = [r["name"] for g in groups for r in g["rules"] if r["health"] == "err"]
        check("every rule is evaluated", ", ".join(unhealthy))


MAY_BE_EMPTY = re.compile("quota|token|died|Failed|Bucket|Errors")
"""Panels of what goes wrong are empty where nothing does."""


def asked_of_dashboard(prometheus: str) -> tuple[list[str], list[str]]:
    """Return the queries of the dashboard that are refused, and the panels that are empty."""
    board = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    broken: list[str] = []
    empty: list[str] = []
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"].replace("$__rate_interval", "30s")
            data = asked(prometheus, re.sub(r"\$(job|instance)", ".*", query))
            if data is None:
                broken.append(target["expr"])
            elif not data and not MAY_BE_EMPTY.search(panel["title"]):
                empty.append(panel["title"])
    return broken, empty


def asked(prometheus: str, query: str) -> list[Any] | None:
    """Return what a query gives now, None where Prometheus refuses it."""
    answer = httpx2.get(f"{prometheus}/api/v1/query", params={"query": query}, timeout=30)
    return list(answer.json()["data"]["result"]) if answer.is_success else None


def check_kubernetes() -> None:
    """Check the manifests, as they are and as kubectl puts them together, against the schemas."""
    programs = python_tool("checkers")
    if programs is None:
        return
    program = programs / "kubernetes-validate"
    files = DEPLOY / "kubernetes.yaml", DEPLOY / "autoscaler.yaml"
    keeps = "the manifests keep the schemas of Kubernetes"
    check(keeps, fault_of([program, "--strict", *files]))
    if not debian("kubectl", "kubernetes-client"):
        return
    built = output_of(["kubectl", "kustomize", DEPLOY])
    check("kubectl kustomize accepts the kustomization", built.returncode and built.stderr)
    kinds, wanted = (
        sorted(re.findall(r"(?m)^kind: (\w+)", text))
        for text in (built.stdout, "".join(file.read_text() for file in files))
    )
    check("it puts all of it together", kinds != wanted and f"it has {kinds}, not {wanted}")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as together:
        together.write(built.stdout)
        together.flush()
        check(f"{keeps} together, too", fault_of([program, "--strict", together.name]))


CHECKS = {"unit": check_unit, "prometheus": check_prometheus, "kubernetes": check_kubernetes}


def main() -> int:
    """Run the checks that are named, or all; return how many failed."""
    for name in options(__doc__, names=CHECKS).names:
        CHECKS[name]()
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
