"""Bodies about API keys and callers."""
