"""The gateway: other MCP servers behind fetchstash, their long results made short."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.gateway._serve import serve_gateway
    from fetchstash.gateway._start import Process, name_of, start_early, stop

__all__ = ["Process", "name_of", "serve_gateway", "start_early", "stop"]

_MODULES = {"_serve": "serve_gateway", "_start": "Process name_of start_early stop"}
__getattr__ = lazy_names(__name__, _MODULES)
