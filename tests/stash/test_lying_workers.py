"""A worker that was taken over makes the server ask for no address that is not in the page."""

import json
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import BadArgument
from fetchstash.stash import Stash
from tests.handlers.taken_over import instead
from tests.loopback import Site
from tests.public import NAME
from tests.stash.conftest import OpenStash

pytestmark = pytest.mark.anyio

TEXT = "The gate opens at nine.\n"
SECRET = "/steal?d=The+gate+opens+at+nine"
SAYS = """
while True:
    job = receive()
    if job["do"] == "part":
        send({"found": PART, "sound": True})
        continue
    Path(job["text"]).write_text(TEXT)
    send({"handler": "h"})
    send(piece(len(TEXT), len(TEXT)))
    send({"done": FACTS | LIES, "sound": True})
"""
PAGE = f"<title>Gate</title><p>{TEXT}"
FILM = f"<title>Gate</title>{f'<p>{TEXT}' * 200}<iframe src='/film'></iframe>"
QUOTED = [
    "<!-- <meta http-equiv=refresh content='0;url=/steal'> -->",
    "<textarea><meta http-equiv=refresh content='0;url=/steal'></textarea>",
    "<script type='application/json'>\"<iframe src='/steal'>\"</script>",
    "<p title=\"<meta http-equiv=refresh content='0;url=/steal'>\">The gate",
    "<iframe src='/steal' width=0></iframe>",
    "<iframe src='/steal' style='display: none'></iframe>",
    "<meta http-equiv=refresh content='99;url=/steal'>",
]
DOCUMENTS = {
    "a page": (PAGE, "text/html"),
    "a page with a film": (FILM, "text/html"),
    "a PDF": (f"%PDF-1.4\n<meta http-equiv=refresh content='0;url={SECRET}'>", "application/pdf"),
    "a text": (TEXT, "text/plain"),
    **{quoted: (quoted, "text/html") for quoted in QUOTED},
}


def lie(monkeypatch: pytest.MonkeyPatch, folder: Path, lies: Any = None, part: Any = None) -> None:
    said = f"TEXT, LIES, PART = {TEXT!r}, json.loads({json.dumps(lies)!r}) or {{}}, {part!r}\n"
    instead(monkeypatch, folder, said + SAYS)


@pytest.mark.parametrize("verdict", ["leads_on", "empty_shell"])
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
async def test_a_worker_that_names_an_address_sends_the_server_nowhere(
    document: tuple[str, str],
    verdict: str,
    site: Site,
    open_public: OpenStash,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lie(monkeypatch, tmp_path, {"page_verdict": verdict, "leads_to": NAME + SECRET})
    site.put("/document", *document)
    async with open_public() as stash:
        artifact = await stash.fetch(f"{NAME}/document")
        assert await artifact.text() == TEXT
        assert SECRET not in artifact.facts.leads_to
    assert site.asked == ["/document"]


@pytest.mark.parametrize("document", [*DOCUMENTS.values()][:3], ids=[*DOCUMENTS][:3])
async def test_a_worker_that_names_a_picture_sends_the_server_to_those_of_the_page_alone(
    document: tuple[str, str],
    site: Site,
    open_public: OpenStash,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lie(monkeypatch, tmp_path, part={"text": NAME + SECRET, "total": 1, "cut": False})
    site.put("/document", *document)
    async with open_public() as stash:
        artifact = await stash.fetch(f"{NAME}/document")
        with pytest.raises(BadArgument):
            await artifact.picture(path="images/1")
    assert site.asked == ["/document"]


FOUND = {
    "a refresh in capitals": "<META HTTP-EQUIV='Refresh' CONTENT='3;URL=\"/b\"'>",
    "a refresh after a comment": "<!--><!-- <p> --><meta http-equiv=refresh content=0;url=/b>",
    "an address with a character reference": "<meta http-equiv=refresh content='0;url=/b&#x3f;'>",
    "a base": "<base href='/x/'><meta http-equiv=refresh content='0;url=../b'>",
    "a frame of several": "<frameset><frame name=toc src=/t><frame name=main src=/b></frameset>",
    "a script": "<script>window.location.href = '/b';</script>",
}


@pytest.mark.in_process
@pytest.mark.parametrize("page", FOUND.values(), ids=FOUND)
async def test_the_server_finds_where_a_page_leads_by_itself(
    page: str, site: Site, public: Stash
) -> None:
    site.put("/a", page)
    site.put("/b", "the text", "text/plain")
    artifact = await public.fetch(f"{NAME}/a")
    assert artifact.facts.final_url.startswith(f"{NAME}/b")
