# ruff: noqa: E501 - lists of words and pairs are read across
"""Small words that decide what a sentence says: who denies, counts, plans, compares, restricts or explains with them.

Languages: English, German, French, Spanish, Italian, Portuguese, Russian, Hebrew, Arabic, Turkish, Chinese; Hindi and Thai for denials.
"""

import re
from functools import lru_cache
from hashlib import sha256

from kit.language.terms import STOPWORDS, words

NEGATION = words(
    "not no never none nobody nothing neither nor without cannot isn't aren't wasn't weren't don't doesn't didn't won't can't couldn't "
    "hasn't haven't hadn't nicht kein keine keinen keiner keinem keines nie niemals ohne weder nichts niemand sin nunca ningún ninguna "
    "ninguno nadie nada tampoco jamás ne pas jamais sans aucun aucune ni rien non mai senza nessun nessuno nessuna né não nunca sem "
    "nenhum nenhuma не нет без никогда ни нельзя никто ничего לא אין בלי ללא אסור אינו אינה אינם değil yok hiç asla لا لم لن ليس ليست غير بدون "
    "不 没 没有 无 未 不是 不能 不会 नहीं न बिना ไม่ ไม่ใช่ ไม่มี"
)
UNIVERSAL = words(
    "all every each both always entire whole everyone everybody everything any alle allen jeder jede jedes jedem sämtliche immer stets "
    "beide todos todas cada siempre ambos ambas tous toutes chaque toujours tutti tutte ogni sempre все всех каждый каждая всегда оба "
    "כל כולם תמיד שני tüm bütün her كل جميع دائما 所有 都 全部 每 总是"
)
PARTIAL = words(
    "most many some few several often sometimes usually half part mostly partly certain die meisten viele einige wenige manche oft "
    "manchmal teils mayoría muchos muchas algunos algunas pocos pocas veces plupart beaucoup quelques souvent parfois molti alcuni spesso "
    "maioria muitos alguns большинство многие некоторые часто иногда часть רוב חלק כמה מעט לפעמים çoğu bazı معظم بعض 大多数 一些 部分"
)
LIMITING = words(
    "only just solely exclusively nur ausschließlich lediglich solo sólo solamente únicamente seulement uniquement soltanto somente "
    "apenas только лишь רק sadece yalnızca فقط 只 仅"
)
PLANNED = words(
    "will plans plan planned intends intend intended wants want may might could should would propose proposed expects expected hopes "
    "aims scheduled soon promised werden wird will wollen soll sollen plant planen geplant beabsichtigt möchte könnte vorgesehen "
    "planea planean proyecta prevé prevén quiere quieren podría debería será prévoit veut compte devrait pourrait sera prevede vuole "
    "planeja pretende планирует планируют намерен намерена хочет хотят будет будут может собирается מתכנן מתכננת מתכננים מתכוון רוצה עשוי יהיה "
    "צפוי مخطط سوف 将 计划 打算"
)
DONE = words("already has have had bereits schon ya ha han déjà già já уже כבר zaten بالفعل 已 已经 了")
CONDITION = words(
    "if unless provided except until even otherwise wenn falls sofern außer solange sonst si salvo excepto aunque sauf même se tranne "
    "exceto если кроме даже пока אם אלא אפילו eğer إذا إلا 如果 除非 除了"
)
CAUSE = words(
    "because due since therefore thus caused causes reason owing result weil wegen da aufgrund deshalb daher denn porque debido pues "
    "causa parce car cause perché a causa devido потому поскольку из-за так причина כי בגלל מפני לכן çünkü nedeniyle بسبب لأن 因为 由于 因此"
)
MORE = words(
    "more higher greater larger bigger longer older heavier faster better stronger warmer hotter dearer costlier wider taller above over "
    "exceeds increase increased increases increasing rise rose risen rises grew grow raised raises improve improved gain gained most "
    "highest largest longest heaviest oldest after later last latest up mehr höher größer länger älter schwerer schneller besser stärker "
    "teurer über stieg gestiegen steigt nach später zuletzt höchste größte längste más mayor mayores superior después último aumentó "
    "aumenta plus supérieur après dernier più maggiore dopo mais maior depois больше выше длиннее дороже старше тяжелее после позже "
    "последний самый יותר גבוה גדול אחרי daha fazla sonra yüksek أكثر أكبر أعلى بعد 更 多 高 大 后 之后 增加 最"
)
LESS = words(
    "less fewer lower smaller shorter younger lighter slower worse weaker colder cheaper narrower below under decrease decreased decreases "
    "decreasing fall fell fallen falls declined decline reduced reduces reduce shortened least lowest smallest shortest lightest youngest "
    "before earlier first earliest down weniger niedriger kleiner kürzer jünger leichter langsamer schlechter schwächer billiger günstiger "
    "unter sank gesunken sinkt vor früher zuerst niedrigste kleinste kürzeste menos menor menores inferior antes primero disminuyó reduce "
    "moins inférieur avant premier meno minore prima menos меньше ниже короче дешевле моложе легче до раньше первый фחות נמוך קטן לפני פחות "
    "az önce düşük أقل أصغر قبل 少 低 小 前 之前 减少"
)
CATEGORIES = (NEGATION, UNIVERSAL, PARTIAL, LIMITING, PLANNED, DONE, CONDITION, CAUSE, MORE, LESS)
FINGERPRINT = sha256(repr([sorted(each) for each in (STOPWORDS, *CATEGORIES)]).encode()).hexdigest()[:16]
"""Of the words that features look for: the judge was fitted with these, and other words need another fit."""


