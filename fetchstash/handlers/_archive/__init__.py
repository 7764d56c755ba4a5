"""Archives: their members, and one of them."""
