"""Documents, collections and their sources, from upload to search."""
