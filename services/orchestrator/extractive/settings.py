"""Every constant of the extractive answerer, with where it comes from.

Fitted on the SQuAD 2.0 development half (8 of its 16 articles, 6 passages retrieved by BM25 + MiniLM, reciprocal rank
fusion) with the int8 ONNX export of all-MiniLM-L6-v2; measured on the other 8 articles and on 32 articles of XQuAD that
SQuAD's half does not hold. A scorer with another scale needs its own figures here, and nothing elsewhere changes.
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
    """Logistic model of "the evidence answers the question", over the best unit. Classes balanced."""

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
    """Units sent to the scorer: at about 10 ms each it is nearly all of the answer's time."""
    max_scored_chars: int = 1_500
    """The same limit in characters, about 600 word pieces: the cost grows with the text, not with its parts."""
    scorer_timeout_s: float = 0.6
    """After this the words alone decide. Three times the usual time of a full batch on two busy cores."""

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
    """Below this the answer is a refusal."""
