"""The e-mail that an answer becomes: its text, what was made besides it, and the sources that its marks stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.language.data import ENGLISH
from services.orchestrator.log.events import Answer

SUBJECT_CHARACTERS_MAX = 150
TEXT_CHARACTERS_MAX = 45_000
"""Less than `send_email` takes; what is longer ends with a note."""
_MOST_SOURCES = 100


@dataclass(frozen=True)
class _Labels:
    sources: str
    page: str
    cut: str


_LABELS = {
    "en": _Labels("Sources", "page", "The answer is longer than an e-mail may be. This is its beginning."),
    "de": _Labels("Quellen", "Seite", "Die Antwort ist länger, als eine E-Mail sein darf. Dies ist ihr Anfang."),
    "es": _Labels("Fuentes", "página", "La respuesta es más larga de lo que puede ser un correo. Este es su comienzo."),
    "fr": _Labels("Sources", "page", "La réponse dépasse la longueur d’un courriel. En voici le début."),
    "he": _Labels("מקורות", "עמוד", "התשובה ארוכה מכפי שדואר אלקטרוני יכול להיות. זו תחילתה."),
    "it": _Labels("Fonti", "pagina", "La risposta è più lunga di quanto può essere un’e-mail. Questo è l’inizio."),
    "ru": _Labels("Источники", "страница", "Ответ длиннее, чем может быть письмо. Это его начало."),
}
"""The words of an e-mail, by the language of its question; English for any other."""


def mail_of(recipients: Sequence[str], subject: str, answer: Answer, language: str = ENGLISH) -> Mapping[str, Any]:
    """Arguments of `send_email`. `language` is the ISO 639-1 code of the question's."""
    labels = _LABELS.get(language, _LABELS[ENGLISH])
    return {"to": list(recipients), "subject": _subject(subject), "text": _text(answer, labels)}


def _subject(text: str) -> str:
    """One line of printable characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= SUBJECT_CHARACTERS_MAX else f"{line[: SUBJECT_CHARACTERS_MAX - 1].rstrip()}…"


def _text(answer: Answer, labels: _Labels) -> str:
    made = [f"{each.title}\n\n{each.outline}" for each in answer.artefacts if each.outline not in answer.text]
    body = "\n\n".join(filter(None, [answer.text.strip(), *made]))
    sources = "\n".join(
        f"[{each.number}] {each.document_name}{f', {labels.page} {each.page}' if each.page else ''}"
        for each in answer.citations[:_MOST_SOURCES]
    )
    ending = f"\n\n{labels.sources}:\n{sources}" if sources else ""
    room = TEXT_CHARACTERS_MAX - len(ending)
    if len(body) > room:
        cut = f"\n\n[{labels.cut}]"
        body = body[: room - len(cut)].rsplit("\n", 1)[0].rstrip() + cut
    return body + ending
