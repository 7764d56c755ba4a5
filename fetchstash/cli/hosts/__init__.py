"""Put fetchstash into the settings of the hosts that start it, and take it out again."""

from typing import TYPE_CHECKING

from fetchstash.system.lazy import lazy_names

if TYPE_CHECKING:
    from fetchstash.cli.hosts._hosts import HOSTS, CommandHost, FileHost, Place
    from fetchstash.cli.hosts._register import add_line, register, snippet, unregister
    from fetchstash.cli.hosts._start import start_command
    from fetchstash.cli.hosts._wrap import unwrap, wrap

__all__ = [
    "HOSTS",
    "CommandHost",
    "FileHost",
    "Place",
    "add_line",
    "register",
    "snippet",
    "start_command",
    "unregister",
    "unwrap",
    "wrap",
]

_MODULES = {
    "_hosts": "HOSTS CommandHost FileHost Place",
    "_register": "add_line register snippet unregister",
    "_start": "start_command",
    "_wrap": "unwrap wrap",
}
__getattr__ = lazy_names(__name__, _MODULES)
