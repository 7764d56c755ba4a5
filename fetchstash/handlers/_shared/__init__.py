"""What readers of several formats share: containers, XML, Markdown, tables, parts."""
