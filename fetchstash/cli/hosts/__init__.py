"""Put fetchstash into the settings of the hosts that start it, and take it out again."""
