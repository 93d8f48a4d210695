"""From the bytes of a file to chunks of clean text. All that parses a file runs in the parsing child: the security boundary.
`pool`, `unkept` and the detection of media types run in the worker."""
