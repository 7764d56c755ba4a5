"""The agent's side: overflow, rewrite, retry, compaction. Knows no server, and imports no third-party module."""

from fetchstash.client._classify import Verdict, classify
from fetchstash.client._compact import compact
from fetchstash.client._pairing import orphans
from fetchstash.client._policy import Offload, Policy, State
from fetchstash.client._recovery import Recovery, overflow_report
from fetchstash.client._report import Change, Report
from fetchstash.client._rewrite import Target, rewrite

__all__ = [
    "Change",
    "Offload",
    "Policy",
    "Recovery",
    "Report",
    "State",
    "Target",
    "Verdict",
    "classify",
    "compact",
    "orphans",
    "overflow_report",
    "rewrite",
]
