"""Reads from a message that its answer is to be mailed, and to whom. Addresses come from the user's own words alone: from the
message, or from what the user said earlier on the thread."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

_MOST_LOOKED_AT = 20
"""Places in a text: what surrounds each is read."""
_LOCAL = r"[^\s@,;:<>()\[\]\"'“”„«»]"
_ADDRESS = rf"(?<!{_LOCAL}){_LOCAL}{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}(?!\.?[\w@-])"
"""Whole or not at all: a part of an address is somebody else's."""
_GAP, _SPACE = r"\s{1,3}", r"\s{0,3}"
"""Between words. Repetitions have an end, and so has the time that a long message takes."""
_ADDRESSES = (
    rf"<?{_ADDRESS}>?(?:(?:{_SPACE}[,;&]{_SPACE}(?:and{_GAP})?|{_GAP}(?:and|und|et|y|и){_GAP})<?{_ADDRESS}>?){{0,99}}"
)
_NAME = r"[^\W\d_][\w-]{0,60}"
_ME = {"me", "myself", "mir", "mich", "moi", "mí", "mi", "мне"}
_HIM = {"him", "her", "ihm", "ihr", "lui", "elle", "él", "ella", "ему", "ей"}
_THEM = {"them", "ihnen", "eux", "ellos", "им"}
_ADDRESS_WORDS = (
    "own|new|work|private|personal|neue|nouvelle|nueva|новый|новая|e-?mail|mail|address|adresse|courriel|de|correo|electrónico|"
    "dirección|электронной|почты|почта|адрес"
)
_MINE = re.compile(
    rf"\b(?:my|meine?|mon|mi|мой|моя){_GAP}(?:(?:{_ADDRESS_WORDS})[\s:=–—-]{{1,3}}){{1,5}}(?:(?:is|ist|lautet|est|es|это):?{_GAP})?"
    rf"<?(?P<address>{_ADDRESS})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Language:
    """Alternatives of a regular expression."""

    joins: str
    polite: str
    verbs: str
    things: str
    to: str
    by_mail: str


_LANGUAGES = (
    _Language(
        joins="and then|and also|and|then",
        polite="please|can you|could you|would you|will you|kindly",
        verbs="e-?mail|mail|send|forward",
        things=r"it|this|that|them|everything|a copy(?: of (?:it|this|that))?|"
        r"(?:the|your|this|that|my) (?:\w+ )?(?:answer|summary|results?|table|quiz|report|list|overview|chart|diagram|text)",
        to="over to|to",
        by_mail=r"(?:by|via|per|as|in) (?:an )?e-?mail|by mail",
    ),
    _Language(
        joins="und dann|und|dann|danach",
        polite="bitte|kannst du|könntest du|können sie|könnten sie",
        verbs="(?:e-?)?mail(?:en?)?|(?:ver)?(?:schick|send)(?:en?)?",
        things="es|das|sie|ihn|alles|(?:die|das|den|deine) "
        "(?:zusammenfassung|ergebnis|antwort|tabelle|bericht|quiz|liste|überblick)",
        to="an",
        by_mail=r"(?:per|als|via) (?:e-?)?mail",
    ),
    _Language(
        joins="et puis|puis|et|ensuite",
        polite="s'il te plaît|s'il vous plaît|peux-tu|pouvez-vous",
        verbs="(?:envoie|envoyez|transmets|transmettez|envoyer)(?:-(?:le|la|les))?",
        things="(?:le|la|les|ta|ton|cette?|ce) (?:résumé|réponse|résultats?|tableau|liste|rapport|quiz)|cela|ça",
        to="à",
        by_mail=r"par (?:e-?mail|courriel|mail)",
    ),
    _Language(
        joins="y luego|y después|y|luego",
        polite="por favor|puedes|podrías",
        verbs="(?:env[ií]a|env[ií]e|enviar|manda|mande|mandar)(?:l[oae]s?)?",
        things="(?:el|la|los|esta?|este) (?:resumen|respuesta|resultados?|tabla|lista|informe)|esto|eso",
        to="a",
        by_mail=r"por (?:correo(?: electrónico)?|e-?mail)",
    ),
    _Language(
        joins="и затем|и потом|затем|потом|и",
        polite="пожалуйста|можешь|можете",
        verbs="(?:отправь|пошли|перешли|вышли)(?:те)?|отправить|послать",
        things="это|его|её|ее|их|всё|все|результаты?|ответ|сводку|резюме|таблицу|отчёт|отчет|список",
        to="на адрес|по адресу|на",
        by_mail="(?:по|на) (?:электронной )?почт[еу]|письмом|по e-?mail",
    ),
)


@dataclass(frozen=True)
class MailWish:
    """That the answer is to be mailed."""

    question: str
    """What is left of the message; empty where it asks for nothing else."""
    recipients: Sequence[str]
    """Empty where the user's words hold no address of theirs."""


@dataclass(frozen=True)
class _Clause:
    question: str
    to: str
    names_mail: bool


def asks_for_mail(message: str) -> bool:
    """Whether the message may ask for an e-mail: then what was said before is worth reading."""
    return _clause(message) is not None


def read_mail_wish(message: str, earlier: Sequence[str] = ()) -> MailWish | None:
    """What the message asks for; None where it asks for no e-mail. `earlier` are the user's own messages before, oldest first.

    A wish whose recipients are not known keeps the whole message as its question.
    """
    clause = _clause(message)
    if clause is None:
        return None
    if recipients := _recipients(clause.to, message, earlier):
        return MailWish(clause.question, recipients)
    return MailWish(message, ()) if clause.names_mail else None


def _clause(message: str) -> _Clause | None:
    for after, whole in _patterns():
        for found in islice(after.finditer(message), _MOST_LOOKED_AT):
            if not _is_asked(found) or _is_shown(message[: found.start()]):
                continue
            kept = message[: found.start()].rstrip(" ,;:")
            kept += "" if kept.endswith((".", "!", "?")) else found["end"].strip()
            rest = f"{kept} {message[found.end() :].strip()}".strip()
            return _Clause(rest if any(map(str.isalnum, rest)) else "", found["to"], _names_mail(found[0], found["to"]))
        found_whole = whole.fullmatch(message.strip())
        if found_whole is not None and _is_asked(found_whole):
            to = found_whole["to"] or found_whole["first"]
            return _Clause((found_whole["what"] or found_whole["then"]).strip(), to, names_mail=True)
    return None


def _is_asked(found: re.Match[str]) -> bool:
    """A question ("Who is to mail it to …?") asks for an e-mail only politely."""
    return "?" not in found["end"] or bool(found["polite"])


def _is_shown(before: str) -> bool:
    """Whether what follows is text that the user shows, not a wish: behind a colon, in quotation marks, in a quoted line, or in an
    element as clients enclose a conversation in (`<chat_history>`)."""
    marks = re.findall("[„“”«»]", before)
    is_open = bool(marks) and (marks[-1] in "„«" or (marks[-1] == "“" and "„" not in marks))
    line = before.rpartition("\n")[2]
    is_enclosed = sum(-1 if each else 1 for each in re.findall(r"<(/?)[a-z_]{1,30}>", before)) > 0
    return before.rstrip().endswith(":") or line.startswith(">") or is_open or is_enclosed or before.count('"') % 2 == 1


def _names_mail(clause: str, to: str) -> bool:
    return "mail" in clause.replace(to, "").casefold() or any(each in clause.casefold() for each in ("correo", "почт"))


def _recipients(to: str, message: str, earlier: Sequence[str]) -> Sequence[str]:
    if "@" in to:
        return _addresses(to)
    who = to.casefold()
    said = [*earlier, message]
    if who in _ME:
        mine = [(each, found) for each in said for found in _MINE.finditer(each)][-_MOST_LOOKED_AT:]
        return [found["address"] for each, found in mine if not _is_shown(each[: found.start()])][-1:]
    if who in _HIM | _THEM:
        last = next((found for each in reversed(said) if (found := _addresses(each))), ())
        return last if who in _THEM or len(last) == 1 else ()
    named = {each.casefold(): each for text in said for each in _addresses(text) if who in _words_of(each)}
    return list(named.values()) if len(named) == 1 else ()


def _addresses(text: str) -> Sequence[str]:
    """Each once, in order."""
    return list(dict.fromkeys(re.findall(_ADDRESS, text)))


def _words_of(address: str) -> Iterable[str]:
    return re.split(r"[._+-]", address.partition("@")[0].casefold())


@cache
def _patterns() -> Sequence[tuple[re.Pattern[str], re.Pattern[str]]]:
    """Of each language: the clause beside a question, and a message that is one request as a whole ("Mail a summary of … to …")."""
    return [(_after(each), _whole(each)) for each in _LANGUAGES]


def _after(words: _Language) -> re.Pattern[str]:
    joins = rf"(?:{words.joins}){_GAP}"
    begins = rf"(?:^|(?<=[.!?;,\n]){_SPACE}|(?<!\s){_GAP}(?={joins}))(?:{joins})?"
    what = rf"(?:{_GAP}(?:{words.things}|{words.by_mail})){{0,2}}"
    ends = rf"(?P<end>{_SPACE}(?:[.!?]{{1,3}}|$|(?=[,;]|{_GAP}{joins})))"
    return re.compile(
        rf"{begins}(?P<polite>(?:(?:{words.polite}),?{_GAP}){{0,3}})(?:{words.verbs}){what}(?:{_GAP}(?:{words.to}))?{_GAP}"
        rf"(?P<to>{_ADDRESSES}|(?!(?:{words.things})\b)(?:the{_GAP})?{_NAME}){what}(?:,?{_GAP}(?:{words.polite}))?{ends}",
        re.IGNORECASE,
    )


def _whole(words: _Language) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<polite>(?:(?:{words.polite}),?{_GAP}){{0,3}})(?:{words.verbs})(?:{_GAP}(?:{words.by_mail}))?"
        rf"(?:{_GAP}(?P<what>[^@?]+?){_GAP}(?:{words.to}){_GAP}(?P<to>{_ADDRESSES})(?:{_GAP}(?:{words.by_mail}))?"
        rf"|(?:{_GAP}(?:{words.to}))?{_GAP}(?P<first>{_ADDRESSES}){_GAP}(?P<then>[^@?]+?))(?P<end>{_SPACE}[.!?]{{0,3}})",
        re.IGNORECASE,
    )
