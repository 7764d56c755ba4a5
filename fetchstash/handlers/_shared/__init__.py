"""Shared by the readers of several formats: containers, XML, Markdown, tables, parts."""
