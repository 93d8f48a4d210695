"""Read a question: what kind of answer it wants, and which of its words the evidence must contain.

English cues with a neutral default: a question in another language keeps its words, numbers and names and gets no
answer type, so that overlap and similarity alone decide.
"""

import enum
import re
from dataclasses import dataclass

from kit.language.data import LANGUAGES, all_phrases
from kit.language.question_language import language_by_words
from kit.language.terms import STOPWORDS, Token, tokens


class AnswerKind(enum.Enum):
    """What the answer should look like."""

    PERSON = "person"
    TIME = "time"
    PLACE = "place"
    QUANTITY = "quantity"
    DURATION = "duration"
    DEFINITION = "definition"
    REASON = "reason"
    MANNER = "manner"
    LIST = "list"
    YES_NO = "yes_no"
    DESCRIPTION = "description"
    FACT = "fact"
    """Any one fact: "what", "which", and every question whose form is not known."""
    KEYWORDS = "keywords"
    """No question at all: words to look up."""


@dataclass(frozen=True)
class Question:
    """A question, read."""

    text: str
    kind: AnswerKind
    terms: tuple[Token, ...]
    """Content words in order, each stem once."""

    @property
    def stems(self) -> frozenset[str]:
        """Stems of the content words."""
        return frozenset(term.stem for term in self.terms)


# First match wins: the specific forms stand before the general ones. Verbose patterns: white space does not count.
_FORMS: tuple[tuple[AnswerKind, str], ...] = (
    (
        AnswerKind.QUANTITY,
        r"""\bhow\s(many|much|far|tall|high|deep|wide|large|big|heavy|fast|often|hot|cold|few)\b
        |\b(what|which)(\s\w+|\s(is|was|are|were)\sthe(\s\w+)?)?\s(number|percentage|percent|proportion|amount|population|share
          |rate|cost|price|speed|temperature|distance|length|height|weight|size|fraction)\b""",
    ),
    (AnswerKind.DURATION, r"\bhow\s(long|old)\b"),
    (
        AnswerKind.TIME,
        # Behind another question word or a verb that asks, "when" only begins a clause: "What must I do when it rains?"
        r"""^(?!(?:(?:and|but|so|in|at|on|for|of|by|with|from|to)\s)?(?:what|which|who|whom|whose|where|why|how|is|are|was|were|do|does|did|can|could|may|must|should|will
          |would|has|have|had)\b).*\bwhen\b
        |\b(since|until|and|or)\swhen\b
        |\b(what|which)\s(\w+\s)?(year|date|day|month|century|decade|time|era|period|season)\b""",
    ),
    (
        AnswerKind.REASON,
        r"""\bwhy\b|\bhow\scome\b|\b(what|which)\s(\w+\s)?(reason|cause)s?\b|\bwhat\s(caused|led\sto|made)\b
        |\bfor\swhat\s(reason|purpose)\b""",
    ),
    (
        AnswerKind.LIST,
        r"""^(list|name|enumerate)\b|\bwhat\sare\s(the|some|all)\b|\bwhich\s\w+s\sare\b
        |\b(what|which)\s(kinds|types|sorts|examples|steps|features)\b""",
    ),
    (
        AnswerKind.DESCRIPTION,
        r"""^(describe|explain|summari[sz]e|tell\sme|outline|compare|give)\b|\bwhat\s(happens|happened)\b|\bdifference\sbetween\b""",
    ),
    (
        AnswerKind.PERSON,
        r"""\b(who|whom|whose)\b
        |\b(what|which)\s(\w+\s)?(person|man|woman|king|queen|president|leader|author|scientist|general|director|inventor|ceo)\b""",
    ),
    (
        AnswerKind.PLACE,
        r"""\bwhere\b
        |\b(what|which)\s(\w+\s)?(city|country|place|state|river|region|town|continent|capital|county|location|nation|province
          |island|sea|ocean|lake)\b""",
    ),
    (
        AnswerKind.DEFINITION,
        r"""^(define|meaning\sof|definition\sof)\b|\bwhat\sdoes\s.+\s(mean|stand\sfor)\b
        |^what('s|\sis|\sare)\s((an?|the)\s)?[\w\-]+(\s(?!of|in|on|for|to|the)[\w\-]+){0,2}\s?\?*$""",
    ),
    (AnswerKind.MANNER, r"\bhow\b"),
    (AnswerKind.FACT, r"\b(what|which)\b"),
    (AnswerKind.YES_NO, r"^(is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|had|am)\b"),
)
_COMPILED_ELSEWHERE = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            AnswerKind.TIME,
            (
                r"\b(wann|in welchem jahr|quand|en quelle année|cuándo|en qué año|quando|in che anno|em que ano|wanneer|kiedy|kdy|"
                r"когда|в каком году|коли|ne zaman|hangi yıl\w*|πότε)\b|متى|في أي عام|מתי|कब|किस वर्ष|เมื่อใด|เมื่อไ|ปีใด|"
                r"什么时候|何时|哪一年|哪年|いつ|何年に|언제|몇 년도"
            ),
        ),
        (
            AnswerKind.QUANTITY,
            (
                r"\b(was koste\w+|wie ?viele?|wie (teuer|hoch|groß|weit|tief|schwer)|combien|cuánt[oa]s?|quant[oaie]s?|quanti|"
                r"hoeveel|ile|kolik|сколько|скільки|kaç|πόσ\w+)\b|(?:^|\s)كم\b|כמה|कितन|กี่|เท่าไ|多少|几[个名年次]|幾|いくら|いくつ|何[人個回]|얼마|몇"
            ),
        ),
        (
            AnswerKind.YES_NO,
            (
                r"^(ist|sind|war|waren|hat|haben|hatte|wird|werden|wurde|kann|können|darf|dürfen|muss|müssen|soll|gibt es|gilt"
                r"|est-ce|(est|sont|peut|a|doit|faut)-(il|elle|on|ils|elles|t-il|t-elle|t-on)|mag|is|zijn|kan|heeft)\b"
                r"|^¿(es|son|está|están|fue|se puede[n]?|puede[ns]?|hay|tiene[n]?|hace falta)\b"
                r"|\bли\b|^هل |吗|嗎|是否"
                r"|^(?!.*(どこ|どれ|どの|どう|誰|だれ|いつ|なに|何|なぜ|いくら|いくつ|幾)).*(ます|です)か[?？]?$"
            ),
        ),
    )
)
"""What asks for a number or a time in other languages, which digits answer in all of them; and for a yes or a no, which the
question's own words may answer."""
_COMPILED = tuple((kind, re.compile(pattern, re.VERBOSE)) for kind, pattern in _FORMS)
_QUESTION_MARKS = ("?", "？", "؟")
_GREETING = re.compile(
    rf"^\s*(?:{'|'.join(map(re.escape, all_phrases('small_talk')))})(?: (?:there|zusammen|again))?"
    r"(?:\s*[,.!;:]+\s|\s*[，。！、،]|\s-+\s)\s*(?=\w[^\s]*\s*\S)",
    re.IGNORECASE,
)
"""Small talk before a question: "Hi, how many …". "Hi-Fi" is a word."""

