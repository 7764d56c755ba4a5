"""Run the examples of docs/frameworks.md with each framework's real packages and a scripted model.

    scripts/ci frameworks [NAME …]

Each framework has an environment of its own (requirements). Its agent starts fetchstash as an
MCP server, fetches a long document, finds the place that answers, and prints it. Where the example
also has the client library, the model reads so much in between that it refuses the request as too
long, and the agent must answer nevertheless. Nothing but loopback can be reached. Exit code: how
many frameworks failed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scripts.drive.hosts import write
from scripts.drive.loopback import Loopback, Page
from scripts.drive.programs import check, failures, options
from scripts.drive.speech import Heard, Step
from scripts.drive.tools import ROOT, node_tool, python_tool, uv_program
from scripts.parts.packages import build_wheel

EXAMPLES = ROOT / "examples"
QUESTION, ANSWER = "What is the answer to question 777?", "The answer to question 777 is 2331."
BOOK = "".join(
    f"## Chapter {n}\n\nThe answer to question {n} is {n * 3}.\n\n" for n in range(1, 9_001)
)
WINDOW = 150_000
"""Bytes of a request that the model takes: two of the three slices that it asks for."""
SLICE = 60_000
SECONDS = 400
"""What one run may take on a loaded machine; a quiet one takes some ten seconds."""


@dataclass(frozen=True, slots=True)
class Framework:
    """An example, and the tool of requirements that it runs with.

    ``client``: how the client library is in it, by recovering from a refusal, or by compacting
    before it comes to one; "" where nobody can reach the messages.
    """

    name: str
    tool: str
    client: Literal["recovers", "compacts", ""] = "recovers"
    example: str = ""
    """Its file in examples/, frameworks/with_NAME by default."""


FRAMEWORKS = (
    Framework("openai_agents", "openai-agents"),
    Framework("claude_agent_sdk", "claude-agent-sdk", client=""),
    Framework("google_adk", "google-adk"),
    Framework("langgraph", "langgraph"),
    Framework("pydantic_ai", "pydantic-ai"),
    Framework("llama_index", "llama-index"),
    Framework("crewai", "crewai", client="compacts"),
    Framework("strands", "strands"),
    Framework("smolagents", "smolagents"),
    Framework("agent_framework", "agent-framework"),
    Framework("autogen", "autogen"),
    Framework("litellm", "litellm"),
    Framework("ai_sdk", "ai-sdk", client=""),
    Framework("tools_langchain", "langchain", client="", example="tools_langchain.py"),
    Framework("tools_pydantic_ai", "pydantic-ai", client="", example="tools_pydantic_ai.py"),
)


def program(framework: Framework, wheel: Path, work: Path) -> list[str] | None:
    """Return the command line of an example, its framework installed; None if it cannot be."""
    (example,) = EXAMPLES.glob(framework.example or f"frameworks/with_{framework.name}.*")
    if example.suffix == ".mjs":
        folder = node_tool(framework.tool)
        if folder is None:
            return None
        beside = folder / example.name  # where node looks for its packages
        shutil.copy(example, beside)
        return ["node", str(beside), QUESTION]
    programs = python_tool(framework.tool)
    if programs is None:
        return None
    # The client of fetchstash needs no other package; frameworks that need mcp 1 have it so, too.
    library = work / "library"
    if not library.exists():
        to_library = ["--no-deps", "--target", str(library), str(wheel)]
        subprocess.run([str(uv_program()), "pip", "install", "-q", *to_library], check=True)
    return [str(programs / "python"), "-P", str(example), QUESTION]


def environment(home: Path, model: str) -> dict[str, str]:
    """Return all of the environment of an agent: its model, and no way to anywhere else."""
    path = [Path(sys.executable).parent, Path(shutil.which("node") or "/usr/bin/node").parent]
    nowhere = "http://127.0.0.1:1"
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join([*map(str, path), "/usr/local/bin", "/usr/bin", "/bin"]),
        "PYTHONPATH": str(home.parent / "library"),
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{model}/v1",
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": model,
        "GOOGLE_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": model,
        # What would report to its makers or fetch lists must not: all else goes to a closed port.
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OTEL_SDK_DISABLED": "true",
        "WINDOW": str(WINDOW // 4),
    }


def steps(url: str, *, long: bool) -> Sequence[Step]:
    """Return the calls of the model: fetch, find; and read too much before, if it is to be long."""
    parts = [
        {"artifact_ref": url, "unit": "chars", "start": at, "end": at + SLICE, "maxChars": SLICE}
        for at in range(0, 3 * SLICE, SLICE)
    ]
    find = {"artifact_ref": url, "pattern": "question 777 is", "context": 0}
    return (
        Step("fetch_content", {"url": url, "maxChars": 1_000}),
        *(Step("artifact_slice", part) for part in parts if long),
        Step("artifact_grep", find),
    )


def conclude(heard: Sequence[Heard]) -> str:
    """Return the line of the last result that answers."""
    found = re.search(r"The answer to question 777 is \d+\.", heard[-1].text)
    return f"It says: {found[0]}" if found else f"It was not found: {heard[-1].text[:300]}"


def fault(framework: Framework, command: list[str], loopback: Loopback, home: Path) -> str:
    """Run an example, its context too long where it has the client; return what is wrong."""
    url = loopback.url("/book.md")
    address = f"127.0.0.1:{loopback.port}"
    settings = f'[fetch]\nallow_hosts = ["{address}"]\nrespect_robots = false\n'
    write(home / ".config" / "fetchstash" / "fetchstash.toml", settings)
    work = home / "work"  # a project: servers that are started for each call share what they keep
    work.mkdir(exist_ok=True)
    long = bool(framework.client)
    loopback.window = WINDOW if long else 0
    loopback.play(steps(url, long=long))
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env=environment(home, loopback.url()),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end in {SECONDS} s"
    if done.returncode or ANSWER not in done.stdout:
        return f"exit code {done.returncode}: {(done.stdout + done.stderr)[-1_500:]}"
    results = len(loopback.heard)
    if results < len(loopback.steps):
        return f"{results} results reached the model, and not {len(loopback.steps)}"
    if long and bool(loopback.refused) != (framework.client == "recovers"):
        return f"the model refused {loopback.refused} requests as too long"
    return ""


def main() -> int:
    """Run the frameworks that are named, or all; return how many failed."""
    chosen = options(__doc__, names=[framework.name for framework in FRAMEWORKS]).names
    passed = 0
    pages = {"/book.md": Page(BOOK.encode(), "text/markdown; charset=utf-8")}
    with tempfile.TemporaryDirectory() as folder, Loopback(pages, conclude=conclude) as loopback:
        work = Path(folder)
        wheel = build_wheel(work)
        for framework in FRAMEWORKS:
            command = framework.name in chosen and program(framework, wheel, work)
            if not command:
                continue
            home = work / framework.name
            home.mkdir()
            begin = time.monotonic()
            wrong = fault(framework, command, loopback, home)
            does = f"; the client {framework.client}" if framework.client else ""
            took = f"answered after {time.monotonic() - begin:.0f} s{does}"
            passed += check(f"{framework.name}: {'' if wrong else took}", wrong)
    print(f"{passed} frameworks of {len(chosen)} passed")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
