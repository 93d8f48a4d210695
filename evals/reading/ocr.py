"""How many characters text recognition gets wrong, by script: pages that are drawn here, in fonts of the system (Debian:
fonts-noto-core, else fonts-dejavu-core, and libfribidi0 for what is written from right to left)."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, features

from services.ingest.adapters.rapidocr import RapidOcr
from services.ingest.adapters.tesseract import ByScript, Tesseract
from services.ingest.reading.recognition import Picture, RecognizedPicture, TextRecognizer

PAGES_EACH = 20
_LINES_EACH = 6
_WIDTH = 1300
_NOTO, _DEJAVU = (Path("/usr/share/fonts/truetype", name) for name in ("noto", "dejavu"))
_PAGE_TIME_LIMIT_S = 600.0


@dataclass(frozen=True)
class Script:
    """Sentences of our own in one script, and the font that they are drawn with."""

    name: str
    font: str
    sentences: tuple[str, ...]
    from_right: bool = False


SCRIPTS = (
    Script(
        "Latin",
        "NotoSans-Regular.ttf",
        (
            "The key of the warehouse is kept by the porter.",
            "Fire doors are inspected every Wednesday at nine.",
            "Each employee has ten days of leave in the first year.",
            "The crane lifts up to 45 tonnes of cargo.",
            "Visitors sign the book at the entrance.",
            "The contract ends on 31 December 2026.",
            "High water is at four in the afternoon.",
            "Please report damage to the harbour office.",
        ),
    ),
    Script(
        "Cyrillic",
        "NotoSans-Regular.ttf",
        (
            "Ключ от склада хранится у дежурного.",
            "Пожарные двери проверяют каждую среду в девять.",
            "В первый год сотрудник имеет десять дней отпуска.",
            "Кран поднимает до 45 тонн груза.",
            "Посетители расписываются в книге у входа.",
            "Договор заканчивается 31 декабря 2026 года.",
            "Полная вода наступает в четыре часа дня.",
            "О повреждениях сообщайте в контору порта.",
        ),
    ),
    Script(
        "Greek",
        "NotoSans-Regular.ttf",
        (
            "Το κλειδί της αποθήκης το έχει ο φύλακας.",
            "Οι πόρτες πυρασφάλειας ελέγχονται κάθε Τετάρτη.",
            "Κάθε υπάλληλος έχει δέκα ημέρες άδεια τον πρώτο χρόνο.",
            "Ο γερανός σηκώνει έως 45 τόνους φορτίου.",
            "Οι επισκέπτες υπογράφουν στο βιβλίο της εισόδου.",
            "Η σύμβαση λήγει στις 31 Δεκεμβρίου 2026.",
            "Η πλημμυρίδα φτάνει στις τέσσερις το απόγευμα.",
            "Αναφέρετε τις ζημιές στο γραφείο του λιμανιού.",
        ),
    ),
    Script(
        "Arabic",
        "NotoNaskhArabic-Regular.ttf",
        (
            "مفتاح المستودع محفوظ عند الحارس.",
            "تفحص أبواب الحريق كل يوم أربعاء في التاسعة.",
            "لكل موظف عشرة أيام إجازة في السنة الأولى.",
            "ترفع الرافعة حمولة كبيرة من البضائع.",
            "يوقع الزوار في السجل عند المدخل.",
            "ينتهي العقد في نهاية شهر ديسمبر.",
            "يرتفع الماء في الساعة الرابعة بعد الظهر.",
            "يرجى إبلاغ مكتب الميناء عن الأضرار.",
        ),
        from_right=True,
    ),
    Script(
        "Hebrew",
        "NotoSansHebrew-Regular.ttf",
        (
            "המפתח של המחסן נמצא אצל השומר.",
            "דלתות האש נבדקות בכל יום רביעי בתשע.",
            "לכל עובד עשרה ימי חופשה בשנה הראשונה.",
            "המנוף מרים מטען כבד מאוד.",
            "המבקרים חותמים בספר ליד הכניסה.",
            "החוזה מסתיים בסוף חודש דצמבר.",
            "הגאות מגיעה בארבע אחר הצהריים.",
            "נא לדווח על נזקים למשרד הנמל.",
        ),
        from_right=True,
    ),
)


class _Remembering:
    """The first recogniser, which reads each picture once: both measurements need it."""

    missing = ""

    def __init__(self, recognizer: TextRecognizer) -> None:
        self._recognizer = recognizer
        self._read: dict[bytes, RecognizedPicture] = {}
        self.scripts = recognizer.scripts

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        key = hashlib.sha256(picture.tobytes()).digest()
        if key not in self._read:
            self._read[key] = self._recognizer.read(picture, time_limit_s)
        return self._read[key]


def error_rates(
    scripts: Sequence[Script] = SCRIPTS, pages: int = PAGES_EACH
) -> Iterator[tuple[str, float | None, float]]:
    """Each script with the share of characters that are wrong: by both recognisers as ingestion has them, and by the first alone;
    None where the data of its languages is not installed."""
    tesseract = Tesseract(threads=1)
    first = _Remembering(RapidOcr(threads=1))
    both = ByScript(first, tesseract)
    for script in scripts:
        drawn = [_page(script, number) for number in range(pages)]
        rates = [_rate(recognizer, drawn, script) for recognizer in (both, first)]
        yield script.name, rates[0] if script.name in ("Latin", *tesseract.readable) else None, rates[1]


def error_table(pages: int = PAGES_EACH) -> Iterator[str]:
    """Lines of a table; or what to install for one."""
    if not _font(SCRIPTS[0]).exists() or not features.check("raqm"):
        yield "text recognition is not measured: install fonts-noto-core and libfribidi0 (names of Debian's packages)"
        return
    yield f"drawn in fonts of {_font(SCRIPTS[0]).parent.name}"
    yield f"{f'wrong characters, {pages} pages each':<36}{'by script':>12}{'first alone':>12}"
    for name, both, first in error_rates(pages=pages):
        yield f"{name:<36}{'not installed' if both is None else f'{both:.3f}':>12}{first:>12.3f}"


def _font(script: Script) -> Path:
    """The script's own font, or the one for all scripts that most systems have."""
    own = _NOTO / script.font
    return own if own.exists() else _DEJAVU / "DejaVuSans.ttf"


