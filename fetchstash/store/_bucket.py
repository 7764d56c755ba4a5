"""A bucket: whole objects under keys, over obstore. All of it blocks and is called from threads.

Every request is bounded in time and size, and is tried again for a bounded time. A failure becomes
a StoreError in our own words: what obstore says quotes the endpoint's answer, which may hold the
name of a key or the request that was signed.
"""

import os
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fetchstash.errors import BadArgument, StoreError
from fetchstash.store._limits import BucketUrl, StoreLimits, bucket_url
from fetchstash.system import telemetry

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

PART = 5 * 2**20
"""The smallest part of a multipart upload that S3 takes, in bytes."""

_PARTS_AT_ONCE = 2
"""Each has _REQUEST_SECONDS: more of them would need a quicker line."""

_CLEAR_TEXT = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}
_ENDPOINT = re.compile(r"https?://([\w.-]+|\[[\da-fA-F:.]+\])(:\d{1,5})?(/[\w.~/-]*)?", re.ASCII)
_REGION = re.compile(r"[\w-]+", re.ASCII)
_VARIABLES = {
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_EXAMPLES = {"endpoint": "https://HOST or http://HOST:PORT", "region": "a name such as eu-west-1"}
_CONNECT_SECONDS, _REQUEST_SECONDS, _RETRY_SECONDS = 3, 12, 20
"""A request that hangs is given up and tried again once; a call fails after 32 s at the latest."""


def open_bucket(limits: StoreLimits) -> "Bucket":
    """Return the bucket that ``limits.url`` names. Raises BadArgument, StoreError.

    Credentials come from where obstore looks for them: the environment, a web identity, and the
    metadata of the container or the machine.
    """
    url = bucket_url(limits.url)
    assert url is not None
    try:
        from obstore import store as stores  # noqa: PLC0415 - an extra
    except ImportError:
        what = f"store.url is {limits.url}, and obstore is not installed."
        raise StoreError(what, 'pip install "fetchstash[team]"') from None
    retries: Any = {
        "max_retries": 8,
        "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
        "backoff": {
            "init_backoff": timedelta(milliseconds=200),
            "max_backoff": timedelta(seconds=3),
            "base": 2,
        },
    }
    client: Any = {
        "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
        "timeout": timedelta(seconds=_REQUEST_SECONDS),
    }
    # obstore reads this variable only where no options are given.
    in_clear = os.environ.get(_CLEAR_TEXT[url.scheme], "").lower() in ("true", "1")
    if in_clear or limits.endpoint.startswith("http://"):
        client["allow_http"] = True
    kinds: Mapping[str, Any] = {
        "s3": stores.S3Store,
        "gs": stores.GCSStore,
        "az": stores.AzureStore,
    }
    config = _config(url, limits)
    return Bucket(
        _translated(
            lambda: kinds[url.scheme](
                url.bucket,
                prefix=url.prefix or None,
                config=config,
                client_options=client,
                retry_config=retries,
            )
        )
    )


def _config(url: BucketUrl, limits: StoreLimits) -> dict[str, Any]:
    """Return the bucket's settings under obstore's names. Raises BadArgument."""
    config: dict[str, Any] = {}
    _check(url, limits)
    if limits.endpoint:
        config["base_url" if url.scheme == "gs" else "endpoint"] = limits.endpoint
    if url.scheme != "s3":
        for name in ("region", "encryption"):
            if getattr(limits, name):
                what = f"store.{name} is for s3:// alone, and store.url is {url}."
                raise BadArgument(what, f"Leave store.{name} empty.")
        return config
    if limits.endpoint:
        config["aws_endpoint_url_s3"] = limits.endpoint  # else AWS_ENDPOINT_URL_S3 would win
    config["disable_bulk_delete"] = True  # not every endpoint has it
    if limits.region:
        config["region"] = limits.region
    if limits.encryption:
        # "AES256", "aws:kms" or "aws:kms:KEY".
        algorithm, _, key = limits.encryption.partition("aws:kms:")
        config["server_side_encryption"] = algorithm or "aws:kms"
        if key:
            config["sse_kms_key_id"] = key
    return config


def _check(url: BucketUrl, limits: StoreLimits) -> None:
    """Raise BadArgument for characters that no request's URL may have: obstore panics at some."""
    variables = _VARIABLES if url.scheme == "s3" else {}
    for name, pattern, setting in (
        ("endpoint", _ENDPOINT, limits.endpoint),
        ("region", _REGION, limits.region),
    ):
        values = (setting, *(os.environ.get(known, "") for known in variables.get(name, ())))
        if any(value and not pattern.fullmatch(value) for value in values):
            step = f"Set store.{name} to {_EXAMPLES[name]}."
            raise BadArgument(f"The bucket's {name} cannot be used.", step)


class Bucket:
    """Objects under a prefix of a bucket. Writes are atomic; of two, the later one wins."""

    def __init__(self, store: "ObjectStore") -> None:
        self._store: Any = store  # obstore leaves types open where Arrow may be installed

    @telemetry.timed("bucket", operation="read_range")
    def read_range(self, key: str, start: int, end: int) -> bytes | None:
        """Return the bytes [start, end), fewer at the end, None where there is no object."""
        return _translated(
            lambda: bytes(self._store.get_range(key, start=start, end=end)), missing=None
        )

    @telemetry.timed("bucket", operation="write")
    def write(self, key: str, data: bytes | Path) -> None:
        """Write an object, in parts if it is large. It is there, whole, when this returns."""
        _translated(
            lambda: self._store.put(key, data, chunk_size=PART, max_concurrency=_PARTS_AT_ONCE)
        )

    @telemetry.timed("bucket", operation="delete")
    def delete(self, key: str) -> None:
        """Delete an object. One that is not there is no error."""
        _translated(lambda: self._store.delete(key), missing=None)

    @telemetry.timed("bucket", operation="look_up")
    def size(self, key: str) -> int | None:
        """Return the size of an object, None where there is none."""
        return _translated(lambda: int(self._store.head(key)["size"]), missing=None)

    @telemetry.timed("bucket", operation="list")
    def objects(self, folder: str) -> list[tuple[str, int, float]]:
        """Return the objects below a folder: key, size, and the time of the write since 1970."""

        def work() -> list[tuple[str, int, float]]:
            pages = self._store.list(folder, chunk_size=1_000)
            return [
                (meta["path"], meta["size"], meta["last_modified"].timestamp())
                for page in pages
                for meta in page
            ]

        return _translated(work)

    @telemetry.timed("bucket", operation="list")
    def has(self, folder: str) -> bool:
        """Return whether there is an object below a folder."""
        return _translated(lambda: any(self._store.list(folder, chunk_size=1)))

    def probe(self) -> None:
        """Write, read and delete one object. Raises StoreError."""
        key, data = f"probe/{secrets.token_hex(8)}", secrets.token_bytes(16)
        self.write(key, data)
        try:
            if self.read_range(key, 0, len(data)) != data:
                what = "The bucket does not return what was written to it."
                raise StoreError(what, f"Look at {_PLACE}.")
        finally:
            self.delete(key)


_NO_DEFAULT: Any = object()


def _translated(work: Callable[[], T], missing: T = _NO_DEFAULT) -> T:
    """Run work on a bucket with its errors translated; return ``missing`` for a missing object.

    Raises StoreError. The error of obstore is no cause of it, so that no traceback shows it.
    """
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

    try:
        return work()
    except FileNotFoundError as error:
        if missing is not _NO_DEFAULT and not re.search(_NO_BUCKET, str(error)):
            return missing
        failure = _failure(_NO_BUCKET.partition("|")[0])
    except (BaseError, OSError, ValueError) as error:
        failure = _failure(str(error))
    raise failure


_PLACE = "store.url, store.endpoint and store.region"
_RIGHTS = "Give them the rights to list, read, write and delete under the prefix."
_NO_BUCKET = "NoSuchBucket|ContainerNotFound|bucket does not exist"
_FAILURES = (
    (_NO_BUCKET, "There is no such bucket.", "Make it, or correct store.url."),
    (
        r"169\.254\.|metadata\.google|missing credential|Account must be specified|identity/oauth2",
        "There are no credentials for the bucket.",
        "Set the provider's variables in the environment, or run with a role.",
    ),
    (
        r"Invalid Access Key|service account|token file|Config error|Missing \w*AccessKey",
        "The provider's variables in the environment cannot be used.",
        "Correct AWS_…, GOOGLE_… or AZURE_….",
    ),
    (
        "ExpiredToken|InvalidToken|TokenRefreshRequired",
        "The credentials for the bucket have expired.",
        "Renew the provider's variables in the environment, and start again.",
    ),
    (
        "SignatureDoesNotMatch|InvalidAccessKeyId",
        "The bucket does not know these credentials.",
        "Correct the provider's variables in the environment.",
    ),
    ("RequestTimeTooSkewed", "This machine's clock differs from the bucket's.", "Set the clock."),
    (
        "Received redirect|PermanentRedirect|AuthorizationHeaderMalformed",
        "The bucket is in another region.",
        "Set store.region to its region.",
    ),
    ("status code: (401|403)", "The bucket refused the credentials (status {}).", _RIGHTS),
    ("lacked", "The bucket refused the credentials.", _RIGHTS),
    (
        "status code: (429|503)",
        "The bucket asks for fewer requests (status {}).",
        "Try again in a minute.",
    ),
    ("status code: 416", "Bytes were altered after they were stored.", "Fetch them again."),
    (
        "BadScheme",
        "The bucket's endpoint is http://, without encryption on the way.",
        "Use https://, or name it in store.endpoint.",
    ),
    (
        r"status code: (4(?!08|09)\d\d|501|505)",
        "The bucket failed with status {}.",
        f"Look at {_PLACE}.",
    ),
    (r"status code: (\d{3})", "The bucket failed with status {}.", "Try again in a minute."),
    ("", "The bucket does not answer.", f"Try again in a minute; then look at {_PLACE}."),
)
"""What an answer may hold, what is said of the first that it does, and what to do next."""


def _failure(text: str) -> StoreError:
    """Return the error for an obstore failure. Only its HTTP status is quoted."""
    for sign, what, step in _FAILURES:
        if match := re.search(sign, text):
            lasting = not step.startswith(("Try again", "Fetch"))
            return StoreError(what.format(*match.groups()), step, lasting=lasting)
    raise AssertionError("the last sign is in every text")
