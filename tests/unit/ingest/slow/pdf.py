"""Pages that are made to be slow."""

import random
from collections.abc import Callable

from kit.testing.pdf_files import pdf_of
from tests.unit.ingest.pdf_files import form_of, pdf_of_contents, shown
from tests.unit.ingest.slow.case import SENTENCE, SlowFile


def _pdf_shows(lines: Callable[[int], list[str]], *, gap: float = 12.0) -> Callable[[int], bytes]:
    """A page of one text object: each line below the one before."""

    def make(n: int) -> bytes:
        body = f"BT /F1 8 Tf {gap} TL 10 700 Td\n" + "".join(f"({line}) Tj T*\n" for line in lines(n)) + "ET"
        return pdf_of_contents([body])

    return make


def _pdf_boxes(place: Callable[[int], tuple[float, float]], text: str = "ab") -> Callable[[int], bytes]:
    return lambda n: pdf_of_contents(["".join(shown(text, *place(i), size=8) for i in range(n))])


def _scattered(n: int) -> bytes:
    dice = random.Random(1)
    return pdf_of_contents(
        ["".join(shown("a few words of running text", dice.uniform(0, 600), dice.uniform(0, 780)) for _ in range(n))]
    )


PDFS = {
    "pdf: one paragraph, lines of no end": SlowFile("a.pdf", 300, _pdf_shows(lambda n: [f"{SENTENCE}-"] * n, gap=9)),
    "pdf: one long line in pieces": SlowFile("a.pdf", 1_000, _pdf_boxes(lambda i: (50.0 * i, 700.0))),
    "pdf: pieces of one word": SlowFile("a.pdf", 1_500, _pdf_boxes(lambda i: (8.1 * i, 700.0 + 2 * (i % 2)))),
    "pdf: pieces far apart": SlowFile("a.pdf", 1_000, _pdf_boxes(lambda i: (50.0 * (i % 20), 15.0 * (i // 20)))),
    "pdf: scattered": SlowFile("a.pdf", 500, _scattered),
    "pdf: pages": SlowFile("a.pdf", 100, lambda n: pdf_of([[]] * n)),
    "pdf: fields": SlowFile(
        "a.pdf", 400, lambda n: form_of("", {f"f{i}": ("ab", 20.0 * (i % 25), 16.0 * (i // 25)) for i in range(n)})
    ),
    "pdf: page of line numbers": SlowFile("a.pdf", 600, _pdf_shows(lambda n: [f"{i}" for i in range(n)])),
}
