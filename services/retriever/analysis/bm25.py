"""How text is scored, by both lexical engines alike: BM25 with k1 = 1.2 and b = 0.75, which both have built in, over terms that
`analysis` makes, and what a title and a quoted phrase add.
"""

K1, B = 1.2, 0.75
TITLE_BOOST = 0.25
"""nDCG@10 on SciFact: 0.690 at 0, 0.699 at 0.25, 0.685 at 0.5, 0.662 at 1. A title is part of the searched text already."""
PHRASE_BOOST = 2.0
