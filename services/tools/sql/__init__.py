"""Databases that agents may ask: which there are, what may be read of them, and how an answer is said."""
