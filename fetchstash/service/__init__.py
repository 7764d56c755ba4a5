"""Many agents over HTTP: each tenant apart, bounded, counted and logged."""

from fetchstash.service._app import build_app
from fetchstash.service._context import principal_in, principal_of
from fetchstash.service._serve import serve_http

__all__ = ["build_app", "principal_in", "principal_of", "serve_http"]
