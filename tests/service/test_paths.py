"""Nothing that a client over HTTP is sent names a place of the service's file system."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import PromptReference

from fetchstash.cli.demo.site import make_pdf
from tests.loopback import Site
from tests.service.asgi import Service, mcp_client

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def sent_by(client: Client, *urls: str) -> list[str]:
    """Make every call that a client can, and return what was sent, as JSON."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("fetch_content", {"urls": list(urls), "maxChars": 3_000}),
        ("fetch_content", {"url": urls[0], "refresh": True, "maxChars": 500}),
        *(
            (tool, {"artifact_ref": url, **more})
            for url in urls
            for tool, more in (
                ("get_search_content", {}),
                ("artifact_grep", {"pattern": "Page 2"}),
                ("artifact_slice", {"unit": "lines", "start": 1, "end": 2}),
                ("artifact_slice", {"unit": "bytes", "start": 0, "end": 64}),
                ("artifact_slice", {"unit": "pages", "start": 1, "end": 1, "render": "image"}),
                ("artifact_info", {}),
            )
        ),
        ("artifact_search", {"query": "page"}),
        ("artifact_info", {}),
        ("artifact_info", {"artifact_ref": "art_" + "a" * 26}),
        ("stash_file", {"path": "/etc/passwd"}),
    ]
    sent = [(await client.list_tools()).model_dump_json()]
    for tool, arguments in calls:
        sent.append((await client.call_tool(tool, arguments)).model_dump_json())
    try:
        listed = await client.list_resources()
        sent.append(listed.model_dump_json())
        reference = PromptReference(type="ref/prompt", name="read_document")
        argument = {"name": "document", "value": "art"}
        sent.append((await client.complete(reference, argument)).model_dump_json())
        read = [await client.read_resource(resource.uri) for resource in listed.resources]
        sent += [resource.model_dump_json() for resource in read]
    except MCPError as error:
        sent.append(str(error.error.model_dump_json()))
    return sent


async def test_no_answer_names_a_place_of_the_service(
    service: Service, site: Site, tmp_path: Path
) -> None:
    pdf = make_pdf([f"Page {n}. " + "words " * 200 for n in range(30)], title="A report")
    urls = (
        site.put("/report.pdf", pdf, "application/pdf"),
        site.put("/page", "<h1>Page 2</h1><p>words</p>"),
        site.url("/missing"),
    )
    async with service() as http, mcp_client(http) as client:
        sent = await sent_by(client, *urls)
        for name in ("raw", "text"):
            shutil.rmtree(tmp_path / "store" / name)
        broken = await sent_by(client, *urls)

    assert "saved as art_" in "".join(sent)
    assert "[store_error] The store failed. Try again, or fetch" in "".join(broken)
    assert "There is no tool 'stash_file'" in "".join(sent)
    for text in (*sent, *broken):
        assert str(tmp_path) not in text
        assert '"path":"' not in text
