"""Every constant of the extractive answerer, with where it comes from.

Fitted on the SQuAD 2.0 development half (8 of its 16 articles; 6 passages of 806 by BM25 + dense, reciprocal rank fusion;
int8 ONNX all-MiniLM-L6-v2) with the scores of the Rerank call: half MaxSim, half cosine. Measured on the other 8 articles
(500 questions of each sort): a gold answer span stands in the answer for 0.88 of the questions whose paragraph was
retrieved, with 1.31 units an answer; 8 % of these are refused wrongly, 98 % of off-topic questions rightly, but only 31 %
of SQuAD's adversarial ones (right topic, missing fact: words and similarity cannot tell more). 32 further articles (XQuAD):
0.91, 1.25, 8 %, 99 %. Words alone, no scorer and no dense score: 0.87, 1.37, 6 %, 86 %.
A scorer with another scale needs its own figures here, and nothing elsewhere changes.
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
class Calibration:
    """Logistic model of "the evidence answers the question", over the best unit.

    Classes balanced; of the unanswerable half, two thirds off-topic and one third SQuAD's adversarial questions. Rounded, and
    raised by hand where the data has few cases but the meaning is plain: a number that was asked for and is missing
    (`missing_type`, fitted -0.6), which the tiny collections of a first try show often.
    """

    semantic: float
    dense: float
    coverage: float
    passage_coverage: float
    names: float
    unknown_name: float
    negation: float
    missing_type: float
    bias: float


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
    """Most units of a factoid answer, before an antecedent is pulled in."""
    max_units: int = 4
    """Most units of any answer."""
    duplicate_similarity: float = 0.8
    """Units whose content stems overlap this much (Jaccard) or are contained this much say the same."""

    semantic_and_dense: Calibration = Calibration(4.5, 3.3, 0.0, 1.6, 0.9, -0.9, -2.9, -1.2, -5.75)
    """Scorer and dense score known."""
    semantic_only: Calibration = Calibration(6.6, 0.0, 0.0, 1.65, 0.9, -0.9, -2.9, -1.2, -5.35)
    """Scorer known, dense engine silent."""
    dense_only: Calibration = Calibration(0.0, 6.0, 1.5, 1.15, 0.8, -0.9, -3.2, -1.2, -4.85)
    """Scorer failed, dense score known."""
    lexical_only: Calibration = Calibration(0.0, 0.0, 1.7, 2.4, 1.1, -0.9, -3.3, -1.2, -2.65)
    """Nothing but words."""
    min_confidence: float = 0.45
    """Below this the answer is a refusal. On held-out articles, wrong refusals / off-topic refused / adversarial refused:
    0.35: 5, 94, 24 %; 0.40: 6, 96, 28 %; 0.45: 8, 98, 31 %; 0.50: 10, 98, 37 %; 0.55: 16, 98, 44 %."""
