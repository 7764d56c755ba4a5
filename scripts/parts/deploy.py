# ruff: noqa: ASYNC240 - nothing else waits for these loops
"""Run what deploy/ hands out, with the programs that will read it.

    scripts/ci deploy                      all of it
    scripts/ci deploy unit                 the unit's command under the unit's restrictions
    scripts/ci deploy prometheus           the rules, a scrape, every query of the dashboard
    scripts/ci deploy kubernetes           the manifests, by their schemas and by kubectl kustomize
    scripts/ci deploy container            the image as deploy/compose.yaml starts it

What cannot be had here is skipped aloud. Exit code: how many checks failed.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import venv
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from fetchstash.cli.demo.driver import ask
from fetchstash.cli.demo.site import Site
from scripts.drive.containers import Engine
from scripts.drive.service import free_port
from scripts.drive.tools import ROOT
from scripts.parts.packages import build_image, fault_of, report

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "fetchstash.service"
COMMAND = Path(sys.executable).with_name("fetchstash")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fetchstash" / "deploy"
USER = 10001
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


@contextlib.contextmanager
def started(
    command: Sequence[object], ready: Callable[[], bool], **options: Any
) -> Generator[subprocess.Popen[str]]:
    """Run a service until the context ends. Raises RuntimeError if it does not become ready."""
    with tempfile.TemporaryFile("w+") as log:
        words = [str(word) for word in command]
        process = subprocess.Popen(words, stdout=log, stderr=log, text=True, **options)
        try:
            end = time.monotonic() + START_SECONDS
            while not ready():
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise RuntimeError(f"it did not start: {log.read()[-1_500:]}")
                time.sleep(0.2)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(40)
            process.kill()


def eager(pid: int) -> str:
    """Return what is wrong with the priorities of what reads documents, "" if nothing is."""
    workers = children(pid)
    # With one processor the service has no workers but those.
    readers = [child for worker in workers for child in children(worker)] or workers
    priorities = [os.getpriority(os.PRIO_PROCESS, child) for child in readers]
    return "" if priorities and min(priorities) > 0 else f"priorities {priorities}"


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in listed.split()]


def metrics(port: int) -> str:
    """Return the metrics of a service on this machine."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


def answers(url: str) -> bool:
    """Return whether a URL is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


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
    """Examine the unit, then run its own command under its restrictions."""
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
    if sys.platform != "linux" or os.geteuid() != 0:
        print("SKIPPED: the unit's restrictions are put on by root alone")
        return failed
    return failed + asyncio.run(check_restricted())


async def check_restricted() -> int:
    """Run the unit's command under its restrictions: it serves, reads documents, and drains."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for inside in ("state", "logs", "etc"):
            (folder / inside).mkdir()
            if inside != "etc":
                os.chown(folder / inside, USER, USER)
                (folder / inside).chmod(0o700)
        folder.chmod(0o755)
        # The ports of the unit may be taken here.
        port, metrics_port = free_port(), free_port()
        settings = (DEPLOY / "fetchstash.toml").read_text("utf-8")
        settings = settings.replace("127.0.0.1:9464", f"127.0.0.1:{metrics_port}")
        (folder / "etc" / "fetchstash.toml").write_text(settings, "utf-8")
        line = next(x for x in UNIT.read_text("utf-8").splitlines() if x.startswith("ExecStart="))
        arguments = line.partition(" ")[2].replace(":8080", f":{port}").split()
        async with Site() as site:
            # What an operator would write there.
            allowed = f"FETCHSTASH_FETCH_ALLOW_HOSTS=127.0.0.1:{site.port}\n"
            (folder / "etc" / "environment").write_text(allowed, encoding="utf-8")
            return await asyncio.to_thread(
                _check_restricted, folder, arguments, (port, metrics_port), site.url
            )


