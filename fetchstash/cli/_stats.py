"""Sum up what was fetched, by kind and host, and the tokens kept out of the context."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from fetchstash.cli._terminal import Cell, Column, Screen, safe_line, table
from fetchstash.store import Facts
from fetchstash.text.tokens import TokenCount


@dataclass(frozen=True, slots=True)
class Row:
    """Artifacts of one kind or from one host, with their bytes as fetched and their tokens."""

    group: str
    name: str
    artifacts: int
    size_bytes: int
    tokens: int
    tokens_exact: bool


def rows_of(artifacts: Sequence[Facts]) -> tuple[Row, ...]:
    """Sum up by kind, then by host, the most tokens first."""
    kinds = _rows("kind", ((facts.content_kind, facts) for facts in artifacts))
    hosts = _rows(
        "host",
        ((urlsplit(facts.final_url).hostname or "this machine", facts) for facts in artifacts),
    )
    return (*kinds, *hosts)


def _rows(group: str, named: Iterable[tuple[str, Facts]]) -> list[Row]:
    groups: dict[str, list[Facts]] = {}
    for name, facts in named:
        groups.setdefault(name, []).append(facts)
    rows = [
        Row(
            group, name, len(members), sum(facts.size_bytes for facts in members), *_tokens(members)
        )
        for name, members in groups.items()
    ]
    return sorted(rows, key=lambda row: (-row.tokens, row.name))


def _tokens(artifacts: Sequence[Facts]) -> tuple[int, bool]:
    exact = all(facts.text_tokens_exact for facts in artifacts if facts.text_tokens)
    return sum(facts.text_tokens or 0 for facts in artifacts), exact


def printed(screen: Screen, rows: Sequence[Row], shown: int | None) -> list[str]:
    """Return the lines for a person."""
    lines: list[str] = []
    for group in dict.fromkeys(row.group for row in rows):
        columns = (Column(group, least=8), *_NUMBERS)
        lines += [*table(screen, columns, [_cells(r) for r in rows if r.group == group]), ""]
    whole = sum(row.tokens for row in rows if row.group == "kind")
    counted = TokenCount(whole, all(row.tokens_exact for row in rows))
    lines.append(f"All texts together: {counted:,} tokens.")
    if shown is None:
        lines.append("No call of a model is logged for them.")
    else:
        lines.append(f"Shown: about {shown:,}. Kept out: about {max(whole - shown, 0):,}.")
    return lines


_NUMBERS = (
    Column("artifacts", right=True),
    Column("bytes", right=True),
    Column("tokens", right=True),
)


def _cells(row: Row) -> list[Cell]:
    tokens = f"{TokenCount(row.tokens, row.tokens_exact):,}"
    return [
        Cell(safe_line(row.name)),
        Cell(f"{row.artifacts:,}"),
        Cell(f"{row.size_bytes:,}"),
        Cell(tokens),
    ]


def as_objects(rows: Sequence[Row], shown: int | None) -> tuple[Mapping[str, object], ...]:
    """Return the same as data."""
    whole = sum(row.tokens for row in rows if row.group == "kind")
    total = {
        "group": "all",
        "tokens": whole,
        "shown": shown,
        "kept_out": None if shown is None else max(whole - shown, 0),
    }
    return (*(asdict(row) for row in rows), total)
