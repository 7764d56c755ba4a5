"""Settings: read once at the start, and handed to each package as its own limits.

A value comes from the first of these that has it: argument, environment, file, the host's profile,
default. The file is the one named by ``--config`` or FETCHSTASH_CONFIG, else fetchstash.toml in the
user's configuration folder. The working directory is never searched, because a host starts servers
in the agent's project.
"""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.config._keys import (
        CLIENT_NAMES,
        COUNTING_BYTES,
        KEYS,
        PROFILES,
        HttpLimits,
        IngestLimits,
        Key,
        OAuthLimits,
        QuotaLimits,
        TelemetryLimits,
        TenantRules,
        WrapLimits,
    )
    from fetchstash.config._load import Settings, example_file, load, toml_value
    from fetchstash.config._servers import (
        ARTIFACT_TOOLS,
        FILTER_KEYS,
        HEADER_KEYS,
        SERVERS_VARIABLE,
        URL_KEYS,
        WrappedServer,
        filled_in,
        is_secret_name,
        mapped,
        resolved,
        servers_of_file,
    )

__all__ = [
    "ARTIFACT_TOOLS",
    "CLIENT_NAMES",
    "COUNTING_BYTES",
    "FILTER_KEYS",
    "HEADER_KEYS",
    "KEYS",
    "PROFILES",
    "SERVERS_VARIABLE",
    "URL_KEYS",
    "HttpLimits",
    "IngestLimits",
    "Key",
    "OAuthLimits",
    "QuotaLimits",
    "Settings",
    "TelemetryLimits",
    "TenantRules",
    "WrapLimits",
    "WrappedServer",
    "example_file",
    "filled_in",
    "is_secret_name",
    "load",
    "mapped",
    "resolved",
    "servers_of_file",
    "toml_value",
]

_MODULES = {
    "_keys": (
        "CLIENT_NAMES COUNTING_BYTES HttpLimits IngestLimits KEYS Key OAuthLimits PROFILES "
        "QuotaLimits TelemetryLimits TenantRules WrapLimits"
    ),
    "_load": "Settings example_file load toml_value",
    "_servers": (
        "ARTIFACT_TOOLS FILTER_KEYS HEADER_KEYS SERVERS_VARIABLE URL_KEYS WrappedServer "
        "filled_in is_secret_name mapped resolved servers_of_file"
    ),
}
__getattr__ = lazy_names(__name__, _MODULES)
