"""``python -m services.standalone``: the same as ``groundwork up``."""

from __future__ import annotations

import argparse
import sys

from services.standalone.app import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m services.standalone", description=__doc__)
    parser.add_argument("--llm", choices=["local"])
    parser.add_argument("--replicas")
    parser.add_argument("--program", default="groundwork")
    given = parser.parse_args()
    sys.exit(main(local_llm=given.llm == "local", replicas=given.replicas, program=given.program))
