"""read_file, for agents that have the file already."""
