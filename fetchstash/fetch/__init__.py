"""URL to bytes, safely. Knows the network; knows no handler and no store."""

from fetchstash.fetch._contract import Cached, Fetched, Fetcher, FetchLimits, Progress

__all__ = ["Cached", "FetchLimits", "Fetched", "Fetcher", "Progress"]
