"""The demonstration: a small site, and the real server driven through MCP."""
