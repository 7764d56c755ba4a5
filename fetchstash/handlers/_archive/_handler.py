"""Archives: the list of members, and any member as a document."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._archive._members import Member, members, opened
from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._shared._member import MemberParts
from fetchstash.handlers._shared._streamed import Streamed

_LINES_A_PART = 1_000


class ArchiveHandler(Streamed, MemberParts):
    """Reads zip (jar, whl, apk), tar (plain, gz, bz2, xz, zst) and single compressed files."""

    name = "archive"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield a table of members, one a row: size and name.

        Raises NoText for a file that cannot be read, behind the members that could be.
        """
        count = size = 0
        lines: list[str] = []
        yield Part("Size\tName\n", table="", columns=2)
        try:
            for member in members(source):
                count += 1
                size += member.size or 0
                lines.append(_line(member))
                if len(lines) == _LINES_A_PART:
                    yield _rows(lines)
                    lines = []
        except NoText:
            if lines:
                yield _rows(lines)
            raise
        finally:
            extracted.learn(
                members=count,
                rows=count,
                columns=2,
                structure_info=f"{count:,} members, {size:,} bytes unpacked",
            )
        if lines:
            yield _rows(lines)

    def open_member(self, source: Path, name: str) -> AbstractContextManager[Iterator[bytes]]:
        """Open a member; give its content in pieces.

        Raises OutOfRange if there is no such member, NoText if it is not read.
        """
        return opened(source, name)


def _rows(lines: list[str]) -> Part:
    return Part("".join(lines), rows=len(lines))


def _line(member: Member) -> str:
    name = " ".join(member.name.split())
    is_file = not member.name.endswith("/")
    refusal = f" ({member.refused.what})" if member.refused and is_file else ""
    return f"{'?' if member.size is None else member.size}\t{name}{refusal}\n"
