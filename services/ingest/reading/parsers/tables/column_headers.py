"""Decides whether the first row of a table names its columns, or is the first of its records: a form of labels and values has no
names of columns. What the file says counts most; else the shape of the rows does."""

import re
from collections.abc import Iterator, Mapping, Sequence

from services.ingest.reading.parsers.tables.table_values import can_name_columns, is_period, is_value

SAYS_HEADER, SAYS_NONE = 4.0, -4.0
"""What the style of a table, or bold type in its first row, adds to the score of the shape."""
ROWS_LOOKED_AT = 40
_WIDE_TABLE = 3.0
"""Bonus of a table of three columns or more: forms seldom have them."""
_LONG_NAME = 40
_MUCH_LONGER = 3
"""Times that the usual cell is longer than the name of its column."""
_MIN_LABELS, _LABEL_SHARE = 2, 0.34
_MOST_WORDS = 5
"""Of a label."""
_LABELS = frozenset(
    re.findall(
        r"\S+",
        """
    account acknowledgement action activity address adresse age agent allergies amount applicant apellidos approval
    approved author authority betrag birth birthday branch brand budget building buyer capacity captain cargo carrier
    case category cause cell charge circumstances city class client code color colour comment comments company condition
    consequence contact contract cost country course created currency customer datum date deadline decision delivery
    department depth description destination diagnosis director disposition dose duration edition email e-mail employee
    employer end engineer entry equipment event expires extension fax fecha firma first flag format frequency from
    gender goods grade group guest handover harbour head height holder hotline hours iban id injured injury inspector
    institution insurance invoice isbn issuer job keeper kind kunde landlord language last length level licence license
    lieferant limit line location maker manager manufacturer material measure measures medication member method mobile
    model name namen nom nombre nationality note notes number no nr nummer object occupation office officer operator
    order organisation organization origin ort outcome owner part partner party passport patient payment person phone
    pilot place plate policy port position post postcode power price prioridad priority product profession project
    proprietor province publisher purpose quantity reason receiver reference reg region registration remarks rent result
    role room route sector sender serial service sex shift ship signature signed site size skipper source speed start
    state status street subject supervisor supplier surname system tax team tel telefon telephone telefono teléfono
    tenant term time title to topic total town trainer transport type unit until url user valid validity value vat
    vehicle vendor venue version vessel visitor voltage volume warranty website weight width witness workplace year zip
    abteilung anschrift anzahl auftrag beginn bemerkung beruf beschreibung dauer ende ergebnis farbe frist gebühr
    geburtsdatum geschlecht gewicht größe grund hersteller kategorie konto kontakt kosten kundennummer land leiter
    lieferung menge mieter preis projekt rechnung stadt straße stelle termin thema titel typ unterschrift verletzte
    vorname wohnort zeit zeuge ziel zweck ville pays prénom téléphone montant prix objet lieu durée poids taille auteur
    éditeur ciudad país precio cliente lugar motivo cantidad autor peso città paese prezzo luogo naam plaats adres
    by checked customer durch par por quote quotation reviewed signed tender von
    bedrag prijs imię nazwisko miasto kwota cena klient miejsce nome cidade preço local
        """,
    )
)
"""What the labels of forms are called by: their first or last word."""
_NAMES = _LABELS | frozenset(
    re.findall(
        r"\S+",
        """
    attribute answer answers article bedeutung beschreibung comment cups definition detail details eigenschaft english
    explanation feld feature field française french german item key label meaning merkmal month monat day tag parameter
    population property question quantity qty rate rating reading score setting share spanish stock students symbol term
    translation unit valeur valor value wert word year jahr antwort frage anteil artikel begriff
        """,
    )
)
"""What columns are called by."""
_PLAIN_NAMES = frozenset(
    re.findall(
        r"\S+",
        "value wert valeur valor waarde wartość valore details detail description beschreibung definition meaning answer antwort",
    )
)
_KEYS = frozenset(
    re.findall(
        r"\S+",
        """
    attribute begriff eigenschaft feature feld field frage item key merkmal parameter property question setting symbol
    term variable
        """,
    )
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_WRITTEN_NAME = re.compile(r"^[^\W\d_]+\.?(?:\s(?:van|von|de|der|da|di|la|le|of)\b)?(?:\s[^\W\d_]+\.?){1,3}$")
_IDENTIFIER = re.compile(r"^[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*$")
_DIGITS = re.compile(r"\d+")
_ADDRESS = re.compile(r"@|^https?://|^www\.")


def names_columns(rows: Sequence[Sequence[str]], marks: float = 0.0) -> bool:
    """Whether the first row names the columns of those below it. `marks`: what the file says, for a header or against one."""
    if len(rows) < 2 or not can_name_columns(rows[0], rows[1]):
        return False
    return marks + header_score(rows) > 0


def header_score(rows: Sequence[Sequence[str]]) -> float:
    """How much the shape of the rows speaks for a header: above zero, or against one. Rows have cells from left to right, "" for
    an empty one."""
    first, body = rows[0], rows[1 : ROWS_LOOKED_AT + 1]
    label, others = first[0], [cell for cell in first[1:] if cell]
    if not label or (rows[1][0] == "" and sum(map(bool, rows[1])) > 1):  # names below the first ones
        return SAYS_HEADER
    width = max((sum(map(bool, row)) for row in rows[:ROWS_LOOKED_AT]), default=0)
    if _holds_pairs(rows, width):
        return SAYS_NONE
    score = _WIDE_TABLE if width > 2 else 0.0
    if _are_numbered(first) and not _are_numbered(rows[1]):
        score += 2.0
    else:
        score += sum(_score_of_first(label, cell) for cell in others) / max(len(others), 1)
    score += _score_of_labels([row[0] for row in (first, *body) if row and row[0]]) / (2 if width > 2 else 1)
    score += max((_score_of_values(first, body, column) for column in range(1, len(first))), default=0.0)
    return score


def _holds_pairs(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether every second column holds labels, as forms with two labels in a row have it."""
    labels = [cell for row in rows for cell in row[::2] if cell]
    return width > 2 and width % 2 == 0 and all(map(is_label, labels))


def _are_numbered(row: Sequence[str]) -> bool:
    """Whether the cells differ in their numbers only: `Column 1`, `Column 2`."""
    shapes = {_DIGITS.sub("#", cell) for cell in row if cell}
    return len(shapes) == 1 and "#" in next(iter(shapes))


def _score_of_first(label: str, cell: str) -> float:
    """What the cells of the first row say of themselves."""
    words, known = _words(cell), _names_something(cell)
    score = 0.0
    if is_period(cell):
        return 2.0
    if known:
        score += 3.0 if len(words) <= 3 else 1.0
    if label.lower() in _KEYS or cell.lower() in _PLAIN_NAMES:
        score += 2.0
    if any(char.isdigit() for char in cell) or _ADDRESS.search(cell):
        score -= 3.0
    if len(cell) > _LONG_NAME or (cell.endswith((".", ";")) and len(words) > 3):
        score -= 3.0
    if _IDENTIFIER.match(label) and _IDENTIFIER.match(cell):
        score += 1.0
    elif label[:1].isupper() and cell[:1].islower():
        score -= 2.0
    if not known:
        score += (
            -1.5
            if cell[0].isupper() and _WRITTEN_NAME.match(cell)
            else 1.0
            if len(words) == 1 and len(_words(label)) == 1
            else -0.5
        )
    return score


def _score_of_labels(cells: Sequence[str]) -> float:
    """What the first column says: labels of a form are all different, and most name something that a form asks for."""
    if sum(cell.endswith(":") for cell in cells) > 0.5 * len(cells):
        return -6.0
    body = cells[1:]
    if len(set(body)) < len(body):
        return 3.0
    labels = sum(1 for cell in body if not is_value(cell) and is_label(cell))
    score = 0.0
    if labels and labels >= _LABEL_SHARE * len(body):
        score -= 2.0 + 2.0 * labels / len(body)
    elif len(body) >= _MIN_LABELS:
        score += 1.0
    return score + (1.0 if len(body) >= 12 else 0.0)


def _score_of_values(first: Sequence[str], body: Sequence[Sequence[str]], column: int) -> float:
    """What a column below the first row says: one kind of values below a word speaks for a header, many kinds against one."""
    cells = [row[column] for row in body if column < len(row) and row[column]]
    if not cells or not first[column]:
        return 0.0
    kinds = {_kind(cell) for cell in cells}
    if kinds == {_kind(first[column])}:
        return 2.0 if len(set(cells)) < len(cells) and len(cells) > 2 else 0.0
    if len(kinds) == 1 and "words" not in kinds:
        return 3.0 if len(cells) > 1 else 2.0
    is_brief = _MUCH_LONGER * len(first[column]) <= sorted(map(len, cells))[(len(cells) - 1) // 2]
    return 1.0 if is_brief and len(cells) > 1 else -1.0 if len(kinds) > 2 else 0.0


def _kind(cell: str) -> str:
    if is_value(cell):
        return "number"
    if _ADDRESS.search(cell):
        return "address"
    return "numbered" if any(char.isdigit() for char in cell) else "words"


def _names_something(cell: str) -> bool:
    """Whether a cell is the kind of word that columns are called by."""
    words = _words(cell)
    return bool(words) and (words[-1] in _NAMES or words[0] in _NAMES or words[-1].rstrip("s") in _NAMES)


def is_label(cell: str) -> bool:
    """Whether a cell is called as what a form asks for is, or ends with a colon."""
    words = _words(cell)
    is_known = 0 < len(words) <= _MOST_WORDS and any(
        word in _LABELS or word.removesuffix("s") in _LABELS for word in (words[0], words[-1])
    )
    return is_known or cell.endswith(":")


def _words(cell: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(cell[:200])]


def marks_of_type(rows: Sequence[Sequence[bool]]) -> float:
    """What bold type says: a first row in bold above others is a header, a first column in bold beside others is one of labels.
    `rows`: for each cell with text whether all of it is bold."""
    if len(rows) < 2 or not rows[0]:
        return 0.0
    if all(rows[0]):
        return 0.0 if all(map(all, rows)) else SAYS_HEADER
    is_labelled = all(row[0] and not any(row[1:]) for row in rows[:ROWS_LOOKED_AT] if row)
    return SAYS_NONE if is_labelled else 0.0


def unsaid_names(rows: Sequence[Mapping[int, str]], said: Mapping[int, str]) -> Iterator[str]:
    """Cells of header rows that no row below repeats: of empty columns, and those cut for their length. `said`: the names that are
    repeated, by column."""
    parts = {part for name in said.values() for part in name.split(" / ")}
    for row in rows:
        for column, cell in row.items():
            if cell.strip("()[] ") not in said.get(column, "") and cell not in parts:
                yield cell
