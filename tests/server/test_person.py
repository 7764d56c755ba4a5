"""A private host that is refused is asked of the person, over stdio in both protocol eras."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ClientCapabilities, ElicitRequestFormParams, ElicitResult, Implementation

from fetchstash.config import load
from fetchstash.errors import Refused
from fetchstash.fetch import FetchLimits, HttpFetcher
from fetchstash.server import LazyStash, build_server
from tests.loopback import Site
from tests.server.test_hosts import exchanged, modern
from tests.server.test_tools import ERAS, call, fail, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


class Answering:
    """A person who answers every question alike, and remembers the questions.

    By default the person types the host that the question names, in capitals and with a space.
    """

    def __init__(self, action: str = "accept", typed: str | None = None) -> None:
        self.questions: list[str] = []
        self._action: Any = action
        self._typed = typed

    async def __call__(self, context: Any, params: Any) -> ElicitResult:  # noqa: ARG002 - the SDK names it
        assert isinstance(params, ElicitRequestFormParams)
        self.questions.append(params.message)
        host = params.message.partition(" Type ")[2].removesuffix(" to allow it.")
        typed = f"{host.upper()} " if self._typed is None else self._typed
        content: dict[str, Any] = {"host": typed}
        return ElicitResult(
            action=self._action, content=content if self._action == "accept" else None
        )


class Filling:
    """A client that accepts forms by itself, and fills in what the schema offers."""

    def __init__(self, fill: Callable[[dict[str, Any]], Any]) -> None:
        self.filled: list[Any] = []
        self._fill = fill

    async def __call__(self, context: Any, params: Any) -> ElicitResult:  # noqa: ARG002 - the SDK names it
        assert isinstance(params, ElicitRequestFormParams)
        self.filled.append(self._fill(params.requested_schema))
        return ElicitResult(action="accept", content=self.filled[-1])


def of_fields(value: Callable[[str, dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """Return what fills each field of a form's schema."""
    return lambda schema: {name: value(name, one) for name, one in schema["properties"].items()}


FILLERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "nothing": lambda _: None,
    "an empty form (Codex 0.169 with approvals bypassed)": lambda _: {},
    "empty strings": of_fields(lambda _, __: ""),
    "defaults": of_fields(lambda _, one: one.get("default", "")),
    "the first choice": of_fields(lambda _, one: (one.get("enum") or [one.get("const", "")])[0]),
    "names": of_fields(lambda name, _: name),
    "titles": of_fields(lambda _, one: one.get("title", "")),
    "descriptions": of_fields(lambda _, one: one.get("description", "")),
    "examples": of_fields(lambda _, one: (one.get("examples") or [""])[0]),
    "yes": of_fields(lambda _, __: "yes"),
}
"""How a program may fill in a form that nobody reads."""


def asked_by(
    tmp_path: Path,
    mode: str,
    person: Any,
    settings: dict[str, Any] | None = None,
    *,
    is_local: bool = True,
    **more: Any,
) -> Client:
    """Return a client of a server in this process, which can dial loopback alone (conftest)."""
    own = {"store.folder": str(tmp_path / "store"), "fetch.respect_robots": False}
    server = build_server(LazyStash(load({**own, **(settings or {})}), local=is_local))
    return Client(server, mode=mode, elicitation_callback=person, **more)


@pytest.mark.long
@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_who_says_yes_is_asked_once_and_for_that_host_and_port_alone(
    mode: str, site: Site, tmp_path: Path
) -> None:
    person = Answering()
    urls = [site.put(f"/{n}.txt", f"words {n}", "text/plain") for n in range(3)]
    async with asked_by(tmp_path, mode, person) as client:
        for number, url in enumerate(urls):
            assert f"words {number}" in await call(client, "fetch_content", url=url)
        question = (
            f"May fetchstash fetch from 127.0.0.1:{site.port}, for this session? "
            "127.0.0.1 is loopback: the machine fetchstash runs on (RFC 1122). "
            "Type 127.0.0.1 to allow it."
        )
        assert person.questions == [question]
        line = await fail(client, "fetch_content", url=f"http://127.0.0.2:{site.port}/")
        assert line.startswith(("[refused] ", "[http_error] ", "[fetch_failed] "))
        assert len(person.questions) == 2  # another host is another question
    async with asked_by(tmp_path, mode, None) as client:
        line = await fail(client, "fetch_content", url=urls[0])
        assert line.endswith("The operator can allow it by fetch.allow_hosts.")


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("fill", FILLERS.values(), ids=FILLERS.keys())
async def test_a_client_that_accepts_by_itself_opens_nothing(
    mode: str, fill: Any, site: Site, tmp_path: Path
) -> None:
    client_that_accepts = Filling(fill)
    url = site.put("/a.txt", "words", "text/plain")
    async with asked_by(tmp_path, mode, client_that_accepts) as client:
        assert (await fail(client, "fetch_content", url=url)).startswith("[refused] ")
    assert len(client_that_accepts.filled) == 1
    assert not site.asked


