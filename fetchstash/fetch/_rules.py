"""Rules for addresses whose page only frames a document: they give its own address.

One table, as data. A rule names the address that it is for and the public addresses of the
document; it leads to the page's own site, or to a host that stands in its row. None logs in. A
document in several parts (an issue, its comments) is fetched in as many requests and becomes one
JSON array: what was asked for, then each part, ``null`` for one that did not come.

A rule is for the URL as the fetcher reads it: parsed, in normal form. What it leads to is built of
the parts, and used only if it is in normal form too: no spelling of dots, slashes or percent signs
leads a rule to another document than the one that the page's own address names.

What a rule fetches goes through the fetcher like any URL: policy, robots.txt, pace, limits. Where
the document does not come, the page is fetched as if there were no rule.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote, unquote

from fetchstash.errors import FetchstashError
from fetchstash.text.urls import normal_url, parse

TWIN = "markdown-twin"
"""The name by which ``fetch.rules_off`` switches off the Markdown that a page names as its own."""
MAX_RULES = 2  # that are tried for one address


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    ``address`` is a pattern for all of an address behind "//". ``parts`` are the addresses of the
    document, with the pattern's groups in braces, {name} as it stands there and {name_q} quoted as
    one value; also {scheme}, {origin} and {page}, which is 1 unless the address says otherwise.
    ``what`` says what is read. ``shape`` names the reader of an API's answer; without one the
    first part is a document by itself, and no web page unless ``is_page``. ``finds`` is a pattern
    for the first part's text: its groups are for the addresses of the others.
    """

    name: str
    address: str
    parts: tuple[str, ...]
    what: str
    shape: str = ""
    is_page: bool = False
    finds: str = ""

    @property
    def media_type(self) -> str:
        """The media type of the answer that the rule's reader takes, "" for a plain document."""
        syntax = "html" if self.is_page else "json"
        return f"application/vnd.fetchstash.{self.shape}+{syntax}" if self.shape else ""


_NOT_OWNERS = (  # first words of github.com's own pages
    "(?!(?i:about|apps|collections|customer-stories|enterprise|events|explore|features|issues|login|"
    "marketplace|new|notifications|orgs|organizations|pricing|pulls|readme|search|security|"
    "sessions|settings|site|solutions|sponsors|stars|topics|trending|users)/)"
)
_HUB = rf"(?:www\.)?github\.com/{_NOT_OWNERS}(?P<owner>[\w.-]+)/(?P<repo>[\w.-]+)"
_HUB_API = "https://api.github.com/repos/{owner}/{repo}"
_PAGED = r"(?:\?page=(?P<page>\d{1,5}))?"
# "/-/" stands in addresses of GitLab alone; "/src/branch/" in those of Gitea and Forgejo.
_HOST = r"[\w.-]+(?::\d+)?/"
_LAB = _HOST + r"(?P<project>[\w.-]+(?:/[\w.-]+)+)/-/"
_LAB_HOST = r"(?:[\w-]+\.)*gitlab\.[\w.-]+(?::\d+)?/"
_LAB_API = "{origin}/api/v4/projects/{project_q}"
_LAB_NOTES = "/notes?sort=asc&order_by=created_at&per_page=100&page={page}"
_REF_TYPE = r"(?:\?ref_type=\w+)?"
_TEA_REPO = r"(?P<owner>[\w.-]+)/(?P<repo>[\w.-]+)"
_TEA = r"(?:[\w-]+\.)*(?:gitea|forgejo|codeberg)\.[\w.-]+(?::\d+)?/" + _TEA_REPO
_TEA_API = "{origin}/api/v1/repos/{owner}/{repo}"
# A registry is known by the label of its domain, whatever stands behind it, and leads to itself.
_TLD = r"[a-z]{2,20}(?:\.[a-z]{2})?"
_ARXIV = r"(?:www\.)?arxiv\.org/abs/(?P<id>(?:[\w.-]+/)?[\d.]+\d(?:v\d+)?)"
_QUESTION = r"/q(?:uestions)?/(?P<id>\d+)(?:/[^?#]*)?(?:\?(?:page=(?P<page>\d{1,5})|[^#]*))?"
_EXCHANGE = "https://api.stackexchange.com/2.3/questions/{id}"
_HUGGING = (
    r"huggingface\.co/(?!(?i:api|blog|collections|docs|join|learn|login|models|organizations|papers|"
    r"posts|settings|tasks)/)(?P<repo>(?:(?:datasets|spaces)/)?[\w.-]+/[\w.-]+)"
)
_GOOGLE = r"docs\.google\.com/{}/d/(?P<id>[\w-]{{20,}})(?:/(?!export)[^?#]*)?(?:\?[^#]*)?"

