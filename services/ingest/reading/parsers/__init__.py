"""One module per format: each turns a file into blocks in reading order. A new format is a module and a line in `registry.py`."""
