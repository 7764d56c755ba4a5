"""Answers of GitHub, GitLab, and of Gitea and Forgejo, whose API is much like GitHub's."""

from urllib.parse import unquote, urlsplit

from fetchstash.handlers._answers import _values as v
from fetchstash.handlers._data._json_values import is_array, is_object


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
        "By": v.joined(v.person(one("user"), one("author")), v.moment(one("created_at"))),
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
        who = v.joined(v.person(v.member(comment, "user"), v.member(comment, "author")),
                      v.moment(v.member(comment, "created_at")))  # fmt: skip
        yield v.Section(2, f"Comment {position}{of}: {who}", v.prose(v.member(comment, "body")))
    for remark in v.listed(answer.rest(1)):
        line = v.line(v.member(remark, "line", "original_line"))
        place = v.line(v.member(remark, "path")) + (f", line {line}" if line else "")
        who = v.joined(v.person(v.member(remark, "user")), v.moment(v.member(remark, "created_at")))
        hunk = v.fenced(v.prose(v.member(remark, "diff_hunk"))[-1_000:], "diff")
        yield v.Section(2, f"On {place}: {who}", hunk, v.prose(v.member(remark, "body")))


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
        name, is_folder = (
            v.line(v.member(entry, "name")),
            v.member(entry, "type") in ("dir", "tree"),
        )
        size = v.member(entry, "size")
        more = v.counted(size, "byte") if not is_folder else ""
        (folders if is_folder else files).append(
            v.link(f"{name}/" if is_folder else name, v.member(entry, "html_url"), more)
        )
    count = v.joined(v.counted(len(folders), "folder"), v.counted(len(files), "file"))
    yield v.Section(1, "/".join(place), count, "\n".join(folders + files))


def release(answer: v.Answer) -> v.Sections:
    """Yield releases with their files (GitHub, GitLab, Gitea)."""
    several = is_array(answer.first)
    for release in v.listed(answer.first) if several else [answer.first]:
        tag, name = v.line(v.member(release, "tag_name")), v.line(v.member(release, "name"))
        title = f"{name} ({tag})" if name and tag and tag not in name else name or tag
        files = [
            v.link(
                v.member(asset, "name"),
                v.member(asset, "browser_download_url", "direct_asset_url", "url"),
                v.counted(v.member(asset, "size"), "byte"),
                v.counted(v.member(asset, "download_count"), "download"),
            )
            for key in ("assets", "assets.links")
            for asset in v.listed(v.member(release, key))
        ]
        files += [
            v.link(f"source, {v.line(v.member(source, 'format'))}", v.member(source, "url"))
            for source in v.listed(v.member(release, "assets.sources"))
        ]
        source = (
            v.link("source", v.member(release, "tarball_url"))
            if v.member(release, "tarball_url")
            else ""
        )
        facts = {
            "By": v.joined(
                v.person(v.member(release, "author")),
                v.moment(v.member(release, "published_at", "released_at", "created_at")),
            ),
            "Kind": "pre-release" if v.member(release, "prerelease") is True else "",
        }
        shown = "\n".join(filter(None, [*files, source]))
        body = v.prose(v.member(release, "body", "description"))
        yield v.Section(2 if several else 1, title, v.facts_of(facts), body, shown)


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
    facts = {
        "By": v.joined(v.person(answer.one("owner")), v.moment(answer.one("created_at"))),
        "Comments": v.number(answer.one("comments")),
    }
    yield v.Section(1, title, v.facts_of(facts))
    for name, file in list(files.items())[: v.MAX_LIST]:
        text, language = v.prose(v.member(file, "content")), v.line(v.member(file, "language"))
        rest = f"The rest is at {v.line(v.member(file, 'raw_url'))}."
        more = rest if v.member(file, "truncated") is True else ""
        shown = text if language == "Markdown" else v.fenced(text, language.lower().split(" ")[0])
        yield v.Section(2, name, shown, more)
