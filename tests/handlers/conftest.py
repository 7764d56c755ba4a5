"""What tests of the room share.

Documents are made in code, written to a file and read by their handler.
"""

import io
import os
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import (
    Extracted,
    ExtractLimits,
    Handler,
    Hints,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._contract import Render
from tests.handlers.parts import PAGE_URL, handler_named, text_part

Install = Callable[..., None]
Save = Callable[[bytes], Path]
Read = Callable[..., tuple[Extracted, str]]
PartOf = Callable[..., PartText | Picture]
Pack = Callable[[Mapping[str, str | bytes]], bytes]


def install(site: Path, patch: pytest.MonkeyPatch, name: str, module: str) -> None:
    """Give the workers one more built-in module of formats."""
    site.mkdir(exist_ok=True)
    (site / f"{name}.py").write_text(module)
    (site / "sitecustomize.py").write_text(
        f"from fetchstash.handlers import _registry\n_registry.MODULES += ({name!r},)\n"
    )
    patch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)


@pytest.fixture
def install_handler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return ``install`` for one test."""
    return partial(install, tmp_path / "site-packages", monkeypatch)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write bytes to a file and return its path."""

    def write(data: bytes) -> Path:
        source = tmp_path / "document"
        source.write_bytes(data)
        return source

    return write


@pytest.fixture
def read(save: Save) -> Read:
    """Extract a document with a handler (or its name); return the facts and the whole text."""

    def run(
        handler: Handler | str,
        data: bytes,
        limits: ExtractLimits | None = None,
        media_type: str = "",
        url: str = "",
    ) -> tuple[Extracted, str]:
        handler = handler_named(handler) if isinstance(handler, str) else handler
        hints = Hints(media_type=media_type, url=url)
        found = handler.extract(save(data), hints, limits or ExtractLimits())
        if found.parts is None:
            return found, ""
        parts = found.parts = list(found.parts)
        return found, "".join(part.text for part in parts)

    return run


@pytest.fixture
def part(save: Save) -> PartOf:
    """Return a part of a document by the name of its handler, as text by default."""

    def run(handler: str, data: bytes, path: str = "", **request: Any) -> PartText | Picture:
        return handler_named(handler).part(PartRequest(source=save(data), path=path, **request))

    return run


@pytest.fixture
def read_page(save: Save) -> Read:
    """Extract a web page; return the facts and the whole text."""

    def run(html: str | bytes, *, url: str = PAGE_URL, charset: str = "") -> tuple[Extracted, str]:
        data = html if isinstance(html, bytes) else html.encode("utf-8", "surrogatepass")
        hints = Hints(url=url, charset=charset)
        found = handler_named("html").extract(save(data), hints, ExtractLimits())
        return found, "".join(part.text for part in found.parts or ())

    return run


@pytest.fixture
def page_part(save: Save) -> Callable[..., str]:
    """Return a part of a web page, or the address of a picture of it."""

    def run(html: str, path: str, *, url: str = PAGE_URL, render: Render = "text") -> str:
        source = save(html.encode())
        return text_part("html", source, path, hints=Hints(url=url), render=render).text

    return run


def reads(handler: str, cases: Mapping[str, tuple[bytes, str]]) -> Callable[..., None]:
    """Return a test that the documents of ``cases`` are read as the texts beside them."""

    @pytest.mark.parametrize(("data", "text"), list(cases.values()), ids=list(cases))
    def test(read: Read, data: bytes, text: str) -> None:
        assert read(handler, data)[1] == text

    return test


def unreadable(handler: str, cases: Mapping[str, tuple[bytes, str]]) -> Callable[..., None]:
    """Return a test that the documents of ``cases`` give the one line beside them."""

    @pytest.mark.parametrize(("data", "reason"), list(cases.values()), ids=list(cases))
    def test(read: Read, data: bytes, reason: str) -> None:
        with pytest.raises(NoText) as caught:
            read(handler, data)
        assert reason in caught.value.what

    return test


def check_facts(extracted: Extracted, **expected: object) -> None:
    """Check some facts of a document by name."""
    assert {name: getattr(extracted.facts, name) for name in expected} == expected


@pytest.fixture
def pack() -> Pack:
    """Return a zip file of members by name."""

    def make(members: Mapping[str, str | bytes]) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as container:
            for name, content in members.items():
                container.writestr(name, content)
        return out.getvalue()

    return make
