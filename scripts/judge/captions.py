# ruff: noqa: E501 - lists of words and pairs are read across
"""True claims about descriptions of a picture, as Breaking NLI's sentences are: shorter, more general, in the passive."""

import re

_GENERAL = {
    "man": "person", "woman": "person", "men": "people", "women": "people", "boy": "child", "girl": "child", "boys": "children", "girls": "children",
    "dog": "animal", "dogs": "animals", "cat": "animal", "horse": "animal", "guitar": "instrument", "violin": "instrument", "piano": "instrument",
    "couch": "piece of furniture", "bicycle": "vehicle", "car": "vehicle", "truck": "vehicle", "apple": "fruit", "soccer": "sport", "football": "sport",
    "toddler": "child", "lady": "woman", "guy": "man", "kids": "children", "kid": "child", "shirt": "garment", "jacket": "garment", "street": "road",
}  # fmt: skip
_ADJECTIVES = re.compile(
    r"\b(?:little|young|old|elderly|small|large|big|tall|red|blue|green|yellow|white|black|brown|pink|orange|purple|gray|grey|asian|african|beautiful|"
    r"blond|blonde|happy|smiling|busy|wooden|wet|empty|dark|bright) (?=\w)",
    re.IGNORECASE,
)
_LAST_PHRASE = re.compile(
    r"\s+(?:in|on|at|near|by|with|beside|behind|under|while|through|along|outside|inside|during|next to|in front of) [^,]+$"
)
_DOING = re.compile(
    r"^(?P<who>(?:A|An|The|Two|Three|Several|Some) (?:\w+ ){1,2}?)(?P<be>is|are) (?P<verb>play|hold|push|pull|carry|paint|watch|clean|cook|wash|climb|fix)ing "
    r"(?P<what>(?:a|an|the|some|his|her|two) \w+)\b"
)
_DONE = {"hold": "held", "carry": "carried"}


def general(sentence: str) -> str | None:
    """Without adjectives, and with a wider word for one thing."""
    text = _ADJECTIVES.sub("", sentence)
    for word in re.findall(r"\w+", text):
        if word.lower() in _GENERAL:
            wide = _GENERAL[word.lower()]
            text = re.sub(rf"\b{word}\b", wide.capitalize() if word[0].isupper() else wide, text, count=1)
            break
    text = re.sub(r"\b(A)n? (?=[aeiou])", r"\1n ", re.sub(r"\b(An)(?= [^aeiou])", "A", text))
    text = re.sub(r"\ban (?=[^aeiou])", "a ", re.sub(r"\ba (?=[aeiou])", "an ", text))
    return text[:1].upper() + text[1:] if text != sentence else None


def trimmed(sentence: str) -> str | None:
    """Without its last phrase of place, means or time."""
    found = _LAST_PHRASE.search(sentence.rstrip(" ."))
    text = sentence[: found.start()] if found else ""
    return (
        f"{text.rstrip(' ,')}."
        if len(text.split()) > 3 and not re.search(r"\b(?:is|are|the|a|an|and|of)$", text)
        else None
    )


def passive(sentence: str) -> str | None:
    """The thing first: "A ball is being pushed by the boys"."""
    found = _DOING.match(sentence)
    if not found or found["what"].startswith(("his", "her")):
        return None
    verb = found["verb"]
    done = _DONE.get(verb, verb + ("d" if verb.endswith("e") else "ed"))
    be = "are" if found["what"].startswith(("two", "some")) else "is"
    who = found["who"].strip()
    return f"{found['what'][:1].upper()}{found['what'][1:]} {be} being {done} by {who[:1].lower()}{who[1:]}."
