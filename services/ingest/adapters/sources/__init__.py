"""Kinds of sources, one file each: a module with KIND. Dropped in, it is there."""
