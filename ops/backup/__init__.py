"""Backups: one tar file that holds every stream of the message store, with counts and checksums."""
