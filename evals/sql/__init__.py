"""Whether questions to databases are answered with the right rows."""
