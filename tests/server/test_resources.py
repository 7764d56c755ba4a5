"""Resources, completion and prompts, in both eras; changes over stdio."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types import (
    BlobResourceContents,
    PromptReference,
    ResourceListChangedNotification,
    ResourceTemplateReference,
    TextContent,
)

from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_stdio import flags, started
from tests.server.test_tools import ERAS, REPORT, call, ref_in

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]
TEMPLATE = "fetchstash://artifact/{artifact_ref}"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
    "789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


async def fetched(client: Client, site: Site) -> list[str]:
    """Fetch a page and a PDF; return their references, newest first."""
    page = site.put("/guide.html", "<title>The guide</title><p>" + "some words " * 40)
    report = site.put("/report.pdf?key=5up3rs3cr3t", REPORT, "application/pdf")
    refs = [
        ref_in(await call(client, "fetch_content", url=url, maxChars=200)) for url in (page, report)
    ]
    return refs[::-1]


@pytest.mark.parametrize("mode", ERAS)
async def test_the_list_has_the_newest_with_title_url_size_and_age(
    mode: str, site: Site, connect: Connect
) -> None:
    async with connect(mode=mode) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == TEMPLATE
        assert (await client.list_resources()).resources == []
        refs = await fetched(client, site)
        report, guide = (await client.list_resources()).resources
    assert [str(report.uri), str(guide.uri)] == [f"fetchstash://artifact/{ref}" for ref in refs]
    assert (report.title, guide.title) == ("A report", "The guide")
    assert report.description
    assert "/report.pdf" in report.description
    assert "5up3rs3cr3t" not in report.model_dump_json()
    assert "PDF, " in report.description
    assert report.description.endswith("fetched just now")
    assert guide.size
    assert guide.size > 400
    assert guide.annotations


@pytest.mark.parametrize("mode", ERAS)
async def test_a_long_list_comes_in_pages(mode: str, site: Site, connect: Connect) -> None:
    urls = [site.put(f"/{n}.txt", f"words {n}", "text/plain") for n in range(60)]
    async with connect(mode=mode) as client:
        for start in range(0, 60, 10):
            await call(client, "fetch_content", urls=urls[start : start + 10])
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
        with pytest.raises(MCPError, match="cursor") as error:
            await client.list_resources(cursor="-1")
    assert (len(first.resources), len(second.resources)) == (50, 10)
    assert second.next_cursor is None
    assert len({str(r.uri) for r in (*first.resources, *second.resources)}) == 60
    assert error.value.error.code == -32602


@pytest.mark.parametrize("mode", ERAS)
async def test_completion_finds_by_title_and_url_as_well_as_by_reference(
    mode: str, site: Site, connect: Connect
) -> None:
    reference = ResourceTemplateReference(type="ref/resource", uri=TEMPLATE)
    prompt = PromptReference(type="ref/prompt", name="read_document")
    async with connect(mode=mode) as client:
        report, guide = await fetched(client, site)
        for typed, values in {
            "": [report, guide],
            report[:9]: [report],
            "guide": [guide],
            "THE gui": [guide],
            "report.pdf": [report],
            f"127.0.0.1:{site.port}": [report, guide],
            "nothing of that": [],
        }.items():
            for where, name in ((reference, "artifact_ref"), (prompt, "document")):
                got = await client.complete(where, {"name": name, "value": typed})
                assert got.completion.values == values


@pytest.mark.parametrize("mode", ERAS)
async def test_a_resource_that_is_not_there_is_named_in_the_data_of_the_error(
    mode: str, site: Site, connect: Connect
) -> None:
    async with connect(mode=mode) as client:
        for uri, code in (
            ("fetchstash://artifact/art_" + "a" * 26, "unknown_ref"),
            ("fetchstash://elsewhere/x", "bad_argument"),
        ):
            with pytest.raises(MCPError, match=code) as error:
                await client.read_resource(uri)
            assert error.value.error.data == {"uri": uri, "code": code}
            assert error.value.error.code == -32602


@pytest.mark.parametrize("mode", ERAS)
async def test_an_image_is_read_as_a_picture(mode: str, site: Site, connect: Connect) -> None:
    url = site.put("/dot.png", PIXEL, "image/png")
    async with connect(mode=mode) as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        (contents,) = (await client.read_resource(f"fetchstash://artifact/{ref}")).contents
    assert isinstance(contents, BlobResourceContents)
    assert contents.mime_type
    assert contents.mime_type.startswith("image/")


@pytest.mark.long
async def test_a_client_of_the_handshake_era_is_told_that_the_list_changed(
    site: Site, tmp_path: Path
) -> None:
    changed: list[Any] = []
    told = anyio.Event()

    async def handle(message: Any) -> None:
        if isinstance(message, ResourceListChangedNotification):
            changed.append(message)
            told.set()

    more: dict[str, Any] = {"mode": "legacy", "message_handler": handle}
    async with started(flags(site, tmp_path), tmp_path, **more) as client:
        assert client.server_capabilities.resources
        assert client.server_capabilities.resources.list_changed
        await fetched(client, site)
        with anyio.fail_after(60):
            await told.wait()
    assert 1 <= len(changed) <= 2


@pytest.mark.long
async def test_a_client_of_the_2026_era_listens_for_changes(site: Site, tmp_path: Path) -> None:
    async with (
        started(flags(site, tmp_path), tmp_path, mode="2026-07-28") as client,
        client.listen(resources_list_changed=True) as subscription,
    ):
        assert subscription.honored.resources_list_changed
        report, _ = await fetched(client, site)
        with anyio.fail_after(60):
            assert await anext(subscription) == ResourcesListChanged()
        assert str((await client.list_resources()).resources[0].uri).endswith(report)


@pytest.mark.parametrize("mode", ERAS)
async def test_the_prompts_take_a_url_or_a_reference(mode: str, connect: Connect) -> None:
    async with connect(mode=mode) as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert list(prompts) == ["read_document", "compare_pages", "find_in_fetched"]
        ref = "art_" + "a" * 26
        asked: dict[str, tuple[dict[str, str], list[str]]] = {
            "read_document": (
                {"document": "https://example.org/a", "question": "Who wrote it?"},
                [
                    "Fetch https://example.org/a with fetch_content.",
                    'Then answer "Who wrote it?". Say',
                ],
            ),
            "compare_pages": (
                {"first": ref, "second": "https://example.org/{b}"},
                [f"the artifact {ref}.", "Fetch https://example.org/{b} with fetch_content."],
            ),
            "find_in_fetched": ({"words": "a {rare} word"}, ["a {rare} word", "artifact_search"]),
        }
        for name, (arguments, parts) in asked.items():
            (message,) = (await client.get_prompt(name, arguments)).messages
            assert message.role == "user"
            assert isinstance(message.content, TextContent)
            assert all(part in message.content.text for part in parts)
        for name, arguments, words in (
            ("read_documents", {}, "Did you mean read_document?"),
            ("read_document", {}, "needs document"),
            ("read_document", {"document": "x", "other": "y"}, "has no argument 'other'"),
        ):
            with pytest.raises(MCPError, match=words):
                await client.get_prompt(name, arguments)
