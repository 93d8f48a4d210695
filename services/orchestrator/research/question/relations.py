"""Words for what stands in a relation to somebody or something ("the director of …"), and the words by which a text tells the
relation otherwise ("directed by …"). English, German and Russian; a question in another language goes by its own words alone."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from kit.language.terms import stem

_WORDS_BY_ROLE: Mapping[str, str] = {
    "founder": "found founded cofounded established started",
    "author": "author wrote written writer novel book by",
    "director": "directed director",
    "composer": "composed composer music score written songwriter",
    "performer": "performed recorded sung song single album artist singer by",
    "singer": "performed recorded sung song",
    "producer": "produced",
    "writer": "wrote written",
    "inventor": "invented invention",
    "designer": "designed",
    "architect": "designed built",
    "owner": "owns owned belongs acquired",
    "manufacturer": "manufactured makes made produces",
    "publisher": "published",
    "winner": "won",
    "leader": "led leads",
    "manager": "manages managed",
    "successor": "succeeded followed",
    "predecessor": "preceded",
    "father": "son daughter child children",
    "mother": "son daughter child children",
    "parent": "son daughter child children",
    "son": "father mother",
    "daughter": "father mother",
    "child": "son daughter father mother children",
    "wife": "married spouse widow marriage consort",
    "husband": "married spouse wife marriage queen consort",
    "spouse": "married wife husband marriage",
    "grandfather": "son daughter father",
    "grandmother": "son daughter mother",
    "stepmother": "father married",
    "stepfather": "mother married",
    "father-in-law": "married wife husband daughter son",
    "mother-in-law": "married wife husband daughter son",
    "child-in-law": "married daughter son",
    "sibling": "brother sister",
    "boss": "reports manager leads",
    "gründer": "gründete gegründet",
    "autor": "schrieb verfasste",
    "regisseur": "regie",
    "leiter": "leitet",
    "leiterin": "leitet",
    "ehefrau": "heiratete verheiratet",
    "ehemann": "heiratete verheiratet",
    "vater": "sohn tochter",
    "mutter": "sohn tochter",
    "основатель": "основал основана основан",
    "автор": "написал написала",
    "режиссёр": "снял сняла режиссура",
    "директор": "возглавляет руководит",
    "руководитель": "возглавляет руководит",
    "муж": "замужем жена",
    "жена": "женат муж",
    "отец": "сын дочь",
    "мать": "сын дочь",
}


def roles_in(text: str) -> Mapping[str, str]:
    """The relations that a text names: stem → word as written; a word with hyphens is one."""
    written = {stem(word): word for word in re.findall(r"\w+(?:-\w+)*", text.lower())}
    return {each: word for each, word in written.items() if each in _by_stem()}


def relation_words(stems: Iterable[str]) -> frozenset[str]:
    """The stems, and for each relation the stems of words that express it: "founder" gives "founded"."""
    own = frozenset(stems)
    return own.union(*(_by_stem().get(each, frozenset()) for each in own))


@cache
def _by_stem() -> Mapping[str, frozenset[str]]:
    return {stem(role): frozenset(map(stem, each.split())) for role, each in _WORDS_BY_ROLE.items()}
