"""Pages within bounds. Building the tree of a page takes time with the square of what some pages are made of: the attributes of one
tag, elements within elements, formatting that is never closed, tags of the body repeated. What no page needs is taken out of the
text before it is parsed; the words stay."""

import re
from collections import Counter

MAX_DEPTH = 500
"""Beyond this the tree is made flat, as browsers do (Blink: 512)."""
_MAX_FORMATTING = 32
"""Formatting elements open at once. The parser opens all of them anew in each paragraph (HTML, 13.2.4.3), and no word needs
them."""
_MAX_ATTRIBUTES = 256
"""Of one tag: each is compared with all before it."""
_MAX_ROOTS = 8
"""Tags of <html> and <body>: the attributes of all are merged into the first."""
_FEW_CHARS = 2 * _MAX_ATTRIBUTES
"""A tag up to this length has no more attributes than that."""

_ATTRIBUTE = r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?+)?+"""
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_TAG = re.compile(rf"<(/?)([A-Za-z][^\s/>]*+)((?:{_ATTRIBUTE})*+)[^>]*+>?")
_UNBOUND = frozenset(
    re.findall(
        r"\w+",
        "p li dd dt tr td th tbody thead tfoot caption colgroup head "  # closed by the next of their kind
        "area base br col embed hr img input link meta param source track wbr",  # hold nothing
    )
)
_FORMATTING = frozenset(re.findall(r"\w+", "a b big code em font i nobr s small strike strong tt u"))
_CHOICES = frozenset(("option", "optgroup"))
"""Nested in each other where they are not closed. Of a <select> only what is chosen is read."""
_SELECTED = re.compile(r"[\s/]selected(?=[\s=/]|$)", re.IGNORECASE)
_ROOTS = frozenset(("html", "body"))
_NOTHING = "<!---->"


def bounded_html(text: str) -> str:
    """The page without the tags and attributes that are beyond all bounds."""
    return _TAG.sub(_Bounds().kept, text)


class _Bounds:
    """What is open, tag by tag."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._open_count: Counter[str] = Counter()
        self._formatting: Counter[str] = Counter()
        self._formatting_count = 0
        self._root_count = 0
        self._is_chosen = False
        """Whether the option that is open is selected."""

    def kept(self, tag: "re.Match[str]") -> str:
        """The tag, shortened, or nothing instead."""
        name = tag[2].lower()
        if name in _UNBOUND:
            return _shortened(tag)
        if name in _CHOICES:
            return self._choose(is_chosen=name == "option" and not tag[1] and bool(_SELECTED.search(tag[3])))
        if name in _ROOTS:
            self._root_count += not tag[1]
            return _shortened(tag) if self._root_count <= _MAX_ROOTS else _NOTHING
        is_kept = (self._format if name in _FORMATTING else self._nest)(name, is_end=bool(tag[1]))
        return _shortened(tag) if is_kept else _NOTHING

    def _choose(self, *, is_chosen: bool) -> str:
        closing = "</option>" if self._is_chosen else _NOTHING
        self._is_chosen = is_chosen
        return f"{closing}<option selected>" if is_chosen else closing

    def _format(self, name: str, *, is_end: bool) -> bool:
        if is_end:
            if self._formatting[name]:
                self._formatting[name] -= 1
                self._formatting_count -= 1
            return True
        if self._formatting_count >= _MAX_FORMATTING:
            return False
        self._formatting[name] += 1
        self._formatting_count += 1
        return True

    def _nest(self, name: str, *, is_end: bool) -> bool:
        if is_end:
            while self._open_count[name]:
                closed = self._open.pop()
                self._open_count[closed] -= 1
                if closed == name:
                    break
            return True
        if len(self._open) >= MAX_DEPTH:
            return False
        self._open.append(name)
        self._open_count[name] += 1
        return True


def _shortened(tag: "re.Match[str]") -> str:
    if len(tag[3]) <= _FEW_CHARS:
        return tag[0]
    count = 0
    for count, attribute in enumerate(_ATTRIBUTES.finditer(tag[3]), start=1):
        if count == _MAX_ATTRIBUTES:
            return f"<{tag[1]}{tag[2]}{tag[3][: attribute.end()]}>"
    return tag[0]
