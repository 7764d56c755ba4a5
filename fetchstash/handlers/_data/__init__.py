"""Structured data: JSON, YAML, XML, tables, databases."""
