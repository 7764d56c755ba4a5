"""Settings, read once at the top and handed down as each room's own limits."""
