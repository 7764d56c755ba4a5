"""What classify reads of a refusal's body: the kind, and only sizes that its words state.

The first half has the bodies alone; the second has real SDKs raise what a provider on loopback
answers, natively and through frameworks.
"""

import json
from collections.abc import Generator
from typing import Any

import pytest

from fetchstash.client import Verdict, classify
from tests.client.loopback import Loopback
from tests.client.refused import REFUSALS, UNSEEN, Row
from tests.client.sdk_errors import APIS, error_of
from tests.client.sdks import needs

NOT = "not_overflow"


class Refused(Exception):
    """An error as SDKs raise it: the status and the body as attributes, the body in its words."""

    def __init__(self, row: Row) -> None:
        super().__init__(f"Error code: {row['status']} - {row['body']}")
        self.status_code = row["status"]
        self.body = row["body"]


def read(verdict: Verdict) -> tuple[Any, ...]:
    """Return the kind of a verdict, and the sizes that it states."""
    if verdict.kind == NOT:
        return (NOT,)
    return verdict.kind, verdict.limit, verdict.requested_input


def expected(row: Row) -> tuple[Any, ...]:
    """Return what a row says of its refusal."""
    return (NOT,) if row["verdict"] == NOT else (row["verdict"], row["limit"], row["input"])


def words(row: Row) -> str:
    return row.get("name") or str(row["body"].get("error", row["body"]))[:70]


@pytest.mark.parametrize("row", REFUSALS, ids=words)
def test_a_refusal_is_read_for_what_it_says_among_ten_decoys(row: Row) -> None:
    for error in (Refused(row), row["body"] | {"status_code": row["status"]}):
        assert read(classify(error)) == expected(row), error


def share(of: int, all_of: int) -> float:
    return of / max(all_of, 1)


def test_unseen_refusals_are_told_from_all_else_and_their_sizes_read() -> None:
    """The gate of what no rule was written for: 97 of 100 of those that are overflows, and of those
    that are called so."""
    verdicts = [(row, classify(Refused(row))) for row in UNSEEN]
    assert len(verdicts) >= 120
    right = sum(row["verdict"] != NOT and read(v)[0] == row["verdict"] for row, v in verdicts)
    called = sum(v.kind != NOT for _, v in verdicts)
    overflows = [row for row, _ in verdicts if row["verdict"] != NOT]
    assert share(right, called) >= 0.97, "precision"
    assert share(right, len(overflows)) >= 0.97, "recall"
    wrong = [
        (words(row), read(v), expected(row)) for row, v in verdicts if read(v) != expected(row)
    ]
    assert share(len(verdicts) - len(wrong), len(verdicts)) >= 0.97, wrong


@pytest.mark.parametrize(
    ("said", "limit", "asked", "unit"),
    [
        ("too many images and documents: 104 + 1 > 100", 100, 105, "media"),
        ("messages: too many images: 21 > 20", 20, 21, "pictures"),
        ("You can't include more than 5 documents in a request.", 5, None, "documents"),
        ("A maximum of 100 PDF pages may be provided.", 100, None, "pages"),
        ("image dimensions exceed max allowed size: 8000 pixels", 8_000, None, "pixels"),
        (
            "image exceeds 5 MB maximum: 5281812 bytes > 5242880 bytes",
            5_242_880,
            5_281_812,
            "bytes",
        ),
        ("Video inputs are limited to 1 per request, got 3.", 1, 3, "recordings"),
    ],
)
def test_a_limit_on_media_says_what_it_counts(
    said: str, limit: int, asked: int | None, unit: str
) -> None:
    verdict = classify(said)
    assert (verdict.kind, verdict.action) == ("overflow_media", "shrink_media")
    assert (verdict.limit, verdict.requested_input, verdict.unit) == (limit, asked, unit)
    assert verdict.overflow


@pytest.mark.parametrize(
    "beside",
    [
        "(upstream 10.0.0.7:65535)",
        "Request id: 20261129000926150",
        "Attempt 1024 of 2048.",
        "It took 2500 ms.",
        "Trace 88123441, shard 1024.",
        "See https://docs.example:8443/limits/4096",
        "At 2026-11-29T00:09:26Z.",
        "Maximum output is 65536.",
    ],
)
def test_no_number_beside_the_sentence_becomes_a_size(beside: str) -> None:
    said = f"The prompt exceeds the context window of 131072 tokens. {beside}"
    verdict = classify(said)
    assert (verdict.limit, verdict.requested_input) == (131_072, None)


def test_two_lengths_are_added_only_where_the_sentence_adds_them() -> None:
    said = "Prompt length (70012) exceeds maximum input length (65536)"
    assert classify(said).requested_input == 70_012
    said = "input tokens (4000) plus prefix tokens (200) must be <= 4096"
    assert classify(said).requested_input == 4_200


@pytest.fixture(scope="module")
def provider() -> Generator[Loopback]:
    with Loopback("good") as running:
        yield running


SPOKEN = [
    pytest.param(sdk, api, marks=needs(sdk), id=f"{sdk}-{api}")
    for sdk in ("openai", "anthropic", "litellm", "langchain", "pydantic_ai")
    for api in APIS[sdk]
    if api in {"openai", "anthropic"}
]


# The SDKs and what they bring in warn of their own affairs.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("sdk", "api"), SPOKEN)
def test_a_refusal_that_the_real_sdk_raises_is_read_as_it_was_sent(
    sdk: str, api: str, provider: Loopback
) -> None:
    wrong: list[Any] = []
    for row in (*REFUSALS, *UNSEEN[::2]):
        error = error_of(sdk, api, provider, (row["status"], json.dumps(row["body"])))
        if read(classify(error)) != expected(row):
            wrong.append((words(row), read(classify(error)), expected(row), str(error)[:200]))
    refusals = {words(row) for row in REFUSALS}
    assert [one for one in wrong if one[0] in refusals] == []
    assert len(wrong) <= len(UNSEEN[::2]) * 0.03, wrong
