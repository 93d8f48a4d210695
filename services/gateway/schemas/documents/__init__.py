"""Bodies about documents, collections and their sources, from upload to search."""
