"""Words that point back to what was named before: in a sentence of a document ("It opened in 1990"), and in a question after
another one ("Where was she born?")."""

import itertools
import re

from kit.language.question_language import function_words, language_by_words
from kit.language.terms import Token, tokens, words

_ANAPHORS = words(
    "it its he his him she her hers they their them this these those such both neither otherwise therefore thus "
    "hence consequently however moreover furthermore additionally also "
    # Of other languages, but for those that are something else in another one: "El" and "O" are articles, "On" is English.
    "er sie es ihn ihm ihr ihre ihrer ihren sein seine seiner seinen dieser diese dieses dort dabei dadurch damit daher deshalb "
    "dennoch jedoch zudem außerdem ferner elle ils elles ses leur leurs celui-ci celle-ci cela ceci cette ces cependant toutefois "
    "él ella ellos ellas sus este esta esto estos estas ese esa eso egli lui loro suo sua suoi esso essa questo questa ciò "
    "ele ela eles elas seu seus sua suas isso isto esse essa hij zij ze hun zijn haar dit deze daarom echter "
    "hon hans hennes dess deras denna detta dessa ona oni jego jej jednak jeho její jejich tento tato toto však "
    "acesta aceasta lui он она оно они его её ее их этот эта это эти поэтому однако він вона воно вони його її їх цей ця це "
    "bu bunlar onun onlar ayrıca αυτός αυτή αυτό αυτοί هو هي هم هذا هذه वह वे यह ये उसका उसकी उनका उनकी"
)
_ANAPHORS_WITHOUT_SPACES = re.compile(
    r"[他她它]|这|這|该|其(?!他)|彼|これ|それ|この|その|เขา|เธอ|มัน|그는|그녀|그의|이는"
)
_NO_NAME = re.compile(r"(?:[Ss]u|[Hh]an) (?=[^\W\d_A-ZÅÄÖ])")
"""Spanish "Su casa", Swedish "Han föddes"; Su Shi and Han Kang are people."""
_FRENCH_HE = re.compile(r"il (?:est|était|fut|sera|a|avait|eut|aura|doit|peut|se|ne|en)\b|il [ns]['’]", re.IGNORECASE)
"""Italian sentences begin with "Il" too, which is an article."""
_VERB_FIRST = re.compile(r"(?!però\b|ciò\b|può\b)\w{2,}[óò]\b|\w{3,}(?:ou|eu|iu)\b", re.IGNORECASE)
"""Spanish, Italian and Portuguese leave the pronoun out: "Nació en Sevilla", "Morì a Roma", "Morreu em Lisboa"."""
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
_VERBS = words("is was are were has had have")
_SUBJECT_WORDS = 5
_OPENING_CHARS = 60
"""Of a sentence, where what it is about is said."""


def starts_with_anaphor(text: str) -> bool:
    """Whether `text` begins with a word that points back to the sentence before ("It", "This", "However")."""
    first = text.split(maxsplit=1)
    if not first:
        return False
    if first[0].strip("\"'“‘«(,").lower() in _ANAPHORS:
        return True
    return any(pattern.match(text) for pattern in (_ANAPHORS_WITHOUT_SPACES, _NO_NAME, _FRENCH_HE, _VERB_FIRST))


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


_ENGLISH = "en"
_POINTERS = {
    _ENGLISH: words("it its he she his her him they them their this that these those one same former latter"),
    "de": words(
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
    language = language_by_words(question.lower())
    pointers = _POINTERS.get(language or _ENGLISH, frozenset())
    found = tokens(question)
    if any(_is_pointer(token, place, pointers, language) for place, token in enumerate(found)):
        return True
    if _POINTERS_WITHOUT_SPACES.search(question) or _POINTING.search(question) or starts_with_anaphor(question):
        return True
    known = function_words(language)
    content = [token for token in found if not token.is_stopword and token.surface.lower() not in known]
    return (
        _trails(question)
        or bool(_WHAT_ABOUT.search(question))
        or not content
        or (len(content) == 1 and not _NAMES_ITS_SUBJECT.search(question.strip()))
    )


def names_nobody(question: str) -> bool:
    """Whether a question is about "him" or "her" and names nobody, not behind it in brackets either."""
    found = tokens(question)
    is_personal = any(token.surface.lower() in _PERSONAL for token in found)
    return is_personal and not any(token.is_name for token in found) and not question.rstrip().endswith(")")


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
    is_formal = language == "de" and place > 0 and token.surface[0].isupper()
    return token.surface.lower() in pointers and not is_formal
