"""Answers of the APIs of sites as Markdown: the text that the page would show.

GitHub, GitLab, Gitea and Forgejo (whose API is much like GitHub's); package registries, Stack
Exchange and Hacker News. An answer is an array that fetch wrote: the address that was asked for,
then each part as it came, or null. All of it is untrusted and may be of any shape: what is not
there is left out.
"""

import html
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fetchstash.handlers._answers import AnswerReason, _values as v
from fetchstash.handlers._charset import decode
from fetchstash.handlers._contract import Extracted, Hints
from fetchstash.handlers._data._json_paths import value_at
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._parts import TextParts
from fetchstash.text.untyped import is_array, is_object


def thread(answer: v.Answer) -> v.Sections:
    """Yield an issue, pull request or merge request with its comments (GitHub, GitLab, Gitea)."""
    issue, one = answer.first, answer.one
    is_pull = "pull_request" in issue if is_object(issue) else False
    is_merge = bool(one("source_branch"))
    kind = "merge request" if is_merge else "pull request" if is_pull else "issue"
    merged = v.moment(one("merged_at", "pull_request.merged_at"))
    state = (
        f"merged {merged}" if merged else v.joined(v.line(one("state")), v.moment(one("closed_at")))
    )
    number = v.line(one("iid", "number"))
    count = one("comments", "user_notes_count")
    branches = (
        f"{v.line(one('source_branch'))} → {v.line(one('target_branch'))}" if is_merge else ""
    )
    facts = {
        "State": f"{kind}, {state}",
        "By": v.said(issue),
        "Labels": v.line(one("labels")),
        "Assigned to": v.line(one("assignees", "assignee")),
        "Milestone": v.line(one("milestone")),
        "Branches": branches,
        "Comments": v.number(count) or "",
    }
    mark = "!" if is_merge else "#"
    title = f"{v.line(one('title'))} ({mark}{number})" if number else v.line(one("title"))
    if not v.line(one("title")):
        return
    # A later page of comments does not repeat the text.
    body = v.prose(one("body", "description")) if answer.page == 1 else ""
    yield v.Section(1, title, v.facts_of(facts), body)
    comments = answer.rest()
    if answer.others and comments is None:
        yield v.Section(2, "Comments", "The comments could not be fetched.")
    written = [item for item in v.listed(comments) if v.member(item, "system") is not True]
    begin = (answer.page - 1) * 100
    for position, comment in enumerate(written, begin + 1):
        of = f" of {v.number(count)}" if isinstance(count, int) and count >= position else ""
        title = f"Comment {position}{of}: {v.said(comment)}"
        yield v.Section(2, title, v.prose(v.member(comment, "body")))
    for remark in v.listed(answer.rest(1)):
        line = v.field(remark, "line", "original_line")
        place = v.field(remark, "path") + (f", line {line}" if line else "")
        hunk = v.fenced(v.prose(v.member(remark, "diff_hunk"))[-1_000:], "diff")
        yield v.Section(2, f"On {place}: {v.said(remark)}", hunk, v.prose(v.member(remark, "body")))


def folder(answer: v.Answer) -> v.Sections:
    """Yield the entries of a folder, folders first (GitHub, GitLab, Gitea)."""
    place = [
        unquote(part) for part in urlsplit(answer.url).path.split("/") if part not in ("", "-")
    ]
    if not is_array(answer.first):  # the address was that of a file
        text = v.decoded(answer.first) if is_object(answer.first) else ""
        if text:
            yield v.Section(1, v.line(answer.one("path")), v.fenced(text))
        return
    folders: list[str] = []
    files: list[str] = []
    for entry in v.listed(answer.first):
        name, is_folder = v.field(entry, "name"), v.member(entry, "type") in ("dir", "tree")
        size = v.member(entry, "size")
        more = v.amount(size, "byte") if not is_folder else ""
        (folders if is_folder else files).append(
            v.link(f"{name}/" if is_folder else name, v.member(entry, "html_url"), more)
        )
    count = v.joined(v.amount(len(folders), "folder"), v.amount(len(files), "file"))
    yield v.Section(1, "/".join(place), count, "\n".join(folders + files))


def release(answer: v.Answer) -> v.Sections:
    """Yield releases with their files (GitHub, GitLab, Gitea)."""
    several = is_array(answer.first)
    for release in v.listed(answer.first) if several else [answer.first]:
        tag, name = v.field(release, "tag_name"), v.field(release, "name")
        title = f"{name} ({tag})" if name and tag and tag not in name else name or tag
        files = [
            v.link(
                v.member(asset, "name"),
                v.member(asset, "browser_download_url", "direct_asset_url", "url"),
                v.amount(v.member(asset, "size"), "byte"),
                v.amount(v.member(asset, "download_count"), "download"),
            )
            for key in ("assets", "assets.links")
            for asset in v.listed(v.member(release, key))
        ]
        files += [
            v.link(f"source, {v.field(packed, 'format')}", v.member(packed, "url"))
            for packed in v.listed(v.member(release, "assets.sources"))
        ]
        if source := v.member(release, "tarball_url"):
            files.append(v.link("source", source))
        facts = {
            "By": v.joined(
                v.person(v.member(release, "author")),
                v.moment(v.member(release, "published_at", "released_at", "created_at")),
            ),
            "Kind": "pre-release" if v.member(release, "prerelease") is True else "",
        }
        body = v.prose(v.member(release, "body", "description"))
        yield v.Section(2 if several else 1, title, v.facts_of(facts), body, "\n".join(files))


