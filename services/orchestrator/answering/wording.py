"""What Groundwork itself says without a model, in the language of the question: that the documents do not say, a greeting, and what
is said to thanks, to a farewell and to who asks about the assistant. A language that is not here gets English."""

from dataclasses import dataclass
from enum import Enum

from kit.language.question_language import Languages

ENGLISH = "en"
_LEAST_CERTAINTY = 0.25
"""Of the language of a question, which is short: below it the words of the question are no ground to leave English."""
_LEAST_CERTAINTY_OF_ENGLISH = 0.4
"""Names of other languages in an English question ("What is the Gleichschaltung?") share its certainty."""


@dataclass(frozen=True)
class Wording:
    """Sentences of one language."""

    refusal: str
    greeting: str


class Talk(Enum):
    """Small talk that has a reply of its own."""

    THANKS = 0
    FAREWELL = 1
    ASSISTANT = 2
    """A question about the assistant: who it is, what it can do."""


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


_REPLIES = {
    "en": (
        "You are welcome!",
        "Goodbye!",
        (
            "I am Groundwork: I answer questions about your documents and show which passage carries each "
            "answer. What would you like to know?"
        ),
    ),
    "de": (
        "Gern geschehen!",
        "Auf Wiedersehen!",
        (
            "Ich bin Groundwork: Ich beantworte Fragen zu Ihren Dokumenten und zeige, welche Stelle die Antwort "
            "trägt. Was möchten Sie wissen?"
        ),
    ),
    "nl": (
        "Graag gedaan!",
        "Tot ziens!",
        (
            "Ik ben Groundwork: ik beantwoord vragen over uw documenten en laat zien op welke passage het "
            "antwoord steunt. Wat wilt u weten?"
        ),
    ),
    "fr": (
        "Je vous en prie !",
        "Au revoir !",
        (
            "Je suis Groundwork : je réponds aux questions sur vos documents et je montre le passage qui porte "
            "la réponse. Que voulez-vous savoir ?"
        ),
    ),
    "es": (
        "¡De nada!",
        "¡Hasta luego!",
        (
            "Soy Groundwork: respondo a preguntas sobre sus documentos y muestro el pasaje en que se apoya la "
            "respuesta. ¿Qué desea saber?"
        ),
    ),
    "it": (
        "Prego!",
        "Arrivederci!",
        (
            "Sono Groundwork: rispondo a domande sui tuoi documenti e mostro il passo su cui si basa la "
            "risposta. Che cosa vuoi sapere?"
        ),
    ),
    "pt": (
        "De nada!",
        "Até logo!",
        (
            "Sou o Groundwork: respondo a perguntas sobre os seus documentos e mostro o trecho em que a resposta "
            "se apoia. O que deseja saber?"
        ),
    ),
    "pl": (
        "Nie ma za co!",
        "Do widzenia!",
        (
            "Jestem Groundwork: odpowiadam na pytania o dokumenty i pokazuję fragment, na którym opiera się "
            "odpowiedź. Proszę zadać pytanie."
        ),
    ),
    "tr": (
        "Rica ederim!",
        "Hoşça kalın!",
        (
            "Ben Groundwork: belgeleriniz hakkındaki soruları yanıtlar ve yanıtın dayandığı bölümü gösteririm. "
            "Ne bilmek istersiniz?"
        ),
    ),
    "ru": (
        "Пожалуйста!",
        "До свидания!",
        (
            "Я Groundwork: отвечаю на вопросы о ваших документах и показываю, на какой фрагмент опирается ответ. "
            "Что вы хотите узнать?"
        ),
    ),
    "uk": (
        "Будь ласка!",
        "До побачення!",
        (
            "Я Groundwork: відповідаю на запитання про ваші документи й показую, на який фрагмент спирається "
            "відповідь. Що ви хочете дізнатися?"
        ),
    ),
    "ar": (
        "على الرحب والسعة!",
        "إلى اللقاء!",
        "أنا Groundwork: أجيب عن الأسئلة حول وثائقك وأعرض المقطع الذي تستند إليه الإجابة. ماذا تريد أن تعرف؟",
    ),
    "zh": (
        "不客气！",
        "再见！",
        "我是 Groundwork：我回答有关您文档的问题，并给出答案所依据的原文段落。您想了解什么？",
    ),
    "ja": (
        "どういたしまして。",
        "さようなら。",
        "Groundwork です。文書についての質問に答え、答えの根拠となる箇所を示します。何を知りたいですか。",
    ),
    "ko": (
        "천만에요!",
        "안녕히 가세요!",
        "저는 Groundwork입니다. 문서에 관한 질문에 답하고 답의 근거가 되는 대목을 보여 드립니다. 무엇이 궁금하신가요?",
    ),
}
"""Of each language whose small talk is known: in the order of `Talk`."""


def reply(talk: Talk, language: str) -> str:
    """What is said to it, in that language."""
    return _REPLIES.get(language, _REPLIES[ENGLISH])[talk.value]


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
