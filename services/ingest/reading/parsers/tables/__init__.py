"""Tables of any format: where they are, what their columns are called, and their rows as text."""
