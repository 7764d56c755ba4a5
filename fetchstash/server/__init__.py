"""The MCP face of Stash."""
