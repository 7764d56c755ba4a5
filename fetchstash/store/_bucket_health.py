"""Findings of `fetchstash doctor` in a bucket, and the rules that `fetchstash store init` sets.

The size of every blob is looked at, and not its hash: that would be a download of all of it. A blob
that is read whole is hashed then.
"""

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from fetchstash.errors import BadArgument, FetchstashError, StoreError
from fetchstash.store._bucket import BLOBS, RECORDS, Bucket, open_bucket
from fetchstash.store._bucket_record import PINNED, NewerRecord, Record, ref_of_key
from fetchstash.store._contract import Finding
from fetchstash.store._lifecycle import (
    azure_rules,
    google_rules,
    keys_of_environment,
    lifecycle,
    problems,
    read_s3,
    rules_for,
    write_s3,
)
from fetchstash.store._limits import BucketUrl, StoreLimits, bucket_url

_REQUESTS_AT_ONCE = 16
_INIT = "fetchstash store init sets the rules."


@dataclass(frozen=True, slots=True)
class _Ailment:
    finding: Finding
    mend: Callable[[], None] | None = None


def check_bucket(bucket: Bucket, limits: StoreLimits) -> tuple[Finding, ...]:
    """Examine a bucket and change nothing but a probe."""
    found = examine(bucket, limits)
    return tuple(replace(a.finding, mendable=a.mend is not None) for a in found)


def repair_bucket(bucket: Bucket, limits: StoreLimits) -> tuple[Finding, ...]:
    """Examine a bucket, and remove the records whose bytes are lost."""
    findings: list[Finding] = []
    for ailment in examine(bucket, limits):
        if ailment.mend:
            ailment.mend()
        mended = ailment.mend is not None
        findings.append(replace(ailment.finding, mendable=mended, mended=mended))
    return tuple(findings)


def check_bucket_of(limits: StoreLimits, *, repair: bool) -> tuple[Finding, ...]:
    """Examine the bucket that ``limits.url`` names."""
    try:
        bucket = open_bucket(limits)
    except FetchstashError as error:
        return (Finding("fault", error.what, error.next_step, calls=error.calls),)
    return (repair_bucket if repair else check_bucket)(bucket, limits)


def examine(bucket: Bucket, limits: StoreLimits) -> Iterator[_Ailment]:
    """Go through everything that may be wrong."""
    try:
        _probe(bucket)
        yield from _lifecycle_findings(limits)
        yield from _records(bucket)
    except StoreError as error:
        yield _Ailment(Finding("fault", error.what, error.next_step, calls=error.calls))


def _probe(bucket: Bucket) -> None:
    """Write, read and delete one object. Raises StoreError."""
    key, data = f"service/probe-{secrets.token_hex(8)}", secrets.token_bytes(16)
    bucket.write(key, data)
    try:
        if bucket.read(key) != data:
            raise StoreError("The bucket does not give back what was written.", "Use another.")
    finally:
        bucket.delete(key)


def _lifecycle_findings(limits: StoreLimits) -> Iterator[_Ailment]:
    url = bucket_url(limits.url)
    keys = keys_of_environment()
    if url is None or url.scheme != "s3" or keys is None:
        what = "The lifecycle rules cannot be examined from here."
        step = "fetchstash store init --print shows what they must be."
        yield _Ailment(Finding("note", what, step))
        return
    try:
        document = lifecycle(url, limits, keys)
        present = read_s3(document) if document else []
    except StoreError as error:
        yield _Ailment(Finding("warning", error.what, error.next_step))
        return
    for sentence in problems(url, rules_for(url, limits.max_age_days), present):
        yield _Ailment(Finding("warning", sentence, _INIT))


def _records(bucket: Bucket) -> Iterator[_Ailment]:
    """Find the records that are damaged, or whose bytes are not there.

    The bytes are listed after the records, because they are written before them. What then seems
    lost is looked up by itself: its record may have been written anew since.
    """
    keys = {
        item.key: ref
        for folder in (RECORDS, PINNED)
        for item in bucket.list(folder)
        if (ref := ref_of_key(item.key))
    }
    sizes = {item.key: item.size for folder in (BLOBS, PINNED) for item in bucket.list(folder)}
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as executor:
        for key, packed in zip(keys, executor.map(bucket.read, keys), strict=True):
            ref = keys[key]
            if _problem(packed, ref, sizes.get) and (problem := _problem_now(bucket, key, ref)):
                step = "Fetch its document again; repair removes the record."
                finding = Finding("fault", problem, step, ref)
                yield _Ailment(finding, partial(_remove_lost, bucket, key, ref))


def _problem(packed: bytes | None, ref: str, size_of: Callable[[str], int | None]) -> str:
    """Return what is wrong with a record, "" if nothing is or it went meanwhile."""
    if packed is None:
        return ""
    try:
        record = Record.unpack(packed, ref)
    except NewerRecord:
        return ""
    except StoreError as error:
        return error.what
    for blob in record.blobs:
        if blob.size not in (size_of(blob.key), size_of(blob.pinned_key(ref))):
            return f"The bytes of the artifact {ref} are lost."
    return ""


def _problem_now(bucket: Bucket, key: str, ref: str) -> str:
    def size_of(blob_key: str) -> int | None:
        item = bucket.look_up(blob_key)
        return item.size if item else None

    return _problem(bucket.read(key), ref, size_of)


def _remove_lost(bucket: Bucket, key: str, ref: str) -> None:
    if _problem_now(bucket, key, ref):
        bucket.delete(key)


def printed_rules(limits: StoreLimits) -> tuple[str, str]:
    """Return the lifecycle rules as the provider reads them, and the command that applies them."""
    url = _url(limits)
    wanted = rules_for(url, limits.max_age_days)
    if url.scheme == "gs":
        command = f"gcloud storage buckets update gs://{url.bucket} --lifecycle-file=FILE"
        return google_rules(wanted), command
    if url.scheme == "az":
        command = (
            "az storage account management-policy create --account-name ACCOUNT"
            " --resource-group GROUP --policy @FILE"
        )
        return azure_rules(url, wanted), command
    command = f"s3cmd setlifecycle FILE s3://{url.bucket}"
    return write_s3(wanted).decode(), command


def set_rules(limits: StoreLimits) -> bool:
    """Set the lifecycle rules of an s3 bucket, and keep those for other prefixes.

    Returns False where that cannot be done from here: another provider, or no keys in the
    environment. Raises StoreError where the bucket refuses.
    """
    url, keys = _url(limits), keys_of_environment()
    if url.scheme != "s3" or keys is None:
        return False
    present = lifecycle(url, limits, keys)
    rules = write_s3(rules_for(url, limits.max_age_days), present)
    lifecycle(url, limits, keys, rules)
    return True


def _url(limits: StoreLimits) -> BucketUrl:
    url = bucket_url(limits.url)
    if url is None:
        raise BadArgument(
            f"store.url is {limits.url!r}, which is no bucket.",
            "A store in a folder or in memory needs no rules.",
        )
    return url
