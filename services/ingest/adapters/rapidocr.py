"""Text recognition with RapidOCR: the PP-OCRv6 models that its wheel carries, on OpenVINO or ONNX Runtime, whichever is installed.
They read the Latin alphabet (with the accents of European languages), Chinese and Japanese; no other script well.

Lines are handed to the recogniser one by one: so time is checked between them, and their widths can be rounded up to a few sizes.
OpenVINO keeps what it compiled for each size it has seen, and lines of all widths take it gigabytes."""

import importlib.util
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.openvino import without_telemetry
from services.ingest.reading.recognition import (
    Picture,
    RecognitionFailed,
    RecognizedLine,
    RecognizedPicture,
    RecognizerMissing,
)

_MODELS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
}
_LINE_HEIGHT = 48  # the recogniser's input, in pixels
_WIDTH_STEP = 160
_MIN_WIDTH = 320
_MAX_WIDTH = 3200
_PAGE_STEP = 128
_DETECTION_SIDE = 1280
"""Pixels of the longer side that finding lines looks at: as many lines are found as at 1664, in half the memory."""
_MIN_SCORE = 0.5
_SAMPLED_LINES = 5
_SURE = 0.85
_VERY_SURE, _WELL_READ_LINES = 0.95, 2
"""Score of a line that stands upright, and how many such lines settle it where others are in a script that is not read."""
_OUT_OF_MEMORY = re.compile(r"MemoryError|bad_alloc|can'?t alloc|allocat|out of memory", re.IGNORECASE)
_MIN_DENSITY = 0.3
"""Characters for a square of the line's height: Latin has two, Chinese one; a script that the model skips has fewer."""

Corners = NDArray[np.float32]
"""float32 [4, 2]: x, y of top left, top right, bottom right, bottom left."""


class RapidOcr:
    """Loaded at the first picture: 1 second and about 300 MB that a file with a text layer does not need."""

    scripts = "Latin, Chinese and Japanese"
    missing = ""

    def __init__(self, *, threads: int) -> None:
        self._threads = threads
        self._engine: Any = None

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        """Finds the lines, turns the picture upright, then reads line by line."""
        until = time.monotonic() + time_limit_s
        engine = self._loaded()
        boxes = _detected(engine, picture)
        if not boxes:
            return RecognizedPicture(())
        turn = 90 if _is_sideways(boxes) else 0
        upright, turned = _turned(picture, boxes, turn)
        turn += self._upside_down(upright, turned)
        upright, turned = _turned(picture, boxes, turn)
        lines: list[RecognizedLine] = []
        unread_count = 0
        for place, box in zip(boxes, turned, strict=True):
            if time.monotonic() > until:
                return RecognizedPicture(tuple(lines), turn, unread_count, complete=False)
            text, score = self._line(upright, box)
            if score >= _MIN_SCORE and _makes_sense(text, box):
                lines.append(RecognizedLine(" ".join(text.split()), _bounds(place), score))
            else:
                unread_count += 1
        return RecognizedPicture(tuple(lines), turn, unread_count)

    def _upside_down(self, picture: Picture, boxes: Sequence[Corners]) -> int:
        """180 when the longest lines read better that way. Cheaper and surer than the library's classifier of single lines."""
        longest = sorted(boxes, key=_width, reverse=True)[:_SAMPLED_LINES]
        as_it_is = self._scores(picture, longest)
        well_read = sum(1 for score in as_it_is if score >= _VERY_SURE)
        if _mean(as_it_is) >= _SURE or well_read >= _WELL_READ_LINES:
            return 0
        return 180 if _mean(self._scores(*_turned(picture, longest, 180))) > _mean(as_it_is) else 0

    def _scores(self, picture: Picture, boxes: Sequence[Corners]) -> list[float]:
        """Of each line; 0 of one without text."""
        return [score if text.strip() else 0.0 for text, score in (self._line(picture, box) for box in boxes)]

    def _line(self, picture: Picture, box: Corners) -> tuple[str, float]:
        found = _asked(self._loaded(), _strip(picture, box), use_det=False, use_cls=False, use_rec=True)
        return (found.txts[0], float(found.scores[0])) if found.txts else ("", 0.0)

    def _loaded(self) -> Any:
        if self._engine is None:
            self._engine = _load(self._threads)
        return self._engine


def _load(threads: int) -> Any:
    found = importlib.util.find_spec("rapidocr")
    runtime = next((name for name in ("openvino", "onnxruntime") if importlib.util.find_spec(name)), "")
    if found is None or found.origin is None or not runtime:
        missing = "rapidocr" if runtime else "openvino or onnxruntime"
        raise RecognizerMissing(f"text recognition (OCR) needs {missing}, which is not installed")
    without_telemetry()
    import cv2  # noqa: PLC0415 - only the child that meets a scan pays for it
    import rapidocr  # noqa: PLC0415 - imports the runtime

    cv2.setNumThreads(threads)
    models = Path(found.origin).parent / "models"
    # A path for every model: without one the library would download what it misses.
    params: dict[str, Any] = {f"{part}.model_path": str(models / file) for part, file in _MODELS.items()}
    for part in _MODELS:
        params[f"{part}.engine_type"] = rapidocr.EngineType(runtime)
    params["EngineConfig.openvino.inference_num_threads"] = threads
    params["EngineConfig.onnxruntime.intra_op_num_threads"] = threads
    params["EngineConfig.onnxruntime.inter_op_num_threads"] = 1
    params["Global.log_level"] = "error"
    return rapidocr.RapidOCR(params=params)


