"""Findings of `fetchstash doctor` in a bucket."""

from fetchstash.store._bucket import Bucket
from fetchstash.store._contract import Finding, StoreLimits


def check_bucket(bucket: Bucket, limits: StoreLimits) -> tuple[Finding, ...]:
    """Examine a bucket and change nothing."""
    del bucket, limits
    return ()


def repair_bucket(bucket: Bucket, limits: StoreLimits) -> tuple[Finding, ...]:
    """Examine a bucket and mend what can be mended."""
    del bucket, limits
    return ()