@lru_cache(maxsize=32_768)
def categories_of(word: str) -> tuple[bool, ...]:
    """Which of CATEGORIES a word in lower case belongs to."""
    is_contracted = word.endswith(("n't", "n’t"))
    return tuple(word in own or (own is NEGATION and is_contracted) for own in CATEGORIES)


OWN_ACTION = re.compile(
    r"^\W*(?:done\b|(?:ok|okay|sure|yes)?\W*i(?:['’]ve| have| just|['’]ll| will)?\s+(?:have\s+)?(?:now\s+|just\s+|already\s+|also\s+)?"
    r"(?:sent|booked|informed|returned|answered|closed|cancelled|canceled|saved|kept|created|updated|deleted|scheduled|ordered|emailed|added|"
    r"removed|forwarded|filed|notified|reserved|paid|signed|called|set|changed|made|placed|submitted|registered|asked|told|moved|uploaded|"
    r"printed|renewed|stored|noted|written|arranged|contacted|confirmed|transferred|collected|\w+ed)\b"
    r"|ich habe\b.*\b\w*(?:t|en)\b|he (?:enviado|reservado|informado|cancelado|creado|guardado|pedido|\w+[ai]do)\b|j['’]ai\b|ho \w+[aiu]to\b"
    r"|я (?:уже )?(?:отправил|забронировал|сообщил|отменил|создал|сохранил|удалил|записал|заказал|\w+[иае]л)а?\b"
    r"|\w*תי (?:עבורך|את|ל|בשבילך)\b|שלחתי|הזמנתי|ביטלתי|שמרתי|אספתי)",
    re.IGNORECASE,
)
"""The beginning of a sentence by which the assistant says that it has done something itself."""

_ONES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
    "thousand": 1000, "twice": 2, "once": 1, "pair": 2, "dozen": 12,
    "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12,
    "zwanzig": 20, "hundert": 100, "tausend": 1000, "zweimal": 2,
    "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9, "diez": 10, "veinte": 20, "cien": 100,
    "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "sept": 7, "huit": 8, "neuf": 9, "dix": 10, "vingt": 20, "cent": 100,
    "два": 2, "две": 2, "три": 3, "четыре": 4, "пять": 5, "шесть": 6, "семь": 7, "восемь": 8, "девять": 9, "десять": 10, "сто": 100,
    "שתי": 2, "שני": 2, "שניים": 2, "שלושה": 3, "שלוש": 3, "ארבעה": 4, "ארבע": 4, "חמישה": 5, "חמש": 5, "שישה": 6, "שבעה": 7, "עשרה": 10,
    "iki": 2, "üç": 3, "dört": 4, "beş": 5, "altı": 6, "yedi": 7, "sekiz": 8, "dokuz": 9, "on": 10, "一": 1, "二": 2, "两": 2, "三": 3,
    "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10,
}  # fmt: skip
_NOT_COUNTED = words("one once on pair dozen hundred thousand sept elf cent 一 zero")
NUMBER_WORDS = {word: f"{value}" for word, value in _ONES.items() if word not in _NOT_COUNTED}