_FILE = "the file itself instead of the page around it"
_FOLDER = "the list of a folder's files, from the site's public API"
_ISSUE = "the issue with its comments, from the site's public API"
_PULL = "the pull request with its comments, from the site's public API"
_RELEASE = "the release with its files, from the site's public API"
_REPOSITORY = "the repository with its README, from the site's public API"
_PACKAGE = "the package with its description, from the registry's public API"
_THREAD = "the question with its answers, from the site's public API"


def _exchange(hosts: str, site: str) -> Rule:
    options = f"site={site}&filter=withbody"
    answers = f"/answers?{options}&order=desc&sort=votes&pagesize=30&page={{page}}"
    parts = (f"{_EXCHANGE}?{options}", _EXCHANGE + answers)
    return Rule("stack-exchange", hosts + _QUESTION, parts, _THREAD, "questions")


RULES = (
    Rule(
        "github-file",
        _HUB + r"/blob/(?P<file>[^?#]+)",
        ("https://raw.githubusercontent.com/{owner}/{repo}/{file}",),
        _FILE,
    ),
    Rule(
        "github-folder",
        _HUB + r"/tree/(?P<ref>[^/?#]+)(?:/(?P<path>[^?#]*))?",
        (_HUB_API + "/contents/{path}?ref={ref_q}",),
        _FOLDER,
        "folder",
    ),
    Rule(
        "github-issue",
        _HUB + r"/issues/(?P<number>\d+)" + _PAGED,
        (
            _HUB_API + "/issues/{number}",
            _HUB_API + "/issues/{number}/comments?per_page=100&page={page}",
        ),
        _ISSUE,
        "thread",
    ),
    Rule(
        "github-pull",
        _HUB + r"/pull/(?P<number>\d+)" + _PAGED,
        (
            _HUB_API + "/issues/{number}",
            _HUB_API + "/issues/{number}/comments?per_page=100&page={page}",
            _HUB_API + "/pulls/{number}/comments?per_page=100&page={page}",
        ),
        _PULL,
        "thread",
    ),
    Rule(
        "github-release",
        _HUB + r"/releases/tag/(?P<tag>[^?#]+)",
        (_HUB_API + "/releases/tags/{tag}",),
        _RELEASE,
        "release",
    ),
    Rule(
        "github-release",
        _HUB + r"/releases/latest",
        (_HUB_API + "/releases/latest",),
        _RELEASE,
        "release",
    ),
    Rule(
        "github-release",
        _HUB + r"/releases/?" + _PAGED,
        (_HUB_API + "/releases?per_page=30&page={page}",),
        _RELEASE,
        "release",
    ),
    Rule(
        "github-repository",
        _HUB + r"/?(?:\?tab=[\w-]*)?",
        (_HUB_API, _HUB_API + "/readme"),
        _REPOSITORY,
        "repository",
    ),
    Rule(
        "github-gist",
        r"gist\.github\.com/(?:[\w-]+/)?(?P<id>[0-9a-f]{5,40})",
        ("https://api.github.com/gists/{id}",),
        "the files of the gist, from the site's public API",
        "gist",
    ),
    Rule(
        "gitlab-file",
        _LAB + r"blob/(?P<file>[^?#]+)" + _REF_TYPE,
        ("{origin}/{project}/-/raw/{file}",),
        _FILE,
    ),
    Rule(
        "gitlab-folder",
        _LAB + r"tree/(?P<ref>[^/?#]+)(?:/(?P<path>[^?#]*))?" + _REF_TYPE,
        (_LAB_API + "/repository/tree?ref={ref_q}&path={path_q}&per_page=100",),
        _FOLDER,
        "folder",
    ),
    Rule(
        "gitlab-issue",
        _LAB + r"(?:issues|work_items)/(?P<number>\d+)" + _PAGED,
        (_LAB_API + "/issues/{number}", _LAB_API + "/issues/{number}" + _LAB_NOTES),
        _ISSUE,
        "thread",
    ),
    Rule(
        "gitlab-merge",
        _LAB + r"merge_requests/(?P<number>\d+)" + _PAGED,
        (
            _LAB_API + "/merge_requests/{number}",
            _LAB_API + "/merge_requests/{number}" + _LAB_NOTES,
        ),
        "the merge request with its comments, from the site's public API",
        "thread",
    ),
    Rule(
        "gitlab-release",
        _LAB + r"releases/(?P<tag>[^/?#]+)",
        (_LAB_API + "/releases/{tag_q}",),
        _RELEASE,
        "release",
    ),
    Rule(
        "gitlab-repository",
        _LAB_HOST + r"(?P<project>[\w.-]+(?:/[\w.-]+)+)/?",
        (_LAB_API, _LAB_API + "/repository/files/README.md?ref=HEAD"),
        _REPOSITORY,
        "repository",
    ),
    Rule(
        "gitea-file",
        _HOST + _TEA_REPO + r"/src/(?P<file>(?:branch|tag|commit)/[^/?#]+/[^?#]+)",
        ("{origin}/{owner}/{repo}/raw/{file}",),
        _FILE,
    ),
    Rule(
        "gitea-folder",
        _HOST + _TEA_REPO + r"/src/(?:branch|tag|commit)/(?P<ref>[^/?#]+)(?:/(?P<path>[^?#]*))?",
        (_TEA_API + "/contents/{path}?ref={ref_q}",),
        _FOLDER,
        "folder",
    ),
    Rule(
        "gitea-issue",
        _TEA + r"/(?:issues|pulls)/(?P<number>\d+)",
        (_TEA_API + "/issues/{number}", _TEA_API + "/issues/{number}/comments"),
        _ISSUE,
        "thread",
    ),
    Rule(
        "gitea-release",
        _TEA + r"/releases/tag/(?P<tag>[^?#]+)",
        (_TEA_API + "/releases/tags/{tag}",),
        _RELEASE,
        "release",
    ),
    Rule(
        "gitea-repository",
        _TEA + r"/?",
        (_TEA_API, _TEA_API + "/contents/README.md"),
        _REPOSITORY,
        "repository",
    ),
    Rule(
        "arxiv",
        _ARXIV,
        ("https://arxiv.org/html/{id}",),
        "the whole paper as a web page, or as PDF, instead of its abstract",
        is_page=True,
    ),
    Rule(
        "arxiv",
        _ARXIV,
        ("https://arxiv.org/pdf/{id}",),
        "the whole paper as a web page, or as PDF, instead of its abstract",
    ),
    Rule(
        "pypi",
        rf"(?:(?:www|test)\.)?pypi\.{_TLD}/project/(?P<name>[\w.-]+)/?",
        ("{origin}/pypi/{name}/json",),
        _PACKAGE,
        "pypi",
    ),
    Rule(
        "pypi",
        rf"(?:(?:www|test)\.)?pypi\.{_TLD}/project/(?P<name>[\w.-]+)/(?P<version>[\w.!+-]+)/?",
        ("{origin}/pypi/{name}/{version}/json",),
        _PACKAGE,
        "pypi",
    ),
    Rule(
        "npm",
        rf"(?:www\.)?(?P<site>npmjs\.{_TLD})/package/(?P<name>(?:@[\w.-]+/)?[\w.-]+)/?",
        ("{scheme}://registry.{site}/{name_q}",),
        _PACKAGE,
        "npm",
    ),
    Rule(
        "npm",
        rf"(?:www\.)?(?P<site>npmjs\.{_TLD})/package/(?P<name>(?:@[\w.-]+/)?[\w.-]+)"
        r"/v/(?P<version>[\w.+-]+)/?",
        ("{scheme}://registry.{site}/{name_q}/{version}",),
        _PACKAGE,
        "npm",
    ),
    Rule(
        "crates",
        rf"(?:www\.)?crates\.{_TLD}/crates/(?P<name>[\w-]+)(?:/(?P<version>[\w.+-]+))?/?",
        ("{origin}/api/v1/crates/{name}", "{origin}/api/v1/crates/{name}/{version}/readme"),
        _PACKAGE,
        "crate",
        finds=r'"(?:max_stable_version|max_version)"\s*:\s*"(?P<version>[\w.+-]{1,60})"',
    ),
    Rule(
        "hugging-face",
        _HUGGING + r"/?(?:tree/main/?)?",
        ("https://huggingface.co/{repo}/raw/main/README.md",),
        "the card of the model, data set or space as Markdown",
    ),
    Rule(
        "hugging-face",
        _HUGGING + r"/blob/(?P<file>[^?#]+)",
        ("https://huggingface.co/{repo}/raw/{file}",),
        _FILE,
    ),
    Rule(
        "google-docs",
        _GOOGLE.format("document"),
        ("https://docs.google.com/document/d/{id}/export?format=md",),
        "the public document as Markdown",
    ),
    Rule(
        "google-sheets",
        _GOOGLE.format("spreadsheets").replace(r"(?:\?[^#]*)?", r"(?:\?[^#]*)?[?#&]")
        + r"gid=(?P<gid>\d+)[^#]*",
        ("https://docs.google.com/spreadsheets/d/{id}/export?format=csv&gid={gid}",),
        "the public sheet as CSV, or the whole workbook where the address names no sheet",
    ),
    Rule(
        "google-sheets",
        _GOOGLE.format("spreadsheets"),
        ("https://docs.google.com/spreadsheets/d/{id}/export?format=xlsx",),
        "the public sheet as CSV, or the whole workbook where the address names no sheet",
    ),
    Rule(
        "google-slides",
        _GOOGLE.format("presentation"),
        ("https://docs.google.com/presentation/d/{id}/export/pdf",),
        "the public slides as PDF",
    ),
    _exchange(
        r"(?:www\.)?(?P<site>(?:(?:es|ja|pt|ru|meta)\.)?stackoverflow|superuser|serverfault|"
        r"askubuntu|stackapps)\.com",
        "{site}",
    ),
    _exchange(r"(?P<site>[\w-]+(?:\.meta)?)\.stackexchange\.com", "{site}"),
    _exchange(r"(?P<site>mathoverflow\.net)", "{site}"),
    Rule(
        "hacker-news",
        r"news\.ycombinator\.com/item\?id=(?P<id>\d+)",
        ("https://hn.algolia.com/api/v1/items/{id}",),
        "the story with its comments, from the public API of its search",
        "story",
    ),
    Rule(
        "wikipedia",
        r"(?P<language>[\w-]+)\.m\.wikipedia\.org/wiki/(?P<title>[^?#]+)",
        ("https://{language}.wikipedia.org/wiki/{title}",),
        "the article itself instead of its mobile page or of an address of the software",
        is_page=True,
    ),
    Rule(
        "wikipedia",
        r"(?P<language>[\w-]+)(?:\.m)?\.wikipedia\.org/w/index\.php\?title=(?P<title>[^&#]+)",
        ("https://{language}.wikipedia.org/wiki/{title}",),
        "the article itself instead of its mobile page or of an address of the software",
        is_page=True,
    ),
    Rule(
        "youtube",
        r"(?:(?:(?:www|m)\.)?youtube\.com/(?:watch\?(?:[^#]*&)?v=|shorts/|live/)|youtu\.be/)"
        r"(?P<id>[\w-]{11})(?:[?&][^#]*)?",
        (
            "https://www.youtube.com/watch?v={id}",
            "https://www.youtube.com/api/timedtext?{captions}&fmt=json3",
        ),
        "the film's title, description, chapters, and its captions where they can be had",
        "film",
        is_page=True,
        finds=r'"captionTracks":\s?\[\s?\{\s?"baseUrl":\s?'
        r'"https://www\.youtube\.com/api/timedtext\?(?P<captions>[\w%&=.,\\-]{1,2000})"',
    ),
)

