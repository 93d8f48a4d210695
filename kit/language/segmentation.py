"""Words of the scripts that write without spaces and whose words a dictionary has: Thai, Lao, Burmese, Khmer. ICU cuts them
(https://unicode-org.github.io/icu/userguide/boundaryanalysis): one library for the four, whose dictionaries lie in its wheel."""

import threading

import icu

SEGMENTED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer, with their vowel signs and tone marks, as part of a pattern's set."""
_local = threading.local()


def segments(run: str) -> list[str]:
    """The words of a run of SEGMENTED characters, in order; joined they are the run."""
    breaks = _iterator()
    breaks.setText(run)
    ends = list(breaks)
    return [run[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _iterator() -> icu.BreakIterator:
    """One a thread, for it keeps the text that it cuts."""
    if not hasattr(_local, "breaks"):
        _local.breaks = icu.BreakIterator.createWordInstance(icu.Locale.getRoot())
    breaks: icu.BreakIterator = _local.breaks
    return breaks
