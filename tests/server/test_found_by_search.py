"""Hosts that defer tools find ours by the words that people search with."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.server.conftest import Connect
from tests.server.test_tools import ERAS

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]
LIMIT = 3

QUERIES = {
    "fetch a url": "fetch_content",
    "open a website": "fetch_content",
    "browse the web": "fetch_content",
    "download a file": "fetch_content",
    "scrape a web page": "fetch_content",
    "read a PDF": "fetch_content",
    "read web page": "fetch_content",
    "http get request": "fetch_content",
    "visit a link": "fetch_content",
    "convert html to markdown": "fetch_content",
    "download pdf from url": "fetch_content",
    "read a docx document": "fetch_content",
    "website content as text": "fetch_content",
    "fetch json api": "fetch_content",
    "read the rest of a long page": "get_search_content",
    "continue reading from offset": "get_search_content",
    "read more text": "get_search_content",
    "grep": "artifact_grep",
    "regex search": "artifact_grep",
    "search for a pattern": "artifact_grep",
    "find lines matching a regex": "artifact_grep",
    "count matches in a document": "artifact_grep",
    "read lines of a document": "artifact_slice",
    "pdf page as image": "artifact_slice",
    "read spreadsheet rows": "artifact_slice",
    "extract links from a page": "artifact_slice",
    "full-text search": "artifact_search",
    "find passages about a topic": "artifact_search",
    "list fetched documents": "artifact_info",
    "table of contents of a document": "artifact_info",
}
"""Thirty queries as people and models write them, and the tool that each is meant for."""

OTHERS = {
    "read_file": "Read the contents of a file from the file system.",
    "write_file": "Write text to a file, replacing what is there.",
    "list_directory": "List the files and folders of a directory.",
    "search_files": "Search for files by a pattern in their name.",
    "edit_file": "Edit lines of a text file.",
    "run_command": "Run a shell command and return its output.",
    "browser_click": "Click an element in the browser.",
    "browser_type": "Type text into a form field of the browser.",
    "browser_screenshot": "Take a screenshot of the browser window.",
    "git_log": "Show the commit history of a repository.",
    "git_diff": "Show the changes between two commits.",
    "create_issue": "Create an issue in a repository.",
    "search_issues": "Search issues and pull requests by a query.",
    "send_message": "Send a message to a channel or a person.",
    "list_channels": "List the channels of a workspace.",
    "query_database": "Run an SQL query and return the rows.",
    "list_tables": "List the tables of a database.",
    "create_event": "Create an event in the calendar.",
    "search_mail": "Search mails by sender, subject or text.",
    "send_mail": "Send a mail with attachments.",
    "remember": "Store a fact in memory for later conversations.",
    "recall": "Find facts in memory by a query.",
    "translate_text": "Translate text into another language.",
    "get_weather": "Get the weather of a place.",
}
"""Tools of other servers, which the index holds as well."""

Words = Callable[[str], list[str]]


def plain_words(text: str) -> list[str]:
    """Split as a tokenizer of Unicode words does: artifact_grep is one word, nothing is stemmed."""
    return re.findall(r"\w+", text.lower())


def stemmed_words(text: str) -> list[str]:
    """Split at underscores too, and take the commonest endings off."""
    words = re.findall(r"[^\W_]+", text.lower())
    return [re.sub(r"(?:ing|es|ed|s)$", "", word) if len(word) > 4 else word for word in words]


def best(index: Mapping[str, str], query: str, words: Words) -> list[str]:
    """Return the names of the best tools by BM25 (k1 = 1.2, b = 0.75), best first."""
    documents = {name: Counter(words(f"{name} {text}")) for name, text in index.items()}
    average = sum(d.total() for d in documents.values()) / len(documents)
    scores: dict[str, float] = {}
    for name, document in documents.items():
        score = 0.0
        for word in words(query):
            holding = sum(word in other for other in documents.values())
            weight = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            count = document[word]
            length = 1.2 * (0.25 + 0.75 * document.total() / average)
            score += weight * count * 2.2 / (count + length)
        scores[name] = score
    return sorted(scores, key=lambda name: -scores[name])[:LIMIT]


@pytest.mark.parametrize("words", [plain_words, stemmed_words])
async def test_thirty_searches_find_the_right_tool_among_three(
    connect: Connect, words: Words
) -> None:
    async with connect() as client:
        ours = {tool.name: str(tool.description) for tool in (await client.list_tools()).tools}
    index = ours | OTHERS
    assert len(QUERIES) == 30
    missed = {query: best(index, query, words) for query in QUERIES}
    assert {q: hits for q, hits in missed.items() if QUERIES[q] not in hits} == {}


@pytest.mark.parametrize("mode", ERAS)
async def test_each_tool_has_a_title_an_icon_and_a_hint(mode: str, connect: Connect) -> None:
    async with connect(mode=mode) as client:
        tools = (await client.list_tools()).tools
        server: Any = client.server_info  # None where a client assumes the era
    for tool in tools:
        assert tool.title
        assert tool.meta
        assert len(tool.meta["anthropic/searchHint"]) < 100
        assert tool.icons
        assert tool.icons[0].src.startswith("data:image/svg+xml,%3Csvg%20")
    assert server is None or server.icons
    assert len({tool.title for tool in tools}) == len(tools)