MEANINGS = {rule.name: rule.what for rule in RULES} | {
    TWIN: "the Markdown that the page names as its own"
}
"""What each rule reads, by its name."""


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that matched an address, with the matched groups as ``values``.

    ``url`` is the address as it was given, ``page_url`` in normal form without query and fragment;
    ``first`` is where the first part of the document is.
    """

    rule: Rule
    url: str
    page_url: str
    values: Mapping[str, str]
    first: str

    @property
    def page(self) -> int:
        """The number of the page of a list, from 1."""
        return int(self.values["page"])

    def others(self, found: Mapping[str, str]) -> list[str]:
        """Return the addresses of the other parts, "" for one that was not ``found``."""
        values = {**found, **{name: value for name, value in self.values.items() if value}}
        return [_built(part, values) for part in self.rule.parts[1:]]

    def next_url(self) -> str:
        """Return the address of the next page: the page's own, with a number; "" of no list."""
        is_list = "(?P<page>" in self.rule.address
        return f"{self.page_url}?page={self.page + 1}" if is_list else ""


@cache
def _pattern(rule: Rule) -> re.Pattern[str]:
    return re.compile(rule.address + ("" if "#&" in rule.address else r"(?:#.*)?"), re.ASCII)


def _built(part: str, values: Mapping[str, str]) -> str:
    """Return the address of a part; "" if a value is missing, or would change its meaning."""
    try:
        address = part.format_map(values)
    except KeyError:
        return ""
    return address if normal_url(address) == address else ""


