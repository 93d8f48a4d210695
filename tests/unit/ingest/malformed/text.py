"""Text in wrong encodings and odd lengths, tables out of shape."""

from collections.abc import Iterator

from tests.unit.ingest.malformed.case import MANY, WORDS, BadFile
from tests.unit.ingest.malformed.good import telegram_export, telegram_message


def encodings() -> Iterator[BadFile]:
    words = WORDS.encode()
    for kind in ("txt", "md", "html", "csv", "json", "docx", "pptx", "xlsx", "epub", "pdf"):
        yield BadFile(f"empty.{kind}", lambda: b"", "EMPTY_FILE")
    for kind in ("txt", "md", "html", "csv"):
        yield BadFile(f"blank.{kind}", lambda: b" \n\t \r\n\n" * 50, "NO_TEXT")
    yield BadFile("only-bom.txt", lambda: b"\xef\xbb\xbf", "NO_TEXT")
    yield BadFile("controls.txt", lambda: b"\x07\x08\x0b\x0c\x1b" * 100, "NO_TEXT")
    yield BadFile("nuls-inside.txt", lambda: words + b"\0\0" + words * 20, keeps=WORDS)
    yield BadFile("nuls.txt", lambda: bytes(5000), "UNSUPPORTED_TYPE")
    yield BadFile("surrogates.txt", lambda: words + b" \xed\xa0\x80 \xed\xbf\xbf", keeps=WORDS)
    yield BadFile(
        "surrogates.json", lambda: telegram_export(telegram_message(1, rf'"{WORDS} \ud800 \udfff"')), keeps=WORDS
    )
    yield BadFile("overlong.txt", lambda: words + b" \xc0\xaf\xe0\x80\xaf \xf8\x88\x80\x80\x80", keeps=WORDS)
    yield BadFile("invalid.html", lambda: b"<p>" + words + b" \xff\xfe\x80</p>", keeps=WORDS)
    yield BadFile("invalid.csv", lambda: b"a,b\n" + words + b",\xff\xc3\n", keeps=WORDS)
    yield BadFile("utf16-without-mark.txt", lambda: WORDS.encode("utf-16-le"), keeps=WORDS)
    yield BadFile("utf16-half-a-character.txt", lambda: WORDS.encode("utf-16") + b"\x41", keeps=WORDS)
    yield BadFile("utf16-surrogates.txt", lambda: b"\xff\xfe" + WORDS.encode("utf-16-le") + b"\x00\xd8", keeps=WORDS)
    yield BadFile("utf32.txt", lambda: WORDS.encode("utf-32"), keeps=WORDS)
    yield BadFile("two-marks.txt", lambda: b"\xef\xbb\xbf\xef\xbb\xbf" + words, keeps=WORDS)
    yield BadFile("mark-of-another.txt", lambda: b"\xef\xbb\xbf" + WORDS.encode("utf-16-le"))
    yield BadFile("mixed.txt", lambda: words + b"\n\n" + "größer".encode("cp1252") + "größer".encode(), keeps=WORDS)
    yield BadFile("declares-wrongly.html", lambda: b'<meta charset="utf-16"><p>' + words + b"\xe4</p>", keeps=WORDS)
    yield BadFile("one-line.txt", lambda: words + b" " + b"x" * 400_000, keeps=WORDS)
    yield BadFile("one-line-of-words.md", lambda: words + b" word" * 100_000, keeps=WORDS)
    yield BadFile("marks.txt", (WORDS + " a" + "\u0315\u0300\u05ae" * 60_000).encode, keeps=WORDS)
    yield BadFile("directions.txt", (WORDS + " \u202e\u2066\u200f" * 50_000).encode, keeps=WORDS)
    yield BadFile("line-ends.txt", lambda: words + b"\r\n\r\x0b\x0c\n" * 50_000, keeps=WORDS)
    yield BadFile("dashes.md", lambda: words + b"\n" + b"-" * 300_000, keeps=WORDS)
    yield BadFile("front-matter.md", lambda: b"---\n" + b"title: x\n" * 10_000 + words, keeps=WORDS)
    yield BadFile("open-comment.html", lambda: b"<p>" + words + b"</p><!--" + b"-" * MANY, keeps=WORDS)
    yield BadFile("open-script.html", lambda: b"<p>" + words + b"</p><script>" + b"x" * MANY, keeps=WORDS)
    yield BadFile("attributes.html", lambda: b"<p " + b"a=1 " * MANY + b">" + words + b"</p>", keeps=WORDS)
    yield BadFile("entities.html", lambda: b"<p>" + words + b"&#0;&#xD800;&#99999999999;&bogus;" * 1000, keeps=WORDS)
    yield BadFile(
        "empty-elements.xhtml",
        lambda: b"<?xml version='1.0'?><html><head><title/></head><p>" + words + b"<a" + b"a" * MANY,
        keeps=WORDS,
    )


