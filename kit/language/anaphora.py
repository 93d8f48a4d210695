"""Words that point back to what was named before: in a sentence of a document ("It opened in 1990"), and in a question after
another one ("Where was she born?")."""

import itertools
import re
from collections.abc import Collection

from kit.language.question_language import function_words, language_by_words
from kit.language.terms import Token, tokens, words

_ENGLISH, _GERMAN = "en", "de"
_ANAPHORS = words(
    "it its he his him she her hers they their them this these those such both neither otherwise therefore thus "
    "hence consequently however moreover furthermore additionally also"
)
_ANAPHORS_ELSEWHERE = {
    _GERMAN: words(
        "er sie es ihn ihm ihr ihre ihrer ihren sein seine seiner seinen dieser diese dieses dort dabei dadurch damit daher "
        "deshalb dennoch jedoch zudem außerdem ferner"
    ),
    "fr": words("elle ils elles ses leur leurs celui-ci celle-ci cela ceci cette ces cependant toutefois"),
    "es": words("él ella ellos ellas sus este esta esto estos estas ese esa eso"),
    "it": words("egli lui loro suo sua suoi esso essa questo questa ciò"),
    "pt": words("ele ela eles elas seu seus sua suas isso isto esse essa este esta"),
    "nl": words("hij zij ze hun zijn haar dit deze daarom echter"),
    "sv": words("hon hans hennes dess deras denna detta dessa"),
    "pl": words("ona oni jego jej jednak"),
    "cs": words("ona oni jeho její jejich tento tato toto však"),
    "ro": words("acesta aceasta lui"),
    "tr": words("bu bunlar onun onlar ayrıca"),
    "ru": words("он она оно они его её ее их этот эта это эти поэтому однако"),
    "uk": words("він вона воно вони його її їх цей ця це"),
    "el": words("αυτός αυτή αυτό αυτοί"),
    "ar": words("هو هي هم هذا هذه"),
    "hi": words("वह वे यह ये उसका उसकी उनका उनकी"),
}
"""Without those that are something else in another language: "El" and "O" are articles, "On" is English."""
_ANAPHORS_WITHOUT_SPACES = re.compile(
    r"[他她它]|这|這|该|其(?!他)|彼|これ|それ|この|その|เขา|เธอ|มัน|그는|그녀|그의|이는"
)
_NO_NAME = re.compile(r"(?:[Ss]u|[Hh]an) (?=[^\W\d_A-ZÅÄÖ])")
"""Spanish "Su casa", Swedish "Han föddes"; Su Shi and Han Kang are people."""
_FRENCH_HE = re.compile(r"il (?:est|était|fut|sera|a|avait|eut|aura|doit|peut|se|ne|en)\b|il [ns]['’]", re.IGNORECASE)
"""Italian sentences begin with "Il" too, which is an article."""
_VERB_FIRST = re.compile(
    r"(?:(?!però\b|ciò\b|può\b)\w{2,}[óò]|\w{3,}(?:ou|eu|iu)) (?!a (?:fost|\w*é)\b)"
    r"(?:a|en|em|al\w*|à|aos?|del?\w*|d[oa]|n[oa]s?|nel\w*|il|las?|los?|el|os?|as|una?|uma?|por|per|com|con)\b",
    re.IGNORECASE,
)
"""Spanish, Italian and Portuguese leave the pronoun out: "Nació en Sevilla", "Tornò a Roma", "Morreu em Lisboa". Guangzhou and
Richelieu end like such verbs, and what follows them is another word."""
_WITHOUT_PRONOUNS = ("es", "it", "pt")
_BEHIND_A_TIME = re.compile(
    r"(?i:in|on|from|until|since|after|before|by|during|at) [^.!?,;:]{1,30}?,? (?:it|they) "
    r"|(?i:im|in|am|seit|nach|vor|bis|von|ab|ende|anfang|mitte|dann|danach|dort|später|damals) (?:[^.!?,;:]{1,30} )?"
    r"[a-zäöüß]{2,} (?:er|sie) "
    r"|(?i:en|après|avant|depuis|dès|pendant|jusqu['’]en|à) [^.!?,;:]{1,30}, (?:il|elle|ils|elles) "
    r"|(?i:в|с|после|до|через) [^.!?,;:]{1,30}? (?:он|она|оно|они) "
    r"|(?i:in|na|voor|sinds|tot|vanaf) \d{4} [a-z]+ (?:hij|zij|ze|het) "
    r"|(?i:år|i|etter|efter|sedan|siden) \d{4} \w+ (?:han|hon|hun|den|det|de) "
)
"""What stands before a pronoun and names nothing that it could stand for: "In 2023 it cost …", "Im Jahr 2023 kostete er …"."""
_PERSONAL = words("he his him she her hers")
_POSSESSIVE = words("his her its their")
_SOMEBODY = re.compile(
    r"\b(?:an?|each|every|any|some|no) [a-z]|\b(?:some|any|every|no)(?:body|one)\b"
    r"|^\W*who (?!(?:is|are|was|were|did|does|do|has|had|can|could|will|would)\b)",
    re.IGNORECASE,
)
"""Of whom a question speaks itself: "an employee", "every guest", "Who lost his job?"."""
_VERBS = words("is was are were has had have")
_SUBJECT_WORDS = 5
_OPENING_CHARS = 60
"""Of a sentence, where what it is about is said."""