def repository(answer: v.Answer) -> v.Sections:
    """Yield a repository's description and README (GitHub, GitLab, Gitea)."""
    one = answer.one
    facts = {
        "Stars": v.number(one("stargazers_count", "star_count", "stars_count")),
        "Forks": v.number(one("forks_count")),
        "Open issues": v.number(one("open_issues_count")),
        "Language": v.line(one("language")),
        "License": v.line(one("license.spdx_id", "license.name", "license")),
        "Topics": v.line(one("topics")),
        "Home page": v.line(one("homepage", "website")),
        "Branch": v.line(one("default_branch")),
        "Last change": v.moment(one("pushed_at", "last_activity_at", "updated_at")),
        "State": "archived: it is read-only" if one("archived") is True else "",
    }
    name = v.line(one("full_name", "path_with_namespace", "name"))
    yield v.Section(1, name, v.prose(one("description")), v.facts_of(facts))
    readme = v.decoded(answer.rest())
    if readme:
        yield v.Section(2, v.line(v.member(answer.rest(), "name", "file_name")) or "README", readme)


def gist(answer: v.Answer) -> v.Sections:
    """Yield the files of a gist."""
    files = answer.one("files")
    if not is_object(files):
        return
    title = v.line(answer.one("description")) or "Gist"
    facts = {"By": v.said(answer.first), "Comments": v.number(answer.one("comments"))}
    yield v.Section(1, title, v.facts_of(facts))
    for name, file in list(files.items())[: v.MAX_LIST]:
        text, language = v.prose(v.member(file, "content")), v.field(file, "language")
        rest = f"The rest is at {v.field(file, 'raw_url')}."
        more = rest if v.member(file, "truncated") is True else ""
        shown = text if language == "Markdown" else v.fenced(text, language.lower().split(" ")[0])
        yield v.Section(2, name, shown, more)


RELEASES = 20  # of a package, the newest
MAX_DEPTH = 40  # of comments that answer comments


_NPM_PAGES = {
    "Repository": "repository.url repository",
    "Home page": "homepage",
    "Bugs": "bugs.url",
}
_CRATE_PAGES = {
    "Repository": "repository",
    "Documentation": "documentation",
    "Home page": "homepage",
}
_UPLOADED = ("upload_time_iso_8601", "upload_time")


def pypi(answer: v.Answer) -> v.Sections:
    """Yield a package of a Python index."""
    info: Any = answer.one("info")
    name, version = v.field(info, "name"), v.field(info, "version")
    links = v.member(info, "project_urls")
    releases = answer.one("releases")
    dates: dict[str, str] = {}
    for release, files in releases.items() if is_object(releases) else ():
        if is_array(files) and files:
            dates[release] = v.moment(v.member(files[0], *_UPLOADED))
    uploaded = next(iter(v.listed(answer.one("urls"))), None)
    facts = {
        "Version": version,
        "Uploaded": v.moment(v.member(uploaded, *_UPLOADED)),
        "Yanked": (v.field(info, "yanked_reason") or "yes") if v.member(info, "yanked") else "",
        "Author": v.field(info, "author", "author_email", "maintainer", "maintainer_email"),
        "License": v.field(info, "license_expression", "license"),
        "Python": v.field(info, "requires_python"),
        "Keywords": v.field(info, "keywords"),
    }
    listed = [v.link(key, url) for key, url in links.items()] if is_object(links) else []
    yield v.Section(1, f"{name} {version}", v.field(info, "summary"), v.facts_of(facts))
    needed = [f"- {v.line(text)}" for text in v.listed(v.member(info, "requires_dist"))]
    yield from _package(needed, listed, _newest(dates))
    faults = [
        v.link(v.member(fault, "id"), v.member(fault, "link"), v.field(fault, "summary", "details"))
        for fault in v.listed(answer.one("vulnerabilities"))
    ]
    if faults:
        yield v.Section(2, "Known vulnerabilities", "\n".join(faults))
    yield v.Section(2, "Description", v.prose(v.member(info, "description")))


def _newest(dates: Mapping[str, str]) -> list[str]:
    newest = sorted(dates.items(), key=lambda item: item[1], reverse=True)
    return [f"- {v.joined(*item)}" for item in newest[:RELEASES]]


