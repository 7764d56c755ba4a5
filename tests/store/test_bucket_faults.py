"""Buckets that fail: nothing half there, nothing acknowledged lost, nothing secret said."""

import socket
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import BadArgument, StoreError, UnknownRef
from fetchstash.store import StoreLimits, _bucket
from fetchstash.store._bucket import open_bucket
from tests.store.buckets import Recorded
from tests.store.conftest import Open, Put
from tests.store.contents import raw_of, text_of

pytestmark = pytest.mark.anyio

URL = "https://example.org/"
SECRET = "AKIAIOSFODNN7EXAMPLE"


def failing(number: int, error: Exception) -> Callable[[str, str], None]:
    """Return a fault of the request of this number and all after it."""
    seen = 0

    def fault(_name: str, _path: str) -> None:
        nonlocal seen
        seen += 1
        if seen >= number:
            raise error

    return fault


def generic(text: str) -> Exception:
    from obstore.exceptions import GenericError

    return GenericError(text)


def throttled() -> Exception:
    return generic(
        "Generic S3 error: Error performing PUT http://127.0.0.1/b/k in 3s, after 8 retries -"
        " Server returned non-2xx status code: 503 Service Unavailable: <Code>SlowDown</Code>"
        f"<AWSAccessKeyId>{SECRET}</AWSAccessKeyId></Error>"
    )


@pytest.mark.parametrize("answered", [False, True], ids=["lost", "done but not answered"])
async def test_a_put_that_fails_at_any_request_leaves_nothing_half(
    open_team: Open, put: Put, objects: Recorded, answered: bool
) -> None:
    await put(await open_team(), b"text", b"raw", url=URL)
    for number in range(1, len(objects.names()) + 1):
        store = await open_team()
        url, content = f"{URL}{number}", b"text %d" % number
        fault = failing(number, throttled())
        if answered:
            objects.after = fault
        else:
            objects.before = fault
        acknowledged = False
        with suppress(StoreError):
            await put(store, content, b"raw %d" % number, url=url)
            acknowledged = True
        objects.before = objects.after = lambda _name, _path: None
        assert list(store.spool.iterdir()) == []
        reader = await open_team()
        for facts in (await reader.list()).facts:
            assert await text_of(reader, facts.artifact_ref)
            assert await raw_of(reader, facts.artifact_ref)
        try:
            found = await reader.get(url)
            assert await text_of(reader, found.artifact_ref) == content.decode()
        except UnknownRef:
            assert not acknowledged
        # The store that saw the outage goes on without a restart.
        facts = await put(store, b"after", b"raw", url=url)
        assert (await store.get(url)).artifact_ref == facts.artifact_ref


async def test_reads_fail_and_go_on_when_the_bucket_does(
    open_team: Open, put: Put, objects: Recorded
) -> None:
    facts = await put(await open_team(), b"text\n" * 100_000, url=URL)
    store = await open_team()
    objects.before = failing(1, throttled())
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: store.get(URL),
        lambda: store.search("text", [facts.artifact_ref], 1),
        lambda: raw_of(store, facts.artifact_ref),
        lambda: text_of(store, facts.artifact_ref),
    ]
    for call in calls:
        with pytest.raises(StoreError) as error:
            await call()
        assert error.value.next_step
    assert [finding.level for finding in await store.check()] == ["fault"]
    objects.before = lambda _name, _path: None
    for call in calls:
        await call()
    assert await text_of(store, facts.artifact_ref) == "text\n" * 100_000


ANSWERS = {
    "throttled": ("status code: 503 Service Unavailable", "fewer requests"),
    "failed": ("status code: 500 Internal Server Error", "failed with status 500"),
    "refused": ("status code: 403 Forbidden: <Code>AccessDenied</Code>", "refused the credentials"),
    "clock": ("status code: 403 Forbidden: <Code>RequestTimeTooSkewed</Code>", "clock"),
    "no bucket": ("status code: 404 Not Found: <Code>NoSuchBucket</Code>", "no such bucket"),
    "region": ("Received redirect without LOCATION, an incorrectly configured region", "region"),
    "wrong region": ("status code: 400: <Code>AuthorizationHeaderMalformed</Code>", "region"),
    "expired": ("status code: 400 Bad Request: <Code>ExpiredToken</Code>", "have expired"),
    "unknown": ("status code: 403: <Code>SignatureDoesNotMatch</Code>", "not know these cred"),
    "unreadable": ("Invalid Access Key: Invalid padding", "environment cannot be used"),
    "half": ("Missing SecretAccessKey", "environment cannot be used"),
    "no answer": ("HTTP error: error sending request", "does not answer"),
    "no credentials": ("PUT http://169.254.169.254/latest/api/token", "no credentials"),
    "clear text": ("HTTP error: builder error, source: BadScheme", "without encryption"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_error_says_what_to_do_and_quotes_nothing(
    case: str, objects: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text, words = ANSWERS[case]
    error = generic(f"Generic S3 error: {text} {SECRET} http://user:{SECRET}@host/key?sig=1")
    objects.before = failing(1, error)
    with pytest.raises(StoreError, match=words) as raised:
        open_bucket(StoreLimits(tmp_path, "s3://bucket")).size("a")
    told = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert SECRET not in told
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert raised.value.next_step.endswith(".")


@pytest.mark.parametrize(
    ("error", "step"),
    [
        ("status code: 400 Whatever", "Look at store.url"),
        ("status code: 500 Whatever", "Try again"),
        (ValueError("wrong"), "Try again"),
        (FileNotFoundError("NoSuchBucket"), "Make it"),
    ],
)
def test_only_what_may_pass_is_to_be_tried_again(
    error: str | Exception, step: str, objects: Recorded, tmp_path: Path
) -> None:
    objects.before = failing(1, generic(error) if isinstance(error, str) else error)
    with pytest.raises(StoreError) as raised:
        open_bucket(StoreLimits(tmp_path, "s3://bucket")).size("a")
    assert raised.value.next_step.startswith(step)


UNUSABLE: list[dict[str, Any]] = [
    {"endpoint": "127.0.0.1:9000"},
    {"endpoint": "http://[::1"},
    {"endpoint": f"https://user:{SECRET}@host"},
    {"endpoint": "ftp://host"},
    {"AWS_ENDPOINT_URL": "127.0.0.1:9000"},
    {"url": "gs://bucket", "encryption": "AES256"},
    {"region": "eu west"},
    {"url": "s3://two words"},
    {"url": "s3://bucket/a//b"},
    {"url": "s3://bucket/./a"},
]


@pytest.mark.parametrize("settings", UNUSABLE, ids=str)
def test_a_place_that_is_none_is_refused_before_any_request(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore", reason="obstore is in the extra team")
    limits: dict[str, Any] = {"url": "s3://bucket", **settings}
    for name in filter(str.isupper, settings):
        monkeypatch.setenv(name, limits.pop(name))
    with pytest.raises(BadArgument) as error:
        open_bucket(StoreLimits(tmp_path, **limits))
    assert SECRET not in str(error.value)


def test_a_bucket_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore", reason="obstore is in the extra team")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "a")
    for name in ("_REQUEST_SECONDS", "_RETRY_SECONDS"):  # of which a call has the sum
        monkeypatch.setattr(_bucket, name, 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # nobody reads what comes
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        bucket = open_bucket(StoreLimits(tmp_path, "s3://bucket", endpoint=endpoint))
        started = time.monotonic()
        with pytest.raises(StoreError, match="does not answer"):
            bucket.read_range("a", 0, 1)
    assert time.monotonic() - started < 30  # and not for ever: how long is no matter here
