"""Tools that read the mailbox of a connection."""
