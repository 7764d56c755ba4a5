"""Answers of package registries, of Stack Exchange and of Hacker News."""

import html
from typing import Any

from fetchstash.handlers._answers import _values as v
from fetchstash.handlers._data._json_values import is_array, is_object

RELEASES = 20  # of a package, the newest
MAX_DEPTH = 40  # of comments that answer comments


def pypi(answer: v.Answer) -> v.Sections:
    """Yield a package of a Python index."""
    info: Any = answer.one("info")
    name, version = v.line(v.member(info, "name")), v.line(v.member(info, "version"))
    links = v.member(info, "project_urls")
    releases = answer.one("releases")
    dates: dict[str, str] = {}
    for release, files in releases.items() if is_object(releases) else ():
        if is_array(files) and files:
            dates[release] = v.moment(v.member(files[0], "upload_time_iso_8601", "upload_time"))
    newest = sorted(dates.items(), key=lambda item: item[1], reverse=True)[:RELEASES]
    facts = {
        "Version": version,
        "Uploaded": v.moment(
            v.member(
                next(iter(v.listed(answer.one("urls"))), None),
                "upload_time_iso_8601",
                "upload_time",
            )
        ),
        "Yanked": (v.line(v.member(info, "yanked_reason")) or "yes")
        if v.member(info, "yanked")
        else "",
        "Author": v.line(
            v.member(info, "author", "author_email", "maintainer", "maintainer_email")
        ),
        "License": v.line(v.member(info, "license_expression", "license")),
        "Python": v.line(v.member(info, "requires_python")),
        "Keywords": v.line(v.member(info, "keywords")),
    }
    listed = [v.link(key, url) for key, url in links.items()] if is_object(links) else []
    yield v.Section(1, f"{name} {version}", v.line(v.member(info, "summary")), v.facts_of(facts))
    needed = [f"- {v.line(text)}" for text in v.listed(v.member(info, "requires_dist"))]
    yield from _package(needed, listed, [f"- {v.joined(*item)}" for item in newest])
    faults = [
        v.link(
            v.member(fault, "id"),
            v.member(fault, "link"),
            v.line(v.member(fault, "summary", "details")),
        )
        for fault in v.listed(answer.one("vulnerabilities"))
    ]
    if faults:
        yield v.Section(2, "Known vulnerabilities", "\n".join(faults))
    yield v.Section(2, "Description", v.prose(v.member(info, "description")))


def _package(needed: list[str], links: list[str], releases: list[str]) -> v.Sections:
    named = {"Dependencies": needed, "Links": links, "Newest releases": releases}
    for title, lines in named.items():
        if lines:
            yield v.Section(2, title, "\n".join(lines))


def npm(answer: v.Answer) -> v.Sections:
    """Yield a package of a JavaScript registry, or one version of it."""
    latest = v.line(answer.one("dist-tags.latest", "version"))
    versions, times = answer.one("versions"), answer.one("time")
    chosen = versions.get(latest) if is_object(versions) else answer.first
    needed = v.member(chosen, "dependencies")
    dates = {
        version: v.moment(date)
        for version, date in (times.items() if is_object(times) else ())
        if version not in ("created", "modified")
    }
    newest = sorted(dates.items(), key=lambda item: item[1], reverse=True)[:RELEASES]
    facts = {
        "Version": latest,
        "Published": dates.get(latest, ""),
        "Deprecated": v.line(v.member(chosen, "deprecated")),
        "License": v.line(v.member(chosen, "license", "license.type") or answer.one("license")),
        "Author": v.line(v.member(chosen, "author") or answer.one("author")),
        "Keywords": v.line(v.member(chosen, "keywords")),
        "Node": v.line(v.member(chosen, "engines.node")),
    }
    pages = {"Repository": v.member(chosen, "repository.url", "repository"), "Home page": v.member(
        chosen, "homepage"), "Bugs": v.member(chosen, "bugs.url")}  # fmt: skip
    title = f"{v.line(answer.one('name'))} {latest}"
    yield v.Section(1, title, v.line(v.member(chosen, "description")), v.facts_of(facts))
    yield from _package(
        [f"- {name} {v.line(which)}" for name, which in needed.items()]
        if is_object(needed)
        else [],
        [f"- {name}: {v.line(url)}" for name, url in pages.items() if url],
        [f"- {v.joined(*item)}" for item in newest],
    )
    yield v.Section(2, "Readme", v.prose(answer.one("readme")))


