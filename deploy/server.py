"""Serve MCP over stdin and stdout: the entry point of the MCP bundle."""

from fetchstash.cli import main

main(["serve"])
