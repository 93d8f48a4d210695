"""Four times as large a file takes about four times as long to be read, whatever it is made of. Computing time is compared with
computing time, so that neither the machine's speed nor who else uses it matters."""

import io
import time
from pathlib import Path

import pytest

from services.ingest.errors import DocumentRejected
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import PrepareRequest
from tests.unit.ingest.slow import SLOW_FILES
from tests.unit.ingest.slow.case import SlowFile

_TIMES = 4
_LIMIT = 9
"""What grows with the square takes 16 times as long."""
_LEAST_S = 0.03
"""A shorter time says nothing: it is that of whatever else happened."""
_TRIES = 3


@pytest.mark.filterwarnings("ignore::UserWarning:openpyxl")
@pytest.mark.parametrize("kind", SLOW_FILES.values(), ids=SLOW_FILES.keys())
def test_time_grows_with_the_file(kind: SlowFile, tmp_path: Path) -> None:
    path = tmp_path / kind.name
    small, large = kind.make(kind.usual), kind.make(_TIMES * kind.usual)
    _seconds(small, path)  # loads what the first reading loads
    ratios = []
    for _ in range(_TRIES):
        ratios.append(_seconds(large, path) / max(_LEAST_S, _seconds(small, path)))
        if ratios[-1] < _LIMIT:
            return
    raise AssertionError(f"{_TIMES} times as much took {ratios} times as long")


def _seconds(data: bytes, path: Path) -> float:
    """Of computing, to read a file."""
    path.write_bytes(data)
    began = time.process_time()
    try:
        media_type = detect_media_type(io.BytesIO(data), path.name)
        prepare(PrepareRequest(str(path), media_type, path.name, "", 256), lambda _: None, EstimatedTokens())
    except DocumentRejected as rejected:
        assert rejected.reason in ("NO_TEXT", "FILE_DAMAGED")  # noqa: PT017 - some hold nothing but marks
    return time.process_time() - began