MAX_QUESTION_CHARS = 2_000
"""Longer questions are read up to here: a pasted document must not cost seconds."""


def read_question(text: str) -> Question:
    """Analyse `text`. Never fails: an empty or wordless question has no terms."""
    text = _GREETING.sub("", text[:MAX_QUESTION_CHARS])
    found = tokens(text)
    language = LANGUAGES.get(language_by_words(text.lower()))
    asking = language.question_words if language else frozenset[str]()
    content = [token for token in found if not token.is_stopword and token.surface.lower() not in asking]
    # "Who are they?" has no content word: then every word counts, as little as it is worth.
    content = content or found
    unique = {token.stem: token for token in reversed(content)}
    terms = tuple(sorted(unique.values(), key=lambda token: token.start))
    return Question(text, _kind(text), terms)


def _kind(text: str) -> AnswerKind:
    lowered = " ".join(text.lower().split())
    words = lowered.split()
    for kind, pattern in _COMPILED:
        if pattern.search(lowered) and not (kind is AnswerKind.YES_NO and _is_german_what(lowered)):
            return kind
    for kind, pattern in _COMPILED_ELSEWHERE:
        if pattern.search(lowered):
            return kind
    asks = text.rstrip().endswith(_QUESTION_MARKS)
    if asks or len(words) > 6 or any(word in STOPWORDS for word in words):
        return AnswerKind.FACT
    return AnswerKind.KEYWORDS


def _is_german_what(lowered: str) -> bool:
    """Whether a question begins with German "was", which is what in English and no verb."""
    return lowered.startswith("was ") and language_by_words(lowered) == "de"
