"""``python -m services.standalone``: the same as ``groundwork up``."""

from __future__ import annotations

import sys

from services.standalone.app import main

if __name__ == "__main__":
    sys.exit(main(local_llm="--llm=local" in sys.argv[1:]))
