"""Calls by time and their sums, and the plot of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import anyio
import anyio.to_thread

from fetchstash.config import Settings
from fetchstash.stash import log_of, logged_calls
from fetchstash.store import ALL_RUNS, Facts
from fetchstash.text import clip_middle

_OF_A_CALL = ("time", "server", "tool", "asked", "tokens", "ms")


class Calls:
    """The calls of all runs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._log = log_of(settings)
        self._state: object = None
        self._records: list[dict[str, Any]] = []
        self._lock = anyio.Lock()

    def state(self) -> tuple[int, int]:
        """Return what changes with every call."""
        try:
            status = self._log.path.stat() if self._log else None
        except OSError:
            status = None
        return (status.st_size, status.st_mtime_ns) if status else (0, 0)

    async def of_run(self, run: str) -> list[dict[str, Any]]:
        """Return the calls of a run, oldest first."""
        records = await self._all()
        return [record for record in records if run in (ALL_RUNS, record.get("run"))]

    async def of_artifact(self, ref: str) -> list[dict[str, Any]]:
        """Return the parts of an artifact that each call showed, oldest call first."""
        return [
            {**{name: record.get(name) for name in _OF_A_CALL}, **shown}
            for record in await self._all()
            for shown in record.get("shown", ())
            if shown.get("ref") == ref
        ]

    async def projects(self) -> dict[str, str]:
        """Return the folders of the runs that are known."""
        records = await self._all()
        return {r["run"]: r["project"] for r in records if r.get("run") and r.get("project")}

    async def _all(self) -> list[dict[str, Any]]:
        async with self._lock:
            if (state := self.state()) != self._state:
                self._records = await anyio.to_thread.run_sync(
                    lambda: list(logged_calls(self._settings))
                )
                self._state = state
            return self._records


_POINTS = 400
_BARS = 8


@dataclass(frozen=True, slots=True)
class Bar:
    """One kind or host: its artifacts, the tokens of their texts, and those that were shown."""

    name: str
    artifacts: int
    tokens: int
    shown: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums of a run. ``points`` are (time, tokens of all texts so far, tokens shown so far)."""

    artifacts: int
    calls: int
    tokens: int
    shown: int
    points: tuple[tuple[float, int, int], ...]
    kinds: tuple[Bar, ...]
    hosts: tuple[Bar, ...]


def totals(artifacts: Sequence[Facts], calls: Iterable[Mapping[str, Any]]) -> Totals:
    """Sum up artifacts and the logged calls that showed them. Other calls do not count."""
    by_ref = {facts.artifact_ref: facts for facts in artifacts}
    shown: dict[str, float] = dict.fromkeys(by_ref, 0)
    steps = [
        (facts.created_at.timestamp(), facts.text_tokens or 0, 0.0)
        for facts in artifacts
        if facts.created_at
    ]
    counted = 0
    calls = tuple(calls)
    for call in calls:
        refs = [item["ref"] for item in call.get("shown", ()) if item.get("ref") in by_ref]
        if not refs:
            continue
        counted += 1
        tokens = float(call.get("tokens") or 0)
        steps.append((datetime.fromisoformat(str(call["time"])).timestamp(), 0, tokens))
        for ref in refs:
            shown[ref] += tokens / len(refs)
    points: list[tuple[float, int, int]] = []
    whole, seen = 0, 0.0
    for at, more, tokens in sorted(steps):
        whole, seen = whole + more, seen + tokens
        points.append((at, whole, round(seen)))
    places = origins(artifacts, calls)
    thin = max(len(points) // _POINTS, 1)
    kept = points[::thin] + (points[-1:] if (len(points) - 1) % thin else [])
    return Totals(
        len(artifacts),
        counted,
        whole,
        round(seen),
        tuple(kept),
        _bars(artifacts, shown, lambda facts: facts.content_kind),
        _bars(artifacts, shown, lambda facts: places[facts.artifact_ref]),
    )


def origins(artifacts: Iterable[Facts], calls: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return by reference where artifacts came from: a host, a server with its tool, or here."""
    servers = {
        item["ref"]: f"{call['server']}: {call.get('tool')}"
        for call in calls
        if call.get("server")
        for item in call.get("shown", ())
    }
    return {
        facts.artifact_ref: servers.get(facts.artifact_ref)
        or urlsplit(facts.final_url).hostname
        or "this machine"
        for facts in artifacts
    }


def _bars(
    artifacts: Sequence[Facts], shown: Mapping[str, float], name: Callable[[Facts], str]
) -> tuple[Bar, ...]:
    groups: dict[str, list[Facts]] = {}
    for facts in artifacts:
        groups.setdefault(name(facts), []).append(facts)
    bars = (
        Bar(
            group,
            len(members),
            sum(facts.text_tokens or 0 for facts in members),
            round(sum(shown[facts.artifact_ref] for facts in members)),
        )
        for group, members in groups.items()
    )
    return tuple(sorted(bars, key=lambda bar: (-bar.tokens, bar.name)))


# --- SVG ------------------------------------------------------------------------------------------