_SLASHES = re.compile(r"[/\\]")
_MOST_DECODINGS = 4


def _climbs(value: str) -> bool:
    """Return whether a value has a dot segment, however often it is encoded.

    The fetcher leaves "%2F" as it is (RFC 3986, section 2.2), and a server may decode it.
    """
    for _ in range(_MOST_DECODINGS):
        if not {".", ".."}.isdisjoint(_SLASHES.split(value)):
            return True
        decoded = unquote(value)
        if decoded == value:
            return False
        value = decoded
    return True


def _values(match: re.Match[str], scheme: str, origin: str) -> dict[str, str] | None:
    """Return the values of a rule's parts in an address; None if one holds ``..``."""
    groups = {name: value or "" for name, value in match.groupdict().items()}
    if any(map(_climbs, groups.values())):
        return None
    # A value out of a query may become part of a path, where these would end it.
    plain = {n: re.sub(r"[?#\\]", lambda char: quote(char[0]), v) for n, v in groups.items()}
    quoted = {f"{n}_q": quote(unquote(value), safe="@~") for n, value in groups.items()}
    page = groups.get("page") or "1"
    return {**plain, **quoted, "scheme": scheme, "origin": origin, "page": page}


def matching(url: str, off: Sequence[str] = ()) -> Iterator[Match]:
    """Yield the rules for a URL that are not switched ``off``, those to be tried, in order."""
    try:
        target = parse(normal_url(url), 2**20)
    except FetchstashError:
        return
    _, hash_mark, fragment = url.partition("#")
    address = target.authority + target.path + hash_mark + fragment
    for rule in RULES:
        match = None if rule.name in off else _pattern(rule).fullmatch(address)
        values = _values(match, target.scheme, target.origin) if match else None
        if values and (first := _built(rule.parts[0], values)):
            page_url = target.text.partition("?")[0]
            yield Match(rule, url, page_url, values, first)