def starts_with_anaphor(text: str) -> bool:
    """Whether `text` begins with a word that points back to the sentence before ("It", "This", "However"), in the language that
    the text is in: "Ella" and "Hans" are names in others."""
    first, *after = text.split(maxsplit=2)[:2] or [""]
    word = first.strip("\"'“‘«(,")
    if len(word) > 1 and word.isupper():
        return False  # "ESA", "IT"
    if word.lower() in _ANAPHORS or _is_anaphor_elsewhere(word.lower(), after[0] if after else "", text):
        return True
    if _VERB_FIRST.match(text) and _may_be_in(_WITHOUT_PRONOUNS, text):
        return True
    return any(pattern.match(text) for pattern in (_ANAPHORS_WITHOUT_SPACES, _NO_NAME, _FRENCH_HE))


def _is_anaphor_elsewhere(word: str, following: str, text: str) -> bool:
    """Whether a word points back in a language other than English; a name behind it makes it one: "Ella Fitzgerald"."""
    languages = [language for language, known in _ANAPHORS_ELSEWHERE.items() if word in known]
    is_name = following[:1].isupper() and _GERMAN not in languages
    return bool(languages) and not is_name and _may_be_in(languages, text)


def _may_be_in(languages: Collection[str], text: str) -> bool:
    found = language_by_words(text.lower())
    return not found or found in languages


def points_back(text: str) -> bool:
    """Whether `text` does not name whom or what it is about: it begins with a word that points back, or has a personal pronoun
    before it names anything ("After his career he opened a bakery"). "Her cousin Ada Byron was …" names its own."""
    opening = tokens(text[:_OPENING_CHARS])
    if opening and opening[0].surface.lower() in _POSSESSIVE:
        subject = itertools.takewhile(lambda token: token.surface.lower() not in _VERBS, opening[:_SUBJECT_WORDS])
        return not any(token.is_name for token in subject)
    if starts_with_anaphor(text) or _BEHIND_A_TIME.match(text):
        return True
    first = next((token for token in opening if token.is_name or token.surface.lower() in _PERSONAL), None)
    return first is not None and not first.is_name


