"""Other wordings of a query, by rules alone: what it is about without the words of the question, the words of an answer instead of
those of a question, and other spellings and words for the same thing. Deterministic, best first."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from kit.language.terms import STOPWORDS, words

ALIKE = 0.85
"""Share of words (Jaccard) from which on two wordings find the same."""
_EDGES = " \t\n?？؟!.,;:¿¡"

_SAME_THING = (
    "cost price", "buy purchase", "error failure", "delete remove", "begin start", "employee staff", "salary pay", "car vehicle",
    "fix repair", "change modify", "rule policy", "refund reimbursement", "customer client", "holiday vacation", "bill invoice",
    "laptop notebook", "phone telephone", "doctor physician", "lawyer attorney", "contract agreement", "cancel terminate",
    "announce release", "increase growth", "decrease decline", "problem issue", "advantage benefit", "drawback disadvantage",
    "big large", "quick fast", "important major", "requirement prerequisite", "guide manual", "setup installation",
    "settings configuration", "login sign-in", "password credentials",
    "цена стоимость", "ошибка сбой", "удалить стереть", "сотрудник работник", "зарплата оклад", "автомобиль машина",
    "договор контракт", "клиент заказчик", "отпуск каникулы", "объявление анонс", "объявления анонсы", "проблема неполадка",
    "возврат возмещение", "рост увеличение", "снижение падение", "инструкция руководство", "настройки конфигурация",
    "preis kosten", "fehler störung", "vertrag vereinbarung", "mitarbeiter angestellte", "gehalt lohn", "auto fahrzeug",
    "urlaub ferien", "rechnung faktura", "kunde auftraggeber", "anleitung handbuch", "rückgabe rücksendung",
    "prix coût", "erreur panne", "contrat accord", "employé salarié", "voiture véhicule", "congé vacances", "client acheteur",
    "precio coste", "error fallo", "contrato acuerdo", "empleado trabajador", "coche vehículo", "guía manual",
)  # fmt: skip
"""Words for each other, in the form that dictionaries have them, with the English plural formed below."""

_STATEMENTS = (
    # Question; how a passage that answers it would put it. {0} is what is asked about.
    (r"how (?:do|can|should|could) (?:i|we|you|one|they) (.+)", "steps to {0}"),
    (r"how to (.+)", "steps to {0}"),
    (r"(?:how|why) (?:does|did|do|is|are|was|were) (.+)", "{0} because"),
    (r"why (.+)", "the reason for {0}"),
    (r"what (?:is|are|was|were) (?:the )?(?:meaning|definition) of (.+)", "{0} means"),
    (r"what does (.+) (?:mean|stand for)", "{0} means"),
    (r"(?:what|who) (?:is|was) (?!\w+ed\b)(.+)", "{0} is"),
    (r"what (?:are|were) (?!\w+ed\b)(.+)", "{0} are"),
    (r"when (?:did|does|do|will|was|were|is|are) (.+)", "the date on which {0}"),
    (r"where (?:did|does|do|will|was|were|is|are) (.+)", "the place where {0}"),
    (r"who (\w+ed) (.+)", "{1} was {0} by"),
    (r"how (?:much|many) (.+)", "the number of {0}"),
    (r"(?:can|may|could|must|should) (?:i|we|you|one) (.+)", "it is allowed to {0}"),
    (r"(?:is|are|does|do|did|was|were|has|have) (.+)", "{0}"),
    (r"(?:что такое|кто такой|кто такая) (.+)", "{0} — это"),
    (r"(?:почему|зачем) (.+)", "{0}, потому что"),
    (r"как (?:мне |нам )?(.+)", "{0}: инструкция"),
    (r"когда (.+)", "{0}: дата"),
    (r"где (.+)", "{0}: место"),
    (r"сколько (.+)", "количество {0}"),
    (r"как(?:ой|ая|ое|ие|ую|ого) (.+)", "{0}"),
    (r"was (?:ist|sind) (.+)", "{0} ist"),
    (r"(?:warum|wieso|weshalb) (.+)", "{0}, weil"),
    (r"wie (?:kann|können|muss|soll) (?:ich|wir|man) (.+)", "Anleitung: {0}"),
    (r"wann (.+)", "{0}: Datum"),
    (r"wo (.+)", "{0}: Ort"),
    (r"qu['’]est-ce qu(?:e c['’]est que|e|i) (.+)", "{0} est"),
    (r"pourquoi (.+)", "{0} parce que"),
    (r"comment (?:puis-je |peut-on )?(.+)", "mode d'emploi : {0}"),
    (r"quand (.+)", "la date de {0}"),
    (r"(?:qué|que) (?:es|son) (.+)", "{0} es"),
    (r"por qué (.+)", "{0} porque"),
    (r"cómo (?:puedo |se puede )?(.+)", "pasos para {0}"),
    (r"cuándo (.+)", "la fecha de {0}"),
)
_ABOUT = ("information about {0}", "{0} overview and details")
_ABOUT_RUSSIAN = ("информация: {0}", "{0}: обзор и подробности")
_ENGLISH = re.compile(r"\b(?:the|of|is|are|what|who|how|why|when|where|which|do|does|did|for|with)\b", re.IGNORECASE)
_ANY_LANGUAGE_WORDS = 2
_QUESTION_WORDS = words(
    "какие какое какого каких каков какова чем чей чья чьи сколько зачем ли же бы мне нам был была были было "
    "kann können muss soll ich wir man wieso weshalb welches wieviel dem den des im zum zur "
    "quels quelles combien puis peut on ce qu'est-ce cuáles cuánto cuántos puedo puede se los las"
)
"""Besides the stop words of kit.language."""


def wordings(text: str) -> list[str]:
    """Other wordings of a query, best first, without it and without those that find the same."""
    return distinct([text, *_candidates(" ".join(text.split()))])[1:]


def distinct(queries: Iterable[str]) -> list[str]:
    """The queries, without those that find what one before them finds."""
    kept: list[tuple[str, frozenset[str]]] = []
    for query in queries:
        found = frozenset(re.findall(r"\w+", query.casefold()))
        if found and not any(_alike(found, other) for _, other in kept):
            kept.append((query, found))
    return [query for query, _ in kept]


def keywords(text: str) -> str:
    """The words that carry content, in their order; the text where none does."""
    return " ".join(word for part in text.split() if (word := part.strip(_EDGES)) and not _is_filler(word)) or text


def about(text: str) -> list[str]:
    """Wordings of a query that is too short for the others; none in languages that there are no words for."""
    if re.search(r"[А-Яа-яЁё]", text):
        return [template.format(keywords(text)) for template in _ABOUT_RUSSIAN]
    is_english = text.isascii() and (len(text.split()) <= _ANY_LANGUAGE_WORDS or _ENGLISH.search(text) is not None)
    return [template.format(keywords(text)) for template in _ABOUT] if is_english else []


def _is_filler(word: str) -> bool:
    is_acronym = word.isupper() and len(word) > 1  # "IT", "WHO"
    return not is_acronym and (word.lower() in STOPWORDS or word.lower() in _QUESTION_WORDS)


def _candidates(text: str) -> Iterator[str]:
    bare = text.strip(_EDGES)
    if statement := _statement(bare):
        yield statement
    yield keywords(bare)
    yield from _other_words(bare)
    yield from _other_spellings(bare)
    yield from (variant for variant in _other_words(keywords(bare)))


def _statement(text: str) -> str:
    for pattern, template in _statements():
        match = pattern.fullmatch(text)
        if match:
            return template.format(*match.groups())
    return ""


def _other_words(text: str) -> Iterator[str]:
    """All words for which there are others, replaced at once, and then one by one."""
    matches = re.finditer(r"[\"«„“][^\"»”“]*[\"»”“]|[\w-]+", text)  # what is quoted stays as it stands
    found = [(match, other) for match in matches if (other := _synonyms().get(match.group().lower()))]
    if len(found) > 1:
        yield _replaced(text, found)
    yield from (_replaced(text, [one]) for one in found)


def _replaced(text: str, changes: "list[tuple[re.Match[str], str]]") -> str:
    for match, other in reversed(changes):
        spelled = other.capitalize() if match.group()[0].isupper() else other
        text = text[: match.start()] + spelled + text[match.end() :]
    return text


def _other_spellings(text: str) -> Iterator[str]:
    """With and without hyphens; a name in brackets, or what stands before it; numbers in words as digits."""
    if re.search(r"\w-\w", text):
        yield re.sub(r"(?<=[^\W\d])-(?=[^\W\d])", " ", text)
        yield re.sub(r"(?<=[^\W\d])-(?=[^\W\d])", "", text)
    if match := re.search(r"(\w[\w ]*\w) \(([A-ZА-Я]{2,10})\)", text):
        yield text.replace(match.group(), match[1])
        yield text.replace(match.group(), match[2])
    digits = re.sub(
        r"\b(?:" + "|".join(_DIGITS) + r")\b", lambda found: _DIGITS[found.group().lower()], text, flags=re.IGNORECASE
    )
    if digits != text:
        yield digits


_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS, start=2)}


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= ALIKE * len(one | other)


@cache
def _statements() -> "tuple[tuple[re.Pattern[str], str], ...]":
    return tuple((re.compile(pattern, re.IGNORECASE), template) for pattern, template in _STATEMENTS)


@cache
def _synonyms() -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in _SAME_THING:
        one, other = pair.split()
        for word, replacement in ((one, other), (other, one)):
            found.setdefault(word, replacement)
            if pair.isascii():
                found.setdefault(_plural(word), _plural(replacement))
    return {word: other for word, other in found.items() if word not in STOPWORDS}


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return word if word.endswith("s") else f"{word}s"