def crate(answer: v.Answer) -> v.Sections:
    """Yield a package of Rust's registry."""
    crate: Any = answer.one("crate")
    version = v.line(v.member(crate, "max_stable_version", "max_version", "newest_version"))
    releases = v.listed(answer.one("versions"))
    newest = next((r for r in releases if v.member(r, "num") == version), None)
    facts = {
        "Version": version,
        "Updated": v.moment(v.member(crate, "updated_at")),
        "License": v.line(v.member(newest, "license")),
        "Rust": v.line(v.member(newest, "rust_version")),
        "Downloads": v.number(v.member(crate, "downloads")),
        "Keywords": v.line(v.member(crate, "keywords")),
        "Features": ", ".join(v.member(newest, "features") or ()),
    }
    pages = {name: v.member(crate, key) for name, key in
             (("Repository", "repository"), ("Documentation", "documentation"),
              ("Home page", "homepage"))}  # fmt: skip
    lines = [
        f"- {v.joined(v.line(v.member(r, 'num')), v.moment(v.member(r, 'created_at')))}"
        + (", yanked" if v.member(r, "yanked") is True else "")
        for r in releases[:RELEASES]
    ]
    title = f"{v.line(v.member(crate, 'name', 'id'))} {version}"
    yield v.Section(1, title, v.prose(v.member(crate, "description")), v.facts_of(facts))
    yield from _package(
        [], [f"- {name}: {v.line(url)}" for name, url in pages.items() if url], lines
    )
    yield v.Section(2, "Readme", v.markup(answer.rest()))


def questions(answer: v.Answer) -> v.Sections:
    """Yield a question and its answers, the best first (Stack Exchange)."""
    question: Any = next(iter(v.listed(answer.one("items"))), None)
    title = html.unescape(v.line(v.member(question, "title")))
    total = v.member(question, "answer_count")
    facts = {
        "Asked": _said(question),
        "Score": v.number(v.member(question, "score")),
        "Tags": v.line(v.member(question, "tags")),
        "Answers": v.number(total),
        "Closed": html.unescape(v.line(v.member(question, "closed_reason"))),
    }
    url = v.line(v.member(question, "link"))
    body = v.markup(v.member(question, "body"), url) if answer.page == 1 else ""
    if title:
        yield v.Section(1, title, v.facts_of(facts), body)
    answers = v.member(answer.rest(), "items")
    if answer.rest() is None:
        yield v.Section(2, "Answers", "The answers could not be fetched.")
    for position, item in enumerate(v.listed(answers), (answer.page - 1) * 30 + 1):
        accepted = ", accepted" if v.member(item, "is_accepted") is True else ""
        score = f"score {v.number(v.member(item, 'score')) or 0}{accepted}"
        of = f" of {v.number(total)}" if isinstance(total, int) and total >= position else ""
        heading = f"Answer {position}{of}, {score}: {_said(item)}"
        yield v.Section(2, heading, v.markup(v.member(item, "body"), url))


def _said(post: Any) -> str:
    return v.joined(v.person(v.member(post, "owner")), v.moment(v.member(post, "creation_date")))


def story(answer: v.Answer) -> v.Sections:
    """Yield a story of Hacker News with its comments; an answer stands below what it answers."""
    one = answer.one
    title = v.line(one("title"))
    comments = v.listed(one("children"))
    facts = {
        "By": v.joined(v.person(one("author")), v.moment(one("created_at"))),
        "Points": v.number(one("points")),
        "Leads to": v.line(one("url")),
        "Comments": v.number(sum(map(_size, comments))),
    }
    if not title and one("author"):
        title = f"Comment of {v.person(one('author'))}"
    yield v.Section(1, title, v.facts_of(facts), v.markup(one("text")))
    lines: list[str] = []
    pending = [(comment, 0) for comment in reversed(comments)]
    while pending:
        comment, depth = pending.pop()
        text = v.markup(v.member(comment, "text"))
        said = v.joined(
            v.person(v.member(comment, "author")), v.moment(v.member(comment, "created_at"))
        )
        indent = "  " * min(depth, MAX_DEPTH)
        if text:
            inner = text.replace("\n", f"\n{indent}  ")
            lines.append(f"{indent}- **{said}**: {inner}")
        children = v.listed(v.member(comment, "children"))
        pending += [(child, depth + 1) for child in reversed(children)]
    if lines:
        yield v.Section(2, "Comments", "\n".join(lines))


def _size(comment: Any) -> int:
    """Return how many comments stand below one, itself included."""
    count, pending = 0, [comment]
    while pending:
        item = pending.pop()
        count += bool(v.member(item, "text"))
        pending += v.listed(v.member(item, "children"))
    return count
