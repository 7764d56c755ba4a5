"""The format of a document: by its bytes first, then by its structure, its label and its name."""
