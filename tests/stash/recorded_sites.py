"""What the sites of the rules answer, written by us in the shapes of their public APIs.

A site is a rule, the address of a page, its answers by address, and what the text must say.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fetchstash.fetch import matching


@dataclass(frozen=True)
class RecordedSite:
    """A page that a rule is for. ``answers``: JSON, HTML (a string), or bytes with headers."""

    rule: str
    url: str
    answers: Mapping[str, Any]
    says: tuple[str, ...]
    shape: str = field(init=False)

    def __post_init__(self) -> None:
        shape = next(matching(self.url)).rule.shape
        object.__setattr__(self, "shape", shape)


def plain(text: str, kind: str = "text/plain; charset=utf-8") -> tuple[bytes, dict[str, str]]:
    return text.encode(), {"content-type": kind}


def encoded(name: str, text: str) -> dict[str, Any]:
    content = base64.encodebytes(text.encode()).decode()
    return {"name": name, "file_name": name, "encoding": "base64", "content": content}


WORDS = "The reservoir fills slowly in spring, and the wardens open the lower gate then. "
ARTICLE = f"<title>Gates</title><main><h1>Gates</h1><p>{WORDS * 12}</p></main>"
HUB = "https://api.github.com/repos/o/r"
LAB = "https://gitlab.example/api/v4/projects/g%2Fs%2Fr"
TEA = "https://codeberg.example/api/v1/repos/o/r"

ANA, BEN = {"login": "ana", "id": 1}, {"login": "ben", "id": 2}
ISSUE = {
    "number": 7,
    "title": "The gate sticks",
    "state": "closed",
    "user": ANA,
    "comments": 2,
    "closed_at": "2026-02-01T08:00:00Z",
    "created_at": "2026-01-02T03:04:05Z",
    "labels": [{"name": "bug"}, {"name": "gate"}],
    "assignees": [BEN],
    "milestone": {"title": "Spring"},
    "body": "It sticks at **night**.\r\n\r\nSee the log.",
}
COMMENTS = [
    {"user": BEN, "created_at": "2026-01-03T10:00:00Z", "body": "Oil helps."},
    {"user": ANA, "created_at": "2026-01-04T11:30:00Z", "body": "# Thanks\n\nIt does."},
]
THREAD = (
    "# The gate sticks (#7)",
    "- State: issue, closed, 2026-02-01 08:00Z",
    "- By: ana, 2026-01-02 03:04Z",
    "- Labels: bug, gate",
    "- Assigned to: ben",
    "- Milestone: Spring",
    "- Comments: 2",
    "It sticks at **night**.\n\nSee the log.",
    "## Comment 1 of 2: ben, 2026-01-03 10:00Z\n\nOil helps.",
    "## Comment 2 of 2: ana, 2026-01-04 11:30Z",
)
REVIEW = {
    "user": BEN,
    "created_at": "2026-01-05T10:00:00Z",
    "path": "gates/low.py",
    "line": 12,
    "diff_hunk": "@@ -1 +1 @@\n-shut()\n+open()",
    "body": "Why open?",
}
RELEASE = {
    "tag_name": "v2.1",
    "name": "Spring",
    "author": ANA,
    "published_at": "2026-03-01T00:00:00Z",
    "prerelease": True,
    "body": "- The lower gate opens.",
    "tarball_url": "https://api.github.com/repos/o/r/tarball/v2.1",
    "assets": [
        {
            "name": "gates.zip",
            "size": 12_345,
            "download_count": 1,
            "browser_download_url": "https://github.com/o/r/releases/download/v2.1/gates.zip",
        }
    ],
}
RELEASED = (
    "Spring (v2.1)",
    "- By: ana, 2026-03-01 00:00Z",
    "- Kind: pre-release",
    "- The lower gate opens.",
    "- [gates.zip](",
    "12,345 bytes",
)
REPOSITORY = {
    "full_name": "o/r",
    "description": "Gates of a reservoir",
    "stargazers_count": 1_234,
    "forks_count": 5,
    "open_issues_count": 6,
    "language": "Python",
    "topics": ["water", "gates"],
    "license": {"spdx_id": "MIT"},
    "default_branch": "main",
    "archived": True,
    "pushed_at": "2026-03-01T00:00:00Z",
}
README = "# Gates\n\nRun `gates open`.\n"
OF_REPOSITORY = (
    "# o/r\n\nGates of a reservoir",
    "- Stars: 1,234",
    "- License: MIT",
    "- Topics: water, gates",
    "archived",
    "## README.md\n\n# Gates\n\nRun `gates open`.",
)
FOLDER = [
    {
        "name": "low.py",
        "path": "gates/low.py",
        "type": "file",
        "size": 812,
        "html_url": "https://github.com/o/r/blob/main/gates/low.py",
    },
    {
        "name": "tests",
        "path": "gates/tests",
        "type": "dir",
        "size": 0,
        "html_url": "https://github.com/o/r/tree/main/gates/tests",
    },
]
PYPI = {
    "info": {
        "name": "gates",
        "version": "2.1",
        "summary": "Gates of a reservoir",
        "author": "Ana",
        "license_expression": "MIT",
        "requires_python": ">=3.11",
        "requires_dist": ["oil>=1"],
        "project_urls": {"Source": "https://github.com/o/r"},
        "description": README,
        "yanked": False,
    },
    "urls": [{"upload_time_iso_8601": "2026-03-01T00:00:00.000Z"}],
    "releases": {
        "2.0": [{"upload_time_iso_8601": "2025-03-01T00:00:00.000Z"}],
        "2.1": [{"upload_time_iso_8601": "2026-03-01T00:00:00.000Z"}],
        "3.0a1": [],
    },
    "vulnerabilities": [
        {"id": "GATE-2026-1", "link": "https://example.org/1", "summary": "It opens for anybody."}
    ],
}
OF_PYPI = (
    "# gates 2.1\n\nGates of a reservoir",
    "- Uploaded: 2026-03-01 00:00Z",
    "- Python: >=3.11",
    "## Dependencies\n\n- oil>=1",
    "- [Source](https://github.com/o/r)",
    "- 2.1, 2026-03-01 00:00Z\n- 2.0, 2025-03-01 00:00Z",
    "It opens for anybody.",
    "## Description\n\n# Gates",
)
NPM: dict[str, Any] = {
    "name": "@o/gates",
    "dist-tags": {"latest": "2.1.0"},
    "license": "MIT",
    "readme": README,
    "versions": {
        "2.1.0": {
            "description": "Gates of a reservoir",
            "license": "MIT",
            "author": {"name": "Ana"},
            "dependencies": {"oil": "^1"},
            "homepage": "https://example.org/gates",
            "repository": {"type": "git", "url": "git+https://github.com/o/r.git"},
            "deprecated": "Use locks.",
            "engines": {"node": ">=20"},
        }
    },
    "time": {"created": "2025-01-01T00:00:00Z", "2.1.0": "2026-03-01T00:00:00.000Z"},
}
CRATE: dict[str, Any] = {
    "crate": {
        "id": "gates",
        "name": "gates",
        "max_stable_version": "2.1.0",
        "downloads": 99_999,
        "description": "Gates of a reservoir",
        "updated_at": "2026-03-01T00:00:00Z",
        "repository": "https://github.com/o/r",
        "keywords": ["water"],
    },
    "versions": [
        {
            "num": "2.1.0",
            "license": "MIT",
            "rust_version": "1.80",
            "yanked": False,
            "created_at": "2026-03-01T00:00:00Z",
            "features": {"default": [], "night": []},
        },
        {"num": "2.0.0", "yanked": True, "created_at": "2025-03-01T00:00:00Z"},
    ],
}
QUESTION = {
    "items": [
        {
            "question_id": 12,
            "title": "Why does the &quot;low&quot; gate stick?",
            "score": 3,
            "tags": ["gate", "oil"],
            "answer_count": 2,
            "creation_date": 1_767_323_045,
            "owner": {"display_name": "Ana &amp; Co"},
            "body": "<p>It <b>sticks</b>.</p>",
            "link": "https://stackoverflow.com/questions/12/why",
        }
    ],
    "has_more": False,
    "quota_remaining": 299,
}
ANSWERS = {
    "items": [
        {
            "answer_id": 1,
            "score": 9,
            "is_accepted": True,
            "creation_date": 1_767_409_445,
            "owner": {"display_name": "Ben"},
            "body": "<pre><code>oil()</code></pre>",
        },
        {
            "answer_id": 2,
            "score": -1,
            "is_accepted": False,
            "creation_date": 1_767_409_445,
            "owner": {"display_name": "Cleo"},
            "body": "<p>Wait.</p>",
        },
    ],
    "has_more": False,
}
ASKED = (
    '# Why does the "low" gate stick?',
    "- Asked: Ana & Co, 2026-01-02 03:04Z",
    "- Score: 3",
    "- Tags: gate, oil",
    "It **sticks**.",
    "## Answer 1 of 2, score 9, accepted: Ben",
    "oil()",
    "## Answer 2 of 2, score -1: Cleo",
)
STORY: dict[str, Any] = {
    "id": 99,
    "type": "story",
    "title": "Gates of a reservoir",
    "url": "https://example.org/gates",
    "author": "ana",
    "points": 120,
    "created_at": "2026-01-02T03:04:05.000Z",
    "text": None,
    "children": [
        {
            "author": "ben",
            "created_at": "2026-01-02T04:00:00.000Z",
            "text": "Oil <i>helps</i>.",
            "children": [
                {
                    "author": "ana",
                    "created_at": "2026-01-02T05:00:00.000Z",
                    "text": "It does.<p>At night, too.",
                    "children": [],
                },
            ],
        },
        {"author": None, "created_at": "2026-01-02T05:00:00.000Z", "text": None, "children": []},
    ],
}
FILM = """<title>Gates - YouTube</title><div id=player></div>
<script>var ytInitialPlayerResponse = {"videoDetails": {"videoId": "abcdefghijk",
"title": "Gates of a reservoir", "lengthSeconds": "3725", "author": "Ana", "viewCount": "12345",
"shortDescription": "How the gates work.\\nFilmed at night."},
"microformat": {"playerMicroformatRenderer": {"publishDate": "2026-03-01T00:00:00-08:00"}},
"captions": {"playerCaptionsTracklistRenderer": {"captionTracks": [{"baseUrl":
"https://www.youtube.com/api/timedtext?v=abcdefghijk\\u0026lang=en", "name": {"simpleText":
"English"}}]}}};var meta = {};</script>
<script>var ytInitialData = {"panels": [{"macroMarkersListItemRenderer": {"title": {"simpleText":
"Opening"}, "timeDescription": {"simpleText": "0:00"}}}, {"macroMarkersListItemRenderer": {"title":
{"simpleText": "At night"}, "timeDescription": {"simpleText": "12:30"}}}]};</script>"""
CAPTIONS = {
    "events": [
        {"tStartMs": 0, "segs": [{"utf8": "This is"}, {"utf8": " the </script> gate."}]},
        {"tStartMs": 5_000, "segs": [{"utf8": "\n"}]},
        {"tStartMs": 40_000, "segs": [{"utf8": "It opens."}]},
    ]
}
TABLE = plain("gate,open\nlow,yes\n", "text/csv")
GOOGLE = "https://docs.google.com"
ID = "a" * 44
SE = "https://api.stackexchange.com/2.3/questions/12"


def asked(url: str, site: str) -> RecordedSite:
    options = f"site={site}&filter=withbody"
    answers = f"{SE}/answers?{options}&order=desc&sort=votes&pagesize=30&page=1"
    return RecordedSite(
        "stack-exchange", url, {f"{SE}?{options}": QUESTION, answers: ANSWERS}, ASKED
    )


SITES = (
    RecordedSite(
        "github-file", "https://github.com/o/r/blob/main/gates/low.py",
        {"https://raw.githubusercontent.com/o/r/main/gates/low.py": plain("open()\n")}, ("open()",),
    ),
    RecordedSite(
        "github-folder", "https://github.com/o/r/tree/main/gates",
        {f"{HUB}/contents/gates?ref=main": FOLDER},
        ("# o/r/tree/main/gates\n\n1 folder, 1 file", "- [tests/](https://github.com/o/r/tree",
         "- [low.py](https://github.com/o/r/blob/main/gates/low.py), 812 bytes"),
    ),
    RecordedSite(
        "github-issue", "https://github.com/o/r/issues/7",
        {f"{HUB}/issues/7": ISSUE, f"{HUB}/issues/7/comments?per_page=100&page=1": COMMENTS},
        THREAD,
    ),
    RecordedSite(
        "github-pull", "https://github.com/o/r/pull/7#discussion_r1",
        {
            f"{HUB}/issues/7": ISSUE | {"pull_request": {"merged_at": "2026-02-02T00:00:00Z"}},
            f"{HUB}/issues/7/comments?per_page=100&page=1": COMMENTS,
            f"{HUB}/pulls/7/comments?per_page=100&page=1": [REVIEW],
        },
        ("- State: pull request, merged 2026-02-02 00:00Z", "Oil helps.",
         "## On gates/low.py, line 12: ben, 2026-01-05 10:00Z", "+open()", "Why open?"),
    ),
    RecordedSite(
        "github-release", "https://github.com/o/r/releases/tag/v2.1",
        {f"{HUB}/releases/tags/v2.1": RELEASE}, RELEASED,
    ),
    RecordedSite(
        "github-release", "https://github.com/o/r/releases/latest",
        {f"{HUB}/releases/latest": RELEASE}, RELEASED,
    ),
    RecordedSite(
        "github-release", "https://github.com/o/r/releases",
        {f"{HUB}/releases?per_page=30&page=1": [RELEASE, {"tag_name": "v2.0", "body": "Old."}]},
        (*RELEASED, "## v2.0\n\nOld."),
    ),
    RecordedSite(
        "github-repository", "https://github.com/o/r?tab=readme-ov-file#run",
        {HUB: REPOSITORY, f"{HUB}/readme": encoded("README.md", README)}, OF_REPOSITORY,
    ),
    RecordedSite(
        "github-gist", "https://gist.github.com/ana/0123456789abcdef",
        {"https://api.github.com/gists/0123456789abcdef": {
            "description": "How to oil", "owner": ANA, "created_at": "2026-01-02T03:04:05Z",
            "files": {
                "oil.py": {"language": "Python", "content": "oil()\n", "truncated": False},
                "notes.md": {"language": "Markdown", "content": "- slowly", "truncated": True,
                             "raw_url": "https://gist.githubusercontent.com/notes.md"}},
        }},
        ("# How to oil", "## oil.py\n\n```python\noil()\n```", "## notes.md\n\n- slowly",
         "The rest is at https://gist"),
    ),
    RecordedSite(
        "gitlab-file", "https://gitlab.example/g/s/r/-/blob/v1/b.py?ref_type=heads",
        {"https://gitlab.example/g/s/r/-/raw/v1/b.py": plain("open()\n")}, ("open()",),
    ),
    RecordedSite(
        "gitlab-folder", "https://gitlab.example/g/s/r/-/tree/main/gates",
        {f"{LAB}/repository/tree?ref=main&path=gates&per_page=100": [
            {"name": "low.py", "type": "blob"}, {"name": "tests", "type": "tree"}]},
        ("1 folder, 1 file", "- tests/\n- low.py"),
    ),
    RecordedSite(
        "gitlab-issue", "https://gitlab.example/g/s/r/-/issues/7",
        {
            f"{LAB}/issues/7": {
                "iid": 7, "title": "The gate sticks", "state": "opened", "author": {"name": "Ana"},
                "created_at": "2026-01-02T03:04:05Z", "labels": ["bug"], "user_notes_count": 1,
                "description": "It sticks.",
            },
            f"{LAB}/issues/7/notes?sort=asc&order_by=created_at&per_page=100&page=1": [
                {"system": True, "body": "closed", "author": {"username": "bot"}},
                {"system": False, "body": "Oil helps.", "author": {"username": "ben"},
                 "created_at": "2026-01-03T10:00:00Z"},
            ],
        },
        ("# The gate sticks (#7)", "- State: issue, opened", "- By: Ana, 2026-01-02 03:04Z",
         "- Labels: bug", "It sticks.", "## Comment 1 of 1: ben, 2026-01-03 10:00Z\n\nOil helps."),
    ),
    RecordedSite(
        "gitlab-merge", "https://gitlab.example/g/s/r/-/merge_requests/8",
        {f"{LAB}/merge_requests/8": {
            "iid": 8, "title": "Oil it", "state": "merged", "merged_at": "2026-02-02T00:00:00Z",
            "author": {"username": "ana"}, "source_branch": "oil", "target_branch": "main",
            "description": "More oil."}},
        ("# Oil it (!8)", "- State: merge request, merged 2026-02-02", "- Branches: oil → main",
         "The comments could not be fetched."),
    ),
    RecordedSite(
        "gitlab-release", "https://gitlab.example/g/s/r/-/releases/v2.1",
        {f"{LAB}/releases/v2.1": {
            "tag_name": "v2.1", "name": "Spring", "released_at": "2026-03-01T00:00:00Z",
            "author": {"username": "ana"}, "description": "- The lower gate opens.",
            "assets": {"sources": [{"format": "zip", "url": "https://gitlab.example/v2.1.zip"}],
                       "links": [{"name": "Manual", "url": "https://gitlab.example/m.pdf"}]}}},
        ("# Spring (v2.1)", "- [Manual](https://gitlab.example/m.pdf)",
         "- [source, zip](https://gitlab.example/v2.1.zip)"),
    ),
    RecordedSite(
        "gitlab-repository", "https://gitlab.example/g/s/r",
        {LAB: {"path_with_namespace": "g/s/r", "description": "Gates", "star_count": 3},
         f"{LAB}/repository/files/README.md?ref=HEAD": encoded("README.md", README)},
        ("# g/s/r\n\nGates", "- Stars: 3", "Run `gates open`."),
    ),
    RecordedSite(
        "gitea-file", "https://git.example/o/r/src/branch/main/b.py",
        {"https://git.example/o/r/raw/branch/main/b.py": plain("open()\n")}, ("open()",),
    ),
    RecordedSite(
        "gitea-folder", "https://codeberg.example/o/r/src/branch/main/gates",
        {f"{TEA}/contents/gates?ref=main": FOLDER}, ("1 folder, 1 file", "- [tests/]("),
    ),
    RecordedSite(
        "gitea-issue", "https://codeberg.example/o/r/issues/7",
        {f"{TEA}/issues/7": ISSUE, f"{TEA}/issues/7/comments": COMMENTS}, THREAD,
    ),
    RecordedSite(
        "gitea-release", "https://codeberg.example/o/r/releases/tag/v2.1",
        {f"{TEA}/releases/tags/v2.1": RELEASE}, RELEASED,
    ),
    RecordedSite(
        "gitea-repository", "https://codeberg.example/o/r",
        {TEA: REPOSITORY, f"{TEA}/contents/README.md": encoded("README.md", README)}, OF_REPOSITORY,
    ),
    RecordedSite(
        "arxiv", "https://arxiv.org/abs/2601.01234v2",
        {"https://arxiv.org/html/2601.01234v2": ARTICLE}, ("# Gates", "The reservoir fills"),
    ),
    RecordedSite(
        "arxiv", "https://arxiv.org/abs/math/0309136",
        {"https://arxiv.org/pdf/math/0309136": plain("Gates, all of it.\n")}, ("all of it",),
    ),
    RecordedSite(
        "pypi", "https://pypi.example/project/gates/",
        {"https://pypi.example/pypi/gates/json": PYPI}, OF_PYPI,
    ),
    RecordedSite(
        "pypi", "https://pypi.example/project/gates/2.1/",
        {"https://pypi.example/pypi/gates/2.1/json": PYPI}, OF_PYPI,
    ),
    RecordedSite(
        "npm", "https://www.npmjs.example/package/@o/gates",
        {"https://registry.npmjs.example/@o%2Fgates": NPM},
        ("# @o/gates 2.1.0\n\nGates of a reservoir", "- Published: 2026-03-01 00:00Z",
         "- Deprecated: Use locks.", "- Author: Ana", "- Node: >=20", "- oil ^1",
         "- Repository: git+https://github.com/o/r.git", "## Readme\n\n# Gates"),
    ),
    RecordedSite(
        "npm", "https://www.npmjs.example/package/gates/v/2.1.0",
        {"https://registry.npmjs.example/gates/2.1.0": NPM["versions"]["2.1.0"]
         | {"name": "gates", "version": "2.1.0"}},
        ("# gates 2.1.0\n\nGates of a reservoir", "- oil ^1"),
    ),
    RecordedSite(
        "crates", "https://crates.example/crates/gates",
        {"https://crates.example/api/v1/crates/gates": CRATE,
         "https://crates.example/api/v1/crates/gates/2.1.0/readme": "<h1>Gates</h1><p>Run it.</p>"},
        ("# gates 2.1.0\n\nGates of a reservoir", "- License: MIT", "- Downloads: 99,999",
         "- Features: default, night", "- 2.0.0, 2025-03-01 00:00Z, yanked", "Run it."),
    ),
    RecordedSite(
        "hugging-face", "https://huggingface.co/o/gates",
        {"https://huggingface.co/o/gates/raw/main/README.md":
         plain(f"---\nlicense: mit\n---\n{README}")},
        ("license: mit", "Run `gates open`."),
    ),
    RecordedSite(
        "hugging-face", "https://huggingface.co/datasets/o/gates/blob/main/gates.json",
        {"https://huggingface.co/datasets/o/gates/raw/main/gates.json": plain('{"gate": 1}')},
        ('"gate"',),
    ),
    RecordedSite(
        "google-docs", f"{GOOGLE}/document/d/{ID}/edit?usp=sharing",
        {f"{GOOGLE}/document/d/{ID}/export?format=md": plain(README, "text/markdown")},
        ("Run `gates open`.",),
    ),
    RecordedSite(
        "google-sheets", f"{GOOGLE}/spreadsheets/d/{ID}/edit?gid=3#gid=3",
        {f"{GOOGLE}/spreadsheets/d/{ID}/export?format=csv&gid=3": TABLE},
        ("low,yes",),
    ),
    RecordedSite(
        "google-sheets", f"{GOOGLE}/spreadsheets/d/{ID}/edit",
        {f"{GOOGLE}/spreadsheets/d/{ID}/export?format=xlsx": TABLE},
        ("low,yes",),
    ),
    RecordedSite(
        "google-slides", f"{GOOGLE}/presentation/d/{ID}/edit#slide=id.p",
        {f"{GOOGLE}/presentation/d/{ID}/export/pdf": plain("Gates, slide 1.\n")}, ("slide 1",),
    ),
    asked("https://stackoverflow.com/questions/12/why?answertab=votes#12", "stackoverflow"),
    asked("https://water.stackexchange.com/q/12", "water"),
    asked("https://mathoverflow.net/questions/12", "mathoverflow.net"),
    RecordedSite(
        "hacker-news", "https://news.ycombinator.com/item?id=99",
        {"https://hn.algolia.com/api/v1/items/99": STORY},
        ("# Gates of a reservoir", "- Points: 120", "- Leads to: https://example.org/gates",
         "- Comments: 2", "- **ben, 2026-01-02 04:00Z**: Oil *helps*.",
         "*helps*.\n  - **ana, 2026-01-02 05:00Z**: It does."),
    ),
    RecordedSite(
        "wikipedia", "https://en.m.wikipedia.org/wiki/Sluice#Use",
        {"https://en.wikipedia.org/wiki/Sluice": ARTICLE}, ("The reservoir fills",),
    ),
    RecordedSite(
        "wikipedia", "https://en.wikipedia.org/w/index.php?title=Sluice",
        {"https://en.wikipedia.org/wiki/Sluice": ARTICLE}, ("The reservoir fills",),
    ),
    RecordedSite(
        "youtube", "https://youtu.be/abcdefghijk?t=5",
        {
            "https://www.youtube.com/watch?v=abcdefghijk": FILM,
            "https://www.youtube.com/api/timedtext?v=abcdefghijk&lang=en&fmt=json3": CAPTIONS,
        },
        ("# Gates of a reservoir", "- By: Ana", "- Length: 1:02:05", "- Views: 12,345",
         "- Published: 2026-03-01", "How the gates work.\nFilmed at night.",
         "## Chapters\n\n- 0:00 Opening\n- 12:30 At night", "- 0:00 This is the </script> gate.",
         "- 0:40 It opens."),
    ),
    RecordedSite(
        "youtube", "https://www.youtube.com/watch?v=abcdefghijk&t=5s",
        {"https://www.youtube.com/watch?v=abcdefghijk": FILM},
        ("# Gates of a reservoir", "The site has captions and did not give them."),
    ),
)  # fmt: skip
