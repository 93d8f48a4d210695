"""Tools that compute: numbers, dates and times."""
