"""Tools that read, keep and delete documents."""
