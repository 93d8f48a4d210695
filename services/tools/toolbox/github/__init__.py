"""GitHub, where it is connected."""
