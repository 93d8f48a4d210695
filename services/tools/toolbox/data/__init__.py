"""Tools that ask the operator's databases and curated projects."""
