"""What was fetched, by kind and host, and how many tokens of it stayed out of the context."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fetchstash.store import Facts
from fetchstash.tokens import TokenCount

_BYTES_PER_TOKEN = 4
"""Of a result, about: English and its frame. What was shown is known in bytes alone."""


@dataclass(frozen=True, slots=True)
class Row:
    """Artifacts of one kind or from one host, their bytes as they came, and their texts' tokens (``tokens_exact``: counted)."""

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
        Row(group, name, len(of), sum(one.size_bytes for one in of), *_tokens(of))
        for name, of in groups.items()
    ]
    return sorted(rows, key=lambda row: (-row.tokens, row.name))


def _tokens(artifacts: Sequence[Facts]) -> tuple[int, bool]:
    return sum(one.text_tokens or 0 for one in artifacts), all(
        one.text_tokens_exact for one in artifacts if one.text_tokens
    )


def shown_tokens(event_log: str) -> int | None:
    """Return about how many tokens all results had, by the event log; None where there is none."""
    total, found = 0, False
    for path in (Path(event_log + ".1"), Path(event_log)) if event_log else ():
        with suppress(OSError), path.open(encoding="utf-8") as log:
            for line in log:
                found = True
                total += _shown_bytes(line)
    return total // _BYTES_PER_TOKEN if found else None


def _shown_bytes(line: str) -> int:
    with suppress(ValueError, TypeError, KeyError):  # a line of a disk that was full
        record = json.loads(line)
        return int(record["n"]) if record["name"] == "bytes_out" else 0
    return 0


def printed(rows: Sequence[Row], shown: int | None) -> list[str]:
    """Return the lines for a person."""
    width = max((len(row.name) for row in rows), default=4)
    lines: list[str] = []
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            lines.append(f"{group:<{width}}  {'artifacts':>9}  {'bytes':>15}  {'tokens':>13}")
        tokens = f"{TokenCount(row.tokens, row.tokens_exact):,}"
        lines.append(
            f"{row.name:<{width}}  {row.artifacts:>9,}  {row.size_bytes:>15,}  {tokens:>13}"
        )
    whole = sum(row.tokens for row in rows if row.group == "kind")
    together = (
        f"All texts together: {TokenCount(whole, all(row.tokens_exact for row in rows)):,} tokens."
    )
    if shown is None:
        lines.append(
            f"{together} With telemetry.event_log, what was shown of them is counted, too."
        )
    else:
        lines.append(
            f"{together} Shown: about {shown:,}. Kept out: about {max(whole - shown, 0):,}."
        )
    return lines


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
