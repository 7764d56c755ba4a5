"""Put fetchstash into the settings of the hosts that start it, and take it out again."""

from typing import TYPE_CHECKING

from fetchstash.system.lazy import lazy_names

if TYPE_CHECKING:
    from fetchstash.cli.hosts._register import (
        HOSTS,
        CommandHost,
        FileHost,
        Place,
        add_line,
        register,
        snippet,
        start_command,
        unregister,
    )
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
    "_register": (
        "CommandHost FileHost HOSTS Place add_line register snippet start_command unregister"
    ),
    "_wrap": "unwrap wrap",
}
__getattr__ = lazy_names(__name__, _MODULES)
