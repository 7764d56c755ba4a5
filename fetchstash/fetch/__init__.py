"""URL to bytes, safely. Knows the network; knows no handler and no store."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.fetch._addresses import Address, plain, why_not_public
    from fetchstash.fetch._browser import browser_fault, browser_of, missing, missing_chromium
    from fetchstash.fetch._by_rule import fetch_match
    from fetchstash.fetch._contract import (
        Cached,
        Fetched,
        Fetcher,
        FetchLimits,
        Progress,
        Rendered,
        Renderer,
    )
    from fetchstash.fetch._exchange import Gates
    from fetchstash.fetch._fetcher import HttpFetcher
    from fetchstash.fetch._guard import certificate_fault, tls_context, unused_proxy
    from fetchstash.fetch._mask import mask_url
    from fetchstash.fetch._own import OriginHeaders, OwnFields, origin_headers
    from fetchstash.fetch._responses import (
        Pager,
        age_seconds,
        is_fresh,
        landing,
        may_be_fresh,
        may_keep,
        pager,
    )
    from fetchstash.fetch._rules import MAX_RULES, MEANINGS, RULES, TWIN, Match, Rule, matching

__all__ = [
    "MAX_RULES",
    "MEANINGS",
    "RULES",
    "TWIN",
    "Address",
    "Cached",
    "FetchLimits",
    "Fetched",
    "Fetcher",
    "Gates",
    "HttpFetcher",
    "Match",
    "OriginHeaders",
    "OwnFields",
    "Pager",
    "Progress",
    "Rendered",
    "Renderer",
    "Rule",
    "age_seconds",
    "browser_fault",
    "browser_of",
    "certificate_fault",
    "fetch_match",
    "is_fresh",
    "landing",
    "mask_url",
    "matching",
    "may_be_fresh",
    "may_keep",
    "missing",
    "missing_chromium",
    "origin_headers",
    "pager",
    "plain",
    "tls_context",
    "unused_proxy",
    "why_not_public",
]

_MODULES = {
    "_addresses": "Address plain why_not_public",
    "_browser": "browser_fault browser_of missing missing_chromium",
    "_by_rule": "fetch_match",
    "_contract": "Cached FetchLimits Fetched Fetcher Progress Rendered Renderer",
    "_exchange": "Gates",
    "_fetcher": "HttpFetcher",
    "_guard": "certificate_fault tls_context unused_proxy",
    "_mask": "mask_url",
    "_own": "OriginHeaders OwnFields origin_headers",
    "_responses": "Pager age_seconds is_fresh landing may_be_fresh may_keep pager",
    "_rules": "MAX_RULES MEANINGS RULES TWIN Match Rule matching",
}
__getattr__ = lazy_names(__name__, _MODULES)
