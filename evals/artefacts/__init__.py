"""What agents make, over real documents and without a model: what is in it is looked up in the words that it cites."""
