"""Persons of a tenant: what one fetched is nobody else's, unless the tenant shares."""

import json
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest

from fetchstash.config import Settings, load
from fetchstash.config._load import TenantTable
from fetchstash.errors import UnknownRef
from fetchstash.service import Tenants, build_app, security_of
from fetchstash.service.access import FETCH, READ, Principal
from fetchstash.store import View, open_store, person_run, store_of_tenant
from tests.service.asgi import Tokens
from tests.service.sockets import serving
from tests.service.team import Web, ask, call, fetched, text_of, web_of
from tests.store.postgres import server

pytestmark = [pytest.mark.anyio, pytest.mark.whole]

SCOPES = frozenset({READ, FETCH})
PEOPLE = {
    "ada": Principal("acme", "ada", SCOPES, token="one"),
    "ada-again": Principal("acme", "ada", SCOPES, token="two"),
    "bob": Principal("acme", "bob", SCOPES, token="three"),
    "provided": Principal("acme", "ada", SCOPES, issuer="https://id.example"),
    "eve": Principal("globex", "ada", SCOPES, token="four"),
}
URL, WORDS = "https://a.example/plan", "The zebra plan of Ada.\n"
OTHER, OTHER_WORDS = "https://b.example/other", "Bob knows of no animal.\n"


@pytest.fixture(autouse=True)
def web() -> Generator[Web]:
    with web_of({URL: WORDS, OTHER: OTHER_WORDS}) as web:
        yield web


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    return server().new_database() if request.param == "postgres" else ""


def configured(folder: Path, catalog: str = "", **values: Any) -> Settings:
    store = {"store.folder": str(folder / "store"), "store.catalog": catalog}
    return load({**store, "extract.ocr": "off", **values})


@asynccontextmanager
async def served(settings: Settings) -> AsyncGenerator[tuple[httpx2.AsyncClient, Tenants]]:
    """Serve these people on a real socket."""
    opened = socket.create_server(("127.0.0.1", 0))
    tenants = Tenants(settings)
    security = security_of(settings.http, "127.0.0.1", opened.getsockname()[1])
    app = build_app(tenants, security, verifier=Tokens(**PEOPLE))
    async with serving(app, settings.http, opened) as port:
        base = f"http://127.0.0.1:{port}"
        async with httpx2.AsyncClient(base_url=base, timeout=60) as http:
            yield http, tenants
    await tenants.aclose()


# By which tools and methods somebody looks: those that list, and those that are given a name.
LISTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "artifact_info": ("artifact_info", {}),
    "artifact_search": ("artifact_search", {"query": "zebra plan"}),
    "resources/list": ("resources/list", {}),
    **{
        f"completion {name}": (
            "completion/complete",
            {
                "ref": {"type": kind, **({"uri": uri} if uri else {"name": "read_document"})},
                "argument": {"name": name, "value": value},
            },
        )
        for name, kind, uri, value in (
            ("artifact_ref", "ref/resource", "fetchstash://artifact/{artifact_ref}", "art_"),
            ("document", "ref/prompt", "", ""),
        )
    },
}
READS: Mapping[str, Callable[[str], tuple[str, Mapping[str, Any]]]] = {
    "get_search_content": lambda name: ("get_search_content", {"artifact_ref": name}),
    "artifact_info": lambda name: ("artifact_info", {"artifact_ref": name}),
    "artifact_slice": lambda name: ("artifact_slice", {"artifact_ref": name, "unit": "lines"}),
    "artifact_grep": lambda name: ("artifact_grep", {"pattern": ".", "artifact_ref": name}),
    "several": lambda name: ("artifact_grep", {"pattern": ".", "artifact_refs": [name]}),
    "artifact_search": lambda name: (
        "artifact_search",
        {"query": "zebra plan", "artifact_refs": [name]},
    ),
    "resource": lambda name: ("resources/read", {"uri": f"fetchstash://artifact/{name}"}),
}


