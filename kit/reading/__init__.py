"""Reading passages without a model: rows of tables, values beside their labels, and the sentences that carry a text."""
