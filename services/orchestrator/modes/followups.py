"""What to search for when a question leans on the one before it ("and in 2020?", "who founded it?"). Evidence is of this turn
only; the words that a follow-up leaves out come from the last question that stands alone."""

from collections.abc import Sequence

from kit.language.anaphora import has_pointer, leans_on_the_last, named_subject, repeats_the_last
from kit.language.question_language import language_by_words
from kit.language.terms import Token, tokens, words
from services.orchestrator.models import Turn

_GERMAN = "de"
_ARTICLES = words("the a an le la les l un une el los las una il lo gli i uno o os as um uma de het een")


def search_queries(question: str, history: Sequence[Turn]) -> tuple[str, ...]:
    """The question itself and, when it leans on the last one, both together."""
    anchor = _anchor(question, history)
    return (question, f"{anchor} {question}") if anchor else (question,)


def stand_alone(question: str, history: Sequence[Turn]) -> str:
    """The question with what it leaves out: of the last question that stands alone the names, or else its words; where the last one
    is asked again of something else, all of it but that. A question that leans on nothing is itself."""
    anchor = _anchor(question, history)
    if not anchor:
        return question
    content = [token for token in tokens(anchor) if not token.is_stopword]
    names = _kept(content, anchor, question) or [token for token in content if token.is_exact] or content
    subject = named_subject(anchor)
    if subject and not subject.isascii() and " " not in subject:
        return f"{question} ({subject})"  # a script without spaces has no words to take apart
    return f"{question} ({' '.join(dict.fromkeys(token.surface for token in names))})" if names else question


def _kept(content: Sequence[Token], anchor: str, question: str) -> list[Token]:
    """What "And the Reds?" leaves of the question before: all but its names, as "And in 2020?" all but its numbers. Of what is
    asked about the same ("And its capital?") nothing but the names is left; in German, where every noun looks like a name, nothing
    is known to go."""
    own = [token for token in tokens(question) if token.is_exact]
    if not repeats_the_last(question) or has_pointer(question) or language_by_words(question.lower()) == _GERMAN:
        return []
    if not own:
        return _before_the_same_word(content, anchor, question)
    if own[-1].is_number:
        return [token for token in content if not token.is_number]
    return [
        token
        for token in content
        if token.is_number or not (token.is_exact or (token.start and token.surface[0].isupper()))
    ]


def _before_the_same_word(content: Sequence[Token], anchor: str, question: str) -> list[Token]:
    """Of "the limit for hotels" what "And for taxis?" leaves: what stands before the "for"; of "the price of tea" what "And
    coffee?" does: all but the last word. Names are kept; "And the capital?" asks something else of them."""
    asked = [token.surface.lower() for token in tokens(question)[1:] if token.surface.lower() != "about"]
    others = frozenset(asked) - _ARTICLES
    same = [token.start for token in tokens(anchor) if token.is_stopword and token.surface.lower() in others]
    common = [token.start for token in content if not token.is_exact]
    is_attribute = not same and len(common) < len(content) and not _ARTICLES.isdisjoint(asked[:1])
    if not common or is_attribute:
        return []
    end = same[-1] if same else common[-1]
    return [token for token in content if token.start < end or token.is_exact]


def _anchor(question: str, history: Sequence[Turn]) -> str:
    """The question before that this one cannot do without, itself understood; empty when it stands alone. "Who is Ada? Where was
    she born? And when?" is about Ada to its end."""
    if not leans_on_the_last(question):
        return ""
    asked = [turn.text for turn in history if turn.role == "user"]
    if repeats_the_last(question):
        found = [place for place, text in enumerate(asked) if not repeats_the_last(text)]
        return stand_alone(asked[found[-1]], [Turn("user", text) for text in asked[: found[-1]]]) if found else ""
    alone = [text for text in asked if not leans_on_the_last(text) or _names_another(text)]
    return alone[-1] if alone else asked[-1] if asked else ""


def _names_another(question: str) -> bool:
    """Whether a question asks the last one again of somebody or something with a name: what follows is about that."""
    return repeats_the_last(question) and any(token.is_name for token in tokens(question))
