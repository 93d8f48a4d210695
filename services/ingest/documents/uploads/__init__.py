"""How files come in: names, limits, copies, and the order of writes that loses nothing."""
