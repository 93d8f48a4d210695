"""What a research run says besides its answer: what was left open, and where it was looked for. In the language of the question as
far as these are known; English otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kit.language.question_language import language_by_words

ENGLISH = "en"
_LISTED = 4
_BUDGETS = ("steps", "searches", "tool_calls", "wall_clock")
"""Budgets that end a search. Spent tokens and dollars do not: the documents are then quoted."""


@dataclass(frozen=True)
class Phrases:
    """Sentences with places for lists."""

    missing: str
    """{parts} were looked for in {documents} documents by {searches} searches and not found."""
    left_out: str
    """The budget {budget} ended the search before {parts} could be looked for."""
    not_all: str
    """Of a search that ended early with every part found."""
    what_is_meant: str
    """A question back to the user about {question}."""
    budgets: Mapping[str, str]
    """What a user calls each budget that may end a search."""


_PHRASES = {
    ENGLISH: Phrases(
        "Not found: {parts}. Looked for with {searches} searches; the closest passages are from {documents}.",
        "Left out because the budget ({budget}) was used up: {parts}.",
        "The search ended early because the budget ({budget}) was used up.",
        "“{question}” does not say what it is about. Which person, thing or event do you mean?",
        dict(zip(_BUDGETS, ("steps", "searches", "calls of tools", "time"), strict=True)),
    ),
    "de": Phrases(
        "Nicht gefunden: {parts}. Gesucht mit {searches} Suchen; die nächsten Stellen stammen aus {documents}.",
        "Ausgelassen, weil das Budget ({budget}) verbraucht war: {parts}.",
        "Die Suche endete vorzeitig, weil das Budget ({budget}) verbraucht war.",
        "„{question}“ sagt nicht, worum es geht. Welche Person, Sache oder welches Ereignis ist gemeint?",
        dict(zip(_BUDGETS, ("Schritte", "Suchen", "Aufrufe von Werkzeugen", "Zeit"), strict=True)),
    ),
    "fr": Phrases(
        "Introuvable : {parts}. {searches} recherches faites ; les passages les plus proches viennent de {documents}.",
        "Laissé de côté car le budget ({budget}) est épuisé : {parts}.",
        "La recherche s'est arrêtée car le budget ({budget}) est épuisé.",
        "« {question} » ne dit pas de quoi il s'agit. De quelle personne, chose ou événement parlez-vous ?",
        dict(zip(_BUDGETS, ("étapes", "recherches", "appels d'outils", "temps"), strict=True)),
    ),
    "es": Phrases(
        "No encontrado: {parts}. Se hicieron {searches} búsquedas; los pasajes más cercanos son de {documents}.",
        "Se omitió porque se agotó el presupuesto ({budget}): {parts}.",
        "La búsqueda terminó antes porque se agotó el presupuesto ({budget}).",
        "«{question}» no dice de qué se trata. ¿A qué persona, cosa o acontecimiento se refiere?",
        dict(zip(_BUDGETS, ("pasos", "búsquedas", "llamadas a herramientas", "tiempo"), strict=True)),
    ),
    "ru": Phrases(
        "Не найдено: {parts}. Выполнено поисков: {searches}; ближайшие фрагменты — из {documents}.",
        "Пропущено, так как бюджет ({budget}) исчерпан: {parts}.",
        "Поиск закончился раньше: бюджет ({budget}) исчерпан.",
        "В вопросе «{question}» не сказано, о чём он. Какого человека, предмет или событие вы имеете в виду?",
        dict(zip(_BUDGETS, ("шаги", "поиски", "вызовы инструментов", "время"), strict=True)),
    ),
}


def phrases_for(question: str) -> Phrases:
    """In the language of the question."""
    return _PHRASES.get(language_by_words(question.lower()) or ENGLISH, _PHRASES[ENGLISH])


def listed(items: Sequence[str]) -> str:
    """The first of the items without their question marks, and how many there are besides."""
    rest = len(items) - _LISTED
    return "; ".join(each.rstrip("?？؟ ") for each in items[:_LISTED]) + (f"; … (+{rest})" if rest > 0 else "")
