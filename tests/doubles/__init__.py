"""Servers that cannot be installed for a test, played over real HTTP: small, in memory, strict about what they are asked."""
