import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from fetchstash.config import load
from fetchstash.service import AuditLog, _request
from fetchstash.service._observed import MAX_MESSAGE_CHARS, JsonLines, log_to
from fetchstash.service.access import Principal
from tests.service.asgi import Service
from tests.service.team import ask, call, of, team, web_of

LOGS = ("", "fetchstash", "fetchstash.fetch", "mcp.server.transport_security")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Send the logs of this process to a stream, and put them back."""
    root = logging.getLogger()
    handlers, levels = root.handlers[:], [logging.getLogger(name).level for name in LOGS]
    stream = io.StringIO()
    root.handlers.clear()
    log_to(stream)
    yield stream
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    for name, level in zip(LOGS, levels, strict=True):
        logging.getLogger(name).setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_each_line_is_a_json_object_that_names_its_request(stream: io.StringIO) -> None:
    def log() -> None:
        _request.begin({"type": "http", "headers": [(b"x-request-id", b"abc-1")]})
        log = logging.getLogger("fetchstash.service")
        log.info("hello\n%s", "world", extra={"facts": {"n": 1}})

    copy_context().run(log)
    [line] = lines(stream)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "fetchstash.service",
        "message": "hello world",
        "request_id": "abc-1",
        "n": 1,
    }


@pytest.mark.anyio
async def test_a_host_and_an_origin_that_a_client_chose_are_in_no_line(
    stream: io.StringIO, service: Service
) -> None:
    async with service() as http:
        await http.post("/mcp", json={}, headers={"host": "my-secret.example"})
        await http.post("/mcp", json={}, headers={"origin": "https://my-secret.example"})
    assert [line["status"] for line in lines(stream)] == [421, 403]
    assert "secret" not in stream.getvalue()


def test_the_text_of_an_exception_is_not_logged(stream: io.StringIO) -> None:
    try:
        raise ValueError("the secret page")  # noqa: TRY301 - the exception is the subject
    except ValueError:
        logging.getLogger("mcp.server").exception("handler for %r raised", "tools/call")
    [line] = lines(stream)
    assert "secret" not in stream.getvalue()
    assert (line["error"], line["logger"]) == ("ValueError", "mcp.server")
    assert line["frames"][0].startswith("test_logs.py:")
    assert line["frames"][0].endswith(" test_the_text_of_an_exception_is_not_logged")


@pytest.mark.anyio
async def test_the_exception_of_a_forgotten_task_is_not_quoted(stream: io.StringIO) -> None:
    async def fail() -> None:
        raise ValueError("the secret page")

    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    context = {"message": "Task exception was never retrieved", "future": task}
    asyncio.get_running_loop().default_exception_handler(context | {"exception": task.exception()})
    [line] = lines(stream)
    assert (line["logger"], line["error"]) == ("asyncio", "ValueError")
    assert line["message"] == "Task exception was never retrieved"
    assert "secret" not in stream.getvalue()


def test_urls_are_masked_and_messages_bounded_and_clean(stream: io.StringIO) -> None:
    log = logging.getLogger("httpx")
    log.warning("GET https://a:b@h.example/x?token=abc&q=1 \x1b[31mred\u202e")
    log.warning("y" * 10_000)
    masked, long = (line["message"] for line in lines(stream))
    assert masked == "GET https://***@h.example/x?token=***&q=1 red"
    assert len(long) == MAX_MESSAGE_CHARS


def test_what_servers_answered_is_not_logged(stream: io.StringIO) -> None:
    logging.getLogger("fetchstash.fetch").info("a.example answered 404. The answer begins: x")
    assert lines(stream) == []


def test_a_message_that_does_not_fit_its_arguments_is_logged_as_it_is() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 1, "%d of %d", ("one",), None)
    assert json.loads(JsonLines().format(record))["message"] == "%d of %d"


def test_a_principal_of_any_text_stays_one_short_word_of_a_line() -> None:
    name = "eve\n\x1b[31m\u202e" + "x" * 5_000
    record = _request.Record("r", {"fetchstash.principal": Principal("t", name, frozenset())})
    assert record.names["principal"].startswith("eve xxx")
    assert len(record.names["principal"]) <= 200


@pytest.mark.anyio
async def test_a_rejected_token_is_one_line_with_its_reason(
    stream: io.StringIO, tmp_path: Path
) -> None:
    settings = load({"store.folder": str(tmp_path)})
    async with team(settings) as (http, _):
        for token in ("nobody", ""):
            headers = of(token) if token else {}
            await http.post("/mcp", json={}, headers=headers)
    assert [(line["status"], line["code"]) for line in lines(stream)] == [
        (401, "unknown"),
        (401, "no_token"),
    ]


@pytest.mark.anyio
async def test_nothing_that_clients_pages_or_tokens_say_is_in_any_log(
    stream: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[telemetry]\nevent_log = " + json.dumps(str(tmp_path / "events.jsonl")))
    settings = load({"store.folder": str(tmp_path / "store"), "extract.ocr": "off"}, file=file)
    page = "https://a.example/plan?token=secret-in-url"
    audit = tmp_path / "audit.jsonl"

    async def broken(*_: object) -> None:
        raise RuntimeError("secret-of-an-exception")

    with web_of({page: "The secret-page.\n"}):
        async with team(settings, audit=AuditLog(audit)) as (http, _):
            fetched = await call(http, "acme", "fetch_content", url=page)
            ref = fetched["_meta"]["fetchstash/artifact"][0]["artifact_ref"]
            await call(http, "acme", "artifact_grep", artifact_ref=ref, pattern="secret-pattern")
            await call(http, "acme", "artifact_search", query="secret-query")
            await call(http, "acme", "secret-tool")
            await ask(http, "acme", "secret/method", {"secret": "secret-parameter"})
            await ask(http, "acme", "resources/read", {"uri": "fetchstash://secret-uri"})
            await http.post("/secret-path?secret=1", content=b"secret-body")
            await http.post("/mcp", content=b'{"secret":', headers=of("acme"))
            await http.post("/mcp", content=b"{}", headers=of("secret-token"))
            monkeypatch.setattr("fetchstash.server._call.answer", broken)
            await call(http, "acme", "artifact_info")
    files = [audit, *tmp_path.rglob("events.jsonl")]
    assert len(files) == 2
    everything = stream.getvalue() + "".join(file.read_text() for file in files)
    assert "RuntimeError" in everything
    assert len(lines(stream)) > 10
    assert "secret" not in everything
    assert ref not in stream.getvalue() + audit.read_text()