async def answer(
    http: httpx2.AsyncClient, who: str, asked: tuple[str, Mapping[str, Any]]
) -> tuple[bool, str]:
    """Ask as somebody; return whether that failed, and all of the answer."""
    method, params = asked
    if "/" in method:
        said = await ask(http, who, method, params)
        return "error" in said, json.dumps(said)
    result = await call(http, who, method, **params)
    return bool(result.get("isError")), json.dumps(result)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "refs"), [("none", "own"), ("none", "tenant"), ("all", "own"), ("all", "tenant")]
)
async def test_a_person_sees_of_another_what_the_tenant_shares_and_no_more(
    tmp_path: Path, engine: str, share: str, refs: str
) -> None:
    rules = {"tenant.share": share, "tenant.refs": refs}
    async with served(configured(tmp_path, engine, **rules)) as (http, tenants):
        listed = await ask(http, "ada", "tools/list", {})
        tools = {tool["name"] for tool in listed["result"]["tools"]} - {"fetch_content"}
        assert tools <= {READS[name]("")[0] for name in READS}, "each tool is tried"
        ref = await fetched(http, "ada", URL)
        other = await fetched(http, "bob", OTHER)
        for who in PEOPLE:
            is_own, is_here = who in ("ada", "ada-again"), who != "eve"
            sees = is_own or (is_here and share == "all")
            opens = is_own or (is_here and (share == "all" or refs == "tenant"))
            for name, asked in LISTS.items():
                failed, said = await answer(http, who, asked)
                assert not failed, said
                shown = ref in said or "The zebra" in said or "plan of Ada" in said
                assert shown == sees, f"{who} by {name}: {said}"
            for name, reads in READS.items():
                failed, said = await answer(http, who, reads(ref))
                assert failed != opens, f"{who} by {name}: {said}"
                assert opens or "Ada" not in said, f"{who} by {name}: {said}"
                if name != "resource":
                    failed, said = await answer(http, who, reads(URL))
                    assert failed != sees, f"{who} by {name} of the URL: {said}"
            if not opens:
                guessed = await answer(http, who, READS["artifact_info"]("art_" + "a" * 26))
                foreign = await answer(http, who, READS["artifact_info"](ref))
                assert foreign[1] == guessed[1].replace("art_" + "a" * 26, ref)
                both = {"query": "zebra", "artifact_refs": [other, ref]}
                assert "Ada" not in (await answer(http, who, ("artifact_search", both)))[1]
        if share == "none":  # what another fetched is fetched anew
            again = await fetched(http, "bob", URL)
            assert again != ref
            assert ref not in (await answer(http, "bob", LISTS["artifact_info"]))[1]
        stashes = {name: await tenants.stash("acme", PEOPLE[name].run) for name in ("ada", "bob")}
        runs = {run.name for run in await stashes["bob"].store.runs()}
        assert (PEOPLE["ada"].run in runs) == (share == "all" or refs == "tenant")


async def test_deletion_and_clean_up_by_one_person_neither_reach_nor_name_anothers(
    tmp_path: Path, engine: str
) -> None:
    settings = configured(tmp_path, engine)
    async with served(settings) as (http, tenants):
        own, ref = await fetched(http, "bob", OTHER), await fetched(http, "ada", URL)
        bob = await tenants.stash("acme", PEOPLE["bob"].run)
        for change in (bob.delete, bob.pin, bob.store.touch):
            with pytest.raises(UnknownRef):
                await change(ref)
        limits = replace(store_of_tenant(settings.store, "acme"), max_artifacts=0)
        whole = await open_store(limits)  # so that clean-up has both to remove
        run = PEOPLE["bob"].run
        removed = await whole.seen_from(View(run, run, run)).gc(dry_run=True)
        assert [item.artifact_ref for item in removed] == [own]
        assert len(await whole.gc(dry_run=True)) == 2
        await whole.aclose()
        await bob.delete(own)
        # The tenant itself, as its operator has it, sees all.
        listed = await (await tenants.stash("acme")).list()
        assert [facts.artifact_ref for facts in listed.facts] == [ref]


