"""@context_result and store_result, for any tool."""
