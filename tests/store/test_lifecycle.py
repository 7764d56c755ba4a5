"""The rules by which artifacts in a bucket expire, and the requests that set and read them."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import BadArgument, StoreError
from fetchstash.store import (
    Facts,
    StoreLimits,
    check_store,
    lifecycle_rules,
    open_objects,
    open_store,
    repair_store,
    set_lifecycle,
)
from fetchstash.store._lifecycle import Keys, Rule, problems, read_s3, rules_for, signed, write_s3
from fetchstash.store._limits import BucketUrl
from fetchstash.text.ranges import Ranges
from tests.store.buckets import Recorded, every_bucket_is, new_objects

TEAM = BucketUrl("s3", "bucket", "team")
WANTED = rules_for(TEAM, 7)
NO_RULES = b"<Error><Code>NoSuchLifecycleConfiguration</Code></Error>"


def test_bytes_are_kept_a_week_longer_than_the_records_that_may_name_them() -> None:
    assert [(rule.prefix, rule.days) for rule in WANTED] == [
        ("team/blobs/", 16),
        ("team/records/", 9),
        ("team/urls/", 9),
    ]
    assert rules_for(BucketUrl("s3", "bucket", ""), 0.5)[1] == Rule("records/", 3)


def test_the_rules_of_others_stay_and_ours_are_replaced() -> None:
    others = write_s3([Rule("logs/", 3), Rule("team/records/", 1)])
    written = write_s3(WANTED, others)
    assert sorted(read_s3(written), key=lambda rule: rule.prefix) == [Rule("logs/", 3), *WANTED]
    assert read_s3(write_s3(WANTED, written)) == read_s3(written)
    assert b"AbortIncompleteMultipartUpload" in written


PROBLEMS: dict[str, tuple[list[Rule], str]] = {
    "no rule": (WANTED[1:], "No lifecycle rule removes what is under team/blobs/"),
    "too early": ([Rule("team/blobs/", 8), *WANTED[1:]], "after 8 days"),
    "for all": ([Rule("", 30), *WANTED], "the whole bucket removes what must stay: team/pinned/"),
    "a tenant's too early": (
        [Rule("team/records/tenants/acme/", 2), *WANTED],
        "under team/records/tenants/acme/ after 2 days",
    ),
    "pins of tenants": ([Rule("team/tenants/", 30), *WANTED], "must stay: team/tenants/"),
    "a part": ([Rule("team/service/tokens/", 30), *WANTED], "must stay: team/service/"),
    "for the team": ([Rule("team/", 30), *WANTED], "must stay: team/keys/"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_rules_that_are_missing_or_remove_too_much_are_told(case: str) -> None:
    present, sentence = PROBLEMS[case]
    assert any(sentence in problem for problem in problems(TEAM, WANTED, present))
    assert problems(TEAM, WANTED, WANTED) == []
    assert problems(TEAM, WANTED, [*WANTED, Rule("other/", 1)]) == []


def test_rules_that_are_off_or_look_at_tags_do_not_count() -> None:
    document = write_s3([Rule("a/", 1)])
    assert read_s3(document.replace(b"Enabled", b"Disabled")) == []
    assert read_s3(document.replace(b"Prefix>", b"Tag>")) == []
    dated = document.replace(b"<Days>1</Days>", b"<Date>2026-01-01T00:00:00Z</Date>")
    assert read_s3(dated) == [Rule("a/", 0)]
    marker = b"<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>"
    assert read_s3(document.replace(b"<Days>1</Days>", marker)) == []
    old = document.replace(b"<Filter><Prefix>a/</Prefix></Filter>", b"<Prefix>b/</Prefix>")
    assert read_s3(old) == [Rule("b/", 1)]


@pytest.mark.parametrize("document", [b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", b"<a", b"\xff"])
def test_what_is_no_plain_xml_is_refused(document: bytes) -> None:
    with pytest.raises(StoreError):
        read_s3(document)


def test_google_and_azure_have_the_same_rules(tmp_path: Path) -> None:
    text, command = lifecycle_rules(StoreLimits(tmp_path, "gs://bucket/team"))
    deletes = [r for r in json.loads(text)["lifecycle"]["rule"] if r["action"]["type"] == "Delete"]
    assert [(r["condition"]["matchesPrefix"], r["condition"]["age"]) for r in deletes] == [
        ([rule.prefix], rule.days) for rule in WANTED
    ]
    assert "gs://bucket" in command
    text, command = lifecycle_rules(StoreLimits(tmp_path, "az://bucket/team/tenants/acme"))
    rules = [rule["definition"] for rule in json.loads(text)["rules"]]
    assert [rule["filters"]["prefixMatch"] for rule in rules] == [
        [f"bucket/{rule.prefix}"] for rule in WANTED
    ]
    assert command.startswith("az ")


def test_a_request_is_signed_as_amazon_says() -> None:
    # The example "GET Bucket Lifecycle" of "Signature Calculations for the Authorization Header".
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "")
    target = "https://examplebucket.s3.amazonaws.com"
    now = datetime(2013, 5, 24, tzinfo=UTC)
    headers = signed("GET", target, "lifecycle", b"", keys, "us-east-1", now)
    signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    assert headers["authorization"].endswith(f"Signature={signature}")
    assert "SECRET" not in repr(keys).upper()


@contextmanager
def s3(status: int = 200, body: bytes = NO_RULES) -> Generator[tuple[str, list[dict[str, Any]]]]:
    """Serve the lifecycle rules of a bucket; give the endpoint, and the requests that came."""
    requests: list[dict[str, Any]] = []
    rules = [b""]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append({"method": "GET", "path": self.path, **self.headers})
            self.answer(status if rules[0] or status != 200 else 404, rules[0] or body)

        def do_PUT(self) -> None:
            requests.append({"method": "PUT", "path": self.path, **self.headers})
            rules[0] = self.rfile.read(int(self.headers["content-length"]))
            self.answer(status, b"")

        def answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")


@pytest.mark.anyio
@pytest.mark.usefixtures("keys")
async def test_the_rules_are_set_once_and_found_by_doctor(tmp_path: Path) -> None:
    with s3() as (endpoint, requests), every_bucket_is(new_objects()):
        limits = StoreLimits(tmp_path, "s3://bucket/team", endpoint=endpoint)
        missing = await check_store(limits)
        assert [finding.level for finding in missing] == ["warning"] * 3
        assert await set_lifecycle(limits)
        assert await check_store(limits) == ()
    assert {request["path"] for request in requests} == {"/bucket?lifecycle"}
    sent = next(request for request in requests if request["method"] == "PUT")
    assert sent["content-md5"]
    assert "secret-of-the-test" not in str(requests)


@pytest.mark.anyio
@pytest.mark.usefixtures("keys")
async def test_a_bucket_that_refuses_is_told_in_one_line(tmp_path: Path) -> None:
    with s3(403) as (endpoint, _):
        limits = StoreLimits(tmp_path, "s3://bucket/team", endpoint=endpoint)
        with pytest.raises(StoreError, match="status 403") as error:
            await set_lifecycle(limits)
    assert "--print" in error.value.next_step
    with pytest.raises(StoreError, match="does not answer"):
        await set_lifecycle(limits)


@pytest.mark.anyio
@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("NoSuchBucket", "no such bucket"),
        ("SignatureDoesNotMatch", "does not know these credentials"),
        ("ExpiredToken", "have expired"),
        ("PermanentRedirect", "another region"),
    ],
)
async def test_setting_the_rules_says_what_any_other_request_would(
    code: str, words: str, tmp_path: Path
) -> None:
    with s3(400, f"<Error><Code>{code}</Code></Error>".encode()) as (endpoint, _):
        limits = StoreLimits(tmp_path, "s3://bucket/team", endpoint=endpoint)
        with pytest.raises(StoreError, match=words):
            await set_lifecycle(limits)


@pytest.mark.anyio
@pytest.mark.usefixtures("keys")
async def test_the_endpoint_of_the_settings_is_used_and_not_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore", reason="obstore is in the extra team")
    with s3() as (endpoint, requests), s3() as (other, others):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", other)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        limits = StoreLimits(tmp_path, "s3://bucket/team", endpoint=endpoint)
        await (await open_objects(limits)).read("a")
        await set_lifecycle(limits)
    assert len(requests) == 3
    assert others == []


@pytest.mark.anyio
async def test_rules_that_cannot_be_set_from_here_are_left_to_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    assert not await set_lifecycle(StoreLimits(tmp_path, "s3://bucket"))
    assert not await set_lifecycle(StoreLimits(tmp_path, "gs://bucket"))
    with pytest.raises(BadArgument, match="no bucket"):
        lifecycle_rules(StoreLimits(tmp_path))


@pytest.mark.anyio
async def test_repair_removes_the_records_whose_bytes_are_lost_and_no_other(
    tmp_path: Path, objects: Recorded
) -> None:
    limits = StoreLimits(tmp_path, "gs://bucket", run="default")
    store = await open_store(limits)
    refs: list[str] = []
    for content in (b"kept", b"lost", b"pinned", b"damaged"):
        raw = store.spool / "raw"
        raw.write_bytes(content)
        facts = await store.put(raw, None, Facts(), Ranges())
        refs.append(facts.artifact_ref)
    kept, lost, pinned, damaged = refs
    await store.pin(pinned)
    for content, ref in ((b"lost", lost), (b"pinned", pinned)):
        sha256 = (await store.get(ref)).sha256
        for path in objects.paths("blobs"):
            if path.endswith(sha256):
                assert objects.store.get(path).bytes() == content
                objects.store.delete(path)
    objects.store.put(f"records/{damaged}.json", b"{}")
    newer = objects.store.get(f"records/{kept}.json").bytes().to_bytes()
    newer = newer.replace(b'{"version":1', b'{"version":2', 1)
    objects.store.put(f"records/art_{'a' * 26}.json", newer)  # a newer version's: it stays
    findings = [finding for finding in await check_store(limits) if finding.level == "fault"]
    assert sorted(finding.artifact_ref for finding in findings) == sorted([lost, damaged])
    assert all(finding.mendable and not finding.mended for finding in findings)
    assert sum(finding.mended for finding in await repair_store(limits)) == 2
    assert {facts.artifact_ref for facts in (await store.list()).facts} == {kept, pinned}
    assert [finding.level for finding in await check_store(limits)] == ["note"]
    await store.aclose()
