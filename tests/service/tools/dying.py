"""What tools do whose process dies in the middle."""

import os
import signal
from pathlib import Path
from typing import Any

SCHEMA_OF_FILE = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}


def write_and_die(file: str) -> dict[str, Any]:
    """Adds a line to the file, and kills its own process when it was the first."""
    path = Path(file)
    with path.open("a") as lines:
        lines.write("made\n")
    made = path.read_text().count("made")
    if made == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"made": made}
