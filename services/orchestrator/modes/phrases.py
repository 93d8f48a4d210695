"""Phrases of small talk and of questions about the time, in the languages that are spoken most: patterns of words in lower case
without punctuation, one space between them."""

import re

from services.orchestrator.answering.wording import Talk


def _one_of(phrases: str) -> str:
    found = [phrase.strip() for phrase in re.split(r";|\n", phrases)]
    return "|".join(f"(?:{phrase})" for phrase in found if phrase)


_THANKS = {
    "en": "thanks?(?: a lot| so much| again)?; thank (?:you|u)(?: very much| so much| again)?; thx; many thanks; cheers",
    "de": "danke(?: schön| sehr| dir| ihnen)?; dankeschön; vielen dank; besten dank; herzlichen dank",
    "nl": "dank (?:je|u)(?: wel)?; dankjewel; bedankt",
    "fr": "merci(?: beaucoup| bien)?",
    "es": "(?:muchas |mil )?gracias",
    "it": "grazie(?: mille| tante)?",
    "pt": "(?:muito )?obrigad[oa]",
    "pl": "dziękuję(?: bardzo)?; dzięki",
    "tr": "(?:çok )?teşekkür(?:ler| ederim); sağ ol(?:un)?",
    "ru": "спасибо(?: большое)?; большое спасибо; благодарю",
    "uk": "(?:щиро )?дякую(?: дуже)?",
    "ar": "شكرا(?: جزيلا| لك)?",
    "zh": "谢谢(?:你|您)?; 多谢; 感谢",
    "ja": "(?:どうも)?ありがとう(?:ございます|ございました)?",
    "ko": "감사합니다; 고마워(?:요)?; 고맙습니다",
}
_FAREWELLS = {
    "en": """
        bye(?: bye)?; good ?bye; see you(?: later| soon| tomorrow)?; good night
        have a (?:nice|good|great) (?:day|evening|night|weekend)
    """,
    "de": "tschüss?; auf wiedersehen; bis (?:bald|später|morgen); gute nacht",
    "nl": "tot ziens; doei",
    "fr": "au revoir; à bientôt; à plus tard; bonne (?:journée|nuit|soirée)",
    "es": "adiós; adios; hasta (?:luego|pronto|mañana)",
    "it": "arrivederci; buonanotte",
    "pt": "tchau; adeus; até (?:logo|breve|amanhã)",
    "pl": "do widzenia; na razie; dobranoc",
    "tr": "hoşça kal(?:ın)?; güle güle; görüşürüz; iyi geceler",
    "ru": "пока; до свидания; доброй ночи",
    "uk": "до побачення; бувай(?:те)?",
    "ar": "مع السلامة; إلى اللقاء; وداعا",
    "zh": "再见; 拜拜; 晚安",
    "ja": "さようなら; またね; おやすみ(?:なさい)?",
    "ko": "안녕히 (?:가세요|계세요); 잘 가(?:요)?",
}
_ASSISTANT = {
    "en": """
        who are you; what are you; what is your name; what s your name; are you (?:a |an )?(?:robot|bot|human|ai|real|there)
        (?:can|could) you help(?: me)?; help(?: me)?; what can (?:you|i) (?:do|ask)(?: for me| here| you)?
        how (?:can|do) you help; how do(?:es)? (?:you|this) work; what do you do; tell me about yourself
    """,
    "de": """
        wer bist du; wer sind sie; was bist du; wie heisst du; wie heissen sie; was kannst du(?: tun| alles)?
        was können sie(?: tun| alles)?; hilfe; kannst du mir helfen; können sie mir helfen
    """,
    "nl": "wie ben je; wie bent u; wat kun je(?: doen)?; wat kunt u(?: doen)?; wat kan je(?: doen)?",
    "fr": "qui es tu; qui êtes vous; que (?:peux tu|pouvez vous|sais tu|savez vous) faire; aidez? moi",
    "es": "quién eres; quien eres; quién es usted; qu[eé] (?:puedes|sabes|puede) hacer; ayuda",
    "it": "chi sei; cosa (?:sai|puoi) fare",
    "pt": "quem (?:é você|és tu|você é); o que (?:você )?(?:pode|sabe) fazer; ajuda",
    "pl": "kim jesteś; co (?:potrafisz|umiesz|możesz zrobić); pomoc",
    "tr": "(?:sen )?kimsin(?:iz)?; (?:neler|ne) yapabilirsin(?:iz)?",
    "ru": """
        кто ты(?: такой)?; кто вы(?: такой)?; что (?:ты|вы) (?:умеешь|можешь|умеете|можете)(?: делать)?
        помоги(?:те)?(?: мне)?; помощь
    """,
    "uk": "хто ти; хто ви; що (?:ти|ви) (?:вмієш|можеш|вмієте|можете)(?: робити)?",
    "ar": "من أنت; ماذا (?:يمكنك أن تفعل|تستطيع أن تفعل)",
    "zh": "你是谁; 您是谁; [你您](?:能|可以)做什么; 你会做什么; 你叫什么(?:名字)?",
    "ja": "あなたは誰(?:ですか)?; (?:あなたは)?何ができ(?:ますか|る|るの)",
    "ko": "누구(?:세요|야|입니까); (?:무엇을|뭘) 할 수 있(?:어|어요|나요|습니까)",
}
_OTHER_TALK = r"""
    h+e+l+o+(?: there| everyone)?; h+i+(?: there)?; he+y+(?: there)?
    good (?:morning|afternoon|evening|day); greetings
    how (?:are|r) (?:you|u)(?: doing)?(?: today)?; how do you do; how is it going; what s up
    nice to meet you; and you; sorry; please; welcome; ok(?:ay)?
    all right; alright; yes; no; yeah; yep; nope; sure; great; cool; nice; perfect; awesome; wow; lol
    test(?:ing)?; that (?:is|was) (?:great|nice|good|helpful|all|perfect); well done
    good (?:job|bot|work); i see; got it; never ?mind; tell me a joke; i love you; you are (?:great|nice)

    hallo; moin; servus; guten (?:morgen|tag|abend); gr[uü](?:ss|ß) (?:dich|gott)
    wie geht s(?: dir| ihnen)?; wie geht es (?:dir|ihnen); ja; nein; bitte; goedemorgen; goedendag
    goedenavond; hoi; dag; hoe gaat het

    bonjour; bonsoir; salut; coucou; ça va; comment ça va; comment allez vous; comment vas tu; oui; non
    d accord; hola; buenos días; buenos dias; buenas(?: tardes| noches)?; qué tal; que tal; cómo estás; como estas
    sí; si; por favor; ciao; salve; buongiorno; buonasera; come (?:stai|va|sta)
    olá; ola; oi; bom dia; boa (?:tarde|noite); tudo bem; como vai(?: você)?; sim; não

    cześć; dzień dobry; dobry wieczór; jak się masz; tak; nie; merhaba; selam; günaydın; iyi (?:akşamlar|günler)
    nasılsın(?:ız)?; evet; hayır; привет; здравствуй(?:те)?
    добрый (?:день|вечер); доброе утро; как дела; да; нет; хорошо; ок; пожалуйста
    привіт; добрий (?:день|вечір); доброго ранку; як справи

    مرحبا; أهلا(?: وسهلا)?; السلام عليكم; صباح الخير; مساء الخير; كيف حالك; نعم; لا
    你好(?:吗)?; 您好; 嗨; 早上好; 晚上好; 好的; 是的; こんにちは; こんばんは; おはよう(?:ございます)?
    はい; いいえ; 元気ですか; 안녕(?:하세요)?; 잘 지내(?:요|세요)?; 네; 아니요
"""

