"""Words that tell what was from what is: "until 2020", "the previous head" against "the current head". A question about today is
not answered by what a document says of the past."""

import re

from kit.language.cues import is_year
from kit.language.terms import tokens

_PAST = re.compile(
    r"\b(previous(ly)?|former(ly)?|predecessors?|no longer|in the past|back then|at that time|outdated|obsolete|superseded"
    r"|früher\w*|ehemalig\w*|vormal(s|ig\w*)|vorherig\w*|vorgänger\w*|damals|nicht mehr"
    r"|anciennement|ancien(ne)?s?|précédent\w*|prédécesseur\w*|autrefois|auparavant"
    r"|anterior(es|mente)?|antigu[oa]s?|predecesor\w*|precedente|predecessore|in passato|antig[oa]s?|antecessor\w*"
    r"|vorige|voormalig\w*|vroeger\w*|voorganger\w*|poprzedni\w*|dawniej"
    r"|прежн\w+|бывш\w+|раньше|ранее|предыдущ\w+|предшественни\w+|önceki|eskiden)\b"
    r"|(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bwas )(?<!\bwere )(?<!\bbeen )\bused to\b"
    r"|前任|以前|原来|曾经|过去|過去|当時|이전|전임|과거|سابق",
    re.IGNORECASE,
)
_UNTIL_A_YEAR = re.compile(
    r"^\W*(until|till|up to|from|between|bis|von|jusqu['’](en|à)|de|hasta|fino al?|até|tot|van|до|с)\b[^,;.]{0,40}?"
    r"\b(1\d|20)\d{2}\b",
    re.IGNORECASE,
)
_PRESENT_VERB = re.compile(
    r"\b(is|are|will|can|may|must|ist|sind|wird|werden|kann|darf|est|sont|sera|seront|es|son|será|è|sono|sarà|é|são|zijn)\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(current(ly)?|now|nowadays|today|present(ly)?|latest|newest|new|at the moment|in force|derzeit\w*|aktuell\w*|heut\w*|jetzt"
    r"|gegenwärtig\w*|neu(e|er|es|en|este\w*)?|actuel\w*|aujourd['’]hui|maintenant|nouve(au|l|lle|aux)|actual(es|mente)?|ahora|hoy"
    r"|nuev[oa]s?|attual\w*|oggi|atual\w*|hoje|huidig\w*|obecn\w+|текущ\w+|нынешн\w+|сейчас|теперь|şimdi\w*|güncel)\b"
    r"|现在|目前|现任|当前|現在|현재|지금|الحالي",
    re.IGNORECASE,
)
_LATEST = re.compile(
    r"\b(latest|newest|most recent|current|neueste\w*|aktuell\w*|jüngste\w*|derni(?:er|ère)|actuel\w*|plus récente?|últim[oa]"
    r"|más reciente|actual|ultim[oa]|più recente|attuale|mais recente|nieuwste|huidige|последн\w+|текущ\w+|найнов\w+"
    r"|najnowsz\w+)\b|最新|现行|최신",
    re.IGNORECASE,
)
_ASKS_OF_THE_PAST = re.compile(
    r"\b(was|were|did|had|last|old|original(ly)?|first|before|until|history|war|waren|wurden?|hatten?|letzt\w*|alt(e|er|es|en)"
    r"|était|étaient|fut|furent|avait|dernier|dernière|fue|fueron|era|eran|había|último|era|erano|foi|foram|werd(en)?"
    r"|был[аои]?|последн\w+)\b",
    re.IGNORECASE,
)
_TITLE_OF_THE_PAST = re.compile(
    r"\b(history|archived?|previous|former|deprecated|superseded|historie|geschichte|historique|historia|storia|história|история|tarihçe)\b"
    r"|历史|沿革|歴史|沿革|역사",
    re.IGNORECASE,
)


def asks_of_today(question: str) -> bool:
    """Whether a question is about what is: it says so, or has neither a year nor a word that tells of the past."""
    if _PAST.search(question) or any(is_year(token.surface) for token in tokens(question)):
        return False
    return bool(_NOW.search(question)) or not _ASKS_OF_THE_PAST.search(question)


def asks_for_the_latest(question: str) -> bool:
    """Whether a question asks for the last of several that came one after the other: "the latest version"."""
    return bool(_LATEST.search(question))


def tells_of_the_past(text: str, title: str = "") -> bool:
    """Whether a sentence, or the title that it stands under, tells of the past and the sentence nothing of today."""
    if _NOW.search(text):
        return False
    ended = _UNTIL_A_YEAR.search(text) and not _PRESENT_VERB.search(text)
    return bool(_PAST.search(text) or ended or _TITLE_OF_THE_PAST.search(title))
