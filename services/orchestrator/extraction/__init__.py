"""Fields out of documents: one row a document, one citation a value, and what is missing is said to be."""