_POINTERS = {
    _ENGLISH: words("it its he she his her him they them their this that these those one same former latter"),
    _GERMAN: words(
        "er sie ihn ihm ihr ihre ihrer ihrem ihren seine seiner seinem seinen seines dessen deren dieser diese dieses diesem "
        "diesen dort davon dafür dabei dazu daran darin"
    ),
    "fr": words("lui leur leurs ses son celui-ci celle-ci cela ça cet cette ces"),
    "es": words("él ella ellos ellas su sus suyo suya ese esa esos esas este esta estos estas eso esto allí"),
    "it": words("lui lei egli loro suo sua suoi sue esso essa questo questa questi queste quello quella lì"),
    "pt": words("ele ela eles elas dele dela deles delas seu sua seus suas esse essa este esta isso isto lá"),
    "nl": words("hij zij ze hem haar hun dit dat deze die daar ervan"),
    "sv": words("han hon honom henne hans hennes dess de dem deras denna detta dessa där"),
    "pl": words("on ona ono oni one jego jej ich niego niej nich go jemu mu to ten ta te tam"),
    "cs": words("on ona ono oni jeho její jejich něj ní nich mu jí to ten ta tam"),
    "ro": words("el ea ei ele lui lor său sa acesta aceasta acela aceea acolo"),
    "tr": words("o onu ona onun onlar onları onların bu bunu bunun şu orada"),
    "vi": words("nó họ đó này"),
    "ru": words("он она оно они его её ее их ему ей им нем нём нему неё нее ним них это этот эта эти там"),
    "uk": words("він вона воно вони його її їх йому їй їм ним них це цей ця ці там"),
    "el": words("αυτός αυτή αυτό αυτοί αυτές αυτά του της τους εκεί"),
    "ar": words("هو هي هم هذا هذه ذلك تلك هناك"),
    "fa": words("او آن این آنها آنجا"),
    "hi": words("वह वे यह ये उसका उसकी उसके उसने उसे उनका उनकी उनके वहाँ"),
    "he": words("הוא היא הם הן זה זאת שם שלו שלה שלהם"),
}
"""What stands for something named before, in questions of a language."""
_POINTERS_WITHOUT_SPACES = re.compile(
    r"[他她它]|那里|那裡|这个|這個|那个|那個|彼|それ|その|あの|そこ|เขา|เธอ|มัน|그(는|가|의|녀)|그것|거기"
)
_POINTING = re.compile(
    r"(?:^|\s)(?:où|quand|comment|pourquoi|combien|qu['’]|que|quoi|quel\w*(?: \w+)?)\s?[\w’']+-(?:t-)?(?:ils?|elles?)\b"
    r"|\bqu['’](?:ils?|elles?)\b(?! (?:y|faut))|(?<!is )(?<!are )(?<!was )(?<!were )\bthere\b(?! (?:is|are|was|were)\b)",
    re.IGNORECASE,
)
"""French asks of a pronoun behind the verb ("Où est-il né ?"); one behind a noun and the verb stands for nothing else. "Is there"
points to no place."""
_WHAT_ABOUT = re.compile(r"^(?:(?:and|but|or) )?(?:what|how) about\b", re.IGNORECASE)
_ASKING = words(
    "who whom whose what which when where why how is are was were do does did can could will would has have had may must "
    "wer wen wem wessen was welche welcher welches wann wo wie warum wieviel ist sind war waren hat haben kann darf "
    "qui que quoi quel quelle quand où comment pourquoi combien est sont qué quién cuál cuándo dónde cómo cuánto cuánta es son "
    "chi che quale quando dove come quanto quanti è sono quem qual onde quanto é são wie wat welke wanneer waar hoe "
    "кто что какой какая какое какие когда где как почему сколько"
)
"""What a question has that asks something of its own."""
_CONNECTORS = words(
    "and but or so also then und aber oder auch et mais ou alors y pero e ma mas en maar of och men ale и а но или "
    "ve ama і та але και اما و"
)
_SHORT_QUESTION_TERMS = 2
"""A question with this few content words of its own says too little to search for alone."""
_NAMES_ITS_SUBJECT = re.compile(
    r"^(?:who|what)(?:['’]s|\s(?:is|are|was|were))\s(?!the\s)|^(?:wer|was)\s(?:ist|sind|war|waren)\s"
    r"|^qui\s(?:est|était|sont)\s|^qu['’]est-ce\sque?\s"
    r"|^¿?(?:qué|quién|quiénes)\s(?:es|son|era|fue)\s|^(?:chi|che\scosa|cosa)\s(?:è|sono|era)\s|^cos['’]è\s"
    r"|^(?:quem|o\sque)\s(?:é|são|era|foi)\s|^(?:wie|wat)\s(?:is|zijn|was)\s|^(?:vem|vad)\s(?:är|var)\s"
    r"|^(?:kto|co)\s(?:to|jest)\s|^(?:kdo|co)\sje\s|^(?:cine|ce)\s(?:este|sunt)\s|^(?:кто|что)\s(?:такой|такая|такое|такие)\s"
    r"|^(?:хто|що)\s(?:такий|така|таке|такі)\s|\s(?:nedir|kimdir)\W*$|^(?:什么是|誰是|谁是)|(?:是什么|是谁)\W*$",
    re.IGNORECASE,
)
"""Asks for nothing but what it names: "What is photosynthesis?". "What is the price?" asks for that of something named before, as
does "Is there parking?"."""


