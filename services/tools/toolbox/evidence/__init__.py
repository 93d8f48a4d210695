"""Tools that choose passages, and that check claims by them."""
