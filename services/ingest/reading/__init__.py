"""From the bytes of a file to its clean text: what the parsers of all formats share."""
