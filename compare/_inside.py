"""Ask one peer all cases, inside a network namespace: started by compare/_run.py.

    python -m compare._inside PLAN.json

The plan names the command, its environment, the rule of calls and the groups of cases; what came is
written beside it as ``results.json``, and each answer as a text file.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compare._cases import Case, judge, load
from compare._peers import CALLS, PEERS, Peer
from compare._web import Web, resolver_files
from fetchstash.text.tokens import count

NO_ANSWER = "(no answer"
SECONDS = 40
"""A call that has not ended by then is no answer."""
START_SECONDS = 180
"""pi-web-access is compiled at its start, half a minute on a quiet machine."""


class Client:
    """An MCP client over stdin and stdout, by the handshake of 2025-06-18, that asks in turn."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], folder: Path) -> None:
        """Start the server in ``folder`` and shake hands with it."""
        self._start = (command, environment, folder)
        self._open()

    def _open(self) -> None:
        command, environment, folder = self._start
        with (folder / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env=environment,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()
        self._number = 0
        about = {"name": "compare", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        self.request("initialize", hello, START_SECONDS)
        self._send({"method": "notifications/initialized"})

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: "queue.Queue[str]") -> None:
        assert process.stdout
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def request(self, method: str, params: dict[str, Any], seconds: float = SECONDS) -> Any:
        """Return the result, or an error as text; raise TimeoutError, or EOFError at its end."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        end = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if not line:
                raise EOFError
            message: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if "method" in message and "id" in message:  # a request of the server's own
                refusal = {"code": -32601, "message": "not offered"}
                self._send({"id": message["id"], "error": refusal})
            elif message.get("id") == self._number:
                result: dict[str, Any] = message.get("result") or {"error": message.get("error")}
                return result

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Return the text of a tool's result; a server that hangs or ends is started again."""
        try:
            result = self.request("tools/call", {"name": tool, "arguments": arguments})
        except (TimeoutError, EOFError, BrokenPipeError) as error:
            self.close()
            self._open()
            late = isinstance(error, TimeoutError)
            return f"{NO_ANSWER}: {f'none after {SECONDS} s' if late else 'the server ended'})"
        if "error" in result:
            return f"(an error of the protocol: {json.dumps(result['error'])[:2_000]})"
        parts: list[dict[str, Any]] = result.get("content") or []
        return "\n".join(part.get("text") or f"({part.get('type')})" for part in parts)

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()


def ask(client: Client, peer: Peer, case: Case, web: Web) -> dict[str, Any]:
    """Call until the case is decided or nothing can follow, and return what came."""
    before, answers, seconds = len(web.inside), list[str](), list[float]()
    calls: list[str] = []
    outcome = "wrong"
    limit = CALLS if case.score == "reading" else peer.opening
    while len(answers) < limit and (call := peer.talk(case, answers)):
        began = time.monotonic()
        answers.append(client.call(*call))
        seconds.append(time.monotonic() - began)
        calls.append(f"{call[0]}({json.dumps(call[1], ensure_ascii=False)})")
        outcome = judge(case, answers, len(web.inside) - before)
        if outcome == "right" or len(web.inside) > before or answers[-1].startswith(NO_ANSWER):
            break
    return {
        "outcome": outcome,
        "score": case.score,
        "group": case.group,
        "tokens": sum(count(answer).tokens for answer in answers),
        "seconds": seconds,
        "calls": calls,
        "answers": answers,
        "inside": web.inside[before:],
    }


def main() -> None:
    """Ask the peer that the plan names."""
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    out = Path(sys.argv[1]).parent
    (peer,) = (peer for peer in PEERS if peer.name == plan["peer"])
    every = load()
    cases = [case for case in every if case.group in plan["groups"]]
    cases = [case for case in cases if case.fits(peer.role)]
    names = {
        name: address for case in every for name, address in case.page.get("names", {}).items()
    }
    pages = [page for case in every for page in case.pages if "url" in page]
    with tempfile.TemporaryDirectory() as name, Web(pages, names) as web:
        folder = Path(name)
        resolver_files(folder)
        environment = {"PATH": os.environ["PATH"], "HOME": name, "TMPDIR": name, "LANG": "C.UTF-8"}
        client = Client(plan["command"], environment | plan["environment"], folder)
        tools = client.request("tools/list", {}).get("tools", [])
        results: dict[str, Any] = {}
        for case in cases:
            results[case.name] = result = ask(client, peer, case, web)
            text = "\n\n".join(
                f"> {call}\n\n{answer}"
                for call, answer in zip(result["calls"], result["answers"], strict=True)
            )
            head = f"{case.name}: {result['outcome']}, {result['tokens']:,} tokens"
            (out / f"{case.name}.txt").write_text(f"{head}\n\n{text}\n", encoding="utf-8")
            result["answers"] = [answer[:1_500] for answer in result["answers"]]
        client.close()
        (out / "stderr.txt").write_bytes((folder / "stderr").read_bytes()[-20_000:])
    shown = [
        {key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in tools
    ]
    catalogue = count(json.dumps(shown, ensure_ascii=False)).tokens
    kept = {"catalogue": catalogue, "cases": results}
    (out / "results.json").write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