def _pages(item: Any, names: Mapping[str, str]) -> list[str]:
    """Return the addresses that an item has under these names, a line each with its title."""
    urls = {title: v.member(item, *name.split()) for title, name in names.items()}
    return [f"- {title}: {v.line(url)}" for title, url in urls.items() if url]


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
    facts = {
        "Version": latest,
        "Published": dates.get(latest, ""),
        "Deprecated": v.field(chosen, "deprecated"),
        "License": v.line(v.member(chosen, "license", "license.type") or answer.one("license")),
        "Author": v.line(v.member(chosen, "author") or answer.one("author")),
        "Keywords": v.field(chosen, "keywords"),
        "Node": v.field(chosen, "engines.node"),
    }
    pages = _pages(chosen, _NPM_PAGES)
    listed = needed.items() if is_object(needed) else ()
    title = f"{v.line(answer.one('name'))} {latest}"
    yield v.Section(1, title, v.field(chosen, "description"), v.facts_of(facts))
    needs = [f"- {name} {v.line(which)}" for name, which in listed]
    yield from _package(needs, pages, _newest(dates))
    yield v.Section(2, "Readme", v.prose(answer.one("readme")))


def crate(answer: v.Answer) -> v.Sections:
    """Yield a package of Rust's registry."""
    crate: Any = answer.one("crate")
    version = v.field(crate, "max_stable_version", "max_version", "newest_version")
    releases = v.listed(answer.one("versions"))
    newest = next((r for r in releases if v.member(r, "num") == version), None)
    facts = {
        "Version": version,
        "Updated": v.moment(v.member(crate, "updated_at")),
        "License": v.field(newest, "license"),
        "Rust": v.field(newest, "rust_version"),
        "Downloads": v.number(v.member(crate, "downloads")),
        "Keywords": v.field(crate, "keywords"),
        "Features": ", ".join(v.member(newest, "features") or ()),
    }
    pages = _pages(crate, _CRATE_PAGES)
    lines = [
        f"- {v.joined(v.field(r, 'num'), v.moment(v.member(r, 'created_at')))}"
        + (", yanked" if v.member(r, "yanked") is True else "")
        for r in releases[:RELEASES]
    ]
    title = f"{v.field(crate, 'name', 'id')} {version}"
    yield v.Section(1, title, v.prose(v.member(crate, "description")), v.facts_of(facts))
    yield from _package([], pages, lines)
    yield v.Section(2, "Readme", v.markup(answer.rest()))


def questions(answer: v.Answer) -> v.Sections:
    """Yield a question and its answers, the best first (Stack Exchange)."""
    question: Any = next(iter(v.listed(answer.one("items"))), None)
    title = html.unescape(v.field(question, "title"))
    total = v.member(question, "answer_count")
    facts = {
        "Asked": v.said(question),
        "Score": v.number(v.member(question, "score")),
        "Tags": v.field(question, "tags"),
        "Answers": v.number(total),
        "Closed": html.unescape(v.field(question, "closed_reason")),
    }
    url = v.field(question, "link")
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
        heading = f"Answer {position}{of}, {score}: {v.said(item)}"
        yield v.Section(2, heading, v.markup(v.member(item, "body"), url))


def story(answer: v.Answer) -> v.Sections:
    """Yield a story of Hacker News with its comments; an answer stands below what it answers."""
    one = answer.one
    title = v.line(one("title"))
    comments = v.listed(one("children"))
    facts = {
        "By": v.said(answer.first),
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
        indent = "  " * min(depth, MAX_DEPTH)
        if text:
            inner = text.replace("\n", f"\n{indent}  ")
            lines.append(f"{indent}- **{v.said(comment)}**: {inner}")
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


_BIG = 60 * 2**20

_SHAPES: Mapping[str, Callable[[v.Answer], v.Sections]] = {
    "thread+json": thread,
    "folder+json": folder,
    "release+json": release,
    "repository+json": repository,
    "gist+json": gist,
    "pypi+json": pypi,
    "npm+json": npm,
    "crate+json": crate,
    "questions+json": questions,
    "story+json": story,
}


class AnswerHandler(TextParts):
    """Answers of APIs, each shape by a function of its own."""

    name = "answer"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the answer as Markdown. Raises NoText if it is of another shape."""
        del limits  # the text is cut behind the handler
        value = _read(source, hints)
        request, *parts = value if is_array(value) and len(value) > 1 else (None, None)
        shape = _SHAPES.get(hints.media_type.removeprefix("application/vnd.fetchstash."))
        answer = v.Answer(request, parts)
        read = shape(answer) if shape and parts[0] else ()
        sections = [section for section in read if section.text or section.level == 1]
        if not sections or not sections[0].title:
            raise AnswerReason.ANSWER_SHAPE.error()
        extracted = Extracted(list(v.parts_of(sections)))
        extracted.learn(
            title=sections[0].title,
            author=v.person(answer.one("user"), answer.one("author"), answer.one("owner")),
            published=v.moment(answer.one("created_at", "creation_date", "published_at")),
        )
        return extracted

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the value at ``path`` of the answer itself. Raises OutOfRange or BadArgument."""
        return value_at(_read(source, hints), path)


def _read(source: Path, hints: Hints) -> Any:
    if source.stat().st_size > _BIG:
        raise AnswerReason.ANSWER_SHAPE.error()
    with AnswerReason.ANSWER_SHAPE.instead_of(ValueError, RecursionError):
        return json.loads(decode(source.read_bytes(), hints.charset))