@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_who_mistypes_the_host_is_asked_again(
    mode: str, site: Site, tmp_path: Path
) -> None:
    person = Answering(typed="127.0.0.10")
    url = site.put("/a.txt", "words", "text/plain")
    async with asked_by(tmp_path, mode, person) as client:
        for number in range(2):
            assert (await fail(client, "fetch_content", url=url)).startswith("[refused] ")
            assert len(person.questions) == number + 1
    assert not site.asked


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_who_says_no_is_not_asked_again(
    mode: str, action: str, site: Site, tmp_path: Path
) -> None:
    person = Answering(action)
    url = site.put("/a.txt", "words", "text/plain")
    async with asked_by(tmp_path, mode, person) as client:
        for _ in range(2):
            line = await fail(client, "fetch_content", url=url)
            assert line.startswith("[refused] ")
            assert line.endswith("The operator can allow it by fetch.allow_hosts.")
    assert len(person.questions) == 1
    assert not site.asked


@pytest.mark.parametrize("mode", ERAS)
async def test_one_of_several_urls_is_asked_about_too(
    mode: str, site: Site, tmp_path: Path
) -> None:
    person = Answering()
    urls = [site.put(f"/{n}.txt", f"words {n}", "text/plain") for n in range(2)]
    async with asked_by(tmp_path, mode, person) as client:
        text = await call(client, "fetch_content", urls=[*urls, "http://127.0.0.2:22/"])
        assert "words 0" in text
        assert "words 1" in text
    assert len(person.questions) == 2
    assert "127.0.0.2:22" in person.questions[1]


NOBODY_IS_ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        url: (url, {})
        for url in (
            "http://169.254.169.254/latest/meta-data/",
            "http://metadata.tencentyun.com/",
            "http://[fd00:ec2::254]/",
            "http://x.onion/",
            "http://224.0.0.1/",
            "ftp://10.0.0.1/",
            "http://example.org:22/",
        )
    },
    "a redirect": ("/away", {"fetch.allow_hosts": "SITE"}),
    "the setting is off": ("/a.txt", {"fetch.ask": False}),
    "a host that answers for its person": ("/a.txt", {"client": "codex-mcp-client"}),
    "a client elsewhere": ("/a.txt", {"local": False}),
}


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(("url", "given"), NOBODY_IS_ASKED.values(), ids=NOBODY_IS_ASKED)
async def test_a_person_is_not_asked_about_what_no_person_should_allow_or_is_there_to(
    mode: str, url: str, given: dict[str, Any], site: Site, tmp_path: Path
) -> None:
    site.put("/away", status=302, headers={"Location": "http://10.0.0.1/"})
    site.put("/a.txt", "words", "text/plain")
    settings, person = dict(given), Answering()
    info = Implementation(name=settings.pop("client", "test"), version="0.169.0")
    local = settings.pop("local", True)
    if "fetch.allow_hosts" in settings:
        settings["fetch.allow_hosts"] = [f"127.0.0.1:{site.port}"]
    async with asked_by(
        tmp_path, mode, person, settings, is_local=local, client_info=info
    ) as client:
        line = await fail(client, "fetch_content", url=site.url(url) if url[0] == "/" else url)
    assert line.startswith("[refused] ")
    assert not person.questions


@pytest.mark.long
def test_an_answer_to_a_question_that_was_not_asked_opens_nothing(
    site: Site, tmp_path: Path
) -> None:
    url = site.put("/a.txt", "words", "text/plain")
    request = modern(
        1,
        "tools/call",
        "somebody",
        name="fetch_content",
        arguments={"url": url},
        inputResponses={f"allow-127.0.0.1:{site.port}": {"action": "accept", "content": {}}},
    )
    forms = ClientCapabilities.model_validate({"elicitation": {"form": {}}})
    meta = request["params"]["_meta"]
    meta["io.modelcontextprotocol/clientCapabilities"] = forms.model_dump(exclude_none=True)
    flags = ["--no-respect-robots", "--folder", str(tmp_path / "store")]
    (answer,) = exchanged(flags, request)
    assert answer["result"]["resultType"] == "input_required"
    assert not site.asked


async def test_a_yes_for_a_name_lets_no_metadata_service_through(tmp_path: Path) -> None:
    class Rebinding:
        async def look_up(self, host: str) -> list[IPv4Address | IPv6Address]:  # noqa: ARG002 - the Protocol's
            return [ip_address("169.254.169.254")]

    fetcher = HttpFetcher(FetchLimits(respect_robots=False), resolver=Rebinding())
    fetcher.grant("intranet.example", 80)
    with pytest.raises(Refused, match="metadata service"):
        await fetcher.fetch("http://intranet.example/", tmp_path)
    await fetcher.aclose()


async def test_the_text_of_a_refusal_names_the_setting(tmp_path: Path) -> None:
    async with asked_by(tmp_path, "auto", None) as client:
        result: Any = await client.call_tool("fetch_content", {"url": "http://10.1.2.3/"})
    assert text_of(result) == (
        "[refused] 10.1.2.3 is in a private network (RFC 1918). "
        "The operator can allow it by fetch.allow_hosts."
    )
