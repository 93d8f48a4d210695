"""The port TextRecognizer, kept by the recogniser of the tests and by the real one on each runtime that is installed."""

import importlib.util
import sys
from collections.abc import Callable

import pytest
from PIL import Image

from services.ingest.adapters.rapidocr import RapidOcr
from services.ingest.reading.recognition import RecognitionFailed, RecognizedPicture, RecognizerMissing, TextRecognizer
from tests.unit.ingest.recognizers import OffTheMainThread, ScriptedRecognizer, picture_of, pixels_of, read_as

LINES = ["The ferry to Norderney", "leaves at seven o'clock", "from the east harbour."]


def scripted() -> TextRecognizer:
    return ScriptedRecognizer(read_as(*LINES))


def on_openvino() -> TextRecognizer:
    return OffTheMainThread(RapidOcr(threads=1))


@pytest.fixture(scope="module", params=[scripted, on_openvino], ids=["fake", "rapidocr"])
def recognizer(request: pytest.FixtureRequest) -> TextRecognizer:
    make: Callable[[], TextRecognizer] = request.param
    return make()


def test_lines_are_read_with_their_places(recognizer: TextRecognizer) -> None:
    found = recognizer.read(pixels_of(picture_of(LINES, size=(640, 320))), 60)
    assert [line.text for line in sorted(found.lines, key=lambda line: line.box[1])] == LINES
    assert (found.turn, found.unread_count, found.complete) == (0, 0, True)
    for line in found.lines:
        x0, y0, x1, y1 = line.box
        assert 60 < x0 < x1 < 640
        assert 60 < y0 < y1 < 320
        assert line.score > 0.8
    assert recognizer.scripts


@pytest.fixture(scope="module")
def real() -> TextRecognizer:
    return OffTheMainThread(RapidOcr(threads=1))


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_turned_picture_is_read_and_its_places_are_those_of_the_picture_as_given(
    real: TextRecognizer, turn: int
) -> None:
    page = picture_of(LINES, size=(640, 320)).rotate(turn, expand=True)  # counter-clockwise
    found = real.read(pixels_of(page), 60)
    assert sorted(line.text for line in found.lines) == sorted(LINES)
    assert found.turn == turn
    assert all(0 <= line.box[0] < line.box[2] <= page.width for line in found.lines)
    is_sideways = all(line.box[3] - line.box[1] > line.box[2] - line.box[0] for line in found.lines)
    assert is_sideways == (turn != 180)


def test_nothing_of_the_runtime_can_call_home(real: TextRecognizer) -> None:
    real.read(pixels_of(picture_of(LINES[:1], size=(640, 160))), 60)
    assert "openvino" in sys.modules
    assert not [name for name, module in sys.modules.items() if name.startswith("openvino_telemetry") and module]


def test_picture_without_text_has_no_lines(real: TextRecognizer) -> None:
    assert real.read(pixels_of(Image.new("RGB", (300, 200), "white")), 60) == RecognizedPicture(())


@pytest.mark.parametrize("size", [(1, 1), (1, 20_000), (20_000, 1)])
def test_picture_of_an_odd_shape_has_no_lines(real: TextRecognizer, size: tuple[int, int]) -> None:
    assert real.read(pixels_of(Image.new("RGB", size, "white")), 60).lines == ()


def test_time_limit_ends_a_picture_between_two_lines(real: TextRecognizer) -> None:
    found = real.read(pixels_of(picture_of(LINES, size=(640, 320))), 0.0)
    assert (found.lines, found.complete) == ((), False)


def test_onnxruntime_reads_where_openvino_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "openvino" else find_spec(name))
    found = OffTheMainThread(RapidOcr(threads=1)).read(pixels_of(picture_of(LINES[:1], size=(640, 160))), 60)
    assert [line.text for line in found.lines] == LINES[:1]


@pytest.mark.parametrize("missing", [{"rapidocr"}, {"openvino", "onnxruntime"}])
def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, missing: set[str]) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else find_spec(name))
    with pytest.raises(RecognizerMissing, match="which is not installed"):
        RapidOcr(threads=1).read(pixels_of(picture_of(LINES)), 60)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (RuntimeError("Shape mismatch"), RecognitionFailed),
        (RuntimeError("std::bad_alloc in node 7"), MemoryError),
        (RuntimeError("numpy: Unable to allocate 71.1 MiB"), MemoryError),
    ],
)
def test_fault_of_a_runtime_is_translated(fault: Exception, expected: type[Exception]) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise fault

    recognizer = RapidOcr(threads=1)
    recognizer._engine = breaks
    with pytest.raises(expected):
        recognizer.read(pixels_of(picture_of(LINES)), 60)
