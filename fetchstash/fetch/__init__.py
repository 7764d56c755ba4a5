"""URL to bytes, safely. Knows the network; knows no handler and no store."""

from typing import TYPE_CHECKING

from fetchstash.system.lazy import lazy_names

if TYPE_CHECKING:
    from fetchstash.fetch._addresses import Address, plain, why_not_public
    from fetchstash.fetch._cache import age_seconds, is_fresh, may_keep
    from fetchstash.fetch._certificates import certificate_fault, tls_context
    from fetchstash.fetch._contract import Cached, Fetched, Fetcher, Progress, Rendered, Renderer
    from fetchstash.fetch._fetcher import HttpFetcher, browser_fault, browser_of, open_fetcher
    from fetchstash.fetch._headers import OriginHeaders, origin_headers
    from fetchstash.fetch._host import join_host_port
    from fetchstash.fetch._limits import FetchLimits
    from fetchstash.fetch._mask import mask_url

__all__ = [
    "Address",
    "Cached",
    "FetchLimits",
    "Fetched",
    "Fetcher",
    "HttpFetcher",
    "OriginHeaders",
    "Progress",
    "Rendered",
    "Renderer",
    "age_seconds",
    "browser_fault",
    "browser_of",
    "certificate_fault",
    "is_fresh",
    "join_host_port",
    "mask_url",
    "may_keep",
    "open_fetcher",
    "origin_headers",
    "plain",
    "tls_context",
    "why_not_public",
]

_MODULES = {
    "_addresses": "Address plain why_not_public",
    "_cache": "age_seconds is_fresh may_keep",
    "_certificates": "certificate_fault tls_context",
    "_contract": "Cached Fetched Fetcher Progress Rendered Renderer",
    "_fetcher": "HttpFetcher browser_fault browser_of open_fetcher",
    "_headers": "OriginHeaders origin_headers",
    "_host": "join_host_port",
    "_limits": "FetchLimits",
    "_mask": "mask_url",
}
__getattr__ = lazy_names(__name__, _MODULES)