_STYLE = """
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#635d54}
.t{font-size:13px;font-weight:600;fill:#1d1b18}.n{font-variant-numeric:tabular-nums}
.g{stroke:#e4e0d9}.all{fill:#0b6e5b;fill-opacity:.16}.top{fill:none;stroke:#0b6e5b;stroke-width:2}
.bar{fill:#0b6e5b;fill-opacity:.3}.of{fill:#0b6e5b}.shown{fill:#c2571a}.line{fill:none;stroke:#c2571a;stroke-width:2}
@media(prefers-color-scheme:dark){text{fill:#a8a297}.t{fill:#ece9e3}.g{stroke:#34343b}
.all{fill:#5ad1b3}.top{stroke:#5ad1b3}.bar,.of{fill:#5ad1b3}.shown{fill:#f0975a}.line{stroke:#f0975a}}
""".replace("\n", "")
_LEFT, _TOP, _HEIGHT, _ROW = 48, 34, 190, 24


def plot(sums: Totals, width: int = 760) -> str:
    """Return the plots as one SVG, ``width`` pixels wide: over time, by kind, by host."""
    wide = width >= 620
    bar_width = (width - 32) // 2 if wide else width
    over_time = _over_time(sums, width)
    below = _TOP + _HEIGHT + 52
    kinds, kinds_height = _bar_chart("By kind", sums.kinds, bar_width)
    hosts, hosts_height = _bar_chart("By host", sums.hosts, bar_width)
    x, y = (bar_width + 32, below) if wide else (0, below + kinds_height + 16)
    height = y + hosts_height if not wide else below + max(kinds_height, hosts_height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>Tokens kept out of the context</title>'
        f"<style>{_STYLE}</style>{over_time}"
        f'<g transform="translate(0 {below})">{kinds}</g>'
        f'<g transform="translate({x} {y})">{hosts}</g></svg>\n'
    )


def _over_time(sums: Totals, width: int) -> str:
    right, bottom = width - 8, _TOP + _HEIGHT
    times = [at for at, _, _ in sums.points] or [0.0]
    first, span = times[0], max(times[-1] - times[0], 1.0)
    top = _round_up(max(sums.tokens, sums.shown, 1))

    def x(at: float) -> float:
        return round(_LEFT + (at - first) / span * (right - _LEFT), 1)

    def y(tokens: float) -> float:
        return round(bottom - tokens / top * _HEIGHT, 1)

    def steps(series: int) -> str:
        path = [f"M{_LEFT} {y(0)}"]
        for at, *tokens in sums.points:
            path.append(f"H{x(at)}V{y(tokens[series])}")
        return "".join([*path, f"H{right}"])

    title = (
        '<text class="t" x="0" y="16">Tokens: <tspan class="of">all texts</tspan>, '
        'and <tspan class="shown">what was shown</tspan></text>'
    )
    parts = [title]
    for share in (0, 0.25, 0.5, 0.75, 1):
        at = y(top * share)
        parts.append(f'<path class="g" d="M{_LEFT} {at}H{right}"/>')
        parts.append(_text(_LEFT - 8, at + 4, short(top * share), "n", "end"))
    parts.append(f'<path class="all" d="{steps(0)}V{y(0)}z"/><path class="top" d="{steps(0)}"/>')
    parts.append(f'<path class="line" d="{steps(1)}"/>')
    pattern = "%H:%M:%S" if span < 600 else "%H:%M" if span < 86_400 else "%d %b"
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        label = datetime.fromtimestamp(first + span * share, UTC).astimezone().strftime(pattern)
        at = _LEFT + share * (right - _LEFT)
        parts.append(_text(at, bottom + 18, label if sums.points else "", "n", anchor))
    return "".join(parts)


def _bar_chart(title: str, bars: Sequence[Bar], width: int) -> tuple[str, int]:
    """Return a chart of the largest bars, and its height."""
    names, numbers = min(width // 3, 200), 64
    room = width - names - numbers
    most = max((max(bar.tokens, bar.shown) for bar in bars), default=0) or 1
    parts = [_text(0, 12, title, "t")]
    for place, bar in enumerate(bars[:_BARS]):
        y = 24 + place * _ROW
        whole, shown = room * bar.tokens / most, room * bar.shown / most
        parts.append(_text(names - 8, y + 12, clip_middle(bar.name, names // 8), "", "end"))
        parts.append(
            f'<rect class="bar" x="{names}" y="{y}" width="{max(whole, 1):.1f}" '
            'height="16" rx="3"/>'
        )
        if bar.shown:
            parts.append(
                f'<rect class="shown" x="{names}" y="{y + 12}" width="{max(shown, 1):.1f}" '
                'height="4" rx="2"/>'
            )
        parts.append(_text(names + whole + 8, y + 12, short(bar.tokens), "n"))
    if len(bars) > _BARS:
        parts.append(_text(names, 36 + _BARS * _ROW, f"and {len(bars) - _BARS} more", ""))
    return "".join(parts), 44 + min(len(bars), _BARS) * _ROW


def _text(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"'
    return f'<text class="{style}" {place}>{escape(text)}</text>'


def _round_up(value: float) -> float:
    """Return the next larger number that divides into four round steps."""
    step = 1.0
    while step * 40 < value:
        step *= 10
    return next(step * n for n in (4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40) if step * n >= value)


def short(tokens: float) -> str:
    """Return a count in short form: 940, 12k, 3.4M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{letter}"
    return f"{tokens:.0f}"
