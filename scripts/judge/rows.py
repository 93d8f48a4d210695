# ruff: noqa: E501 - lists of words and pairs are read across
"""Makes lists of rows in several languages and claims about them, true and false: values, comparisons, extremes, rows of others."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RowClaim:
    """A claim about a list."""

    passage: str
    claim: str
    is_true: bool
    kind: str
    language: str


@dataclass(frozen=True)
class _Tongue:
    key: str
    items: Sequence[str]
    columns: Sequence[tuple[str, str, str, str]]
    """Name, unit, "more" and "less" of it."""
    value: Sequence[str]
    compare: str
    most: str
    least: str


_TONGUES = {
    "en": _Tongue(
        "Item", ("oak chair", "steel lamp", "wool rug", "Harbour room", "Garden room", "Blue line", "Red line", "drill", "saw", "basic plan", "pro plan",
                 "Lake cabin", "model A3", "model B7", "rye bread", "plum jam", "north trail", "river trail", "Otter pump", "Lynx pump"),
        (("Price", "euros", "more expensive", "cheaper"), ("Weight", "kg", "heavier", "lighter"), ("Length", "cm", "longer", "shorter"),
         ("Duration", "minutes", "longer", "shorter"), ("Depth", "m", "deeper", "shallower"), ("Fee", "dollars", "higher in price", "lower in price"),
         ("Seats", "", "larger", "smaller"), ("Share", "%", "greater", "smaller")),
        ("The {column} of the {item} is {value} {unit}.", "The {item} has a {column} of {value} {unit}.", "{item}: the {column} is {value} {unit}.",
         "For the {item}, the {column} is {value} {unit}."),
        "The {a} is {word} than the {b}.", "Of all, the {a} has the highest {column}.", "The {a} has the lowest {column}."),
    "de": _Tongue(
        "Artikel", ("Eichenstuhl", "Stahllampe", "Wollteppich", "Hafenzimmer", "Gartenzimmer", "Linie Blau", "Linie Rot", "Bohrer", "Säge", "Basistarif"),
        (("Preis", "Euro", "teurer", "billiger"), ("Gewicht", "kg", "schwerer", "leichter"), ("Länge", "cm", "länger", "kürzer"), ("Dauer", "Minuten", "länger", "kürzer")),
        ("{column} von {item}: {value} {unit}.", "{item} hat als {column} {value} {unit}.", "Bei {item} beträgt der Wert für {column} {value} {unit}."),
        "{a} ist {word} als {b}.", "{a} hat den höchsten Wert bei {column}.", "{a} hat den niedrigsten Wert bei {column}."),
    "es": _Tongue(
        "Artículo", ("silla de roble", "lámpara de acero", "alfombra de lana", "sala del puerto", "línea azul", "línea roja", "taladro", "sierra", "tarifa básica"),
        (("Precio", "euros", "más caro", "más barato"), ("Peso", "kg", "más pesado", "más ligero"), ("Duración", "minutos", "más largo", "más corto")),
        ("{column} de {item}: {value} {unit}.", "{item} tiene {column} de {value} {unit}.", "El valor de {column} para {item} es {value} {unit}."),
        "{a} es {word} que {b}.", "{a} tiene el valor más alto de {column}.", "{a} tiene el valor más bajo de {column}."),
    "ru": _Tongue(
        "Услуга", ("дубовый стул", "стальная лампа", "шерстяной ковёр", "синяя линия", "красная линия", "дрель", "пила", "базовый тариф", "стрижка", "мойка окон"),
        (("Цена", "рублей", "дороже", "дешевле"), ("Вес", "кг", "тяжелее", "легче"), ("Срок", "дней", "дольше", "быстрее")),
        ("{column}: {item} — {value} {unit}.", "{column} «{item}» — {value} {unit}.", "Для «{item}» {column} составляет {value} {unit}."),
        "{a} {word}, чем {b}.", "У «{a}» самое высокое значение: {column}.", "У «{a}» самое низкое значение: {column}."),
    "he": _Tongue(
        "פריט", ("כיסא עץ", "מנורת פלדה", "שטיח צמר", "קו כחול", "קו אדום", "מקדחה", "מסור", "תספורת", "ניקוי חלונות"),
        (("מחיר", "שקלים", "יקר יותר", "זול יותר"), ("משקל", "קילוגרם", "כבד יותר", "קל יותר"), ("זמן", "דקות", "ארוך יותר", "קצר יותר")),
        ("ה{column} של {item} הוא {value} {unit}.", "{item}: {column} {value} {unit}.", "פריט {item}: ה{column} הוא {value} {unit}."),
        "{a} {word} מאשר {b}.", "ל{a} ה{column} הגבוה ביותר.", "ל{a} ה{column} הנמוך ביותר."),
}  # fmt: skip
_WRONG_UNITS = {"kg": "g", "cm": "m", "m": "km", "minutes": "hours", "Minuten": "Stunden", "minutos": "horas", "дней": "часов", "кг": "г", "דקות": "שעות",
                "euros": "cents", "dollars": "cents", "%": "‰"}  # fmt: skip


def row_claims(count: int, rng: random.Random) -> Iterator[RowClaim]:
    """Claims about `count` lists."""
    for number in range(count):
        language = ("en", "en", "en", *_TONGUES)[number % (len(_TONGUES) + 3)]
        yield from _about_one(language, _TONGUES[language], rng)


def _about_one(language: str, tongue: _Tongue, rng: random.Random) -> Iterator[RowClaim]:
    items = rng.sample(tongue.items, rng.choice([3, 3, 4, 5]))
    columns = rng.sample(tongue.columns, 2)
    values = {
        (item, column[0]): rng.choice([rng.randint(2, 40), rng.randint(20, 999)])
        for item in items
        for column in columns
    }
    lines = [
        f"{tongue.key}: {item}; "
        + "; ".join(f"{name}: {values[item, name]} {unit}".strip() for name, unit, *_ in columns)
        for item in items
    ]
    passage = "\n".join(lines)

    def say(item: str, name: str, value: int, unit: str) -> str:
        text = rng.choice(tongue.value).format(
            column=name.lower() if language == "en" else name, item=item, value=value, unit=unit
        )
        return text.replace(" .", ".")

    item, other = rng.sample(items, 2)
    name, unit, more, less = rng.choice(columns)
    value, others = values[item, name], values[other, name]
    yield RowClaim(passage, say(item, name, value, unit), True, "row", language)
    if value != others:
        yield RowClaim(passage, say(item, name, others, unit), False, "row of another", language)
        word = more if value > others else less
        wrong = less if value > others else more
        yield RowClaim(passage, tongue.compare.format(a=item, b=other, word=word), True, "comparison", language)
        yield RowClaim(passage, tongue.compare.format(a=item, b=other, word=wrong), False, "comparison", language)
    made = value + rng.choice([-1, 1, 2, 5, 10, 30])
    if made not in values.values():
        yield RowClaim(passage, say(item, name, made, unit), False, "row number", language)
    if unit in _WRONG_UNITS:
        yield RowClaim(passage, say(item, name, value, _WRONG_UNITS[unit]), False, "row unit", language)
    best = max(items, key=lambda each: values[each, name])
    rest = rng.choice([each for each in items if each != best])
    shown = name.lower() if language == "en" else name
    yield RowClaim(passage, tongue.most.format(a=best, column=shown), True, "extreme", language)
    yield RowClaim(passage, tongue.most.format(a=rest, column=shown), False, "extreme", language)