async def test_what_was_kept_before_there_were_persons_opens_by_its_reference_alone(
    tmp_path: Path, engine: str
) -> None:
    async with served(configured(tmp_path, engine)) as (http, tenants):
        whole = await tenants.stash("acme")
        ref = (await whole.fetch(URL)).ref
        for who in ("ada", "bob"):
            assert "Ada" in (await answer(http, who, READS["get_search_content"](ref)))[1]
            assert ref not in (await answer(http, who, LISTS["artifact_info"]))[1]
        assert (await answer(http, "eve", READS["get_search_content"](ref)))[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("quota", "said"),
    [
        ({"quota.requests_per_minute": 10}, "You may send 5 requests a minute, and have."),
        ({"quota.fetched_bytes_per_day": 40}, "You may fetch 20 bytes a day"),
        (
            {"quota.artifacts": 2},
            (
                "You keep 1 artifact, as many as you may. That is 50% of your tenant's quota "
                "(quota.person_part). artifact_info() lists it, and whoever runs the service can "
                "delete some. The first of it expires in 168 h; the operator can change "
                "quota.artifacts"
            ),
        ),
        (
            {"quota.stored_bytes": 100},
            "and you may keep 50. That is 50% of your tenant's quota (quota.person_part).",
        ),
        ({"quota.hosts_per_minute": 1}, "You may fetch from 1 different hosts a minute"),
    ],
)
async def test_a_person_has_its_part_of_a_quota_and_the_others_the_rest(
    tmp_path: Path, engine: str, quota: Mapping[str, int], said: str
) -> None:
    settings = configured(tmp_path, engine, **{"quota.person_part": 0.5}, **quota)
    async with served(settings) as (http, _):
        answers = [
            await call(http, "ada", "fetch_content", url=url, refresh=True)
            for url in (URL, OTHER, URL, OTHER, URL, OTHER)
        ]
        refused = [text_of(a) for a in answers if a.get("isError")]
        assert refused
        assert said in refused[0]
        assert not answers[0].get("isError")
        assert not (await call(http, "bob", "fetch_content", url=OTHER)).get("isError")
        assert not (await call(http, "eve", "fetch_content", url=OTHER)).get("isError")


async def test_what_persons_have_together_is_the_tenants_quota(tmp_path: Path) -> None:
    values: dict[str, Any] = {"quota.person_part": 0.6, "quota.artifacts": 3}
    async with served(configured(tmp_path, **values)) as (http, _):
        for who, url in (("ada", URL), ("ada", OTHER), ("bob", URL)):
            await fetched(http, who, url)
        refused = await call(http, "bob", "fetch_content", url=OTHER)
        assert "You and the others of your tenant keep 3 artifacts" in text_of(refused)


@pytest.mark.slow
@pytest.mark.parametrize("share", ["none", "all"])
async def test_a_person_at_the_quota_deletes_what_is_their_own_and_fetches_on(
    tmp_path: Path, engine: str, share: str
) -> None:
    values = {"tenant.share": share, "quota.artifacts": 2, "quota.person_part": 0.5}
    settings = configured(tmp_path, engine, **{"tenant.delete": True}, **values)
    async with served(settings) as (http, tenants):
        own, bobs = await fetched(http, "ada", URL), await fetched(http, "bob", OTHER)
        refused = await call(http, "ada", "fetch_content", url=f"{URL}?2")
        assert 'artifact_delete(artifact_ref="art_…") makes room.' in text_of(refused)
        foreign = await call(http, "ada", "artifact_delete", artifact_ref=bobs)
        assert foreign["isError"]
        assert ("fetched by another" in text_of(foreign)) == (share == "all")
        for name in (own, URL):  # the second time it is gone
            gone = await call(http, "ada", "artifact_delete", artifact_ref=name)
            assert ("Deleted" in text_of(gone)) == (name == own)
        stash = await tenants.stash("acme")
        assert [facts.artifact_ref for facts in (await stash.list()).facts] == [bobs]
        await fetched(http, "ada", URL)


async def test_only_a_tenant_that_allows_it_has_the_tool_that_deletes(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    own = {"globex": TenantTable({"tenant.delete": True})}
    readers = {"eve-reads": replace(PEOPLE["eve"], scopes=frozenset({READ}))}
    with mock.patch.dict(PEOPLE, readers):
        async with served(replace(settings, tenants=own)) as (http, _):
            ref = await fetched(http, "ada", URL)
            lists = {who: await ask(http, who, "tools/list", {}) for who in ("ada", "eve")}
            offered = {
                who: {tool["name"]: tool for tool in listed["result"]["tools"]}
                for who, listed in lists.items()
            }
            assert offered["eve"].keys() - offered["ada"].keys() == {"artifact_delete"}
            assert offered["eve"]["artifact_delete"]["annotations"]["destructiveHint"]
            assert all(tool == offered["eve"][name] for name, tool in offered["ada"].items())
            refused = await call(http, "ada", "artifact_delete", artifact_ref=ref)
            assert "There is no tool 'artifact_delete'" in text_of(refused)
            own_ref = await fetched(http, "eve", URL)
            reader = await call(http, "eve-reads", "artifact_delete", artifact_ref=own_ref)
            assert text_of(reader).startswith("[refused] ")
    assert not settings.tools_differ
    assert replace(settings, tenants=own).tools_differ


def test_a_person_is_a_name_of_one_provider() -> None:
    runs = [principal.run for principal in PEOPLE.values()]
    assert runs[0] == runs[1] == runs[4]
    assert len(set(runs)) == 3
    assert person_run("a", "b") != person_run("ab", "")
