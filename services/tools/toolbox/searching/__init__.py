"""Tools that search, and that prepare a search."""
