"""The demonstration: a small site on loopback, and the real server driven through MCP."""
