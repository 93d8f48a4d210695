"""Writes small PDFs for tests: lines of Helvetica, one page after the other."""

from collections.abc import Mapping, Sequence

_COLOURS = b"/ColorSpace /DeviceRGB /BitsPerComponent 8"
_BOLD_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>"
_GLYPH_FONT = (
    b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /None /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity)"
    b" /Supplement 0 >> /DW 500 /FontDescriptor << /Type /FontDescriptor /FontName /None /Flags 4 /Ascent 800 /Descent -200"
    b" /CapHeight 700 /ItalicAngle 0 /StemV 80 /FontBBox [0 -200 1000 800] >> >>"
)


def pdf_of_contents(
    contents: Sequence[str], *, to_unicode: str = "", rotate: int = 0, crop: str = "0 0 612 792", jpeg: bytes = b""
) -> bytes:
    """A PDF whose pages hold these content streams. /F1 is Helvetica, /F3 the same in bold; /F2 has glyphs of half an em whose
    characters the CMap `to_unicode` gives (no CMap: a font that does not say); /Im is `jpeg`, of 850 x 1100 pixels. `crop` is
    the part of a page that is seen."""
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Font /Subtype /Type0 /BaseFont /None /Encoding /Identity-H /DescendantFonts [5 0 R]%s >>"
        % (b" /ToUnicode 6 0 R" if to_unicode else b""),
        _GLYPH_FONT,
        _stream(to_unicode.encode()),
        _stream(jpeg, b"/Type /XObject /Subtype /Image /Width 850 /Height 1100 %s /Filter /DCTDecode" % _COLOURS),
    ]
    kids = []
    for content in contents:
        objects.append(_stream(content.encode("latin-1")))
        image = b" /XObject << /Im 7 0 R >>" if jpeg else b""
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /CropBox [%s] /Rotate %d /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R /F2 4 0 R /F3 %s >>%s >> >>"
            % (crop.encode(), rotate, len(objects), _BOLD_FONT, image)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    return _assembled(objects)


def shown(text: str, x: float, y: float, *, size: float = 11, font: str = "F1") -> str:
    """Operators that paint a line of Helvetica at x, y from the bottom left."""
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET\n"


def glyphs(codes: Sequence[int], x: float, y: float, *, size: float = 12) -> str:
    """Operators that paint glyphs of /F2 from x to the right."""
    return f"BT /F2 {size} Tf 1 0 0 1 {x} {y} Tm <{''.join(f'{code:04x}' for code in codes)}> Tj ET\n"


def character_map(letters: Mapping[int, str]) -> str:
    """A ToUnicode CMap: glyph to characters, several for a ligature."""
    pairs = "\n".join(f"<{code:04x}> <{text.encode('utf-16-be').hex()}>" for code, text in letters.items())
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def 1 begincodespacerange <0000> <ffff> "
        f"endcodespacerange {len(letters)} beginbfchar\n{pairs}\nendbfchar endcmap end end"
    )


def form_of(content: str, fields: Mapping[str, tuple[str, float, float]], comments: Sequence[str] = ()) -> bytes:
    """A PDF whose page has fields of text with these values at x, y from the bottom left, and comments."""
    annotations = [
        f"<< /Type /Annot /Subtype /Widget /FT /Tx /T ({name}) /V ({value}) /Rect [{x} {y} {x + 180} {y + 16}] /F 4"
        " /DA (/F1 11 Tf 0 g) >>"
        for name, (value, x, y) in fields.items()
    ]
    annotations += [
        f"<< /Type /Annot /Subtype /Text /Contents ({each}) /Rect [500 700 520 720] >>" for each in comments
    ]
    numbers = range(6, 6 + len(annotations))
    places = " ".join(f"{number} 0 R" for number in numbers)
    fonts = "<< /Font << /F1 3 0 R >> >>"
    return _assembled(
        [
            f"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [{places}] /DA (/F1 11 Tf 0 g) /DR {fonts} >> >>".encode(),
            b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            _stream(content.encode("latin-1")),
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources {fonts}"
            f" /Annots [{places}] >>".encode(),
            *(annotation.encode("latin-1") for annotation in annotations),
        ]
    )


def buttons_of(content: str, buttons: Sequence[tuple[str, str, bool, float, float]]) -> bytes:
    """A PDF whose page has check boxes: name, value, whether it is on, x and y from the bottom left. Names of several are radio
    buttons."""
    names = [name for name, *_ in buttons]
    annotations = []
    for name, value, is_on, x, y in buttons:
        flags = 1 << 15 if names.count(name) > 1 else 0
        state = value if is_on else "Off"
        annotations.append(
            f"<< /Type /Annot /Subtype /Widget /FT /Btn /Ff {flags} /T ({name}) /V /{state} /AS /{state} /F 4"
            f" /Rect [{x} {y} {x + 12} {y + 12}] /AP << /N << /{value} 6 0 R /Off 7 0 R >> >> >>"
        )
    places = " ".join(f"{number} 0 R" for number in range(8, 8 + len(annotations)))
    fonts = "<< /Font << /F1 3 0 R >> >>"
    box = b"/Type /XObject /Subtype /Form /BBox [0 0 12 12] /Resources << /Font << /F1 3 0 R >> >>"
    return _assembled(
        [
            f"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [{places}] /DR {fonts} >> >>".encode(),
            b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            _stream(content.encode("latin-1")),
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources {fonts}"
            f" /Annots [{places}] >>".encode(),
            _stream(b"BT /F1 10 Tf 2 2 Td (4) Tj ET", box),
            _stream(b"", box),
            *(annotation.encode("latin-1") for annotation in annotations),
        ]
    )


def ruled(
    rows: Sequence[Sequence[str]], top: float, *, left: float = 72, width: float = 140, height: float = 20
) -> str:
    """Operators that paint a table with all its rules, its first row at `top` from the bottom."""
    columns = max(map(len, rows))
    bottom, right = top - height * len(rows), left + width * columns
    lines = [f"{left} {top - height * n} m {right} {top - height * n} l S" for n in range(len(rows) + 1)]
    lines += [f"{left + width * n} {bottom} m {left + width * n} {top} l S" for n in range(columns + 1)]
    texts = (
        shown(cell, left + width * x + 4, top - height * (y + 1) + 6)
        for y, row in enumerate(rows)
        for x, cell in enumerate(row)
        if cell
    )
    return "\n".join(lines) + "\n" + "".join(texts)


def _stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries, len(data), data)


def _assembled(objects: Sequence[bytes]) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
