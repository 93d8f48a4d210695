"""Commands about documents, collections and their sources, from upload to evaluation."""
