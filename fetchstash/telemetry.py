"""Events, spans and counters: through the OpenTelemetry API where an SDK listens, and into a local log. Never content."""
