"""From clean text to chunks."""
