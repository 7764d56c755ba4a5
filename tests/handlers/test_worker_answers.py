"""What the server believes of a worker's answers: hostile bytes may have taken the worker over."""

from pathlib import Path
from typing import Any

import pytest

from fetchstash.handlers import PartRequest, PartText, Picture
from fetchstash.handlers._worker._answers import Pieces, failure, measure, part
from fetchstash.handlers._worker._protocol import ProtocolError, read_facts
from tests.server.hostile_worker import FACTS, LINE, MARK, PIECE

TEXT = "zwölf\nlines\n"
SIZE, CHARS = len(TEXT.encode()), len(TEXT)
DAMAGED = b"zw\xf6lf and more\n"


def pieces(*reported: tuple[int, int]) -> Pieces:
    """Return what reports of bytes and characters add up to, where at most 20 bytes are taken."""
    added = Pieces(most_bytes=20)
    for size, chars in reported:
        added.add({"piece": PIECE | {"bytes": size, "chars": chars}})
    return added


def test_a_text_is_taken_that_is_as_it_was_reported(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(TEXT.encode() + b"never reported")
    assert measure(path, pieces((3, 3), (SIZE, CHARS))) == 2
    assert path.read_bytes() == TEXT.encode()


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        pytest.param(TEXT.encode(), [(SIZE, CHARS + 1)], id="a character more"),
        pytest.param(TEXT.encode(), [(SIZE, CHARS - 1)], id="a character less"),
        pytest.param(TEXT.encode(), [(SIZE + 1, CHARS)], id="a byte more than there is"),
        pytest.param(TEXT.encode(), [(3, 2)], id="half a character"),
        pytest.param(DAMAGED, [(len(DAMAGED), len(DAMAGED))], id="no UTF-8"),
        pytest.param(TEXT.encode(), [(21, 21)], id="more than is taken"),
        pytest.param(TEXT.encode(), [(9, 8), (8, 8)], id="fewer bytes than before"),
        pytest.param(TEXT.encode(), [(9, 8), (SIZE, 7)], id="fewer characters than before"),
        pytest.param(TEXT.encode(), [(SIZE, -1)], id="a negative number"),
        pytest.param(TEXT.encode(), [(SIZE, True)], id="a number that is none"),
    ],
)
def test_a_text_is_refused_that_is_not_as_it_was_reported(
    tmp_path: Path, written: bytes, reported: list[tuple[int, int]]
) -> None:
    path = tmp_path / "text"
    path.write_bytes(written)
    with pytest.raises(ProtocolError):
        measure(path, pieces(*reported))


def test_lines_of_a_worker_come_clean_and_its_media_type_is_one() -> None:
    facts = read_facts(FACTS | {"media_type": f"text/{LINE}"})
    assert (facts["title"], facts["media_type"]) == (f"{MARK} {MARK}", "")
    assert facts["outline"][0].title == f"{MARK} {MARK}"


@pytest.mark.parametrize(
    "changed",
    [
        {"page_verdict": MARK},
        {"pages": 1e3},
        {"pages": True},
        {"width": 10**13},
        {"title": MARK * 99},
    ],
    ids=str,
)
def test_a_fact_that_no_document_has_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        read_facts(FACTS | changed)


@pytest.mark.parametrize("media_type", ["image/svg+xml", "text/html", "image/png; x"])
def test_a_part_is_text_or_a_picture_of_a_type_that_holds_no_program(media_type: str) -> None:
    picture = {"picture": "iVBORw==", "media_type": "image/png", "width": 3, "height": 4}
    assert part(picture, 4) == Picture(b"\x89PNG", "image/png", 3, 4)
    assert part({"text": "a\x1b[2Jb", "total": 2}, 4) == PartText("ab", 2)
    with pytest.raises(ProtocolError):
        part(picture | {"media_type": media_type}, 4)


@pytest.mark.parametrize(
    ("name", "is_taken"), [("/a/b", True), ("b", True), ("/c", False), ("Ignore all that", False)]
)
def test_a_reason_names_only_what_the_caller_gave(name: str, *, is_taken: bool) -> None:
    frame = {"failed": {"reason": "nothing_there", "name": name}}
    request = PartRequest(source=Path(), path="/a/b")
    if is_taken:
        assert repr(name) in failure(frame, request).what
    else:
        with pytest.raises(ProtocolError):
            failure(frame, request)
