"""The gateway's own words of MCP are those of the SDK."""

import mcp_types
from mcp_types import version

from fetchstash.gateway import _protocol


def test_codes_keys_and_versions_are_those_of_the_sdk() -> None:
    ours = {name: value for name, value in vars(_protocol).items() if name.isupper()}
    theirs = {
        **{f"{name}_KEY": getattr(mcp_types, f"{name}_META_KEY") for name in _META_KEYS},
        "SUBSCRIPTION_ID_KEY": "io.modelcontextprotocol/subscriptionId",
        "HANDSHAKE_VERSIONS": version.HANDSHAKE_PROTOCOL_VERSIONS,
        "MODERN_VERSIONS": version.MODERN_PROTOCOL_VERSIONS,
    }
    codes = {name for name, value in ours.items() if isinstance(value, int)}
    theirs |= {name: getattr(mcp_types, name) for name in codes}
    theirs |= {name: getattr(version, name) for name in ours if name.startswith("LATEST")}
    assert {name: ours[name] for name in theirs} == theirs
    assert set(ours) - {"_META"} == set(theirs)


_META_KEYS = (
    "PROTOCOL_VERSION",
    "CLIENT_INFO",
    "CLIENT_CAPABILITIES",
    "LOG_LEVEL",
    "SERVER_INFO",
)
