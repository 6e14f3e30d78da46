"""Home top-level domains of languages: under these a page is more likely to be in the language."""

from __future__ import annotations

# Country codes that are mostly registered for their sound.
GENERIC_CCTLDS = frozenset(
    {"ac", "ai", "cc", "co", "eu", "fm", "gg", "im", "io", "ly", "me", "nu", "sh", "to", "tv", "ws"}
)

_HOME_TLDS = {
    "af": "za na", "am": "et", "ar": "sa eg ma dz tn iq sy jo lb kw qa ae om ye ly bh ps sd", "as": "in",
    "az": "az", "ba": "ru", "be": "by", "bg": "bg", "bn": "bd in", "bo": "cn", "br": "bzh fr", "bs": "ba",
    "ca": "cat ad es", "cs": "cz", "cy": "cymru wales uk", "da": "dk", "de": "de at ch li lu", "dv": "mv",
    "dz": "bt", "el": "gr cy", "en": "uk us au nz ie ca za in sg",
    "es": "es mx ar cl pe ve ec gt cu bo do hn py sv ni cr pa uy", "et": "ee", "eu": "eus es",
    "fa": "ir af", "fi": "fi", "fo": "fo", "fr": "fr be ch ca lu qc bzh sn ci cm", "fy": "frl nl",
    "ga": "ie", "gd": "scot uk", "gl": "gal es", "gu": "in", "ha": "ng ne", "haw": "us", "he": "il",
    "hi": "in", "hr": "hr ba", "hsb": "de", "ht": "ht", "hu": "hu", "hy": "am", "id": "id", "ig": "ng",
    "is": "is", "it": "it ch sm va", "ja": "jp", "jv": "id", "ka": "ge", "kk": "kz", "kl": "gl", "km": "kh",
    "kn": "in", "ko": "kr kp", "ku": "krd iq tr", "ky": "kg", "la": "va", "lb": "lu", "lo": "la",
    "lt": "lt", "lv": "lv", "mg": "mg", "mi": "nz", "mk": "mk", "ml": "in", "mn": "mn", "mr": "in",
    "ms": "my bn sg", "mt": "mt", "my": "mm", "ne": "np", "nl": "nl be sr", "nn": "no", "no": "no",
    "ny": "mw", "oc": "fr", "om": "et", "or": "in", "os": "ru", "pa": "in pk", "pl": "pl", "ps": "af pk",
    "pt": "pt br ao mz cv", "qu": "pe bo", "rm": "ch", "rn": "bi", "ro": "ro md",
    "ru": "ru su by kz xn--p1ai", "rw": "rw", "sa": "in", "sd": "pk in", "si": "lk", "sk": "sk", "sl": "si",
    "sm": "ws", "sn": "zw", "so": "so", "sq": "al xk", "sr": "rs me ba xn--90a3ac", "st": "ls za",
    "su": "id", "sv": "se ax fi", "sw": "ke tz ug", "ta": "in lk sg", "te": "in", "tg": "tj", "th": "th",
    "ti": "er et", "tk": "tm", "tl": "ph", "tn": "bw", "to": "to", "tr": "tr", "tt": "ru tatar", "ug": "cn",
    "uk": "ua xn--j1amh", "ur": "pk in", "uz": "uz", "vi": "vn", "xh": "za", "yi": "il", "yo": "ng",
    "zh": "cn sg xn--fiqs8s", "zh-Hant": "tw hk mo", "zu": "za",
}  # fmt: skip


def home_tlds(language: str) -> frozenset[str]:
    """Return the home top-level domains of a language, as far as known."""
    return frozenset(_HOME_TLDS.get(language, "").split())
