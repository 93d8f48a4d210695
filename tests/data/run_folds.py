"""Lists of a run's events and what they add up to, for every fold that there is: each case has its name, events and result."""

import json
from pathlib import Path
from typing import Any

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "run_folds.json").read_text("utf-8"))
