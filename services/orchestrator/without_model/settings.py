"""Every constant of the extractive answerer, with where it comes from.

The ranking was fitted on the SQuAD 2.0 development half (8 of its 16 articles; 6 passages of 806 by BM25 + dense, reciprocal
rank fusion; int8 ONNX all-MiniLM-L6-v2) with the scores of the Rerank call: half MaxSim, half cosine. How likely the best unit
answers is read from answerability.json; scripts/fit_answerability.py prints how well. How well the running system
does on the other 8 articles, and why it refuses no more of SQuAD's adversarial questions, stands in docs/evaluation.md.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RankWeights:
    """How features add up to a unit's value. Fitted as a listwise softmax: a difference of 1 is odds of e."""

    semantic: float
    coverage: float
    context: float
    passage_coverage: float
    cue: float
    rank: float

    @property
    def total(self) -> float:
        """Value of a unit that is perfect in everything."""
        return self.semantic + self.coverage + self.context + self.passage_coverage + self.cue + self.rank


@dataclass(frozen=True)
class ExtractiveSettings:
    """Limits, weights and thresholds."""

    max_scored_units: int = 12
    """Units sent to the scorer: at about 8 ms each it is nearly all of the answer's time. 20 units gave no better answers."""
    max_scored_chars: int = 1_500
    """The same limit in characters, about 375 word pieces: the cost grows with the text, not with its parts. 1 200 gave the same
    answers as 2 400; some slack for questions that share few words with their answer."""
    scorer_timeout_s: float = 0.6
    """After this the words alone decide. Some five times what a full batch takes on an idle core."""

    with_scorer: RankWeights = RankWeights(7.0, 6.75, 1.7, 2.1, 1.6, 2.4)
    """Weights when similarity is known."""
    without_scorer: RankWeights = RankWeights(0.0, 8.7, 2.2, 2.2, 1.7, 3.3)
    """Weights when words alone decide."""

    fact_gap: float = 0.7
    """A factoid question gets a second unit only when it is this close to the best (about one in three against it)."""
    broad_gap: float = 2.0
    """The same for why, how and list questions, which want more than one fact."""
    topic_gap: float = 3.5
    """The same for keywords and "describe …": the words stand in the title, the sentences below it are the answer."""
    new_terms_bonus: float = 4.0
    """Value of covering the rest of the question: "when and where …" may need two units."""
    max_fact_units: int = 2
    """Most units of a factoid answer."""
    max_units: int = 4
    """Most units of any answer."""
    duplicate_similarity: float = 0.8
    """Units whose content stems overlap this much (Jaccard) or are contained this much say the same."""

    min_confidence: float = 0.3
    """Below this the answer is a refusal. docs/evaluation.md has what other thresholds answer and refuse. At 0.4 plain
    questions over one short file are refused (0.37 for the one that `groundwork cluster test` asks). An answer with little
    confidence says so."""
    min_confidence_by_words: float = 0.2
    """The same while no similarity is known, which such an answer says, too. A choice, not measured: trees that know words only are
    sure of little. At 0.25 a sentence with all words of its question is refused while the model server restarts."""
