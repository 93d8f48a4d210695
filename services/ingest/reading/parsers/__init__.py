"""One module a format: each turns a file into blocks in reading order. A new format is a module, in the package of its kind, and a
line in `registry.py`."""
