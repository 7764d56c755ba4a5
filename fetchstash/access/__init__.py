"""Who sends a request: tokens of our own, and those of an identity provider."""
