"""Columns of a PDF page: footnotes go after its text, paragraphs that columns break are joined."""

import re
from collections import Counter
from collections.abc import Sequence

from fetchstash.handlers._pdf._layout import ENDS_SENTENCE, Paragraph, paragraph_of
from fetchstash.handlers._pdf._tables import Table

PageBlock = Paragraph | Table | str

# A footnote is printed at 8 points under text of 9 or more, and LaTeX' first classes keep that.
_SMALL = 0.93
_SAME_SIZE = 0.04
_MARK = re.compile(r"(?:\d{1,2}|[*†‡§¶‖]{1,3})[\s.)]?\s?[^\W\d_]")


def over_columns(blocks: Sequence[PageBlock]) -> list[PageBlock]:
    """Return the blocks of a page with footnotes behind all of its text, and whole paragraphs.

    A footnote of the left column would else stand between the two halves of a sentence.
    """
    return _whole(_with_notes_last(blocks))


def _with_notes_last(blocks: Sequence[PageBlock]) -> list[PageBlock]:
    sizes: Counter[float] = Counter()
    for block in blocks:
        if isinstance(block, Paragraph):
            sizes[round(block.size, 1)] += len(block.text)
    if not sizes:
        return list(blocks)
    limit = _SMALL * sizes.most_common(1)[0][0]
    small = [isinstance(block, Paragraph) and block.size <= limit for block in blocks]
    end = max((place for place, is_small in enumerate(small) if not is_small), default=-1) + 1
    notes: set[int] = set()
    for place, block in enumerate(blocks[:end]):
        if not small[place] or not isinstance(block, Paragraph) or block.level:
            continue
        if place - 1 in notes:
            is_note = _is_under(block, blocks[place - 1])
        else:  # below text of the usual size: a column in small print has no notes
            is_note = (
                place > 0
                and not small[place - 1]
                and _MARK.match(_start(block)) is not None
                and _is_lowest(block, blocks, small)
            )
        if is_note:
            notes.add(place)
    text = [block for place, block in enumerate(blocks[:end]) if place not in notes]
    return [*text, *(blocks[place] for place in sorted(notes)), *blocks[end:]]


def _start(block: Paragraph) -> str:
    return f"{block.mark} {block.text[:9]}" if block.mark else block.text[:9]


def _is_under(block: Paragraph, above: PageBlock) -> bool:
    return (
        isinstance(above, Paragraph)
        and block.base < above.base
        and abs(block.size - above.size) <= _SAME_SIZE * above.size
    )


def _is_lowest(note: Paragraph, blocks: Sequence[PageBlock], small: Sequence[bool]) -> bool:
    """Return whether no table and no text of the usual size stands below in the same column."""
    left, right = note.left, max(line.right for line in note.lines)
    for block, is_small in zip(blocks, small, strict=True):
        if is_small or isinstance(block, str):
            continue
        below = block.words if isinstance(block, Table) else block.lines
        if any(each.base < note.base and each.left < right and each.right > left for each in below):
            return False
    return True


def _whole(blocks: Sequence[PageBlock]) -> list[PageBlock]:
    """Return blocks with each paragraph that goes on at the top of the next column as one."""
    out: list[PageBlock] = []
    for block in blocks:
        before = out[-1] if out else ""
        if (
            isinstance(block, Paragraph)
            and isinstance(before, Paragraph)
            and _goes_on(before, block)
        ):
            out[-1] = paragraph_of([*before.lines, *block.lines], before.space)
        else:
            out.append(block)
    return out


def _goes_on(before: Paragraph, block: Paragraph) -> bool:
    last = before.lines[-1]
    return (
        len(before.lines) + len(block.lines) > 2  # entries of an index stand in a line each
        and block.text[:1].islower()
        and not (block.mark or block.level or before.level or block.is_code or before.is_code)
        and block.bold == before.bold
        and abs(block.size - before.size) <= _SAME_SIZE * before.size
        and block.base > last.base
        and block.left >= last.right
        and not ENDS_SENTENCE.search(before.text)
    )
