"""How many tokens a text has, and how many a model takes."""