def _page(script: Script, number: int) -> tuple[Image.Image, str]:
    """A page of lines, a little askew and noisy as scans are, and its text."""
    rng = random.Random(f"{script.name} {number}")
    lines = [rng.choice(script.sentences) for _ in range(_LINES_EACH)]
    font = ImageFont.truetype(str(_font(script)), rng.randint(24, 38))
    page = Image.new("RGB", (_WIDTH, 90 * _LINES_EACH + 120), "white")
    draw = ImageDraw.Draw(page)
    for row, line in enumerate(lines):
        place = (_WIDTH - 80, 60 + 90 * row) if script.from_right else (80, 60 + 90 * row)
        draw.text(place, line, font=font, fill="black", anchor="ra" if script.from_right else "la")
    askew = page.rotate(rng.uniform(-0.6, 0.6), fillcolor="white", resample=Image.Resampling.BICUBIC)
    noise = np.random.default_rng(number).normal(0, 8, (askew.height, askew.width, 1))
    return Image.fromarray(np.clip(np.asarray(askew) + noise, 0, 255).astype(np.uint8)), "\n".join(lines)


def _rate(recognizer: TextRecognizer, pages: Sequence[tuple[Image.Image, str]], script: Script) -> float:
    wrong = sum(
        _distance(_text(recognizer.read(np.asarray(page)[:, :, ::-1], _PAGE_TIME_LIMIT_S), script), text)
        for page, text in pages
    )
    return wrong / sum(len(text) for _, text in pages)


def _text(read: RecognizedPicture, script: Script) -> str:
    """The lines from above; pieces of one line in the order in which its script is read."""
    rows: dict[int, list[tuple[float, str]]] = {}
    for line in read.lines:
        middle = round(((line.box[1] + line.box[3]) / 2 - 80) / 90)
        rows.setdefault(middle, []).append((-line.box[2] if script.from_right else line.box[0], line.text))
    return "\n".join(" ".join(text for _, text in sorted(rows[row])) for row in sorted(rows))


def _distance(read: str, text: str) -> int:
    """Characters to insert, remove or replace (Levenshtein 1966)."""
    row = list(range(len(text) + 1))
    for i, a in enumerate(read, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(text, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]
