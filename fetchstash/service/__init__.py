"""Many agents over HTTP: each tenant apart, bounded, counted and logged."""