def _asked(engine: Any, picture: Picture, **steps: bool) -> Any:
    try:
        return engine(picture, **steps)
    except MemoryError:
        raise
    except Exception as error:  # the runtimes raise types of their own, and wrap their memory errors in text
        if _OUT_OF_MEMORY.search(str(error)):
            raise MemoryError("text recognition needs more memory than this process may have") from error
        raise RecognitionFailed(f"{type(error).__name__}: {error}"[:200]) from error


def _detected(engine: Any, picture: Picture) -> list[Corners]:
    """Corners of the lines, in pixels. Looks at a smaller picture, padded to a multiple of a step for the number of sizes."""
    import cv2  # noqa: PLC0415

    height, width = picture.shape[:2]
    scale = min(1.0, _DETECTION_SIDE / max(height, width))
    small_size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = picture if scale == 1.0 else cv2.resize(picture, small_size, interpolation=cv2.INTER_AREA)
    pad = ((0, -small.shape[0] % _PAGE_STEP), (0, -small.shape[1] % _PAGE_STEP), (0, 0))
    padded = np.pad(np.asarray(small, np.uint8), pad, constant_values=255)
    boxes = _asked(engine, padded, use_det=True, use_cls=False, use_rec=False).boxes
    return [] if boxes is None else [np.asarray(box, np.float32) / scale for box in boxes]


def _turned(picture: Picture, boxes: Sequence[Corners], turn: int) -> tuple[Picture, list[Corners]]:
    """The picture and the boxes turned clockwise, corners again from the top left."""
    height, width = picture.shape[:2]
    turned = np.ascontiguousarray(np.rot90(picture, -turn // 90))
    match turn:
        case 90:
            moved = [np.stack([height - box[:, 1], box[:, 0]], axis=1) for box in boxes]
        case 180:
            moved = [np.stack([width - box[:, 0], height - box[:, 1]], axis=1) for box in boxes]
        case 270:
            moved = [np.stack([box[:, 1], width - box[:, 0]], axis=1) for box in boxes]
        case _:
            return picture, list(boxes)
    return turned, [np.roll(box, turn // 90, axis=0) for box in moved]


def _strip(picture: Picture, box: Corners) -> Picture:
    """The line cut out along its corners, as high as the recogniser wants it, on a background of a stepped width."""
    import cv2  # noqa: PLC0415

    width, height = max(_width(box), 1.0), max(_height(box), 1.0)
    if height >= 1.5 * width:  # a vertical line on an upright page: an axis label, a spine
        return _strip(np.ascontiguousarray(np.rot90(picture)), _turned(picture, [box], 270)[1][0])
    scaled = int(min(max(width * _LINE_HEIGHT / height, 8), _MAX_WIDTH))
    corners = np.array([[0, 0], [scaled, 0], [scaled, _LINE_HEIGHT], [0, _LINE_HEIGHT]], np.float32)
    cut = cv2.warpPerspective(
        picture,
        cv2.getPerspectiveTransform(np.ascontiguousarray(box, np.float32), corners),
        (scaled, _LINE_HEIGHT),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    wanted = max(_MIN_WIDTH, -(-scaled // _WIDTH_STEP) * _WIDTH_STEP)
    return np.asarray(np.pad(cut, ((0, 0), (0, wanted - scaled), (0, 0)), constant_values=127), np.uint8)


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores)


def _makes_sense(text: str, box: Corners) -> bool:
    """Letters of an unknown script come out as nothing, or as the same round shape again and again."""
    painted = "".join(text.split())
    squares = max(_width(box), _height(box)) / max(min(_width(box), _height(box)), 1.0)
    is_repetition = len(painted) > 3 and len(set(painted)) == 1 and painted[0] in "0Oo〇○"
    return len(painted) >= _MIN_DENSITY * squares and not is_repetition


def _is_sideways(boxes: Sequence[Corners]) -> bool:
    upright = sum(_width(box) for box in boxes if _width(box) > 1.5 * _height(box))
    sideways = sum(_height(box) for box in boxes if _height(box) > 1.5 * _width(box))
    return sideways > upright


def _width(box: Corners) -> float:
    return float(np.linalg.norm(box[1] - box[0]))


def _height(box: Corners) -> float:
    return float(np.linalg.norm(box[3] - box[0]))


def _bounds(box: Corners) -> tuple[float, float, float, float]:
    (x0, y0), (x1, y1) = box.min(axis=0), box.max(axis=0)
    return float(x0), float(y0), float(x1), float(y1)
