"""From the bytes of a file to chunks of clean text. All of it runs in the parsing child: the security boundary."""
