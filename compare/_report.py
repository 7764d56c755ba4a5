"""The page of the comparison, made of the results alone, and what is a fault of the run."""

import os
import platform
import subprocess
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from compare._cases import SCORES, Outcome, load
from compare._peers import Peer, version

OURS = "fetchstash"
ROLES_OF = {"extract": "web"}
ROLES = {
    "results": "Proxies that shorten the results of another server",
    "overflow": "Clients, as they come, whose conversation is too long for the model",
}
CASES = """\
# Each case of the comparison

What the tables of [the comparison](comparison.md) count.

"""
RANK: Mapping[Outcome, int] = {"wrong": 0, "tolerable": 1, "right": 2}
Cases = Mapping[str, Mapping[str, Any]]
INTRODUCTION = """\
# Comparison

This page is what `compare/run --page docs/comparison.md` printed. It asks fetchstash and its peers
the same {count} cases and judges each answer by rules that stand beside the case
(`compare/cases/`), never by a model. The web of the cases is served in a network namespace: names
end in `.test`, nothing outside is reached. What a peer gets from services on the internet (search,
readers, rendering for money) is therefore not measured.

- **right**: everything that the case asks for was read. **tolerable**: what was read is true, and
  a careful reader goes on. **wrong**: the answer is missing or false, or what may not be read was.
- A peer may make up to ten calls for an answer, by one fixed rule each: fetch, then search or read
  on as its own answers say. Where something other than a page came, its first answer counts.
- The scores are never added up.
"""


def _is_ours(peer: Peer) -> bool:
    return peer.name.startswith(OURS)


def cases_of(results: Mapping[str, Any], name: str) -> Cases:
    """Return the results of a peer by case, {} if it was not asked."""
    cases: Cases = results.get(name, {}).get("cases", {})
    return cases


def tally(cases: Cases, key: str, begin: str) -> str:
    """Return "right / tolerable / wrong" of the cases whose score or group begins so."""
    counts = Counter(case["outcome"] for case in cases.values() if case[key].startswith(begin))
    return " / ".join(str(counts[outcome]) for outcome in ("right", "tolerable", "wrong"))


def tokens_to_answer(cases: Cases) -> int | None:
    """Return the median of tokens of the right answers where reading is scored."""
    spent = [
        case["tokens"]
        for case in cases.values()
        if case["score"] == "reading" and case["outcome"] == "right"
    ]
    return round(median(spent)) if spent else None


def share_of_tokens(theirs: Cases, ours: Cases) -> str:
    """Return what theirs read for each token of ours, on what both answered right."""
    both = [
        name
        for name, case in theirs.items()
        if case["score"] == "reading"
        and case["outcome"] == ours.get(name, {}).get("outcome") == "right"
    ]
    spent = [sum(cases[name]["tokens"] for name in both) for cases in (theirs, ours)]
    return f"{spent[0] / spent[1]:.2f} × ({len(both)} cases)" if both and spent[1] else "–"


def seconds(cases: Cases) -> float | None:
    """Return the median duration of the first call, of right answers where reading is scored."""
    took = [
        case["seconds"][0]
        for case in cases.values()
        if case["score"] == "reading" and case["outcome"] == "right"
    ]
    return median(took) if took else None


def better(theirs: Cases, ours: Cases) -> list[str]:
    """Return what theirs does better than ours: a better outcome, or half of the tokens."""
    lines: list[str] = []
    for name, case in theirs.items():
        own = ours.get(name)
        if own is None:
            continue
        if RANK[case["outcome"]] > RANK[own["outcome"]]:
            lines.append(f"{name}: {case['outcome']}, ours {own['outcome']}")
        elif (
            case["outcome"] == own["outcome"] == "right"
            and case["score"] == "reading"
            and own["tokens"] > 200 + 2 * case["tokens"]
        ):
            lines.append(f"{name}: {case['tokens']:,} tokens, ours {own['tokens']:,}")
    return lines