def leans_on_the_last(question: str) -> bool:
    """Whether a question cannot be understood without the one before it: it has a pronoun for what it is about, or names nothing
    ("And in 2020?")."""
    if has_pointer(question):
        return True
    if _POINTERS_WITHOUT_SPACES.search(question) or _POINTING.search(question) or starts_with_anaphor(question):
        return True
    known = function_words(language_by_words(question.lower()))
    content = [token for token in tokens(question) if not token.is_stopword and token.surface.lower() not in known]
    return (
        _trails(question)
        or bool(_WHAT_ABOUT.search(question))
        or not content
        or (len(content) == 1 and not _NAMES_ITS_SUBJECT.search(question.strip()))
    )


def names_nobody(question: str) -> bool:
    """Whether a question is about "him" or "her" and names nobody, not behind it in brackets either. In "What does an employee get
    when his child is born?" it is said whose child."""
    found = tokens(question)
    place = next((token.start for token in found if token.surface.lower() in _PERSONAL), None)
    if place is None or any(token.is_name for token in found) or question.rstrip().endswith(")"):
        return False
    is_possessive = question[place : place + 3].lower() in _POSSESSIVE
    return not _SOMEBODY.search(question if is_possessive else question[:place])


def has_pointer(question: str) -> bool:
    """Whether a question has a word that stands for something named before: "And its capital?"."""
    language = language_by_words(question.lower())
    pointers = _POINTERS.get(language or _ENGLISH, frozenset())
    return any(_is_pointer(token, place, pointers, language) for place, token in enumerate(tokens(question)))


def repeats_the_last(question: str) -> bool:
    """Whether a question asks of something else what the one before it asked, and leaves that out: "And the Reds?", "What about
    2020?"."""
    if _WHAT_ABOUT.search(question):
        return True
    return _trails(question) and not any(token.surface.lower() in _ASKING for token in tokens(question))


def _trails(question: str) -> bool:
    """Whether a question goes on from the one before it, in a few words."""
    known = function_words(language_by_words(question.lower()))
    found = tokens(question)
    content = [token for token in found if not token.is_stopword and token.surface.lower() not in known]
    return bool(found) and found[0].surface.lower() in _CONNECTORS and len(content) <= _SHORT_QUESTION_TERMS


def named_subject(question: str) -> str:
    """What a question asks for that asks for nothing else: of "谁是李明？" it is "李明"; "" of any other question."""
    stripped = question.strip()
    return _NAMES_ITS_SUBJECT.sub("", stripped).strip(" ?？¿!.") if _NAMES_ITS_SUBJECT.search(stripped) else ""


def _is_pointer(token: Token, place: int, pointers: frozenset[str], language: str) -> bool:
    """German writes "Sie" and "Ihr" with a capital where somebody is spoken to."""
    is_formal = language == _GERMAN and place > 0 and token.surface[0].isupper()
    return token.surface.lower() in pointers and not is_formal
