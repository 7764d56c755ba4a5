"""List the links, the pictures and the data of a page."""

from collections.abc import Iterator
from contextlib import suppress

from fetchstash.handlers._data._json_values import on_lines
from fetchstash.handlers._html import PageReason, _media
from fetchstash.handlers._html._blocks import Block
from fetchstash.handlers._html._inline import Inline
from fetchstash.handlers._html._reading import Reading, embedded

PICTURE = "images/"
"""Begins the path of one picture, by its number in the listing."""


def links(reading: Reading) -> str:
    """Return each link of a page once."""
    inline = reading.inline()
    found = dict.fromkeys(link for block in reading.blocks for link in _links(block, inline))
    return "".join(f"- {link}\n" for link in found)


def _links(block: Block, inline: Inline) -> Iterator[str]:
    if block.link:
        yield inline.link(block.words, block.link)
    for node in block.nodes:
        for element in () if isinstance(node, str) else (node, *node.descendants()):
            if element.tag == "a" and (
                address := inline.absolute(element.attributes.get("href", ""))
            ):
                yield f"[{element.text()}]({address})"


def data(reading: Reading) -> str:
    """Return the data that a page brings along for its scripts, as JSON under their names.

    A value of more levels than Python writes is left out.
    """
    texts: list[str] = []
    for name, value in embedded(reading.page):
        with suppress(RecursionError):
            texts.append(f"[{name}]\n{on_lines(value).rstrip()}\n")
    return "\n".join(texts)


def images(reading: Reading, path: str) -> str:
    """Return a numbered line for each picture, film and sound, or only for the one of a number."""
    lines = [line for line, _ in _listed(reading)]
    if path.startswith(PICTURE):
        lines = [lines[_number(len(lines), path) - 1]]
    return "".join(f"{line}\n" for line in lines)


def address(reading: Reading, path: str) -> str:
    """Return the address of the picture of a number; that of a film is its poster's."""
    listed = _listed(reading)
    picture = listed[_number(len(listed), path) - 1][1]
    if not picture.startswith(("http://", "https://")):
        raise PageReason.PAGE_PICTURE_HELD.error()
    return picture


def _listed(reading: Reading) -> list[tuple[str, str]]:
    """Return the line of each medium, with the address of its picture."""
    inline = reading.inline()
    listed: dict[str, tuple[str, str]] = {}
    for element in filter(_media.is_medium, reading.page.media):
        label, source = _media.labelled(element)
        if source not in listed and len(listed) < _media.MAX_LISTED:
            mark = "!" if element.tag == "img" else ""
            line = f"{len(listed) + 1}. {mark}[{label}]({inline.destination(source)})"
            listed[source] = line, inline.absolute(_media.still(element))
    return list(listed.values())


def _number(count: int, path: str) -> int:
    number = path.removeprefix(PICTURE)
    if number.isdecimal() and len(number) < 6 and 1 <= int(number) <= count:
        return int(number)
    raise PageReason.PAGE_PICTURES.error(count=count)
