"""What a message wants of a quiz: how many questions and what kinds, how hard, and about what."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kit.language.anaphora import content_words
from kit.language.data import LANGUAGES
from kit.language.terms import STOPWORDS, stem, tokens, words
from services.orchestrator.quizzes.questions import Difficulty, QuestionKind

USUAL, MOST = 5, 30
"""Questions of a quiz."""
_MIXED = (
    QuestionKind.MULTIPLE_CHOICE,
    QuestionKind.MULTIPLE_CHOICE,
    QuestionKind.TRUE_FALSE,
    QuestionKind.SHORT_ANSWER,
)
"""Kinds of a quiz whose message names none, in turn."""
_QUESTION = (
    r"(?:quiz(?:ze)?[\s-]*)?(?:multiple[\s-]choice[\s-]*|true[\s/-]*(?:or[\s-])?false[\s-]*|short[\s-]answer[\s-]*|[^\W\d]+\s+){0,2}?"
    r"(?:questions?|fragen?|preguntas?|domande|domanda|perguntas?|vragen|vraag|вопрос\w*|pytan\w*|items?|问题|道题|題|질문|soru)"
)
_COUNT = re.compile(rf"(?P<count>\d{{1,3}})\s*(?:个|道|つの?|개의?)?\s*{_QUESTION}", re.IGNORECASE)
_NUMBER_WORD = re.compile(rf"(?P<count>[^\W\d]+)\s+(?!few|couple|paar|quelques){_QUESTION}", re.IGNORECASE)
_KINDS = {
    QuestionKind.MULTIPLE_CHOICE: (
        r"multiple[\s-]choice|mehrfachauswahl|choix multiples?|QCM\b|opción múltiple|scelta multipla|单选|选择题"
    ),
    QuestionKind.TRUE_FALSE: (
        r"true[\s/-]*(?:or|and)?[\s-]*false|(?:richtig|wahr)[\s/-]*(?:oder)?[\s-]*falsch|vrai[\s/-]*(?:ou)?[\s-]*faux|"
        r"verdadero[\s/-]*o?[\s-]*falso|vero[\s/-]*o?[\s-]*falso|да[\s/-]*(?:или)?[\s-]*нет|判断题"
    ),
    QuestionKind.SHORT_ANSWER: (
        r"short[\s-]answers?|open questions?|fill[\s-]in|lückentext|offene fragen|réponses? courtes?|"
        r"respuestas? cortas?|填空"
    ),
}
_HARD = re.compile(
    r"\b(?:hard(?:er)?|difficult|tricky|schwer\w*|schwierig\w*|difficiles?|dif[ií]cil(?:es)?|сложн\w*)\b|困难|难",
    re.IGNORECASE,
)
_EASY = re.compile(
    r"\b(?:eas(?:y|ier)|simple|beginners?|leicht\w*|einfach\w*|faciles?|f[aá]cil(?:es)?|прост\w*|л[её]гк\w*)\b|简单",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(?:(?:one|another|some|a few|\d+)\s+more|more(?:\s+questions?)?|again|another(?:\s+(?:one|quiz|question))?|noch\s+\w+|"
    r"weitere?|encore(?:\s+une?)?|une? autre|otr[ao]s?|más|un'altra|ancora|mais|nog een|ещ[её]|jeszcze)\b|"
    r"再来|もう一|하나 더",
    re.IGNORECASE,
)
_ONE_MORE = re.compile(
    r"\b(?:one more|another(?:\s+(?:one|question))?|noch eine?|encore une?|otra|un'altra|mais uma|nog een|ещ[её] один)"
    r"\b(?!\s+quiz)|"
    r"再来一|もう一",
    re.IGNORECASE,
)
_ASKING_WORDS = frozenset(
    map(
        stem,
        words(
            "quiz quizzes question questions make give ask create generate write prepare test me my knowledge please multiple "
            "choice true false short answer answers open easy hard easier harder difficult simple tricky document documents file "
            "files collection material text content whole all about more another again one exam practice self check mach mache "
            "erstelle stelle gib frage fragen dokument dokumente wissen prüfe teste leicht leichte schwer schwere richtig falsch "
            "wahr fais donne crée pose interroge texte vrai faux facile difficile haz dame crea preguntas pregunta documento "
            "documentos texto verdadero falso fácil difícil cuestionario examen fammi domande vero сделай дай вопросы "
            "вопросов вопрос викторину тест документу документам"
        ),
    )
)
"""Words that ask for a quiz, and say nothing of what it is about."""
_TRAILING = re.compile(r"\b(?:about|on|over|regarding|über|zum?|zur|sur|sobre|su|про|о)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Wishes:
    """What a message wants of a quiz."""

    count: int = USUAL
    kinds: Sequence[QuestionKind] = _MIXED
    difficulty: Difficulty = Difficulty.MEDIUM
    topic: str = ""
    """What it is to be about; empty: everything."""
    is_more: bool = False
    """Whether it goes on from the quiz before."""


def read_wishes(message: str) -> Wishes:
    """What the message wants."""
    kinds = tuple(kind for kind, pattern in _KINDS.items() if re.search(pattern, message, re.IGNORECASE))
    count, one_more = _count(message), _ONE_MORE.search(message)
    difficulty = (
        Difficulty.HARD if _HARD.search(message) else Difficulty.EASY if _EASY.search(message) else Difficulty.MEDIUM
    )
    return Wishes(
        count=min(max(count or (1 if one_more else USUAL), 1), MOST),
        kinds=kinds or _MIXED,
        difficulty=difficulty,
        topic=_topic(message),
        is_more=bool(_MORE.search(message)),
    )


def _count(message: str) -> int:
    if found := _COUNT.search(message):
        return int(found["count"])
    if found := re.search(r"\b(\d{1,2})\s+(?:more|weitere|de plus|más|ещ[её])\b", message, re.IGNORECASE):
        return int(found[1])
    for match in _NUMBER_WORD.finditer(message):
        if number := _number_word(match["count"].lower()):
            return number
    return 0


def _number_word(word: str) -> int:
    """The value of "five" in any language whose numbers are known; 0 of another word."""
    for language in LANGUAGES.values():
        for value, forms in enumerate(language.time["numbers"], start=1):
            if word in forms:
                return value
    return 0


def _topic(message: str) -> str:
    """What the message is about besides a quiz: what stands behind its last "about", else its words that ask for nothing."""
    own = [
        token.surface
        for token in content_words(message)
        if token.stem not in _ASKING_WORDS
        and not token.is_number
        and token.surface.lower() not in STOPWORDS
        and not _number_word(token.surface.lower())
    ]
    if not own:
        return ""
    behind = list(_TRAILING.finditer(message))
    if behind:
        rest = message[behind[-1].end() :].strip(" \t.?!:")
        if any(token.stem not in _ASKING_WORDS for token in tokens(rest) if not token.is_stopword):
            return rest
    return " ".join(own)
