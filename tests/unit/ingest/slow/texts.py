"""Tables, e-mails, chats and plain texts that are made to be slow."""

import struct
import zlib
from collections.abc import Callable

from tests.unit.ingest.outlook_files import msg_of
from tests.unit.ingest.slow.case import SENTENCE, SlowFile, text_of


def _mail(headers: str, body: str = "The ferry leaves at seven.") -> bytes:
    return f"From: a@example.com\nSubject: Ferries\n{headers}\n{body}\n".encode()


def _nested_mail(n: int) -> bytes:
    head = "".join(f"--b{i}\nContent-Type: multipart/mixed; boundary=b{i + 1}\n\n" for i in range(60))
    return _mail("Content-Type: multipart/mixed; boundary=b0\n", head + "--b60\n\n" + "x\n" * n)


def _telegram(message: Callable[[int], str]) -> Callable[[int], bytes]:
    def make(n: int) -> bytes:
        first = '{"id": 999999999, "type": "message", "from": "b", "text": "' + "long " * n + '"}'
        further = "".join(f', {{"id": {i}, "type": "message", "from": "a", {message(i)}}}' for i in range(n))
        return f'{{"name": "c", "type": "personal_chat", "id": 1, "messages": [{first}{further}]}}'.encode()

    return make


def _rtf(body: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda n: f"{{\\rtf1 {body(n)}}}".encode()


def _copies(n: int) -> bytes:
    """A message whose rich text is made of copies of what was just unpacked."""
    places = [(207 + 17 * i - 100) % 4096 << 4 | 15 for i in range(8 * n)]
    content = b"".join(b"\xff" + struct.pack(">8H", *places[at : at + 8]) for at in range(0, 8 * n, 8))
    crc = zlib.crc32(content, 0xFFFFFFFF) ^ 0xFFFFFFFF
    return msg_of({0x0037: "a"}, binary={0x1009: struct.pack("<II4sI", len(content) + 12, 0, b"LZFu", crc) + content})


TEXTS = {
    "csv: columns": SlowFile("a.csv", 10_000, text_of(lambda n: ",".join(f"c{i}" for i in range(n)) + "\n" + "x," * n)),
    "csv: header wider than rows": SlowFile(
        "a.csv", 5_000, text_of(lambda n: ",".join(f"c{i}" for i in range(n)) + "\n" + "x,y\n" * n)
    ),
    "csv: one cell": SlowFile("a.csv", 20_000, text_of(lambda n: f"a,b\n1,{'word ' * n}")),
    "csv: one cell of digits": SlowFile("a.csv", 200_000, text_of(lambda n: f"{'1' * n}x,b\n1,2\n")),
    "csv: quotes": SlowFile("a.csv", 30_000, text_of(lambda n: '"' * n)),
    "mail: headers": SlowFile("a.eml", 10_000, lambda n: _mail("X-A: b\n" * n)),
    "mail: one header": SlowFile("a.eml", 1_000_000, lambda n: _mail(f"To: {'a' * n}\n")),
    "mail: header of many lines": SlowFile("a.eml", 50_000, lambda n: _mail(f"To: a\n{' b' * 20}\n" + " c\n" * n)),
    "mail: nested parts": SlowFile("a.eml", 5_000, _nested_mail),
    "mail: base64 that is none": SlowFile(
        "a.eml", 200_000, lambda n: _mail("Content-Transfer-Encoding: base64\n", "ab=\ufffd=\n" * n)
    ),
    "mail: punycode": SlowFile(
        "a.eml", 30_000, lambda n: _mail("Content-Type: text/plain; charset=punycode\n", "ab-" + "9a" * n)
    ),
    "json: nested": SlowFile("a.json", 100_000, text_of(lambda n: '{"name": "x", "messages": ' + "[" * n)),
    "json: replies": SlowFile(
        "a.json", 500, _telegram(lambda i: f'"text": "answer {i}", "reply_to_message_id": 999999999')
    ),
    "rtf: fonts without letters": SlowFile("a.rtf", 5_000, _rtf(lambda n: r"{\fonttbl" + r"\f1" * n + "}x")),
    "rtf: fonts without ends": SlowFile("a.rtf", 5_000, _rtf(lambda n: r"{\fonttbl" + r"\f1\fcharset1 a" * n + "}x")),
    "rtf: fonts behind a picture": SlowFile(
        "a.rtf", 5_000, _rtf(lambda n: r"{\pict{\fonttbl}{\pi\pict}ct{\fonttbl" + r"\f1" * n + "}x")
    ),
    "rtf: links": SlowFile("a.rtf", 2_000, _rtf(lambda n: r'{\field{\*\fldinst{HYPERLINK "a"' * n)),
    "rtf: links that close": SlowFile(
        "a.rtf", 1_000, _rtf(lambda n: r'{\field{\*\fldinst{HYPERLINK "a"}}{\fldrslt x}} ' * n)
    ),
    "rtf: pictures": SlowFile("a.rtf", 5_000, _rtf(lambda n: r"{\pict\bin0 " * n)),
    "msg: copies of copies": SlowFile("a.msg", 1_000, _copies),
    "text: one line": SlowFile("a.txt", 10_000, text_of(lambda n: "word " * n)),
    "text: one word": SlowFile("a.txt", 50_000, text_of(lambda n: "w" * n)),
    "text: lines": SlowFile("a.txt", 1_500, text_of(lambda n: f"{SENTENCE}\n" * n)),
    "text: sentences": SlowFile("a.txt", 5_000, text_of(lambda n: "Ab. " * n)),
    "text: empty lines": SlowFile("a.txt", 100_000, text_of(lambda n: "\n" * n + "a\n" + " " * n + "b")),
    "text: marks": SlowFile("a.txt", 20_000, text_of(lambda n: "a" + "\u0301\u0323" * n)),
}
