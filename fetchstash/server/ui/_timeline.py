"""The calls of a run in order and their cost, also as one HTML file without scripts."""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from fetchstash.store import Facts
from fetchstash.text import counted
from fetchstash.text.hygiene import clean_line

OWN = "fetchstash"
"""The server of calls that went through no gateway."""
MAX_ROWS = 20_000
COSTS = ("Calls", "Tokens", "Took")
"""What a row of costs has behind its name."""

Record = Mapping[str, Any]


def entries(calls: Sequence[Record], artifacts: Mapping[str, Facts]) -> list[dict[str, Any]]:
    """Return the timeline's entries: each call's arguments, and the part that it showed.

    An artifact that is gone has no title.
    """
    return [
        {
            "time": call["time"],
            "run": call.get("run", ""),
            "server": call.get("server") or OWN,
            "tool": call.get("tool", ""),
            "asked": call.get("asked", {}),
            "tokens": call.get("tokens") or 0,
            "ms": call.get("ms"),
            "error": call.get("error", ""),
            "shown": [
                _shown(item, artifacts.get(item.get("ref"))) for item in call.get("shown", ())
            ],
        }
        for call in calls
    ]


def _shown(item: Record, facts: Facts | None) -> dict[str, Any]:
    title = facts and (facts.title or facts.name or facts.final_url)
    url = facts.final_url if facts else ""
    lines = [span[1] for span in item.get("spans", ()) if span[0] == "lines"]
    where = ", ".join(
        f"{unit[:-1]} {first:,}" if first == last else f"{unit} {first:,} to {last:,}"
        for unit, first, last in item.get("spans", ())[:4]
    )
    return {
        "ref": item.get("ref", "") if facts else "",
        "title": title or "an artifact that is not kept any more",
        "url": url,
        "how": item.get("how", ""),
        "where": where,
        "line": lines[0] if lines else 0,
    }


def costs(
    calls: Iterable[Record], artifacts: Mapping[str, Facts] = MappingProxyType({})
) -> dict[str, list[tuple[str, int, int, float]]]:
    """Return calls, tokens and ms by server, by tool and by host of the web, the dearest first.

    A call that showed several artifacts costs each of their hosts its share. One that was logged
    without its duration counts as 0 ms.
    """
    sums: dict[str, dict[str, list[float]]] = {"server": {}, "tool": {}, "host": {}}

    def add(by: str, name: str, *cost: float) -> None:
        sums[by][name] = [a + b for a, b in zip(sums[by].get(name, [0, 0, 0]), cost, strict=True)]

    for call in calls:
        tokens, ms = call.get("tokens") or 0, call.get("ms") or 0
        server, tool = call.get("server") or OWN, call.get("tool", "")
        add("server", server, 1, tokens, ms)
        add("tool", tool if server == OWN else f"{server}: {tool}", 1, tokens, ms)
        kept = [
            facts for item in call.get("shown", ()) if (facts := artifacts.get(item.get("ref")))
        ]
        for host in {h for facts in kept if (h := urlsplit(facts.final_url).hostname)}:
            of_host = [facts for facts in kept if urlsplit(facts.final_url).hostname == host]
            share = len(of_host) / len(kept)
            add("host", host, 1, tokens * share, ms * share)
    return {
        by: [
            (name, round(row[0]), round(row[1]), round(row[2], 1))
            for name, row in sorted(rows.items(), key=lambda item: (-item[1][1], item[0]))
        ]
        for by, rows in sums.items()
    }


def took(ms: float | None) -> str:
    """Return a duration for people: "3.4 ms", "12.0 s", "3 min 12 s"; "" where it is not known."""
    if ms is None:
        return ""
    if ms < 1_000:
        return f"{ms:.{0 if ms >= 10 else 1}f} ms"
    minutes, seconds = divmod(ms / 1_000, 60)
    return f"{minutes:,.0f} min {seconds:.0f} s" if minutes else f"{seconds:.1f} s"


