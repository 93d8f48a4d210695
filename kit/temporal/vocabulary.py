"""The words of time in English, Russian, German, French and Spanish, with the months of Italian and Portuguese, as parts of regular
expressions. The languages share one list for each meaning: a text is not told apart first, and mixtures of languages do no harm."""

import re
from functools import cache


def _any(*words: str) -> str:
    """Any of the words; longer ones first, so that a word is not cut short. Spaces stand between alternatives."""
    return "(?:" + "|".join(sorted((" ".join(words)).split(), key=len, reverse=True)) + ")"


_MONTH_WORDS = (
    r"january jan\.? januar jänner janvier janv\.? enero gennaio janeiro январ[ьяею] янв\.?",
    r"february feb\.? februar février fevrier févr\.? febrero febbraio fevereiro феврал[ьяею] фев\.?",
    r"march mar\.? märz maerz mars marzo março март[аеу]?",
    r"april apr\.? avril avr\.? abril aprile апрел[ьяею] апр\.?",
    r"may mai mayo maggio maio ма[йяею]",
    r"june jun\.? juni juin junio giugno junho июн[ьяею]",
    r"july jul\.? juli juillet juil\.? julio luglio julho июл[ьяею]",
    r"august aug\.? août aout agosto август[аеу]? авг\.?",
    r"september sept\.? sep\.? septembre septiembre setiembre settembre setembro сентябр[ьяею] сент?\.?",
    r"october oct\.? oktober okt\.? octobre octubre ottobre outubro октябр[ьяею] окт\.?",
    r"november nov\.? novembre noviembre novembro ноябр[ьяею] нояб?\.?",
    r"december dec\.? dezember dez\.? décembre decembre déc\.? diciembre dic\.? dicembre dezembro декабр[ьяею] дек\.?",
)
_WEEKDAY_WORDS = (
    r"monday montag lundi lunes понедельник[ае]?",
    r"tuesday dienstag mardi martes вторник[ае]?",
    r"wednesday mittwoch mercredi miércoles miercoles сред[аыуе]",
    r"thursday donnerstag jeudi jueves четверг[ае]?",
    r"friday freitag vendredi viernes пятниц[аыуе]",
    r"saturday samstag sonnabend samedi sábado sabado суббот[аыуе]",
    r"sunday sonntag dimanche domingo воскресень[еяю]",
)
_UNIT_WORDS = {
    "hour": r"hours? stunden? heures? horas? час(?:а|ов|у)?",
    "day": r"days? tage? tagen jours? días? dias? день дн(?:я|ей|ю|и)",
    "week": r"weeks? wochen? semaines? semanas? недел[яиьюе]",
    "month": r"months? monate?s? monaten mois mes(?:es)? месяц(?:а|ев|е|у)?",
    "quarter": r"quarters? quartale?s? quartalen trimestres? квартал(?:а|ов|е|у)?",
    "year": r"years? jahre?s? jahren ans? années? annee años? год(?:а|у|ом)? лет",
}
_NUMBER_WORDS = (
    "a an one ein eine einem einer einen un une una uno один одну одна",
    "two zwei deux dos два две",
    "three drei trois tres три",
    "four vier quatre cuatro четыре",
    "five fünf cinq cinco пять",
    "six sechs seis шесть",
    "seven sieben sept siete семь",
    "eight acht huit ocho восемь",
    "nine neun neuf nueve девять",
    "ten zehn dix diez десять",
    "eleven elf onze once одиннадцать",
    "twelve zwölf douze doce двенадцать",
)
_ORDINAL_WORDS = (
    r"first 1st erste[ns]? premier première 1er 1re primer primera? перв(?:ый|ом|ого|ое) 1-?(?:й|м|го|е|ый) 1\. I 1",
    r"second 2nd zweite[ns]? deuxième second 2e segundo segunda втор(?:ой|ом|ого|ое) 2-?(?:й|м|го|е|ой) 2\. II 2",
    r"third 3rd dritte[ns]? troisième 3e tercer tercera? трет(?:ий|ьем|ьего) 3-?(?:й|м|го|ий) 3\. III 3",
    r"fourth 4th vierte[ns]? quatrième 4e cuarto cuarta четв[её]рт(?:ый|ом|ого) 4-?(?:й|м|го|ый) 4\. IV 4",
)

MONTH = _any(*_MONTH_WORDS)
WEEKDAY = _any(*_WEEKDAY_WORDS)
UNIT = _any(*_UNIT_WORDS.values())
NUMBER = rf"(?:\d{{1,3}}|{_any(*_NUMBER_WORDS)})"
ORDINAL = _any(*_ORDINAL_WORDS)
QUARTER_UNIT = _any(r"quarters? quartale?s? trimestres? квартал(?:а|е|у)? кв\.?")
HALF_UNIT = _any(r"half halbjahre?s? semestres? полугоди[еяию]")
YEAR = r"(?:19|20)\d\d"
DAY = r"(?:0?[1-9]|[12]\d|3[01])(?!\d)"
DAY_ENDING = r"(?:st|nd|rd|th|er|º|\.|-?(?:го|е|ого))?"

