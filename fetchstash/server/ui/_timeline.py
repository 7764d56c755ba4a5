"""The calls of a run in order, what they cost, and both as one HTML file without a script."""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlsplit

from fetchstash.store import Facts
from fetchstash.text.hygiene import clean_line

OWN = "fetchstash"
"""The server of calls that went through no gateway."""
MAX_ROWS = 20_000

Record = Mapping[str, Any]


def entries(calls: Sequence[Record], artifacts: Mapping[str, Facts]) -> list[dict[str, Any]]:
    """Return calls as a timeline shows them: what was asked and what was shown of which artifact.

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
        f"{unit} {first:,} to {last:,}" for unit, first, last in item.get("spans", ())[:4]
    )
    return {
        "ref": item.get("ref", "") if facts else "",
        "title": title or "an artifact that is not kept any more",
        "url": url,
        "how": item.get("how", ""),
        "where": where,
        "line": lines[0] if lines else 0,
    }


def costs(calls: Iterable[Record], artifacts: Mapping[str, Facts]) -> dict[str, list[list[Any]]]:
    """Return calls and tokens by server, by tool and by host of the web, the dearest first.

    A call that showed several artifacts costs each of their hosts its share.
    """
    sums: dict[str, dict[str, list[float]]] = {"server": {}, "tool": {}, "host": {}}

    def add(by: str, name: str, calls: float, tokens: float) -> None:
        row = sums[by].setdefault(name, [0, 0])
        row[0], row[1] = row[0] + calls, row[1] + tokens

    for call in calls:
        tokens, server = call.get("tokens") or 0, call.get("server") or OWN
        add("server", server, 1, tokens)
        add(
            "tool",
            call.get("tool", "") if server == OWN else f"{server}: {call['tool']}",
            1,
            tokens,
        )
        kept = [
            facts for item in call.get("shown", ()) if (facts := artifacts.get(item.get("ref")))
        ]
        for host in {h for facts in kept if (h := urlsplit(facts.final_url).hostname)}:
            of_host = [facts for facts in kept if urlsplit(facts.final_url).hostname == host]
            add("host", host, 1, tokens * len(of_host) / len(kept))
    return {
        by: [
            [name, int(count), round(tokens)]
            for name, (count, tokens) in sorted(rows.items(), key=lambda row: (-row[1][1], row[0]))
        ]
        for by, rows in sums.items()
    }


_STYLE = """
:root{color-scheme:light dark;font:14px/1.5 system-ui,sans-serif}
body{max-width:1200px;margin:32px auto;padding:0 20px}
table{border-collapse:collapse;margin:8px 32px 24px 0;width:100%}
th,td{text-align:start;vertical-align:top;padding:5px 12px 5px 0;border-bottom:1px solid #8886}
td{overflow-wrap:anywhere}.n{text-align:end;font-variant-numeric:tabular-nums}
code{font:12.5px ui-monospace,monospace}.costs{display:grid;gap:0 32px;
grid-template-columns:repeat(auto-fit,minmax(260px,1fr))}
"""


def page(
    run: str, timeline: Sequence[Mapping[str, Any]], sums: Mapping[str, list[list[Any]]]
) -> str:
    """Return a timeline as one HTML file. Content is text: it loads nothing and runs nothing."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    rows, left_out = timeline[-MAX_ROWS:], max(len(timeline) - MAX_ROWS, 0)
    tables = "".join(
        f"<section><h2>By {by}</h2>{_table((by, 'Calls', 'Tokens'), map(_cost, costs))}</section>"
        for by, costs in sums.items()
    )
    note = f"<p>The first {left_out:,} calls are left out.</p>" if left_out else ""
    calls = _table(("Time", "Call", "Shown", "Tokens"), map(_call, rows))
    tokens = sum(call["tokens"] for call in timeline)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'\">"
        '<meta name="viewport" content="width=device-width"><meta name="referrer" '
        f'content="no-referrer"><title>Timeline of {_safe(run)}</title><style>{_STYLE}</style>'
        f"</head><body><h1>Timeline of {_safe(run)}</h1><p>{len(timeline):,} calls showed about "
        f'{tokens:,} tokens.</p><div class="costs">{tables}</div><h2>Calls</h2>{note}{calls}'
        "</body></html>\n"
    )


def _table(heads: Sequence[str], rows: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{_safe(head.capitalize())}</th>' for head in heads)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cost(row: Sequence[Any]) -> str:
    name, calls, tokens = row
    return (
        f'<tr><td>{_safe(name)}</td><td class="n">{calls:,}</td><td class="n">{tokens:,}</td></tr>'
    )


def _call(call: Mapping[str, Any]) -> str:
    asked = ", ".join(
        f"{name}={json.dumps(v, ensure_ascii=False)}" for name, v in call["asked"].items()
    )
    server = "" if call["server"] == OWN else f"{call['server']}: "
    shown = "<br>".join(
        _safe(" · ".join(filter(None, (item["title"], item["url"], item["how"], item["where"]))))
        for item in call["shown"]
    )
    called = f"{server}{call['tool']}({asked})"
    return (
        f"<tr><td>{_safe(call['time'])}</td><td><code>{_safe(called)}</code></td>"
        f'<td>{shown}</td><td class="n">{call["tokens"]:,}</td></tr>'
    )


def _safe(text: object) -> str:
    """Return a text of content for HTML: escaped, without characters that reorder it."""
    return escape(clean_line(str(text)))
