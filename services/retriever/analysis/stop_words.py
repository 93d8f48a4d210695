"""Words that say nothing about a subject, by language: function words, and the question words that engines' own lists lack. They
are left out of queries and kept in the index, so that phrases that hold them are found. Languages without an entry have none.

Short on purpose: BM25 gives a frequent word next to no weight anyway, and a word that is wrongly here cannot be searched.
"""

from collections.abc import Mapping
from types import MappingProxyType

_LISTS = {
    "ar": """
        من في على إلى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا متى أين كيف لماذا هل كم أي أن إن أو و لا لم لن قد كان كانت
        هو هي هم كل بعد قبل بين عند منذ حتى ثم إذا لكن غير هناك
    """,
    "ca": """
        el la els les un una uns unes de del dels en i o que a al als amb per no és són ha han es se ser era com quan on qui
        quin quina quins quines què seu seva aquest aquesta més però
    """,
    "cs": """
        se na je ve do pro nebo že jsou při to by aby jako za po které tak si ale jejich jen své však proto od být podle která
        jak jeho ke který kteří když bude ze byl než před tomu tyto těchto této byly bylo byla co kdo kde kdy kolik proč jaký
        jaká jaké čím
    """,
    "da": """
        og det at en et af til på de for den med som der jeg om han men vi fra kan man sig skal hun efter eller vil være kunne
        over du ved skulle noget andre sin under deres end ingen min hans hvad hvis når mod hvor hvem hvilken hvilket hvilke
        hvordan hvorfor hvornår er var har havde blev ikke i mange meget
    """,
    "de": """
        aber als am an auch auf aus bei bis da damit das dass dem den denn der des die dies diese diesem diesen dieser dieses
        doch du durch ein eine einem einen einer eines er es für gab gegen gibt haben hat hatte hatten ich ihr ihre ihrem
        ihren ihrer im in ist ja kann können man mit nach nicht noch nur ob oder ohne sein seine seinem seinen seiner sich sie
        sind so soll über um und unter vom von vor war waren warum was wegen weil welche welchem welchen welcher welches wem
        wen wenn wer werden wie wieso wird wo wodurch woher wohin worden wurde wurden zu zum zur
    """,
    "el": """
        την το και της του να από για με των που τη τα τις σε οι είναι θα τον ότι τους δεν κατά μια μας ένα αυτό αυτή ήταν
        οποία αλλά ενώ προς οποίο μέχρι μεταξύ μία αυτά όταν αν ένας εάν ο η στο στη στην στον στα στις στους τι πώς πού πότε
        ποιος ποια ποιο ποιοι ποιες πόσο πόσα πόσες πόσοι γιατί ως
    """,
    "en": """
        a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my no not
        of on or our shall should so such than that the their them then there these they this those to was we were what when
        where which who whom whose why will with would you your
    """,
    "es": """
        a al ante aunque como cómo con cual cuál cuáles cuando cuándo cuánta cuántas cuánto cuántos de del desde donde dónde
        durante e el ella en entre era eran es esa ese eso esta está este esto fue fueron ha han hasta la las le les lo los
        más me mi muy ni no nos o para pero por porque qué que quien quién quiénes se según ser si sin sobre son su sus
        también te todo tu un una unas uno unos y ya
    """,
    "fa": """
        در به از که این را است با آن بر برای بود او هم تا نیز باید اما اگر هر یا باشد توسط و چه چرا چگونه کدام کجا چند کی شد
        شده می های ها
    """,
    "fi": """
        ja on että ei se oli tai hän kun sen mutta ovat kuin joka voi jos ole sitä siitä olisi sekä tämän ne hänen olla mitä
        kanssa ollut jotka tämä jossa jonka jälkeen eli eikä niiden en et eivät he niitä mikä missä milloin miksi miten kuka
        ketkä mihin mistä kuinka minkä
    """,
    "fr": """
        à au aux avec ce ces cet cette combien comme comment d dans de des dont du elle elles en entre est et était étaient eu
        fut il ils j je l la le les leur leurs lui m ma mais me mes mon n ne nos notre nous on ont ou où par pas pour pourquoi
        qu quand que quel quelle quelles quels qui quoi s sa se ses si son sont sur t te tu un une vos votre vous y
    """,
    "he": """
        של על את הוא היה כל כי זה עם היא זו אבל או היתה הייתה עד אם בין הם אך אלה כדי היו זאת כמה כמו יהיה כאשר אלא להיות לפני
        אחרי מן מי מה מתי איפה היכן איך כיצד למה מדוע האם איזה איזו אילו לא גם ב ל ה מ ו ש
    """,
    "hi": """
        का के की है हैं में से को और ने पर यह वह इस उस एक था थे थी कि जो तो भी ही या नहीं लिए साथ कर गया गई गए हो होता होती
        होते क्या कौन कब कहाँ कहां क्यों कैसे कितने कितना कितनी किस किसने किसके किसकी किसे कौनसा अपने द्वारा तक
    """,
    "hu": """
        a az és hogy is azt meg de így ha után pedig ez által egyik vagy amely aki alatt között hanem mert akkor ellen ezt nem
        van volt egy mi mit ki kit hol mikor miért hogyan milyen melyik mennyi hány meddig
    """,
    "id": """
        yang di dan dari ke untuk dengan pada adalah ini itu tidak dalam oleh sebagai atau juga akan telah apa siapa kapan
        mana mengapa bagaimana berapa
    """,
    "it": """
        a ad agli ai al alla alle allo anche che chi ci come con cosa da dagli dai dal dalla dalle dallo degli dei del della
        delle dello di dove e è ed era erano fu ha hanno i il in l la le lo ma nei nel nella nelle nello non o per perché più
        quale quali quando quanta quante quanti quanto questa questo qui se si sono su sua sue sugli sui sul sulla sulle sullo
        suo suoi tra un una uno
    """,
    "nl": """
        aan al als bij dan dat de der deze die dit door een en er geen haar had heb heeft hem het hij hoe hoeveel hun ik in is
        je kan maar men met na naar niet nog nu of om onder ons ook op over te tegen tot uit van veel voor waar waarom wanneer
        waren was wat we welk welke werd werden wie wij wordt worden zich zij zijn zo zou
    """,
    "no": """
        og det er på som en et for til at av med ikke de jeg han om vi den var men vil kan fra seg hun skal etter være dette
        du eller ved må mot når enn skulle vært over noen denne hva hvem hvor hvilken hvilket hvilke hvordan hvorfor i har
        hadde ble blir så
    """,
    "pl": """
        się nie na do że jest ale już by za po jak od czy tym tylko tak też go przez był jego ich jej jeszcze tego ją ten ze
        dla bo tu są będzie i w z o a co kto gdzie kiedy dlaczego jaki jaka jakie który która które ile czym
    """,
    "pt": """
        a à ao aos as às até com como da das de do dos e é ela ele em entre era eram essa esse esta este eu foi foram há isso
        já lhe mais mas me na não nas nem no nos o onde os ou para pela pelas pelo pelos por porque qual quais quando quanta
        quantas quanto quantos que quê quem se sem ser seu seus só sua suas também um uma
    """,
    "ro": """
        de în și si la se cu să din pe care un pentru nu este că sau au al fost fi ce ca prin sunt lui când după dacă ale ar
        unui o a cel cea cei cele ai am între unei dar cine unde cum cât câte câți câtă
    """,
    "ru": """
        а без был была были было быть в во где да для до его ее если есть еще же за и из или их к как какая какие каким каков
        какова каково каковы какого какое какой каком какую когда ко кого кому кто куда ли мы на над не него нее ни них но о
        об он она они оно от по почему под при с сколько со так также там то только тот у уже чего чей чем что чтобы эта эти
        это этого этой этом этот я
    """,
    "sv": """
        och att som det är en ett av på de för den med till inte om kan man sig eller men vi måste från under vid detta än när
        sin var dem skulle jag efter genom mellan någon vad dessa skall ska denna hon mot han hos sina vem vilken vilket vilka
        hur varför där i har hade blev
    """,
    "tr": """
        ve bu ki da de gibi için ne ben o ama kadar her değil onu mi mı mu mü ile onun ya veya olarak bir nedir hangi hangisi
        kim kimin kimdir kimi nerede nereye neden niçin nasıl zaman kaç kaçta
    """,
    "uk": """
        на що не до та за про для це від його він але із або чи так під який які яка яке цей цього то після її їх того по щоб
        тут вони був вона буде через якщо у в з і й є де коли чому як хто скільки
    """,
}
STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {language: frozenset(words.split()) for language, words in _LISTS.items()}
)