_STYLE = """
:root{color-scheme:light dark;font:14px/1.5 system-ui,sans-serif}
body{max-width:1200px;margin:32px auto;padding:0 20px}
table{border-collapse:collapse;margin:8px 32px 24px 0;width:100%}
th,td{text-align:start;vertical-align:top;padding:5px 12px 5px 0;border-bottom:1px solid #8886}
td{overflow-wrap:anywhere}.n{font-variant-numeric:tabular-nums}.n,.calls td:first-child{
white-space:nowrap}.n,.costs th+th,th:nth-last-child(-n+2){text-align:end}
code{font:12.5px ui-monospace,monospace}.costs{display:grid;gap:0 32px;
grid-template-columns:repeat(auto-fit,minmax(260px,1fr))}
@media(max-width:720px){.calls thead{display:none}.calls tr,.calls td{display:block}
.calls tr{border-bottom:1px solid #8886;padding:6px 0}.calls td{border:0;padding:1px 0}
.calls .n{display:inline;padding-right:12px}.calls .n:nth-last-child(2)::after{content:" tokens"}}
"""


def page(
    run: str,
    timeline: Sequence[Mapping[str, Any]],
    sums: Mapping[str, Sequence[tuple[str, int, int, float]]],
) -> str:
    """Return a timeline as one HTML file. Content is text: it loads nothing and runs nothing."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    rows, left_out = timeline[-MAX_ROWS:], max(len(timeline) - MAX_ROWS, 0)
    tables = "".join(
        f"<section><h2>By {by}</h2>{_table((by, *COSTS), map(_cost, costs))}</section>"
        for by, costs in sums.items()
        if costs
    )
    note = f"<p>{counted(left_out, 'earlier call')} left out.</p>" if left_out else ""
    calls = _table(("Time (UTC)", "Call", "Shown", "Tokens", "Took"), map(_call, rows))
    shown = counted(sum(call["tokens"] for call in timeline), "token")
    together = took(sum(call["ms"] or 0 for call in timeline))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'\">"
        '<meta name="viewport" content="width=device-width"><meta name="referrer" '
        f'content="no-referrer"><title>Timeline of {_safe(run)}</title><style>{_STYLE}</style>'
        f"</head><body><h1>Timeline of {_safe(run)}</h1><p>"
        f"{counted(len(timeline), 'call')} showed about {shown} and took {together}.</p>"
        f'<div class="costs">{tables}</div><h2>Calls</h2>{note}<div class="calls">{calls}</div>'
        "</body></html>\n"
    )


def _table(heads: Sequence[str], rows: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{_safe(head[:1].upper() + head[1:])}</th>' for head in heads)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cost(row: tuple[str, int, int, float]) -> str:
    name, calls, tokens, ms = row
    return f"<tr><td>{_safe(name)}</td>{_numbers(f'{calls:,}', f'{tokens:,}', took(ms))}</tr>"


def _numbers(*texts: str) -> str:
    return "".join(f'<td class="n">{text}</td>' for text in texts)


def _call(call: Mapping[str, Any]) -> str:
    asked = ", ".join(
        f"{name}={json.dumps(v, ensure_ascii=False)}" for name, v in call["asked"].items()
    )
    server = "" if call["server"] == OWN else f"{call['server']}: "
    shown = "<br>".join(
        _safe(" · ".join(filter(None, (item["title"], item["url"], item["how"], item["where"]))))
        for item in call["shown"]
    )
    called, time = f"{server}{call['tool']}({asked})", str(call["time"])[:19].replace("T", " ")
    shown += _safe(f"failed: {call['error']}") if call["error"] else ""
    numbers = _numbers(f"{call['tokens']:,}", took(call["ms"]))
    return (
        f"<tr><td>{_safe(time)}</td><td><code>{_safe(called)}</code></td>"
        f"<td>{shown}</td>{numbers}</tr>"
    )


def _safe(text: object) -> str:
    """Return a text of content for HTML: escaped, without characters that reorder it."""
    return escape(clean_line(str(text)))
