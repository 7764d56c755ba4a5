"""What the tests of the formats share: documents are made in code, written to a file and read by their handler."""

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fetchstash.handlers import Extracted, ExtractLimits, Handler, Hints

Save = Callable[[bytes], Path]
Read = Callable[..., tuple[Extracted, str]]
Pack = Callable[[Mapping[str, str | bytes]], bytes]


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
    """Extract a document with a handler, and return the facts and the whole text."""

    def run(handler: Handler, data: bytes, limits: ExtractLimits | None = None) -> tuple[Extracted, str]:
        found = handler.extract(save(data), Hints(), limits or ExtractLimits())
        text = "".join(part.text for part in found.parts or ())
        return found, text

    return run


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