def tables() -> Iterator[BadFile]:
    words = WORDS.encode()
    yield BadFile(
        "wide.csv", lambda: b",".join(b"c%d" % i for i in range(MANY)) + b"\n" + words + b",1" * MANY, keeps=WORDS
    )
    yield BadFile("ragged.csv", lambda: b"a,b\n" + b"".join(words + b",x" * i + b"\n" for i in range(150)), keeps=WORDS)
    yield BadFile("open-quote.csv", lambda: b"a,b\n1," + words + b'\n2,"open ' + b"x,y\n" * 20_000, keeps=WORDS)
    yield BadFile("quotes.csv", lambda: b"a,b\n" + words + b"," + b'"' * 100_001, keeps=WORDS)
    yield BadFile("delimiters.csv", lambda: b"," * 200_000, "NO_TEXT")
    yield BadFile("header-only.csv", lambda: b"a,b," + words + b"\n", keeps=WORDS)
    yield BadFile("nuls.csv", lambda: b"a,b\n" + words + b"\0,2\n", keeps=WORDS)
    yield BadFile("long-field.csv", lambda: b"a,b\n" + words + b"," + b"y" * 200_000, keeps=WORDS)
    yield BadFile("long-header.csv", lambda: b"h" * 100_000 + b",b\n" + (b"1," + words + b"\n") * 500, keeps=WORDS)
    yield BadFile("carriage-returns.csv", lambda: b"a,b\r1," + words + b"\r" * 1000, keeps=WORDS)
    yield BadFile("formulas.csv", lambda: b"a,b\n=cmd|'/c calc'!A0," + words + b"\n", keeps=WORDS)


def mails() -> Iterator[BadFile]:
    head = "From: Anna <a@x.org>\nSubject: Ferries\n"
    multipart = head + "Content-Type: multipart/mixed; boundary=b\n\n"
    plain = f"--b\nContent-Type: text/plain\n\n{WORDS}\n"

    def mail(name: str, text: str, keeps: str = WORDS) -> BadFile:
        return BadFile(f"{name}.eml", text.encode, keeps=keeps)

    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n" for i in range(3000))
    yield BadFile("nested-parts.eml", (head + deep + "\nend").encode, "TOO_DEEPLY_NESTED")
    yield mail("many-parts", multipart + plain + "--b\n\nx\n" * 3000)
    yield mail("no-boundary", f"{head}Content-Type: multipart/mixed\n\n{WORDS}")
    yield mail("open-boundary", multipart + plain)
    yield mail("same-boundary", multipart + plain + "--b\nContent-Type: multipart/mixed; boundary=b\n\n" + plain)
    yield mail("unknown-charset", f"{head}Content-Type: text/plain; charset=klingon\n\n{WORDS}")
    yield mail("no-base64", multipart + plain + "--b\nContent-Transfer-Encoding: base64\n\n%%%not base64%%%\n--b--")
    yield mail(
        "odd-headers", "From: <<>>@,;(\nTo: =?utf-8?b?%%%?= =?x?y?z?=\nDate: 99 Nov 99999\nSubject: x\n\n" + WORDS
    )
    yield mail("long-header", f"{head}X: {'=?utf-8?q?a?= ' * 20_000}\n\n{WORDS}")
    yield mail("many-addresses", f"{head}To: {'a@b.c, ' * 5000}\n\n{WORDS}")
    yield mail("open-comments", f"{head}To: {'(' * 5000}\n\n{WORDS}")
    yield mail(
        "odd-file-name",
        multipart + plain + "--b\nContent-Disposition: attachment; filename*0*=x''%zz; filename*5=a\n\ny\n--b--",
    )
    yield BadFile("no-mail.eml", WORDS.encode, "MAIL_BROKEN")
