"""The lifecycle rules that let artifacts in a bucket expire, and how they are set.

S3's interface can be asked and told (PutBucketLifecycleConfiguration in Amazon's API reference;
Ceph and others have it too). Google's and Azure's rules are those of a whole bucket or account, and
need rights that a service should not have: they are printed, for the operator to apply.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from fetchstash.errors import StoreError
from fetchstash.store._bucket import BLOBS, EXPIRING
from fetchstash.store._bucket_record import KEYS, PINNED
from fetchstash.store._limits import BucketUrl

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
        {
            "action": {"type": action},
            "condition": {"age": days, "matchesPrefix": [rule.prefix]},
        }
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