def _check_restricted(
    folder: Path, arguments: list[str], ports: tuple[int, int], url: Callable[[str], str]
) -> int:
    def within(unit: Path, *words: str) -> list[object]:
        python = [sys.executable, "-P", ROOT / "scripts" / "drive" / "as_unit.py"]
        return [*python, unit, folder, USER, COMMAND, *words]

    settings = ["--config", "/etc/fetchstash/fetchstash.toml"]
    doctor = run(within(UNIT, "doctor", *settings), timeout=120)
    confined = "worker: confined to its document"
    failed = report(
        "doctor under the unit: a worker is confined",
        lambda: "" if confined in doctor.stdout else doctor.stdout + doctor.stderr,
    )
    without = folder / "without.service"
    kept = [x for x in UNIT.read_text("utf-8").splitlines() if "landlock" not in x.lower()]
    without.write_text("\n".join(kept), encoding="utf-8")
    planted = run(within(without, "doctor", *settings), timeout=120).stdout
    failed += report(
        "planted: a unit that forbids Landlock is noticed",
        lambda: "a worker was confined" if confined in planted or not planted else "",
    )
    made = ["token", "create", "--tenant", "acme", "--name", "alice", *settings]
    token = run(within(UNIT, *made), timeout=60).stdout.strip()
    served = f"http://127.0.0.1:{ports[0]}"
    try:
        with started(within(UNIT, *arguments), lambda: answers(f"{served}/readyz")) as process:
            failed += report(
                "the unit's command reads a PDF",
                lambda: asyncio.run(fetches(served, token, url("/report.pdf"))),
            )
            failed += report(
                "its metrics are read on loopback, its memory among them",
                lambda: "" if "process_memory_usage_bytes" in metrics(ports[1]) else "no answer",
            )
            failed += report("its workers step back behind it", lambda: eager(process.pid))
            process.send_signal(signal.SIGTERM)
            failed += report(
                "it drains and ends", lambda: "" if process.wait(40) == 0 else "exit code"
            )
    except RuntimeError as error:
        fault = str(error)
        return failed + report("the unit's command starts", lambda: fault)
    lines = (folder / "logs" / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    failed += report(
        "the audit log lies where the unit lets it",
        lambda: "" if events == ["started", "fetch", "call", "call"] else str(events),
    )
    owners = {path.stat().st_uid for path in (folder / "state").rglob("*")}
    return failed + report(
        "its files belong to its user", lambda: "" if owners == {USER} else f"{owners}"
    )


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
    service = [COMMAND, "serve", "--http", served]
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
    started_prometheus = [
        prometheus,
        f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={own}",
    ]
    with (
        started(service, lambda: answers(f"http://{served}/readyz"), env=environment),
        started(started_prometheus, lambda: answers(f"http://{own}/-/ready")),
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


def check_container() -> int:
    """Start the image as the compose file says, with a read-only root and no capabilities."""
    engine, failed = build_image()
    return failed if engine is None else asyncio.run(_check_container(engine))


async def _check_container(engine: Engine) -> int:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    service = service["fetchstash"]
    async with Site() as site:
        with tempfile.TemporaryDirectory() as name:
            Path(name).chmod(0o777)
            flags = [f"--cap-drop={name}" for name in service["cap_drop"]]
            flags += [
                f"--security-opt={option.partition(':')[0]}" for option in service["security_opt"]
            ]
            flags += [f"--tmpfs={place}" for place in service["tmpfs"]]
            flags += [f"--user={service['user']}"]
            flags += [f"--volume={DEPLOY}/fetchstash.toml:/etc/fetchstash/fetchstash.toml:ro"]
            variables = {
                **service["environment"],
                "FETCHSTASH_FETCH_ALLOW_HOSTS": f"127.0.0.1:{site.port}",
                "FETCHSTASH_HTTP_METRICS": f"127.0.0.1:{free_port()}",
            }
            flags += [f"--env={name}={value}" for name, value in variables.items()]
            return await asyncio.to_thread(
                _check_started, engine, Path(name), flags, service, site.url("/report.pdf")
            )


def _check_started(
    engine: Engine, volume: Path, flags: list[str], service: Mapping[str, Any], page: str
) -> int:
    def inside(*arguments: str) -> list[str]:
        command = engine.run("fetchstash", volume, *arguments)
        place = command.index("fetchstash")
        return [*command[:place], *flags, *command[place:]]

    settings = ["--config", "/etc/fetchstash/fetchstash.toml"]
    made = ["token", "create", "--tenant", "acme", "--name", "alice", *settings]
    token = run(inside(*made), timeout=120)
    if token.returncode:
        return report("a token is made in the container", lambda: token.stderr[-1_000:])
    # On the network of this machine: another port than the compose file's, which may be taken.
    address = f"127.0.0.1:{free_port()}"
    arguments = [word.replace("0.0.0.0:8080", address) for word in service["command"]]
    own = f"http://{address}"
    try:
        with started(inside(*arguments), lambda: answers(f"{own}/readyz")):
            failed = report(
                "the container reads a PDF with a read-only root and no capabilities",
                lambda: asyncio.run(fetches(own, token.stdout.strip(), page)),
            )
    except RuntimeError as error:
        fault = str(error)
        return report("the container serves", lambda: fault)
    return failed


CHECKS = {
    "unit": check_unit,
    "prometheus": check_prometheus,
    "kubernetes": check_kubernetes,
    "container": check_container,
}


def main() -> int:
    """Run the checks that are named, or all; return how many failed."""
    names = sys.argv[1:] or list(CHECKS)
    if unknown := set(names) - set(CHECKS):
        print(f"There is no {', '.join(unknown)} here, but: {', '.join(CHECKS)}.", file=sys.stderr)
        return 2
    return sum(CHECKS[name]() for name in names)


if __name__ == "__main__":
    sys.exit(main())
