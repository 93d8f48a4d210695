"""What of a message are its writer's own words: quotations, code, pasted text and replies are somebody else's, and nothing is
learnt from them."""

import re

OWN_CHARACTERS_MAX = 2_000
"""Nobody types more than this of themself in one message; the rest is pasted."""
_FENCED = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<([a-zA-Z_][\w-]*)[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL)
_QUOTED = re.compile(
    r"\"[^\"\n]{1,2000}\"|“[^”]{1,2000}”|„[^“”]{1,2000}[“”]|«[^»]{1,2000}»|»[^«]{1,2000}«|「[^」]{1,2000}」|‘[^’]{25,2000}’"
)
_REPLIED = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_INTRODUCED = re.compile(
    r"""
    (?:^|[.!?:\n]\s*|\b)
    (?:summari[sz]e|translate|rewrite|proofread|paraphrase|correct|explain|check|classify|analy[sz]e|reply\s+to|answer\s+this|
       fasse|übersetze?|korrigiere?|umschreibe?|résume[rz]?|tradui[st]|corrige[rz]?|resume|traduce|corrige|resuma|traduza|corrija|
       riassumi|traduci|correggi|vat|vertaal|verbeter|özetle|çevir|переведи|перескажи|исправь|翻译|总结|修改)
    [^\n:：]{0,80}[:：]
    .*\Z""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
"""An order to work on the text that follows."""
_HEADED = re.compile(
    r"^\s*(?:document|source|context|e-?mail|article|tool|assistant|system|from|subject)\s*\d*\s*:.*\Z",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
"""Text that names its own writer."""


def own_words(message: str) -> str:
    """The message without what others said, blanked so that no sentence runs across a gap."""
    text = message[:OWN_CHARACTERS_MAX]
    for pattern in (_FENCED, _TAGGED, _INTRODUCED, _HEADED, _REPLIED, _QUOTED):
        text = pattern.sub(" … ", text)
    return text
