"""Charts, diagrams, tables and timelines of what passages say: each part with the words that prove it, or not drawn."""