_TIME = r"""
    what time is it(?: now| today| right now| currently| at the moment)?
    (?:what is |what s |tell me )?the (?:current )?(?:time|date)(?: now| today| right now| currently| at the moment)?
    current (?:time|date)
    (?:what|which) (?:day|date|year|month|weekday|day of the week) is (?:it|today)(?: now| today| right now)?
    (?:what is |what s )?today s date; what day of the week is (?:it|today)
    (?:do you know )?what time it is; do you have the time; wie spät ist es(?: jetzt| gerade)?
    wie ?viel uhr (?:ist es|haben wir)(?: jetzt)?; welcher (?:wochen)?tag ist heute
    welche(?:s|n) (?:datum|tag) (?:ist|haben wir) heute; der wievielte ist heute
    den wievielten haben wir heute; uhrzeit; hoe laat is het(?: nu)?; welke dag is het(?: vandaag)?
    wat is de datum(?: vandaag)?; (?:il est )?quelle heure(?: est il)?
    quel jour (?:sommes nous|est il|on est)(?: aujourd hui)?; quelle est la date(?: d aujourd hui)?
    qu[eé] hora es(?: ahora)?; qu[eé] (?:día|dia|fecha) es(?: hoy)?; a qu[eé] estamos(?: hoy)?
    cu[aá]l es la fecha(?: de hoy)?; che or[ae] (?:è|e|sono)(?: adesso)?; che giorno (?:è|e)(?: oggi)?
    que horas são(?: agora)?; que dia (?:é|e)(?: hoje)?; któr[aą](?: jest)?(?: teraz)? godzina
    jaki (?:jest )?(?:dziś|dzisiaj)(?: jest)? dzień; saat kaç; bugün günlerden ne
    который(?: сейчас)? час; сколько(?: сейчас)? времени; как(?:ое|ая) сегодня (?:число|дата)
    какой сегодня день(?: недели)?; котра(?: зараз)? година; яке сьогодні число; كم الساعة(?: الآن)?
    ما (?:هو )?تاريخ اليوم; (?:现在)?几点(?:了|钟)?
    现在(?:是)?(?:几点|什么时间)(?:了|钟)?; 今天(?:是)?(?:几号|几月几号|星期几|什么日子)
    今(?:は)?何時(?:ですか)?; 今日(?:は)?何(?:日|曜日)(?:ですか)?; 지금 몇 ?시(?:예요|야|입니까)?
    오늘(?:은)? (?:며칠|무슨 요일)(?:이야|이에요|인가요)?
"""

