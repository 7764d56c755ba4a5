"""The agent's side: overflow, rewrite, retry, compaction. Knows no server, and imports no third-party module."""
