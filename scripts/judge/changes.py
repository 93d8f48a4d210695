# ruff: noqa: E501 - lists of words and pairs are read across
"""Changes true sentences into false claims that share most of their words, and into other true ones."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

NAME = re.compile(
    r"(?<!^)(?<![.!?]\s)\b[A-ZÄÖÜÁÉÍÓÚА-Я][a-zäöüßáéíóúñçşğıа-я]{2,}(?:\s[A-ZÄÖÜÁÉÍÓÚА-Я][a-zäöüßáéíóúñçşğıа-я]+)*"
)
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,.]*\d|(?<![\w.,])\d(?![\w])")
_YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")
_SWAPS = {
    "en": (
        "more/less more/fewer before/after higher/lower increase/decrease increased/decreased first/last north/south east/west northern/southern "
        "eastern/western old/new large/small larger/smaller largest/smallest high/low highest/lowest won/lost began/ended over/under early/late "
        "earlier/later above/below long/short longer/shorter strong/weak stronger/weaker best/worst better/worse most/least open/closed opened/closed "
        "allowed/forbidden accepted/rejected supported/opposed inside/outside major/minor public/private positive/negative male/female rich/poor "
        "always/never everyone/nobody easy/difficult fast/slow hot/cold warm/cool heavy/light full/empty dry/wet cheap/expensive modern/ancient "
        "maximum/minimum upper/lower internal/external simple/complex common/rare gained/lost built/destroyed buy/sell bought/sold "
        "gave/received arrived/departed joined/left started/stopped raised/lowered rose/fell grew/shrank active/passive direct/indirect "
        "father/mother son/daughter brother/sister husband/wife king/queen men/women known/unknown possible/impossible similar/different"
    ),
    "de": (
        "mehr/weniger vor/nach höher/niedriger größer/kleiner größte/kleinste größten/kleinsten erste/letzte ersten/letzten nördlich/südlich östlich/westlich "
        "früher/später lange/kurze länger/kürzer stark/schwach stärker/schwächer gewann/verlor begann/endete alte/neue alten/neuen große/kleine "
        "großen/kleinen hohe/niedrige immer/nie heiß/kalt öffentliche/private stieg/sank innerhalb/außerhalb über/unter"
    ),
    "es": (
        "más/menos antes/después mayor/menor mayores/menores primero/último primera/última norte/sur este/oeste alto/bajo alta/baja grande/pequeño nuevo/viejo "
        "ganó/perdió comenzó/terminó aumentó/disminuyó siempre/nunca mejor/peor largo/corto interior/exterior público/privado dentro/fuera"
    ),
    "tr": "daha_fazla/daha_az önce/sonra büyük/küçük yüksek/düşük ilk/son kuzey/güney doğu/batı yeni/eski uzun/kısa kazandı/kaybetti",
    "zh": "大/小 高/低 前/后 北/南 东/西 新/旧 长/短 多/少 增加/减少 最大/最小 第一/最后",
    "ar": "أكثر/أقل قبل/بعد أكبر/أصغر أعلى/أدنى شمال/جنوب شرق/غرب كبيرة/صغيرة جديدة/قديمة",
    "ru": "больше/меньше раньше/позже выше/ниже первый/последний дороже/дешевле старый/новый большой/маленький открыли/закрыли до/после всегда/никогда",
    "he": "יותר/פחות לפני/אחרי ראשון/אחרון גדול/קטן חדש/ישן גבוה/נמוך פתוח/סגור תמיד/לעולם_לא",
    "fr": "plus/moins avant/après premier/dernier première/dernière grand/petit nouveau/ancien ouvert/fermé toujours/jamais augmenté/diminué commença/cessa",
    "it": "più/meno prima/dopo primo/ultimo grande/piccolo nuovo/vecchio sempre/mai aperto/chiuso",
    "pt": "mais/menos antes/depois primeiro/último grande/pequeno novo/velho sempre/nunca aberto/fechado",
}
_DENIALS = {
    "en": (r"\b(is|are|was|were|has|have|had|can|could|will|would|does|did|may|must|should)\b", r"\1 not"),
    "de": (
        r"\b(ist|sind|war|waren|wurde|wurden|hat|haben|hatte|hatten|kann|können|wird|werden|darf|muss)\b",
        r"\1 nicht",
    ),
    "es": (r"\b(es|son|fue|fueron|era|eran|está|están|ha|han|había|puede|pueden|tiene|tienen|será)\b", r"no \1"),
    "zh": (r"(是|有|会|能)", r"不\1"),
    "ar": (r"\b(كان|كانت|يكون|تم)\b", r"لم \1"),
    "tr": (r"(\w+(?:dır|dir|dur|dür|tır|tir))\.", r"\1 değil."),
    "ru": (r"\b(был|была|было|были|будет|будут|включён|допускаются|стоит|стоят|проверит|купит)\b", r"не \1"),
    "he": (r"\b(נמשך|עולה|סגור|מתכנן|יבדוק|תזמין)\b", r"לא \1"),
    "fr": (r"\b(est|sont|fut|furent|sera|seront|a|ont|peut|peuvent|doit|doivent)\b", r"n'\1 pas"),
    "it": (r"\b(è|sono|fu|può|possono|chiude|ha|hanno)\b", r"non \1"),
    "pt": (r"\b(é|são|foi|vai|quer|será|tem)\b", r"não \1"),
}
_UNDENIALS = {
    "en": r" not\b|n't\b", "de": r" nicht\b", "es": r"\bno (?=\w)", "zh": "不", "ar": r"\bلم |\bلا ", "tr": r" değil", "ru": r"\bне ", "he": r"\bלא |\bאין ", "fr": r" pas\b",
    "it": r"\bnon ", "pt": r"\bnão ", "nl": r" niet\b", "pl": r"\bnie ", "uk": r"\bне "
}  # fmt: skip
_WIDER = {
    "en": (("some", "all"), ("many", "all"), ("most", "all"), ("several", "all"), ("often", "always"), ("sometimes", "always"), ("usually", "always"),
           ("only", ""), ("mainly", "exclusively"), ("partly", "entirely"), ("nearly", ""), ("almost", ""), ("up to", "at least"), ("a few", "all"),
           ("may", "must"), ("can", "must"), ("one of the", "the only one of the")),
    "de": (("einige", "alle"), ("viele", "alle"), ("meisten", "allen"), ("oft", "immer"), ("manchmal", "immer"), ("nur", ""), ("fast", ""), ("teilweise", "ganz"),
           ("bis zu", "mindestens"), ("kann", "muss")),
    "es": (("algunos", "todos los"), ("algunas", "todas las"), ("muchos", "todos los"), ("muchas", "todas las"), ("a menudo", "siempre"), ("solo", ""),
           ("casi", ""), ("hasta", "al menos"), ("puede", "debe")),
    "ru": (("некоторые", "все"), ("большинство", "все"), ("только", ""), ("обычно", "всегда"), ("часто", "всегда"), ("почти", "")),
    "fr": (("certains", "tous les"), ("souvent", "toujours"), ("seulement", ""), ("presque", ""), ("la plupart", "la totalité")),
    "he": (("רוב", "כל"), ("חלק", "כל"), ("רק", ""), ("לפעמים", "תמיד")),
}  # fmt: skip
_UNITS = {
    "en": "kilometres/metres kilometers/meters km/m miles/feet metres/centimetres meters/centimeters years/months months/weeks weeks/days days/hours "
          "hours/minutes minutes/seconds percent/per_mille million/billion thousand/million kg/g tonnes/kilograms dollars/cents euros/dollars "
          "litres/millilitres degrees/percent century/decade centuries/decades",
    "de": "Kilometer/Meter Meter/Zentimeter Jahre/Monate Jahren/Monaten Monate/Wochen Tage/Stunden Stunden/Minuten Minuten/Sekunden Prozent/Promille "
          "Millionen/Milliarden Euro/Dollar Jahrhundert/Jahrzehnt kg/g",
    "es": "kilómetros/metros metros/centímetros años/meses meses/semanas días/horas horas/minutos minutos/segundos millones/miles siglo/decenio "
          "dólares/euros kg/g",
    "ru": "часов/дней дней/часов суток/часов лет/месяцев года/месяца рублей/копеек минут/часов кг/г", "fr": "jours/heures heures/minutes mois/semaines ans/mois euros/centimes",
    "he": "שעה/דקה ימים/שעות שקלים/אגורות דקות/שעות",
}  # fmt: skip
_MONTHS = {
    "en": "January February March April May June July August September October November December Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember Montag Dienstag Mittwoch Donnerstag Freitag",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes miércoles jueves viernes",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря понедельник вторник среду четверг пятницу субботу",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi samedi dimanche",
    "he": "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר",
}
_NUMBER_WORDS = {
    "en": "two three four five six seven eight nine ten twelve", "de": "zwei drei vier fünf sechs sieben acht neun zehn zwölf",
    "es": "dos tres cuatro cinco seis siete ocho nueve diez doce",
}  # fmt: skip
_BECAUSE = {
    "en": ("because", "since", "because of the fact that", "due to the fact that"), "de": ("weil", "da"), "es": ("porque", "ya que"),
    "tr": ("çünkü",), "zh": ("，因为",), "ar": ("لأن",), "ru": ("потому что", "так как"), "he": ("כי", "מפני ש"),
    "fr": ("parce que", "car"), "it": ("perché",), "pt": ("porque",), "nl": ("omdat", "want"), "pl": ("ponieważ", "bo"), "uk": ("бо", "тому що"),
}  # fmt: skip
_AND = {
    "en": " and ",
    "de": " und ",
    "es": " y ",
    "tr": " ve ",
    "zh": "，而且",
    "ar": " و",
    "ru": " и ",
    "he": " ו",
    "fr": " et ",
    "it": " e ",
    "pt": " e ",
    "nl": " en ",
    "pl": " i ",
    "uk": " і ",
    "ja": "。また、",
}
_CONDITION = {
    "en": r",? (?:but )?(?:only )?(?:if|unless|provided|when|except|until) [^,.;]+", "de": r", (?:aber nur )?(?:wenn|falls|sofern|außer|solange) [^,.;]+",
    "es": r",? (?:pero )?(?:solo )?(?:si|salvo|excepto|cuando|siempre que) [^,.;]+",
}  # fmt: skip
_PLANS = re.compile(
    r"\b(?:will|plans to|plan to|intends to|intend to|wants to|hopes to|aims to|proposed to|is going to|is expected to|would) (\w+)",
    re.IGNORECASE,
)
_FACTS = re.compile(r"\b(?:was|were) (\w+ed) ")
_SAID = re.compile(
    r"\b(said|says|argued|argues|claimed|stated|wrote|believed|suggested|proposed|called|described|noted|reported)\b"
)


@dataclass(frozen=True)
class Change:
    """A claim that was made out of a true sentence."""

    text: str
    kind: str
    is_true: bool = False


def change(sentence: str, passage: str, elsewhere: str, language: str, rng: random.Random) -> Iterator[Change]:
    """All false claims that can be made of `sentence`, of `passage`. `elsewhere`: a sentence of something else."""
    for kind, make in _MAKERS.items():
        text = make(sentence, passage, elsewhere, language, rng)
        if text and text.strip(" .") != sentence.strip(" ."):
            yield Change(re.sub(r"\s+", " ", text).strip(), kind)


_Maker = Callable[[str, str, str, str, random.Random], str | None]


def _replace(sentence: str, old: str, new: str) -> str | None:
    pattern = re.escape(old) if re.search(r"[\u0e00-\u0eff\u3400-\u9fff]", old) else rf"\b{re.escape(old)}\b"
    found = re.search(pattern, sentence, re.IGNORECASE)
    if not found:
        return None
    put = new.capitalize() if found[0][:1].isupper() and new else new
    return sentence[: found.start()] + put + sentence[found.end() :]


def _pairs(text: str) -> list[tuple[str, str]]:
    both = [each.replace("_", " ").split("/") for each in text.split()]
    return [(a, b) for a, b in both] + [(b, a) for a, b in both]


def _first_swap(sentence: str, pairs: Sequence[tuple[str, str]], rng: random.Random) -> str | None:
    for old, new in rng.sample(pairs, len(pairs)):
        if (text := _replace(sentence, old, new)) is not None:
            return text
    return None


def _negation(sentence: str, _p: str, _e: str, language: str, _r: random.Random) -> str | None:
    if language in _UNDENIALS and re.search(_UNDENIALS[language], sentence):
        return re.sub(_UNDENIALS[language], "", sentence, count=1)
    if language not in _DENIALS:
        return None
    pattern, put = _DENIALS[language]
    return re.sub(pattern, put, sentence, count=1)


def _number(sentence: str, passage: str, _e: str, language: str, rng: random.Random) -> str | None:
    if found := _NUMBER.findall(sentence):
        old = rng.choice(found)
        others = [each for each in _NUMBER.findall(passage) if each not in sentence]
        if others and rng.random() < 0.4:
            return sentence.replace(old, rng.choice(others), 1)
        digits = list(old)
        places = [i for i, char in enumerate(digits) if char.isdigit()]
        place = rng.choice(places)
        digits[place] = rng.choice([d for d in "123456789" if d != digits[place]])
        return sentence.replace(old, "".join(digits), 1)
    words = _NUMBER_WORDS.get(language, "").split()
    return _first_swap(sentence, [(a, rng.choice([b for b in words if b != a])) for a in words], rng) if words else None


def _date(sentence: str, _p: str, _e: str, language: str, rng: random.Random) -> str | None:
    months = _MONTHS.get(language, "").split()
    if months and (
        text := _first_swap(sentence, [(a, rng.choice([b for b in months if b != a])) for a in months], rng)
    ):
        return text
    if found := _YEAR.search(sentence):
        return sentence.replace(found[0], str(int(found[0]) + rng.choice([-20, -10, -3, -1, 1, 2, 10, 30])), 1)
    return None


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(NAME.findall(text)))


def _other_name(sentence: str, passage: str, _e: str, _l: str, rng: random.Random) -> str | None:
    here = _names(sentence)
    others = [name for name in _names(passage) if name not in sentence]
    return sentence.replace(rng.choice(here), rng.choice(others), 1) if here and others else None


def _roles(sentence: str, _p: str, _e: str, _l: str, rng: random.Random) -> str | None:
    here = _names(sentence)
    if len(here) < 2:
        return None
    a, b = rng.sample(here, 2)
    return sentence.replace(a, "\0").replace(b, a).replace("\0", b)


def _opposite(sentence: str, _p: str, _e: str, language: str, rng: random.Random) -> str | None:
    return _first_swap(sentence, _pairs(_SWAPS[language]), rng) if language in _SWAPS else None


def _scope(sentence: str, _p: str, _e: str, language: str, rng: random.Random) -> str | None:
    return _first_swap(sentence, _WIDER[language], rng) if language in _WIDER else None


def _unit(sentence: str, _p: str, _e: str, language: str, rng: random.Random) -> str | None:
    return _first_swap(sentence, _pairs(_UNITS[language]), rng) if language in _UNITS else None


def _cause(sentence: str, passage: str, elsewhere: str, language: str, rng: random.Random) -> str | None:
    others = [
        elsewhere,
        *[each for each in re.split(r"(?<=[.!?。।])\s*", passage) if 30 < len(each) < 160 and each not in sentence],
    ]
    other = rng.choice([each for each in others if each] or [""])
    if not other or language not in _BECAUSE:
        return None
    part = re.split(r"[,;，]", other)[0]
    return f"{_open(sentence)} {rng.choice(_BECAUSE[language])} {_lowered(part, language)}."


def _detail(sentence: str, _p: str, elsewhere: str, language: str, rng: random.Random) -> str | None:
    if not elsewhere or language not in _AND:
        return None
    parts = [each for each in re.split(r"[,;，]", elsewhere) if len(each) > 12]
    return f"{_open(sentence)}{_AND[language]}{_lowered(rng.choice(parts).strip(), language)}." if parts else None


def _condition(sentence: str, _p: str, _e: str, language: str, _r: random.Random) -> str | None:
    pattern = _CONDITION.get(language)
    if not pattern or not (found := re.search(pattern, sentence)) or found.start() < 15:
        return None
    return sentence[: found.start()] + sentence[found.end() :]


def _even_if(sentence: str, _p: str, _e: str, language: str, _r: random.Random) -> str | None:
    swaps = {
        "en": (r"\b(only )?(if|when)\b", "even if not"),
        "de": (r"\b(nur )?(wenn|falls)\b", "auch wenn nicht"),
        "es": (r"\b(solo )?(si|cuando)\b", "aunque no"),
    }
    pattern = swaps.get(language)
    return re.sub(pattern[0], pattern[1], sentence, count=1) if pattern else None


def _fact(sentence: str, _p: str, _e: str, language: str, rng: random.Random) -> str | None:
    if language != "en":
        return None
    if found := _PLANS.search(sentence):
        verb = found[1]
        done = verb if verb.endswith("ed") else verb + ("d" if verb.endswith("e") else "ed")
        return sentence[: found.start()] + rng.choice(["has already ", "has "]) + done + sentence[found.end() :]
    if found := _FACTS.search(sentence):
        return (
            sentence[: found.start()]
            + rng.choice(["will soon be ", "is planned to be "])
            + found[1]
            + " "
            + sentence[found.end() :]
        )
    return None


def _attribution(sentence: str, passage: str, _e: str, language: str, rng: random.Random) -> str | None:
    if language != "en" or not (found := _SAID.search(sentence)):
        return None
    others = [name for name in _names(passage) if name not in sentence[: found.start()]]
    return f"{rng.choice(others)} {sentence[found.start() :]}" if others and found.start() > 3 else None


def _own_action(sentence: str, _p: str, _e: str, language: str, rng: random.Random) -> str | None:
    says = {
        "en": ("I have sent {} the details.", "I have informed {}.", "I've booked {} for you."),
        "de": ("Ich habe {} benachrichtigt.",),
        "es": ("He informado a {}.",),
    }
    names = _names(sentence)
    return (
        rng.choice(says[language]).format(rng.choice(names))
        if names and language in says and rng.random() < 0.15
        else None
    )


def _unrelated(_s: str, _p: str, elsewhere: str, _l: str, rng: random.Random) -> str | None:
    return elsewhere if rng.random() < 0.5 else None


def _open(sentence: str) -> str:
    return sentence.rstrip(" .!?。।")


def _lowered(text: str, language: str) -> str:
    text = _open(text)
    return text[:1].lower() + text[1:] if language in ("en", "es", "tr") else text


_MAKERS: dict[str, _Maker] = {
    "negation": _negation, "number": _number, "date": _date, "name": _other_name, "roles": _roles, "opposite": _opposite, "scope": _scope,
    "unit": _unit, "cause": _cause, "detail": _detail, "condition": _condition, "even if": _even_if, "plan or fact": _fact,
    "attribution": _attribution, "own action": _own_action, "unrelated": _unrelated,
}  # fmt: skip


def shortened(sentence: str) -> str | None:
    """The first clause of a sentence, which is as true as the whole."""
    parts = re.split(r", (?:which|while|and|but|who|where|wobei|und|die|der|das|y|que|pero) | while ", sentence)
    first = parts[0].rstrip(" ,")
    return (
        f"{first}."
        if len(parts) > 1
        and len(first.split()) > 4
        and not re.match(r"(?i)(if|when|while|although|as|wenn|si)\b", first)
        else None
    )


def combined(first: str, second: str, language: str) -> str:
    """Two true sentences as one."""
    return f"{_open(first)}{_AND[language]}{_lowered(second, language)}."
