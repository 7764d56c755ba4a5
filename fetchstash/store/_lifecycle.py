"""Lifecycle rules of a bucket.

"Authenticating Requests (AWS Signature Version 4)" in Amazon's API reference of S3.

S3's interface can be asked and told (PutBucketLifecycleConfiguration in Amazon's API reference;
Ceph and others have it too). Google's and Azure's rules are those of a whole bucket or account, and
need rights that a service should not have: they are printed, for the operator to apply.
"""

import base64
import hashlib
import hmac
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

from fetchstash.errors import StoreError
from fetchstash.store._bucket import BLOBS, EXPIRING, known_failure
from fetchstash.store._bucket_record import KEYS, PINNED
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


_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_KEPT = (PINNED, KEYS, "service", "tenants")
_MARGIN_DAYS = 2
"""Beyond the date of an artifact: clocks differ, and providers count whole days."""

_WEEK_DAYS = 7
"""An artifact may share bytes that were written when its week began (_bucket_record.py)."""

_UNFINISHED_DAYS = 1
"""The parts of an upload that was given up go after a day."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Objects whose names begin with ``prefix`` are removed ``days`` after they were written."""

    prefix: str
    days: int


def rules_for(url: BucketUrl, max_age_days: float) -> list[Rule]:
    """Return the rules of a bucket whose artifacts are kept for so long at the most."""
    days = math.ceil(max_age_days) + _MARGIN_DAYS
    return [
        Rule(url.path(folder), days + _WEEK_DAYS if folder == BLOBS else days)
        for folder in EXPIRING
    ]


def problems(url: BucketUrl, wanted: Sequence[Rule], present: Sequence[Rule]) -> list[str]:
    """Return what is wrong with the rules of a bucket, a sentence each."""
    sentences: list[str] = []
    for rule in wanted:
        if not any(rule.prefix.startswith(other.prefix) for other in present):
            sentences.append(f"No lifecycle rule removes what is under {rule.prefix}.")
        sentences += [
            f"A lifecycle rule removes what is under {max(rule.prefix, other.prefix, key=len)}"
            f" after {other.days} days, and artifacts are kept until day {rule.days}."
            for other in present
            if _overlap(rule.prefix, other.prefix) and other.days < rule.days
        ]
    sentences += [
        f"A lifecycle rule for {other.prefix or 'the whole bucket'} removes what must stay:"
        f" {url.path(folder)}."
        for folder in _KEPT
        for other in present
        if _overlap(url.path(folder), other.prefix)
    ]
    return sentences


def _overlap(prefix: str, other: str) -> bool:
    return prefix.startswith(other) or other.startswith(prefix)


def read_s3(document: bytes) -> list[Rule]:
    """Return the rules of S3's XML that remove whole prefixes. Raises StoreError.

    One with a date removes all of them from then on, and counts as one of no days.
    """
    return [
        Rule(prefix.text or "", _days(rule))
        for rule in _parsed(document)
        if _child(rule, "Expiration") is not None
        and _child(rule, "Expiration", "ExpiredObjectDeleteMarker") is None
        and (prefix := _prefix(rule)) is not None
        and (status := _child(rule, "Status")) is not None
        and status.text == "Enabled"
    ]


def write_s3(wanted: Sequence[Rule], document: bytes = b"") -> bytes:
    """Return S3's XML with these rules, and those of ``document`` that are for other prefixes."""
    ET.register_namespace("", _NAMESPACE)
    configuration = ET.Element(f"{{{_NAMESPACE}}}LifecycleConfiguration")
    names = {_name(rule) for rule in wanted}
    for other in _parsed(document) if document else ():
        name = _child(other, "ID")
        if name is None or name.text not in names:
            configuration.append(other)
    for rule in wanted:
        element = ET.SubElement(configuration, f"{{{_NAMESPACE}}}Rule")
        for path, text in (
            ("ID", _name(rule)),
            ("Filter/Prefix", rule.prefix),
            ("Status", "Enabled"),
            ("Expiration/Days", str(rule.days)),
            ("NoncurrentVersionExpiration/NoncurrentDays", str(_UNFINISHED_DAYS)),
            ("AbortIncompleteMultipartUpload/DaysAfterInitiation", str(_UNFINISHED_DAYS)),
        ):
            parent = element
            for part in path.split("/"):
                parent = ET.SubElement(parent, f"{{{_NAMESPACE}}}{part}")
            parent.text = text
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(configuration)


def google_rules(wanted: Sequence[Rule]) -> str:
    """Return the file of lifecycle rules for `gcloud storage buckets update --lifecycle-file`."""
    rules: list[object] = [
        {"action": {"type": action}, "condition": {"age": days, "matchesPrefix": [rule.prefix]}}
        for rule in wanted
        for action, days in (
            ("Delete", rule.days),
            ("AbortIncompleteMultipartUpload", _UNFINISHED_DAYS),
        )
    ]
    return json.dumps({"lifecycle": {"rule": rules}}, indent=2)


def azure_rules(url: BucketUrl, wanted: Sequence[Rule]) -> str:
    """Return the policy for `az storage account management-policy create --policy`."""
    rules: list[object] = []
    for rule in wanted:
        prefixes = [f"{url.bucket}/{rule.prefix}"]
        delete = {"daysAfterModificationGreaterThan": rule.days}
        definition = {
            "actions": {"baseBlob": {"delete": delete}},
            "filters": {"blobTypes": ["blockBlob"], "prefixMatch": prefixes},
        }
        name = _name(rule).replace("/", "-")
        rules.append({"enabled": True, "name": name, "type": "Lifecycle", "definition": definition})
    return json.dumps({"rules": rules}, indent=2)


def _name(rule: Rule) -> str:
    return f"fetchstash/{rule.prefix.rstrip('/')}"


def _parsed(document: bytes) -> list[ET.Element]:
    """Return the rules of a configuration."""
    if b"<!" in document:  # no declaration, so no entity, belongs into it
        raise StoreError("The bucket's lifecycle rules are no plain XML.", "Look at the endpoint.")
    try:
        root = ET.fromstring(document)  # noqa: S314 - see above
    except ET.ParseError:
        what = "The bucket's lifecycle rules cannot be read."
        raise StoreError(what, "Look at the endpoint.") from None
    return [element for element in root if element.tag.rpartition("}")[2] == "Rule"]


def _days(rule: ET.Element) -> int:
    days = _child(rule, "Expiration", "Days")
    text = (days.text or "").strip() if days is not None else ""
    return int(text) if text.isdecimal() else 0


def _prefix(rule: ET.Element) -> ET.Element | None:
    """Return the prefix of a rule; None for one that looks at more, such as tags."""
    under = _child(rule, "Filter")
    if under is None:
        return _child(rule, "Prefix")
    if len(under) == 0:
        return under  # an empty filter is for the whole bucket
    return _child(under, "Prefix")


def _child(element: ET.Element, *names: str) -> ET.Element | None:
    """Return the first descendant along these names, whatever their namespace."""
    for name in names:
        match = [child for child in element if child.tag.rpartition("}")[2] == name]
        if not match:
            return None
        element = match[0]
    return element
