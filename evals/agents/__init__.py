"""Research runs beside one search: what they find, what they take, and how they end."""
