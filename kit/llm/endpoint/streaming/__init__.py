"""A model's answer as it streams: from bytes to deltas of text and tool calls."""
