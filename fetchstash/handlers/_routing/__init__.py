"""What a document is: by its bytes first, then by its structure, its label and its name."""
