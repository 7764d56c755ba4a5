"""Put fetchstash into the settings of the hosts that start it, and take it out again."""

from fetchstash.hosts._hosts import HOSTS, CommandHost, FileHost, Place
from fetchstash.hosts._register import add_line, register, snippet, unregister
from fetchstash.hosts._start import start_command
from fetchstash.hosts._wrap import unwrap, wrap

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
