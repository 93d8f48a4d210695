"""How well passages answer a query: late interaction, or a cross-encoder."""
