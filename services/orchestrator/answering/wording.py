"""What Groundwork itself says without a model, in the language of the question: that the documents do not say, and a
greeting. A language that is not here gets English."""

from dataclasses import dataclass
from typing import Protocol

ENGLISH = "en"
_LEAST_CERTAINTY = 0.35
"""Of the language of a question, which is short: below it the words of the question are no ground to leave English."""
_LEAST_CERTAINTY_OF_ENGLISH = 0.2
"""Names of other languages in an English question ("What is the Gleichschaltung?") share its certainty."""


class Languages(Protocol):
    """Tells languages apart."""

    def certainties(self, text: str) -> dict[str, float]:
        """How certain each language (ISO 639-1) of one line of lower-case text is, 0 to 1."""
        ...


@dataclass(frozen=True)
class Wording:
    """Sentences of one language."""

    refusal: str
    greeting: str


_WORDINGS = {
    "en": Wording(
        "The documents do not say.",
        "Hello! Ask me a question about your documents: I answer with quotes from them.",
    ),
    "de": Wording(
        "Die Dokumente sagen dazu nichts.",
        "Hallo! Stellen Sie eine Frage zu Ihren Dokumenten: Ich antworte mit Zitaten daraus.",
    ),
    "fr": Wording(
        "Les documents ne le disent pas.",
        "Bonjour ! Posez une question sur vos documents : je réponds par des citations.",
    ),
    "es": Wording(
        "Los documentos no lo dicen.",
        "¡Hola! Haga una pregunta sobre sus documentos: respondo con citas de ellos.",
    ),
    "it": Wording(
        "I documenti non lo dicono.",
        "Ciao! Fai una domanda sui tuoi documenti: rispondo con citazioni.",
    ),
    "pt": Wording(
        "Os documentos não dizem.",
        "Olá! Faça uma pergunta sobre os seus documentos: respondo com citações deles.",
    ),
    "nl": Wording(
        "De documenten zeggen het niet.",
        "Hallo! Stel een vraag over uw documenten: ik antwoord met citaten daaruit.",
    ),
    "sv": Wording(
        "Dokumenten säger inget om det.",
        "Hej! Ställ en fråga om dina dokument: jag svarar med citat ur dem.",
    ),
    "pl": Wording(
        "Dokumenty o tym nie mówią.",
        "Dzień dobry! Proszę zadać pytanie o dokumenty: odpowiadam cytatami z nich.",
    ),
    "cs": Wording(
        "Dokumenty to neříkají.",
        "Dobrý den! Zeptejte se na své dokumenty: odpovídám citacemi z nich.",
    ),
    "ru": Wording(
        "В документах этого нет.",
        "Здравствуйте! Задайте вопрос о ваших документах: я отвечаю цитатами из них.",
    ),
    "uk": Wording(
        "У документах цього немає.",
        "Вітаю! Поставте запитання про ваші документи: я відповідаю цитатами з них.",
    ),
    "el": Wording(
        "Τα έγγραφα δεν το αναφέρουν.",
        "Γεια σας! Κάντε μια ερώτηση για τα έγγραφά σας: απαντώ με αποσπάσματα.",
    ),
    "ro": Wording(
        "Documentele nu spun acest lucru.",
        "Bună ziua! Puneți o întrebare despre documentele dvs.: răspund cu citate din ele.",
    ),
    "tr": Wording(
        "Belgelerde bu yazmıyor.",
        "Merhaba! Belgeleriniz hakkında bir soru sorun: onlardan alıntılarla yanıtlarım.",
    ),
    "vi": Wording(
        "Tài liệu không nói điều này.",
        "Xin chào! Hãy hỏi về tài liệu của bạn: tôi trả lời bằng trích dẫn.",
    ),
    "ar": Wording(
        "لا تذكر الوثائق ذلك.",
        "مرحبًا! اسأل عن وثائقك وسأجيب باقتباسات منها.",
    ),
    "fa": Wording(
        "در اسناد گفته نشده است.",
        "سلام! دربارهٔ اسناد خود بپرسید: با نقل قول از آنها پاسخ می‌دهم.",
    ),
    "he": Wording(
        "המסמכים אינם אומרים זאת.",
        "שלום! שאלו שאלה על המסמכים שלכם: אענה בציטוטים מהם.",
    ),
    "hi": Wording(
        "दस्तावेज़ यह नहीं बताते।",
        "नमस्ते! अपने दस्तावेज़ों के बारे में पूछें: मैं उनके उद्धरणों से उत्तर देता हूँ।",
    ),
    "th": Wording(
        "เอกสารไม่ได้กล่าวถึงเรื่องนี้",
        "สวัสดี! ถามคำถามเกี่ยวกับเอกสารของคุณได้ ฉันตอบด้วยข้อความจากเอกสาร",
    ),
    "zh": Wording(
        "文档中没有说明。",
        "你好！请就您的文档提问，我会引用原文回答。",
    ),
    "ja": Wording(
        "文書には書かれていません。",
        "こんにちは。文書について質問してください。原文を引用して答えます。",
    ),
    "ko": Wording(
        "문서에는 나와 있지 않습니다.",
        "안녕하세요! 문서에 대해 질문하시면 원문을 인용해 답합니다.",
    ),
}
REFUSALS = tuple(each.refusal for each in _WORDINGS.values())


def wording(question: str, languages: Languages | None) -> Wording:
    """In the language of the question, as far as it can be told; English without `languages`. Loads its model when first used."""
    if languages is None:
        return _WORDINGS[ENGLISH]
    certainties = languages.certainties(" ".join(question.lower().split()))
    language = max(certainties, key=lambda each: certainties[each], default=ENGLISH)
    is_english = certainties.get(ENGLISH, 0.0) >= _LEAST_CERTAINTY_OF_ENGLISH
    if is_english or certainties.get(language, 0.0) < _LEAST_CERTAINTY:
        language = ENGLISH
    return _WORDINGS.get(language, _WORDINGS[ENGLISH])
