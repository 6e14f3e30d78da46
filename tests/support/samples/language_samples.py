"""Short texts in many languages, and text of an invented language."""

from __future__ import annotations

from thresher.reader.language.identify import languages

CZECH = "Včera jsme šli s dětmi do lesa a našli jsme tam mnoho hub, které jsme pak doma uvařili k večeři. "
TURKISH = "Dün çocuklarla ormana gittik ve orada birçok mantar bulduk, sonra onları akşam evde pişirdik. "
HEBREW = "אתמול הלכנו עם הילדים ליער ומצאנו שם הרבה פטריות שאחר כך בישלנו בבית לארוחת הערב. "
GREEK = "Χθες πήγαμε με τα παιδιά στο δάσος και βρήκαμε πολλά μανιτάρια που μετά μαγειρέψαμε στο σπίτι. "

LOOK_ALIKES = {
    "hr": "Tko želi sudjelovati u natječaju, mora tijekom sljedećeg tjedna poslati izvješće sveučilištu.",
    "bs": "Općina je saopćila da će hiljadu porodica iz Sarajeva sljedeće sedmice dobiti novac, a historija uči.",
    "sr": "Ko želi da učestvuje, treba da sledeće nedelje pošalje izveštaj na univerzitet pre podne.",
    "id": "Karena mobil itu rusak, dia tidak bisa pergi ke kantor dan harus membayar dengan uang sendiri.",
    "ms": "Kerana kereta itu rosak, beliau tidak boleh pergi ke pejabat dan mahu membayar dengan wang sahaja.",
    "no": "Jeg vet ikke hva de gjør, men noen av dem har vært uten arbeid og trenger mye hjelp nå.",
    "nn": "Eg veit ikkje kva dei gjer, men nokre av dei har vore utan arbeid og treng mykje hjelp no.",
    "da": "Jeg ved ikke, hvad de gør, men nogle af dem har været uden arbejde og har brug for meget hjælp.",
    "sv": "Jag vet inte vad de gör, men några av dem har varit utan arbete och behöver mycket hjälp nu.",
    "cs": "Při cestě domů jsme potkali přítele, který nám řekl, že už několik dní nepřišel žádný vlak.",
    "sk": "Pri ceste domov sme stretli priateľa, ktorý nám povedal, že už niekoľko dní neprišiel žiadny vlak.",
    "es": "Los niños no quieren ir a la escuela porque el profesor les ha dicho que hoy hay un examen.",
    "pt": "As crianças não querem ir à escola porque o professor lhes disse que hoje há uma prova.",
    "gl": "Os nenos non queren ir á escola porque o profesor lles dixo que hoxe hai unha proba moi longa.",
    "mk": "Секој ден одиме на училиште со автобус, но денес нема да одиме затоа што е празник во градот.",
    "bg": "Всеки ден ходим на училище с автобус, но днес няма да ходим, защото е празник в града.",
}
LONE_LETTERS = {
    "ka": "გამარჯობა",
    "hy": "Բարեւ",
    "th": "สวัสดี",
    "km": "សួស្តី",
    "lo": "ສະບາຍດີ",
    "my": "မင်္ဂလာပါ",
    "si": "ආයුබෝවන්",
    "ta": "வணக்கம்",
    "te": "నమస్తే",
    "kn": "ನಮಸ್ತೆ",
    "ml": "നമസ്തേ",
    "gu": "નમસ્તે",
    "pa": "ਸਤਿ ਸ੍ਰੀ",
    "or": "ନମସ୍କାର",
    "el": "Καλημέρα",
    "ko": "안녕하세요",
    "ja": "こんにちは",
    "he": "שלום",
}

# Keys of the Universal Declaration of Human Rights, and the codes under which languages() knows them.
DECLARED = """
    afr:af arb:ar azj_latn:az bel:be bul:bg ben:bn bre:br bos_latn:bs cat:ca ces:cs cym:cy dan:da deu_1996:de
    ell_monotonic:el eng:en epo:eo spa:es est:et eus:eu pes_1:fa fin:fi fra:fr gle:ga glg:gl guj:gu heb:he hin:hi
    hrv:hr hun:hu hye:hy ind:id isl:is ita:it jpn:ja kat:ka kaz:kk khm:km kan:kn kor:ko kir:ky lit:lt lav:lv mkd:mk
    mal:ml mar:mr mly_latn:ms mya:my nob:no nep:ne nld:nl nno:nn pan:pa pol:pl por_PT:pt ron_2006:ro rus:ru sin:si
    slk:sk slv:sl als:sq srp_latn:sr srp_cyrl:sr swe:sv swh:sw tam:ta tel:te tgk:tg tha:th tgl:tl tur:tr ukr:uk
    urd:ur uzn_latn:uz vie:vi xho:xh cmn_hans:zh cmn_hant:zh-Hant zul:zu
"""

# An invented language, for which no model exists: its words follow rules of their own.
STEMS = (
    "vork",
    "melu",
    "tashi",
    "runde",
    "olpa",
    "kifre",
    "sanwu",
    "beltro",
    "gomi",
    "ziraf",
    "huden",
    "pallo",
)
FUNCTION_WORDS = ("ga", "wi", "tun", "oz", "ka", "shem", "ur", "ni")


def invented_text(sentences: int, start: int = 0) -> str:
    """Return sentences of the invented language; another start gives others."""
    lines = []
    for number in range(start, start + sentences):
        stems = [STEMS[(number * step + step) % len(STEMS)] for step in (1, 5, 7)]
        small = [FUNCTION_WORDS[(number * step + 3) % len(FUNCTION_WORDS)] for step in (1, 3)]
        ending = ("en", "atu", "isho")[number % 3]
        lines.append(
            f"{small[0].title()} {stems[0]}{ending} {small[1]} {stems[1]} ka {stems[2]}{ending} ni {stems[0]}."
        )
    return "\n".join(lines)


def code_of(text: str) -> str:
    """Return the code of the main language of a text, "" if it has none."""
    found = languages(text)
    return found[0].code if found else ""
