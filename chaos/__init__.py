"""Breaks a running system on purpose, by a seed, while clients use it, and counts what was lost, doubled or stale afterwards."""
