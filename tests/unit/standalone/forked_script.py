"""A service for tests of forking: it does what its first argument, a piece of Python, says."""

import sys

if __name__ == "__main__":
    exec(sys.argv[1])