LAST = _any(
    "last previous letzte[nrsm]? vorige[nrsm]? vergangene[nrsm]?",
    "прошл(?:ый|ая|ое|ом|ой|ую|ого|ых|ым) предыдущ(?:ий|ая|ее|ем|ей|ую|его)",
)
ROLLING = _any("past последн(?:ий|яя|ее|ем|ей|юю|ие|их|его) últim[oa] ultim[oa]")
LAST_SEVERAL = _any(
    "last past previous letzten? vergangenen? vorigen? последни[еймх] прошлы[ех] últim[oa]s ultim[oa]s derni[eè]r(?:e?s)"
)
THIS = _any(
    "this current diese[nrsm]? aktuelle[nrsm]? laufende[nrsm]? ce cet cette este esta", "эт(?:от|ом|ой|у|им|ого|а|о)"
)
THIS_RUSSIAN = _any("текущ(?:ий|ая|ем|ей|ую|его)")
NEXT = _any(
    "next coming upcoming nächste[nrsm]? kommende[nrsm]? pr[óo]xim[oa] следующ(?:ий|ая|ем|ей|ую|его) будущ(?:ий|ем|ей|ую)"
)
NEXT_SEVERAL = _any("next coming nächsten? kommenden? следующи[ех] ближайши[ех] pr[óo]xim[oa]s")
LAST_AFTER = _any("derni[eè]re? passée? pasad[oa] précédente? anterior")
NEXT_AFTER = _any("prochaine? pr[óo]xim[oa] suivante? siguiente")
OF = r"(?:\s+(?:of|de|del|du|des|von|in|im|en)(?:\s+(?:the|jahr(?:es)?|año|l['’]année))?\s+|[\s,]+|\s*/\s*)"
YEAR_WORD = r"(?:\s*(?:годах|годом|году|года|год|г\.))?"

DAYS = {
    0: r"today heute сегодня aujourd['’]hui hoy",
    -1: r"yesterday gestern вчера ayer",
    1: r"tomorrow завтра demain",
    -2: r"vorgestern позавчера avant-hier anteayer antier",
    2: r"übermorgen послезавтра après-demain",
}

IN = (
    r"(?:in|during|throughout|im|während|en|pendant|durant|durante|в|во|на|за|the\s+(?:month|year)\s+of)"
    r"(?:\s+(?:the|der|dem|months?\s+of|mois\s+de|mes\s+de))?"
)
"""Before a word that may mean something else than time ("may", "2000")."""
ON = r"(?:on|am|в|во|le|el|los)"
"""Before a weekday."""
OF_YEAR = r"(?:of|for|from|für|von|aus|de|des|du|d['’]|из|от|del|para|pour)"
"""The same where nothing may follow: "for 2000 dollars" is no year."""

_ARTICLES = r"(?:\s+(?:the|dem|der|den|le|la|el|in|im|en|au|vom|zum)|\s+l['’](?=\w))?"
_BEGINNING = r"(?:\s+(?:(?:the\s+)?(?:beginning|start)\s+of|anfang|début|debut|principios\s+del?|начала))?"
_END = r"(?:\s+(?:(?:the\s+)?end\s+of|ende|(?:la\s+)?fin|fin(?:ales)?\s+del?|конца))?"
BEGINNING_OF_CURRENT = (
    r"(?:(?:beginning|start)\s+of\s+(?:the|this)|anfang\s+de[sr]|début\s+(?:du|de\s+la|de\s+l['’])"
    r"|principios\s+de(?:l|\s+la)?|начала)"
)
SINCE = rf"(?:since|starting|seit|ab|depuis|desde|(?:à|a)\s+partir\s+d[eu]l?|с|со|начиная\s+с){_BEGINNING}{_ARTICLES}"
UNTIL = (
    rf"(?:until|till|up\s+to|through|bis(?:\s+zu[mr]?)?|jusqu['’](?:à|au|en)|hasta|по|до(?=\s+конца)){_END}{_ARTICLES}"
)
BEFORE = rf"(?:before|prior\s+to|earlier\s+than|vor|avant|antes\s+del?|до|раньше){_ARTICLES}"
AFTER = rf"(?:after|later\s+than|nach|après|después\s+del?|tras|после){_ARTICLES}"

RANGE = rf"(?:\s*[-–—]\s*|\s+(?:to|until|till|through|bis(?:\s+zu[mr]?)?|по|до|à|au|al?|hasta|jusqu['’](?:à|au|en)){_ARTICLES}\s+)"
RANGE_AND = rf"\s+(?:and|und|и|et|y){_ARTICLES}\s+"
"""Only after BETWEEN: else it joins two times that are both meant."""
BETWEEN = rf"(?:between|zwischen|между|entre){_ARTICLES}"
FROM = rf"(?:from|von|vom|с|со|de|du|del|desde|depuis){_ARTICLES}"


@cache
def _patterns(words: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_any(text), re.IGNORECASE) for text in words)


def _place(word: str, lists: tuple[str, ...]) -> int:
    """Which of the lists the word is in."""
    return next(place for place, pattern in enumerate(_patterns(lists)) if pattern.fullmatch(word))


def month_number(word: str) -> int:
    """1 to 12."""
    return _place(word, _MONTH_WORDS) + 1


def weekday_number(word: str) -> int:
    """0 is Monday."""
    return _place(word, _WEEKDAY_WORDS)


def unit_name(word: str) -> str:
    """hour, day, week, month, quarter or year."""
    return list(_UNIT_WORDS)[_place(word, tuple(_UNIT_WORDS.values()))]


def number(word: str) -> int:
    """Of digits, or of a word up to twelve."""
    return int(word) if word.isdigit() else _place(word, _NUMBER_WORDS) + 1


def ordinal(word: str) -> int:
    """1 to 4."""
    return _place(word, _ORDINAL_WORDS) + 1
