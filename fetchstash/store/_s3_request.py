"""Requests to S3 that obstore has no function for, signed with AWS Signature Version 4.

"Authenticating Requests (AWS Signature Version 4)" in Amazon's API reference of S3.
"""

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from fetchstash.errors import StoreError
from fetchstash.store._bucket import known_failure
from fetchstash.store._limits import BucketUrl, StoreLimits

TIMEOUT_SECONDS = 20
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of an account. They are not shown."""

    access: str
    secret: str
    token: str

    def __repr__(self) -> str:
        return "Keys(...)"


def keys_of_environment(environment: Mapping[str, str] = os.environ) -> Keys | None:
    """Return the keys that the environment holds, None if it holds none."""
    access = environment.get("AWS_ACCESS_KEY_ID", "")
    secret = environment.get("AWS_SECRET_ACCESS_KEY", "")
    token = environment.get("AWS_SESSION_TOKEN", "")
    return Keys(access, secret, token) if access and secret else None


def lifecycle(url: BucketUrl, limits: StoreLimits, keys: Keys, rules: bytes = b"") -> bytes:
    """Read the lifecycle rules of a bucket, or set them to ``rules``. Raises StoreError.

    Returns b"" where there are none.
    """
    import httpx2  # noqa: PLC0415 - it takes 0.1 s

    environment = os.environ
    region = limits.region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    region = region or "us-east-1"
    endpoint = (
        limits.endpoint
        or environment.get("AWS_ENDPOINT_URL_S3")
        or environment.get("AWS_ENDPOINT_URL")
        or environment.get("AWS_ENDPOINT")
        or f"https://s3.{region}.amazonaws.com"
    )
    method, target = "PUT" if rules else "GET", f"{endpoint.rstrip('/')}/{url.bucket}"
    now = datetime.now(UTC)
    headers = signed(method, target, "lifecycle", rules, keys, region, now)
    failure = ""
    try:
        with httpx2.Client(timeout=TIMEOUT_SECONDS) as client:
            answer = client.request(method, f"{target}?lifecycle", headers=headers, content=rules)
    except httpx2.HTTPError:
        failure = "The bucket does not answer when asked for its lifecycle rules."
    else:
        if answer.is_success:
            return answer.content
        if answer.status_code == _NOT_FOUND and b"NoSuchLifecycleConfiguration" in answer.content:
            return b""
        if known := known_failure(answer.text):
            raise known
        failure = f"The bucket refuses its lifecycle rules (status {answer.status_code})."
    raise StoreError(failure, "Set them with your provider's tool: fetchstash store init --print.")


def signed(
    method: str, target: str, query: str, body: bytes, keys: Keys, region: str, now: datetime
) -> dict[str, str]:
    """Return the header fields of a request for ``target?query``, its signature among them."""
    parts = urlsplit(target)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    if body:
        # PutBucketLifecycleConfiguration asks for it, and MD5 guards nothing here.
        md5 = hashlib.md5(body, usedforsecurity=False).digest()
        headers["content-md5"] = base64.b64encode(md5).decode()
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    path = quote(parts.path, safe="/-_.~") or "/"
    canonical = f"{method}\n{path}\n{quote(query)}=\n{lines}\n{names}\n{digest}"
    scope = f"{day}/{region}/s3/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}"
    key = f"AWS4{keys.secret}".encode()
    for part in (day, region, "s3", "aws4_request", to_sign):
        key = hmac.digest(key, part.encode(), "sha256")
    credential = f"Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 {credential}"}
