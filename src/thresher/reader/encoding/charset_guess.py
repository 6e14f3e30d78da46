"""Detection of undeclared encodings: chardetng, checked against the alphabets of languages.

chardetng knows the encodings that browsers distinguish. It leaves out Latin-3, -6, -8, -9 and -10 and the
Macintosh's Cyrillic, and a top-level domain misleads it for countries that write in two scripts. So its guess
of a single-byte encoding stands unless the letters of the page belong to a language in another encoding.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from chardetng_py import EncodingDetector
from numpy.typing import NDArray

from thresher.reader.encoding.charset import FALLBACK, MULTIBYTE, decoded, named

DETECT_BYTES = 65_536  # more text does not change a detector's mind

# Nats by which letters must speak against an encoding: a guess, and a label that servers add without being asked.
AGAINST_GUESS = 8.0
AGAINST_LABEL = 40.0
# Share of the characters beyond ASCII that must be of the other language, or signs that all languages use.
COVERED = 0.97
MIXED = 0.25  # share of bytes beyond ASCII that follow an ASCII letter: more in Latin script, none in others

# Probabilities of characters beyond ASCII: signs and letters, of which frequent ones are more probable.
USUAL_SIGNS, OTHER_SIGNS = "’“”–\u00a0«»„", "‘‚—…·•°§©®€№´¿¡ºª£±×\u00ad"
SIGN, RARE_SIGN, CAPITAL = 0.20, 0.05, 0.03
DECAY = 3.0  # the last letter of an alphabet is e^3 = 20 times rarer than the first
FOREIGN_LETTER, SYMBOL, NOTHING = 1e-4, 3e-5, 1e-7

_LATIN_2 = "windows-1250 iso-8859-2"
_LATIN_10 = f"{_LATIN_2} iso-8859-16"
_WEST = "windows-1252 iso-8859-15"
_CELTIC = f"{_WEST} iso-8859-14"
_BALTIC = "windows-1257 iso-8859-13 iso-8859-4"
_CYRILLIC = "windows-1251 iso-8859-5 koi8-u ibm866 x-mac-cyrillic"

# Language: its letters beyond ASCII, the most frequent first, and the encodings in which it was written.
_LATIN_ALPHABETS = {
    "cs": ("íáěřéčžýšůúňťďó", _LATIN_2),
    "sk": ("áíčžšťéýúľôóďňäŕĺ", _LATIN_2),
    "pl": ("żęłąóćśńź", f"{_LATIN_10} iso-8859-13"),
    "hu": ("áéóöőíüúű", _LATIN_10),
    "sl": ("čšž", _LATIN_10),
    "hr": ("ščžćđ", _LATIN_10),
    "hsb": ("ćšłěóžčźřń", _LATIN_2),
    "sq": ("ëç", f"{_LATIN_2} {_WEST}"),
    "ro": ("ăţîşâ", _LATIN_2),
    "ro, as reformed": ("ățîșâ", "iso-8859-16"),
    "tr": ("ışüçğöİâ", "windows-1254 iso-8859-3"),
    "ku": ("êîşûç", "windows-1254"),
    "lt": ("ųšžėįąūčę", _BALTIC),
    "lv": ("āīēšūļņģžķč", _BALTIC),
    "et": ("äõüöžš", f"{_BALTIC} {_WEST}"),
    "se": ("áđšŋčŧž", "iso-8859-10 iso-8859-4"),
    "eo": ("ĝĉŭŝĵĥ", "iso-8859-3"),
    "mt": ("ħżġċàìòèù", "iso-8859-3"),
    "cy": ("ôŵâŷîêëïûáöéìàèò", _CELTIC),
    "ga": ("áíéúó", _CELTIC),
    "gd": ("àìòèù", _CELTIC),
    "vi": ("đàáươôêóâ\u0301\u0300\u0323\u0309\u0303ăíìúéýòùãõ", "windows-1258"),
    "de": ("üäößé", _WEST),
    "fr": ("éèàêçôîâûùœïëü", _WEST),
    "es": ("óáñíúéü", _WEST),
    "it": ("èàùòìé", _WEST),
    "pt": ("çãáéíõêóúàôâ", _WEST),
    "nl": ("ëéïüöèó", _WEST),
    "sv": ("äöåé", _WEST),
    "da": ("æåøé", _WEST),
    "nb": ("åøæé", _WEST),
    "is": ("ðáíþóúöæéý", _WEST),
    "ca": ("óéàíèòçúüï", _WEST),
    # Hundreds of languages have some of these letters, and no encoding but this one.
    "any": ("éèáàíóúñçäöüßåøæâêîôûãõëïòùì", FALLBACK),
}
_OTHER_ALPHABETS = {
    "ru": ("оеиатнсрвлкдпмыьубзяйчгжцхюшэфщёъ", _CYRILLIC),
    "bg": ("аеитонрсвдлпкзмъябчгужцйщшфхюь", _CYRILLIC),
    "sr": ("аеионтрсдквумпјлзбгцшчњжљхћфђџ", _CYRILLIC),
    "mk": ("аиеонтрсдквлмпзјбугшцчжњфќхѓљџѕ", _CYRILLIC),
    "uk": ("аониеітврсклдмпуьзябйгцчжхшєющїфґ", _CYRILLIC),
    "be": ("аніелысркятпдцьвмзоубўэчгшйхжюёф", _CYRILLIC),
    "el": ("αετιονρμσπκηίλυέςδάγήόχθωύφβώξζψϊϋΐΰ", "windows-1253 iso-8859-7"),
    "he": ("יותהלארשמבנסחדםעקפכןטגזצךףץ", "windows-1255 iso-8859-8"),
    "yi": ("עיאורטנדסלןגמבהפזשכקחצװײױ\u05b8\u05b7\u05bc\u05bf\u05b4םףךץת", "windows-1255"),
    "ar": ("اليمرونتعبةدسهأحفقكصجخثإىذطشغضئءًّزظُآؤَِْ", "windows-1256 iso-8859-6"),
    "th": ("า่นอกเ้รลมีังยหดสวบทตไคปิจูใืข์ุชแะพ็ผถำณซโฟึธศญภษฎฐ", "windows-874"),
}


class _Models(NamedTuple):
    """Models of letters: a row for each language in each of its encodings, a column for each byte from 0x80."""

    encodings: list[str]
    of_encoding: dict[str, list[int]]  # rows
    latin: NDArray[np.bool_]
    likelihood: NDArray[np.float64]  # natural logarithms
    own: NDArray[np.float64]  # 1 where the byte is a letter of the language or a sign that all use


def detect(body: bytes, top_level_domain: str = "", allow_utf8: bool = True) -> str:
    """Detect the encoding of bytes; the fallback of the standard for plain ASCII."""
    sample = body[:DETECT_BYTES]
    if sample.isascii() and b"\x1b" not in sample:
        return FALLBACK
    detector = EncodingDetector()
    detector.feed(sample, last=len(sample) == len(body))
    hint = top_level_domain.encode("ascii", "ignore").lower()
    guess = detector.guess(tld=hint if hint.isalnum() else None, allow_utf8=allow_utf8)
    # The detector has Python's name for this encoding.
    name = "windows-874" if guess == "cp874" else named(guess) or FALLBACK
    return name if name == "utf-8" or name in MULTIBYTE else likelier(sample, name, AGAINST_GUESS)


def likelier(body: bytes, name: str, margin: float) -> str:
    """Return another single-byte encoding if letters favour it by `margin` nats; otherwise return `name`."""
    models = _models()
    same = models.of_encoding.get(name)
    sample = np.frombuffer(body[:DETECT_BYTES], np.uint8)
    places = np.flatnonzero(sample >= 0x80)
    if same is None or not places.size:
        return name
    counts = np.bincount(sample[places] - 0x80, minlength=0x80)
    scores = models.likelihood @ counts
    to_beat = scores[same].max() + margin
    before = sample[np.maximum(places - 1, 0)]
    possible = models.latin == (np.count_nonzero(_ASCII_LETTER[before]) > MIXED * places.size)
    possible &= models.own @ counts >= COVERED * places.size
    scores[~possible] = -np.inf
    best = int(scores.argmax())
    return models.encodings[best] if scores[best] > to_beat else name


_ASCII_LETTER = np.array([chr(byte).isalpha() and byte < 0x80 for byte in range(256)])


@cache
def _models() -> _Models:
    rows = [
        (encoding, latin, _chances(letters))
        for latin, alphabets in ((True, _LATIN_ALPHABETS), (False, _OTHER_ALPHABETS))
        for letters, encodings in alphabets.values()
        for encoding in encodings.split()
    ]
    columns = bytes(range(0x80, 0x100))
    of_encoding: dict[str, list[int]] = {}
    for row, (encoding, _, _) in enumerate(rows):
        of_encoding.setdefault(encoding, []).append(row)
    return _Models(
        [encoding for encoding, _, _ in rows],
        of_encoding,
        np.array([latin for _, latin, _ in rows]),
        np.log([[own.get(c) or _chance(c) for c in decoded(columns, name)] for name, _, own in rows]),
        np.array([[float(c in own) for c in decoded(columns, name)] for name, _, own in rows]),
    )


def _chances(letters: str) -> dict[str, float]:
    """Return the probabilities of signs and of the letters of an alphabet among characters beyond ASCII."""
    weights = np.exp(-DECAY * np.arange(len(letters)) / len(letters))
    shares = dict(zip(letters, (weights / weights.sum()).tolist(), strict=True))
    chances = {sign: RARE_SIGN / len(OTHER_SIGNS) for sign in OTHER_SIGNS}
    chances |= {sign: SIGN / len(USUAL_SIGNS) for sign in USUAL_SIGNS}
    chances |= {letter.upper(): CAPITAL * share for letter, share in shares.items()}
    return chances | {letter: (1 - SIGN - RARE_SIGN - CAPITAL) * share for letter, share in shares.items()}


def _chance(character: str) -> float:
    """Return the probability of a character that the language does not use."""
    if character == "\ufffd" or character < "\u00a0":
        return NOTHING
    return FOREIGN_LETTER if character.isalpha() and character < "\u0250" else SYMBOL