def faults(results: Mapping[str, Any], peers: Sequence[Peer]) -> list[str]:
    """Return what must not be: a planted server that does not lose, or ours that is unsafe."""
    ours, found = cases_of(results, OURS), list[str]()
    if not ours:
        return ["ours was not asked"]
    unsafe = [n for n, c in ours.items() if c["score"] == "safety" and c["outcome"] == "wrong"]
    found += [f"ours is unsafe: {', '.join(unsafe)}"] if unsafe else []
    for peer in peers:
        if not peer.planted:
            continue
        cases = cases_of(results, peer.name)
        if not cases:
            found.append(f"{peer.name}: {results[peer.name].get('missing')}")
            continue
        wrong = {
            score: sum(c["score"] == score and c["outcome"] == "wrong" for c in cases.values())
            for score in SCORES
        }
        lost = {
            "planted: leaks": wrong["safety"] >= 5,
            "planted: floods": (tokens_to_answer(cases) or 0) > 3 * (tokens_to_answer(ours) or 0),
            "planted: lies": wrong["truth"] + wrong["reading"] >= 0.9 * len(cases) - 30,
        }[peer.name]
        found += [] if lost else [f"{peer.name}: it does not lose"]
    return found


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _scores(
    results: Mapping[str, Any], peers: Sequence[Peer], subset: set[str] | None = None
) -> str:
    """Return the table of some peers, the first of them ours."""
    head = ["", *SCORES, "tokens to the answer", "of ours", "speed", "tools"]
    ours = cases_of(results, peers[0].name if peers else OURS)
    rows: list[list[object]] = []
    for peer in peers:
        cases = cases_of(results, peer.name)
        if subset is not None:
            cases = {name: case for name, case in cases.items() if name in subset}
        if not cases:
            continue
        tokens, took = tokens_to_answer(cases), seconds(cases)
        rows.append(
            [
                peer.name,
                *(tally(cases, "score", score) for score in SCORES),
                "–" if tokens is None else f"{tokens:,}",
                share_of_tokens(cases, ours),
                "–" if took is None else f"{took:.2f} s",
                f"{results[peer.name]['catalogue']:,}",
            ]
        )
    return _table(head, rows)


def verdict(table: str) -> str:
    """Return in words what the table of servers says: ours beside the best peer, and the worst."""
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    head = [cell.strip() for cell in lines[0]] if lines else []
    columns = ["", *head] if head[:1] != [""] else head
    rows = [dict(zip(columns, map(str.strip, line), strict=True)) for line in lines[2:]]
    ours = next((row for row in rows if row[""] == OURS), None)
    peers = [row for row in rows if row is not ours and not row[""].startswith("planted")]
    if ours is None or not peers:
        return "There is no verdict: ours and at least one peer have to be asked."
    sentences: list[str] = []
    for score in SCORES:
        outcomes = {row[""]: [int(n) for n in row[score].split(" / ")] for row in (ours, *peers)}
        most = max(peers, key=lambda row: outcomes[row[""]][0])[""]
        own = outcomes[OURS]
        sentences.append(
            f"{score.capitalize()}: {OURS} is right in {own[0]} of {sum(own)} cases, wrong in"
            f" {own[2]}; the best peer, {most}, right in {outcomes[most][0]}, wrong in"
            f" {outcomes[most][2]}."
        )
    ratios = [float(row["of ours"].split()[0]) for row in peers if row["of ours"] != "–"]
    if ratios:
        fewer = sum(ratio < 1 for ratio in ratios)
        sentences.append(
            f"Tokens: where both are right, peers read {min(ratios):.2f} to {max(ratios):.2f} times"
            f" what {OURS} reads; {fewer} of {len(ratios)} read less. A small median of tokens"
            " beside few right answers says only that the easy cases were answered: compare the"
            ' column "of ours".'
        )
    smallest = min(peers, key=lambda row: int(row["tools"].replace(",", "")))
    fastest = min(peers, key=lambda row: float(row["speed"].split()[0]))
    sentences.append(
        f"Ask another for the smallest list of tools ({smallest['']}: {smallest['tools']} tokens,"
        f" ours {ours['tools']}) or the quickest first call ({fastest['']}: {fastest['speed']},"
        f" ours {ours['speed']}); what each does better in a case stands below."
    )
    return "\n".join(textwrap.fill(f"- {each}", 98, subsequent_indent="  ") for each in sentences)


