"""From texts to vectors: token ids, the model, pooling."""
