"""Compare fetchstash with its peers, on a web of this comparison's own.

    compare/run [--short] [--peers NAME …] [--out FOLDER] [--resume] [--page FILE] [--jobs N]

Installs each peer by requirements into an environment of its own, asks all of them every case
in a network namespace, and judges the answers by the cases' rules. Prints the page;
``--page`` writes it too, its long lists into FILE-cases.md. Every answer stays in the output
folder. Exit code 1 if a planted bad server does not lose, or ours is wrong where safety is scored.
Linux alone: it needs namespaces.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from compare import _report
from compare._cases import load
from compare._peers import PEERS, Peer, install
from scripts.drive.tools import ROOT, node_folder

SHORT = ("fetchstash", "mcp-server-fetch", "planted: leaks", "planted: floods", "planted: lies")
NAMESPACE = (
    *("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid"),
    *("--fork", "--kill-child", "--mount-proc"),
)
MINUTES = 14
"""What is not done by then, from the first question on, is left out, and a line says so."""


def folder_of(peer: Peer, out: Path) -> Path:
    """Return where the answers of a peer are kept."""
    return out / peer.name.replace(": ", "-").replace(" ", "-")


def run_peer(peer: Peer, environment: Path, out: Path, ours: Path, end: float) -> dict[str, Any]:
    """Ask a peer its cases in a namespace of its own; return its results, or the reason of none."""
    folder = folder_of(peer, out)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = {
        "env": str(environment),
        "python": sys.executable,
        "ours": str(Path(sys.executable).with_name("fetchstash")),
        "chromium": shutil.which("chromium") or "",
        "path": os.pathsep.join([str(node_folder(22) or ""), os.environ["PATH"]]),
    }
    extra = {name: value.format(**words) for name, value in peer.environment.items()}
    if not peer.tool and not peer.planted:
        extra["PYTHONPATH"] = str(ours)
    plan = {
        "peer": peer.name,
        "groups": sorted({case.group for case in load() if case.url}),
        "command": [word.format(**words) for word in peer.command],
        "environment": extra,
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, "-P", "-m", "compare._inside", str(folder / "plan.json")]
    inside = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            [*NAMESPACE, *command],
            env=inside,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=max(0.0, end - time.monotonic()),
        )
    except subprocess.TimeoutExpired:
        return {"missing": f"it was not done {MINUTES} minutes after the first question"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return {"missing": f"it could not be asked: {last[0][:200]}"}
    return read(folder)


def read(folder: Path) -> dict[str, Any]:
    """Return the results that a folder keeps."""
    results: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return results


def main() -> int:
    """Run the comparison; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--short", action="store_true", help="ours, one peer, the planted servers")
    parser.add_argument("--peers", nargs="*", metavar="NAME", default=[])
    parser.add_argument("--out", type=Path, help="where every answer is kept")
    parser.add_argument("--resume", action="store_true", help="ask whom --out has no results of")
    parser.add_argument("--page", type=Path, help="the file that the page is written to")
    parser.add_argument("--ours", type=Path, default=ROOT, help="another checkout of fetchstash")
    parser.add_argument("--jobs", type=int, default=1, help="peers that are asked at a time")
    arguments = parser.parse_args()
    if sys.platform != "linux":
        print("SKIPPED: the comparison needs the network namespaces of Linux")
        return 0
    tried = subprocess.run([*NAMESPACE, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        print(f"SKIPPED: no network namespace here: {tried.stderr.strip()}")
        return 0
    wanted = arguments.peers or (SHORT if arguments.short else [peer.name for peer in PEERS])
    if unknown := set(wanted) - {peer.name for peer in PEERS}:
        parser.error(f"there is no peer {', '.join(sorted(unknown))}")
    peers = [peer for peer in PEERS if peer.name in wanted]
    out = arguments.out or Path(tempfile.mkdtemp(prefix="compare-"))
    out.mkdir(parents=True, exist_ok=True)

    kept = [
        peer.name
        for peer in peers
        if arguments.resume and (folder_of(peer, out) / "results.json").is_file()
    ]
    environments = {peer.name: None if peer.name in kept else install(peer) for peer in peers}
    end = time.monotonic() + MINUTES * 60

    def one(peer: Peer) -> dict[str, Any]:
        if peer.name in kept:
            return read(folder_of(peer, out))
        environment = environments[peer.name]
        if environment is None:
            return {"missing": "it cannot be installed here"}
        print(f"compare: asking {peer.name}", file=sys.stderr, flush=True)
        return run_peer(peer, environment, out, arguments.ours.resolve(), end)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = dict(zip((peer.name for peer in peers), pool.map(one, peers), strict=True))
    (out / "results.json").write_text(json.dumps(results, ensure_ascii=False), encoding="utf-8")
    page = _report.page(results, peers, arguments.ours.resolve(), kept)
    print(page)
    if arguments.page:
        front, lists = _report.in_two(page)
        arguments.page.write_text(front, encoding="utf-8")
        beside = arguments.page.with_name(f"{arguments.page.stem}-cases.md")
        beside.write_text(lists, encoding="utf-8")
    faults = _report.faults(results, peers)
    for fault in faults:
        print(f"compare: {fault}", file=sys.stderr)
    print(f"compare: every answer is in {out}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
