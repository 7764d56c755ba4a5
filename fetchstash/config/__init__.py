"""Settings, read once at the top and handed down as each room's own limits.

An argument wins over the environment, that over the file, that over the host's profile, and that
over the default. The file is the one named by ``--config`` or FETCHSTASH_CONFIG, else
fetchstash.toml in the user's configuration folder; the working directory is never searched, because
a host starts us in the agent's project.
"""

from fetchstash.config._example import example_file
from fetchstash.config._keys import KEYS, PROFILES, IngestLimits, Key, TelemetryLimits
from fetchstash.config._load import Settings, load

__all__ = [
    "KEYS",
    "PROFILES",
    "IngestLimits",
    "Key",
    "Settings",
    "TelemetryLimits",
    "example_file",
    "load",
]
