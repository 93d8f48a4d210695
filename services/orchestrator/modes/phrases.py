"""Phrases of small talk and of questions about the time, in the languages that are spoken most: patterns of words in lower case
without punctuation, one space between them."""

import re


def _one_of(phrases: str) -> str:
    found = [phrase.strip() for phrase in re.split(r";|\n", phrases)]
    return "|".join(f"(?:{phrase})" for phrase in found if phrase)


_TALK = r"""
    h+e+l+o+(?: there| everyone)?; h+i+(?: there)?; he+y+(?: there)?
    good (?:morning|afternoon|evening|night|day); greetings
    how (?:are|r) (?:you|u)(?: doing)?(?: today)?; how do you do; how is it going; what s up
    nice to meet you; and you; thanks?(?: a lot| so much)?; thank (?:you|u)(?: very much| so much)?; thx
    many thanks; cheers; bye(?: bye)?; goodbye; see you(?: later| soon| tomorrow)?
    have a (?:nice|good|great) (?:day|evening|night|weekend); sorry; please; welcome; ok(?:ay)?
    all right; alright; yes; no; yeah; yep; nope; sure; great; cool; nice; perfect; awesome; wow; lol
    test(?:ing)?; that (?:is|was) (?:great|nice|good|helpful|all|perfect); well done
    good (?:job|bot|work); i see; got it; never ?mind; who are you; what are you; what is your name
    what s your name; are you (?:a |an )?(?:robot|bot|human|ai|real|there)
    (?:can|could) you help(?: me)?; help(?: me)?; what can (?:you|i) (?:do|ask)(?: for me| here| you)?
    how (?:can|do) you help; how do(?:es)? (?:you|this) work; what do you do; tell me a joke
    tell me about yourself; i love you; you are (?:great|nice)

    hallo; moin; servus; guten (?:morgen|tag|abend); gute nacht; gr[uü](?:ss|ß) (?:dich|gott)
    wie geht s(?: dir| ihnen)?; wie geht es (?:dir|ihnen); danke(?: schön| sehr| dir)?; vielen dank
    tschüss?; auf wiedersehen; bis bald; ja; nein; bitte; wer bist du; was bist du; wie heißt du
    wie heisst du; was kannst du(?: tun| alles)?; hilfe; kannst du mir helfen; goedemorgen; goedendag
    goedenavond; hoi; dag; dank je(?: wel)?; bedankt; tot ziens; hoe gaat het; wie ben je; wat kun je

    bonjour; bonsoir; salut; coucou; bonne (?:journée|nuit|soirée); ça va; comment ça va
    comment allez vous; comment vas tu; merci(?: beaucoup| bien)?; au revoir; à bientôt; oui; non
    d accord; qui es tu; qui êtes vous; que peux tu faire; aide moi; hola; buenos días; buenos dias
    buenas(?: tardes| noches)?; qué tal; que tal; cómo estás; como estas; gracias; muchas gracias; adiós
    adios; hasta (?:luego|pronto); sí; si; quién eres; quien eres; qué puedes hacer; que puedes hacer
    ayuda; por favor; ciao; salve; buongiorno; buonasera; buonanotte; come (?:stai|va|sta)
    grazie(?: mille)?; arrivederci; chi sei; cosa sai fare; olá; ola; oi; bom dia; boa (?:tarde|noite)
    tudo bem; como vai(?: você)?; obrigad[oa]; tchau; sim; não; quem é você; ajuda

    cześć; dzień dobry; dobry wieczór; dziękuję; dzięki; do widzenia; jak się masz; kim jesteś
    co potrafisz; tak; nie; pomoc; merhaba; selam; günaydın; iyi (?:akşamlar|geceler|günler)
    nasılsın(?:ız)?; teşekkür(?:ler| ederim); sağ ol; kimsin; evet; hayır; привет; здравствуй(?:те)?
    добрый (?:день|вечер); доброе утро; доброй ночи; как дела; спасибо(?: большое)?; пока; до свидания
    да; нет; хорошо; ок; пожалуйста; кто ты(?: такой)?; кто вы; что ты (?:умеешь|можешь)
    помоги(?: мне)?; помощь; привіт; добрий (?:день|вечір); доброго ранку; дякую; до побачення
    як справи; хто ти; що ти вмієш

    مرحبا; أهلا(?: وسهلا)?; السلام عليكم; صباح الخير; مساء الخير; شكرا(?: جزيلا)?; مع السلامة; كيف حالك
    من أنت; نعم; لا; 你好(?:吗)?; 您好; 嗨; 早上好; 晚上好
    晚安; 谢谢(?:你|您)?; 多谢; 再见; 拜拜; 你是谁; 你能做什么; 你叫什么(?:名字)?; 好的
    是的; こんにちは; こんばんは; おはよう(?:ございます)?; ありがとう(?:ございます)?
    さようなら; はい; いいえ; あなたは誰(?:ですか)?; 元気ですか
    안녕(?:하세요|히 가세요)?; 감사합니다; 고마워(?:요)?; 잘 지내(?:요|세요)?; 누구(?:세요|야); 네; 아니요
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

TALK = re.compile(f"(?:(?:{_one_of(_TALK)})(?: |$))+")
"""Nothing but small talk, and questions about the assistant itself."""
TIME = re.compile(_one_of(_TIME))