def _machine(ours: Path) -> str:
    commit = subprocess.run(
        ["git", "-C", str(ours), "log", "-1", "--format=%h of %cs"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"Run on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; fetchstash {commit or 'without git'};\n"
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors,"
        f" Python {platform.python_version()}; load at the end {load} (1, 5, 15 minutes)."
    )


def _matrix(results: Mapping[str, Any], peers: Sequence[Peer]) -> str:
    """Return each case with an outcome and tokens for each peer: r, t or w, and tokens."""
    asked = [peer for peer in peers if cases_of(results, peer.name)]
    if not asked:
        return ""
    names = list(dict.fromkeys(name for peer in asked for name in cases_of(results, peer.name)))
    legend = [f"{number} {peer.name}" for number, peer in enumerate(asked, 1)]
    lines = textwrap.wrap("   ".join(legend), 98)
    lines.append(" " * 36 + "".join(f"{number:>6}" for number in range(1, len(asked) + 1)))
    for name in names:
        cells = ""
        for peer in asked:
            case = cases_of(results, peer.name).get(name)
            cells += f"{case['outcome'][0] + _short(case['tokens']):>6}" if case else "     ·"
        lines.append(f"{name[:35]:<36}{cells}")
    return "```text\n" + "\n".join(line.rstrip() for line in lines) + "\n```"


def _short(number: int) -> str:
    return f"{number / 1000:.0f}k" if number >= 1000 else str(number)


def _excerpts(cases: Cases) -> str:
    lines: list[str] = []
    for name, case in cases.items():
        if case["outcome"] != "right":
            answer = " ".join("\n".join(case["answers"][:1]).split()).replace("`", "'")
            # What bytes and invisible characters a peer shows do not belong on a page of ours.
            answer = "".join(c if c.isprintable() and c < "\u2100" else "·" for c in answer)
            shown = textwrap.shorten(answer, 180, placeholder=" …") or "(nothing)"
            text = f"{case['outcome']}, {name}: {shown}"
            lines += textwrap.wrap(text, 96, subsequent_indent="  ", break_long_words=True)
    return "```text\n" + "\n".join(lines or ["none"]) + "\n```"


def page(
    results: Mapping[str, Any], peers: Sequence[Peer], ours: Path, kept: Sequence[str] = ()
) -> str:
    """Return the whole page as Markdown; ``kept`` are the peers that an earlier run asked."""
    own = cases_of(results, OURS)
    servers = [peer for peer in peers if peer.role == "web"]
    libraries = [peer for peer in peers if peer.role == "extract"]
    scores = _scores(results, servers)
    title, _, introduction = INTRODUCTION.format(count=len(load())).partition("\n\n")
    parts = [title, verdict(scores), introduction, _machine(ours)]
    if kept:
        earlier = f"Asked by an earlier run, whose load and date are not these: {', '.join(kept)}."
        parts.append(textwrap.fill(earlier, 98))
    listed = [
        f"- {peer.name}: {version(peer)}"
        + (f"; **not compared**, {results[peer.name]['missing']}" if missing else "")
        for peer in peers
        if peer.tool
        for missing in ["missing" in results[peer.name]]
    ]
    parts += ["## Versions", "\n".join(listed) or "No peer was asked."]
    parts += ["## Servers", "Right / tolerable / wrong. Tokens: the median of o200k tokens read"]
    parts[-1] += (
        " until a right answer,\nand beside it what was read for each token of ours where both are"
        " right. Speed: the median of\nthe first call. Tools: tokens of the list of tools."
    )
    parts.append(scores)
    sites = {name for name, case in own.items() if case["group"].startswith("sites_")}
    parts += ["## Pages in the style of real sites", f"{len(sites)} pages, all of their scores."]
    rows = [
        [peer.name, tally(cases, "group", "sites_")]
        for peer in servers
        if (cases := cases_of(results, peer.name)) and not peer.planted
    ]
    parts.append(_table(["", "right / tolerable / wrong"], rows))
    if same := {name for peer in libraries for name in cases_of(results, peer.name)}:
        parts += ["## Libraries that extract text", f"The {len(same)} cases that are one page."]
        ours_first = [peer for peer in servers if peer.name == OURS]
        parts.append(_scores(results, [*ours_first, *libraries], same))
    for role, title in ROLES.items():
        if any(cases_of(results, peer.name) for peer in peers if peer.role == role):
            parts += [f"## {title}", _scores(results, [p for p in peers if p.role == role])]
    parts += ["## What peers do better than we", "A better outcome, or half of the tokens."]
    for peer in peers:
        role = ROLES_OF.get(peer.role, peer.role)
        mine = [each.name for each in peers if _is_ours(each) and each.role == role]
        lines = better(cases_of(results, peer.name), cases_of(results, (*mine, OURS)[0]))
        if lines and not peer.planted:
            wrapped = [textwrap.fill(f"- {line}", 98, subsequent_indent="  ") for line in lines]
            parts += [f"### {peer.name} is better at", "\n".join(wrapped)]
    parts += ["## Planted servers", "Three bad servers of our own, which must lose."]
    verdicts = [
        "- " + next((f for f in faults(results, peers) if f.startswith(peer.name)), loses)
        for peer in servers
        if peer.planted
        for loses in [f"{peer.name}: it loses"]
    ]
    parts.append("\n".join(verdicts) or "They were not asked.")
    parts += ["## Each case", "r: right, t: tolerable, w: wrong; then the tokens that were read."]
    for role in dict.fromkeys(peer.role for peer in peers):
        parts.append(_matrix(results, [peer for peer in peers if peer.role == role]))
    parts += ["## What was read where it was not right"]
    for peer in peers:
        if cases_of(results, peer.name) and not peer.planted:
            parts += [f"### Answers of {peer.name}", _excerpts(cases_of(results, peer.name))]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def in_two(whole: str) -> tuple[str, str]:
    """Return the page without its long lists, and the page that has them."""
    front, mark, lists = whole.partition("\n## Each case\n")
    link = "\n[Each case](comparison-cases.md): its outcomes, tokens, and what was read.\n"
    return front + link, CASES + mark.lstrip() + lists