_POLITE = (
    "(?:(?:please|kindly|bitte|s il (?:te|vous) plaît|por favor|per favore|alsjeblieft|пожалуйста"
    "|(?:can|could|would|will) you|kannst du|können sie|könnte(?:st du|n sie)|peux tu|pouvez vous|puedes|podrías|puoi|kun je|kunt u"
    "|можешь|можете) )"
)
_GOES_ON = (
    r"(?! (?:queues?|brokers?|bus|digests?|boards?|templates?|formats?|letters?|servers?|services?|fields?|headers?|apps?)\b)"
    r"(?: .*)?"
)
"""Behind "a note" and "a message": "a message queue" is something else."""
_ACT = rf"""
    (?:keep|make|take|write(?: down)?|save|add|create) (?:me )?(?:an? |this )(?:short |quick |new )?(?:note|memo|reminder){_GOES_ON}
    note down .*; remember (?:that|this|my|for me|to) .*; remind me .*; don t forget (?:that|to) .*
    (?:send|write|draft) (?:\w+ )?(?:an?|the|this) (?:short |quick )?(?:e ?mail|mail|message){_GOES_ON}
    (?:send|write) (?:e ?mail|mail) to .*; (?:send|e ?mail|mail) (?:me|him|her|them|us) .*
    (?:send|e ?mail|mail|forward) (?:it|this|that) to (?:\w+ ?){{1,3}}
    (?:delete|forget) (?:the|this|that|my) (?:document|file|note)(?: .*)?

    merke? dir .*; merken sie sich .*; notier(?:e|en sie)?(?: dir| mir)? .*
    (?:schreibe?|mache?|erstelle?|speichere?|lege?)(?: dir| mir)?(?: bitte)? (?:eine|diese) (?:kurze |neue )?notiz(?: .*)?
    (?:schicke?|sende?|schreibe?)(?: \w+)?(?: bitte)? (?:eine|die|diese) (?:kurze )?(?:e ?mail|mail|nachricht)(?: .*)?
    (?:kannst du|können sie)(?: \w+)?(?: bitte)? eine (?:e ?mail|mail|notiz|nachricht) (?:.* )?(?:schicken|schreiben|senden)
    (?:lösche?|vergiss) (?:das|dieses|mein) dokument(?: .*)?

    (?:envoie|envoyez|écris|écrivez)(?: \w+)? (?:une?|le|cet?) (?:e ?mail|courriel|mail|message)(?: .*)?
    (?:peux tu|pouvez vous) (?:\w+ )?(?:envoyer|écrire) (?:une?|le|cet?) (?:e ?mail|courriel|mail|message)(?: .*)?
    (?:retiens|retenez|notez?|souviens toi|rappelle toi) que .*; (?:prends|prenez|gardez?|fais|écris) (?:une )?note(?: .*)?
    (?:env[ií]a|manda|escribe)(?:le|me)? (?:un|el|este) (?:correo|e ?mail|mensaje)(?: .*)?
    (?:puedes|podrías) (?:enviar|mandar|escribir)(?:le|me)? (?:un|el|este) (?:correo|e ?mail|mensaje)(?: .*)?
    (?:recuerda|anota|apunta|toma nota de) que .*; (?:toma|guarda|haz|escribe) una nota(?: .*)?
    (?:invia|manda|scrivi)(?: \w+)? (?:una?|la|questa) (?:e ?mail|mail|messaggio)(?: .*)?; (?:ricorda|annota) che .*
    (?:stuur|schrijf|verstuur)(?: \w+)? (?:een|de|deze) (?:e ?mail|mail|bericht)(?: .*)?; onthoud dat .*; noteer .*
    (?:запомни|запиши|заметь)(?:те)? .*
    (?:отправь|пошли|напиши)(?:те)?(?: \w+)? (?:электронное )?(?:письмо|e ?mail|имейл|сообщение)(?: .*)?
"""
_KNOWN = {Talk.ASSISTANT: _ASSISTANT, Talk.FAREWELL: _FAREWELLS, Talk.THANKS: _THANKS}
"""What a message of several is answered for comes first."""

_ALL_TALK = "|".join(map(_one_of, [_OTHER_TALK, *(said for each in _KNOWN.values() for said in each.values())]))
TALK = re.compile(f"(?:(?:{_ALL_TALK})(?: |$))+")
"""Nothing but small talk, and questions about the assistant itself."""
KINDS = [
    (talk, language, re.compile(f"(?:^|(?<= ))(?:{_one_of(phrases)})(?: |$)"))
    for talk, by_language in _KNOWN.items()
    for language, phrases in by_language.items()
]
"""Small talk that has a reply of its own, and the language in which it is said."""
TIME = re.compile(_one_of(_TIME))
ACT = re.compile(f"(?:{_POLITE})*(?:{_one_of(_ACT)})")
"""A request to keep, send or delete something."""
POLITE = re.compile(_POLITE)
"""Begins a question that asks for something to be done."""
