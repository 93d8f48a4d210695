"""The language of a question, which is short: a detector goes by sequences of letters, and takes "Was kostet das Mittagessen?" for
English and "Que mangent les canards ?" for Spanish. What gives a language away are the words that only it has for asking."""

import re
from collections import Counter
from typing import Protocol

from kit.language.terms import words


class Languages(Protocol):
    """Tells languages apart."""

    def certainties(self, text: str) -> dict[str, float]:
        """How certain each language (ISO 639-1) of one line of lower-case text is, 0 to 1."""
        ...


_FUNCTION_WORDS = {
    "en": words(
        "what who whom whose which when where why how is are was were do does did can could may must should will "
        "would has have had the a an of in on at to for from by with and or not it this that there be my your i we "
        "you they"
    ),
    "de": words(
        "was wer wem wen wessen welche welcher welches wann wo wohin woher warum wieso wie wieviel viele ist sind war "
        "waren gibt kann können darf dürfen muss müssen soll wird werden wurde hat haben hatte der die das den dem "
        "des ein eine einen einem einer und oder nicht es im in am an auf für von vom zu zum zur mit bei nach über "
        "ich wir sie man er ihn ihm seine seiner seinen seinem"
    ),
    "fr": words(
        "que qui quoi quel quelle quels quelles quand où pourquoi comment combien est sont était ont le la les un une "
        "des du de d l qu et ou ne pas il elle on ils ce cette ces dans en sur pour par avec au aux à y a t je nous "
        "vous peut doit faut est-ce"
    ),
    "es": words(
        "qué quién quiénes cuál cuáles cuándo dónde por cómo cuánto cuánta cuántos cuántas que quien cual cuando "
        "donde como cuanto es son está están era fue hay tiene tienen puede el la los las un una unos unas de del y o "
        "no en al a para con se lo su mi yo"
    ),
    "it": words(
        "che cosa chi quale quali quando dove perché come quanto quanta quanti quante è sono era ha hanno può il lo "
        "la i gli le un uno una di del della dei delle dell e o non in nel nella al alla a da per con su si ci mi dov "
        "qual"
    ),
    "pt": words(
        "que o quem qual quais quando onde por porque como quanto quanta quantos quantas é são está estão foi há tem "
        "têm pode a os as um uma de do da dos das e ou não em no na nos nas ao à para com se meu eu fica"
    ),
    "nl": words(
        "wat wie wiens welke welk wanneer waar waarom hoe hoeveel is zijn was waren heeft hebben kan mag moet wordt "
        "worden de het een en of niet in op aan van voor met bij naar te ik we wij er dit dat deze"
    ),
    "sv": words(
        "vad vem vems vilken vilket vilka när var varför hur många mycket är finns har hade kan får måste ska blir "
        "den det de en ett och eller inte i på av för med till från om jag vi man som denna detta han hon"
    ),
    "pl": words(
        "co kto kogo komu czyj jaki jaka jakie który która które kiedy gdzie dlaczego czemu jak ile czy jest są był "
        "była było ma mają może trzeba się w we na z ze do od dla i lub nie to ten ta te po przez"
    ),
    "cs": words(
        "co kdo koho komu jaký jaká jaké který která které kdy kde proč jak kolik je jsou byl byla bylo má mají může "
        "lze se si v ve na z ze do od pro a nebo ne to ten ta tento tato tuto po při"
    ),
    "ro": words(
        "ce cine cui care când unde de cum cât câtă câți câte este sunt era a au are poate se la în din pe pentru cu "
        "și sau nu un o această acest acestei lui"
    ),
    "tr": words(
        "ne kim kime kimin hangi nerede nereye nereden zaman neden niçin nasıl kaç kadar mı mi mu mü var yok bu şu ve "
        "veya ile için bir de da olarak"
    ),
    "vi": words(
        "gì ai nào đâu bao nhiêu giờ tại sao thế là có không của và ở trong cho với được các những một khi như"
    ),
    "ru": words(
        "что кто кого кому чей какой какая какое какие который когда где куда откуда почему зачем как сколько ли есть "
        "был была было и или не в во на с со к по из от до для о об это этот эта эту у"
    ),
    "uk": words(
        "що хто кого кому чий який яка яке які котрий коли де куди звідки чому навіщо як скільки чи є був була було і "
        "й або не в у на з із зі до від для про це цей ця цю по"
    ),
    "fa": words(
        "چه که کی کیست چیست کدام کجا کجاست چرا چگونه چطور چند چقدر آیا است هستند بود در از به با را و یا این آن برای می"
    ),
    "ar": words("ما ماذا من متى أين لماذا كيف كم هل أي هو هي هم في على إلى عن مع أو و لا هذا هذه التي الذي"),
}
"""Words for asking, articles, prepositions and auxiliary verbs, of languages whose scripts others have too."""
_WEIGHT = 16.0
"""A language is that many times likelier for a word that it alone has; one that n languages have counts 1/√n of that. Of XQuAD's
questions in en, de, es and tr, cut to three words, the likeliest language is right for 96 %, before 92 %; of 163 short questions in
19 languages for 160, before 145."""
_LEAST = 0.02
"""Of a language whose words a question has, and of which the detector does not think."""
_SHARED_BY = Counter(word for known in _FUNCTION_WORDS.values() for word in known)
_WORD = re.compile(r"\b[^\W\d_]+\b")


def function_words(language: str) -> frozenset[str]:
    """Those of a language, in lower case; none of one that is not known here."""
    return _FUNCTION_WORDS.get(language, frozenset())


def language_by_words(text: str) -> str:
    """The language that most of the function words in one line of lower-case text speak for; "" when that is none, or several."""
    evidence = _evidence(text)
    likeliest = sorted(evidence, key=evidence.__getitem__, reverse=True)[:2]
    is_tied = len(likeliest) == 2 and evidence[likeliest[0]] == evidence[likeliest[1]]
    return "" if not likeliest or is_tied else likeliest[0]


class QuestionLanguages:
    """Tells the languages of questions apart: as `detector` does, with the function words of each language as evidence."""

    def __init__(self, detector: Languages) -> None:
        self._detector = detector

    def certainties(self, text: str) -> dict[str, float]:
        """How certain each language of one line of lower-case text is, 0 to 1."""
        found = self._detector.certainties(text)
        evidence = _evidence(text)
        if not evidence:
            return found
        weighed = {language: certainty * evidence.get(language, 1.0) for language, certainty in found.items()}
        weighed |= {language: max(found.get(language, 0.0), _LEAST) * each for language, each in evidence.items()}
        total = sum(weighed.values())
        return {language: each / total for language, each in weighed.items()}


def _evidence(text: str) -> dict[str, float]:
    """How much likelier than without its function words the text makes each language that has some of them."""
    powers: Counter[str] = Counter()
    for word in _WORD.findall(text):
        if shared_by := _SHARED_BY[word]:
            for language, known in _FUNCTION_WORDS.items():
                if word in known:
                    powers[language] += shared_by**-0.5
    return {language: _WEIGHT**power for language, power in powers.items()}
