"""The test drive of the hosts: what reaches a model when a real host starts the real server."""
