"""The documentation of Groundwork, as tools read it."""
