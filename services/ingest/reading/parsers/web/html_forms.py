"""Fields of forms in a page: what is chosen and written in them is an attribute, which a reader sees and the text does not have."""

from selectolax.lexbor import LexborHTMLParser, LexborNode

_BUTTONS = "input[type=checkbox i], input[type=radio i]"
_WRITTEN = (
    "input:not([type]), input[type=text i], input[type=email i], input[type=number i], input[type=date i], input[type=tel i], "
    "input[type=url i], input[type=time i], input[type=month i], input[type=datetime-local i]"
)
_FIELDS = f"{_BUTTONS}, {_WRITTEN}, select, textarea"
_MIN_FIELDS = 2
"""A form with a single one is a search, or a choice of languages."""


def is_filled_in(form: LexborNode) -> bool:
    """Whether a form has several fields, and something is chosen or written in one of them."""
    if len(form.css(_FIELDS)) < _MIN_FIELDS:
        return False
    chosen = form.css_first("input[checked], option[selected]") is not None
    return chosen or any(map(_value, form.css(_WRITTEN))) or any(each.text().strip() for each in form.css("textarea"))


def print_fields(tree: LexborHTMLParser) -> None:
    """Writes what is chosen and written into the text, before its field: `[x]`, `[ ]`, the value."""
    for button in tree.css(_BUTTONS):
        button.insert_before(" [x] " if "checked" in button.attributes else " [ ] ")
    for written in tree.css(_WRITTEN):
        if value := _value(written):
            written.insert_before(f" {value} ")
    for option in tree.css("form option[selected]"):
        field: LexborNode | None = option.parent
        while field is not None and field.tag == "optgroup":
            field = field.parent
        if field is not None and field.tag == "select":
            field.insert_before(f" {option.text().strip()} ")


def _value(field: LexborNode) -> str:
    return (field.attributes.get("value") or "").strip()
