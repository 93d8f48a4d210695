"""The verdicts on an answer that is put together from quotes: each is compared with the words of its citation."""

import re
from collections.abc import Sequence

from services.orchestrator.log.events import CheckedBy, Citation, SentenceVerdict, Verification
from services.orchestrator.verification.verdicts import QUOTES, TABLE, Verdict, least_certain, status_of

_WORD = re.compile(r"\w+")


def verify_quotes(sentences: Sequence[str], citations: Sequence[Citation]) -> Verification:
    """A verdict per sentence, each with the citation of the same place: it is supported when the words of its citation are its own,
    but for white space, list marks and the source's own footnote marks."""
    verdicts = tuple(_verdict(sentence, each) for sentence, each in zip(sentences, citations, strict=True))
    share = sum(Verdict(each.verdict).is_good for each in verdicts) / len(verdicts) if verdicts else 0.0
    return Verification(
        verdicts, share, share, status_of(verdicts), checked_by=least_certain(verdicts), citation_recall=share
    )


def _verdict(sentence: str, source: Citation) -> SentenceVerdict:
    checked_by = _compared(sentence, source)
    verdict = Verdict.NOT_FOUND if checked_by is None else Verdict.SUPPORTED
    return SentenceVerdict(
        sentence, verdict, (source.number,), float(checked_by is not None), checked_by=checked_by or QUOTES
    )


def _compared(sentence: str, source: Citation) -> CheckedBy | None:
    """How the quoted place has all words of the sentence in order: as they stand, or as columns and captions of a row in the
    passage. None where it has not."""
    quote = _WORD.findall(source.text[source.quote_start : source.quote_end])
    around = _WORD.findall("\n".join([source.document_name, *source.heading_path, source.text]))
    position, is_whole = 0, True
    for word in _WORD.findall(sentence):
        if word in quote[position:]:
            position = quote.index(word, position) + 1
        elif word in around:
            is_whole = False
        else:
            return None
    if not position:
        return None
    return QUOTES if is_whole else TABLE
