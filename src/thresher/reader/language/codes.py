"""Codes and names of languages."""

from __future__ import annotations

import difflib
from functools import cache

import pycld2

from thresher.errors import UsageError
from thresher.reader.language.cld2 import MODERN, UNKNOWN
from thresher.reader.language.custom_models import trained_languages

# Codes that people use for what the detector calls otherwise.
_ALIASES = {
    "nb": "no",
    "in": "id",
    "ji": "yi",
    "fil": "tl",
    "cmn": "zh",
    "zh-hans": "zh",
    "zh-cn": "zh",
    "zh-sg": "zh",
    "zh-tw": "zh-Hant",
    "zh-hk": "zh-Hant",
    "zh-mo": "zh-Hant",
    "zh-hant": "zh-Hant",
    "yue": "zh-Hant",
} | {old.lower(): new for old, new in MODERN.items()}
# Codes of three letters, as Common Crawl and librarians write them (ISO 639-3, and 639-2 where that differs).
_LONG = """
    aar=aa abk=ab afr=af aka=ak alb=sq amh=am ara=ar arm=hy asm=as aym=ay aze=az bak=ba baq=eu bel=be
    ben=bn bih=bh bis=bi bod=bo bos=bs bre=br bul=bg bur=my cat=ca ces=cs chi=zh cos=co cym=cy cze=cs
    dan=da deu=de div=dv dut=nl dzo=dz ell=el eng=en epo=eo est=et eus=eu fao=fo fas=fa fij=fj
    fin=fi fra=fr fre=fr fry=fy geo=ka ger=de gla=gd gle=ga glg=gl glv=gv gre=el grn=gn guj=gu hat=ht
    hau=ha heb=he hin=hi hrv=hr hun=hu hye=hy ibo=ig ice=is iku=iu ile=ie ina=ia ind=id ipk=ik isl=is
    ita=it jav=jv jpn=ja kal=kl kan=kn kas=ks kat=ka kaz=kk khm=km kin=rw kir=ky kor=ko kur=ku lao=lo
    lat=la lav=lv lin=ln lit=lt ltz=lb lug=lg mac=mk mal=ml mao=mi mar=mr may=ms mkd=mk mlg=mg mlt=mt
    mon=mn mri=mi msa=ms mya=my nau=na nbl=nr nep=ne nld=nl nno=nn nor=no nya=ny oci=oc ori=or orm=om
    pan=pa per=fa pol=pl por=pt pus=ps que=qu roh=rm ron=ro rum=ro run=rn rus=ru sag=sg san=sa sin=si
    slk=sk slo=sk slv=sl smo=sm sna=sn snd=sd som=so sot=st spa=es sqi=sq srp=sr ssw=ss sun=su swa=sw
    swe=sv tam=ta tat=tt tel=te tgk=tg tgl=tl tha=th tib=bo tir=ti ton=to tsn=tn tso=ts tuk=tk tur=tr uig=ug
    ukr=uk urd=ur uzb=uz ven=ve vie=vi vol=vo wel=cy wol=wo xho=xh yid=yi yor=yo zha=za zho=zh zul=zu
"""
_ALIASES |= {long: _ALIASES.get(short, short) for long, short in (pair.split("=") for pair in _LONG.split())}
# Country codes that are taken for languages, as far as they are not codes of other languages.
_COUNTRIES = {
    "cz": "cs",
    "gr": "el",
    "jp": "ja",
    "kr": "ko",
    "cn": "zh",
    "tw": "zh-Hant",
    "dk": "da",
    "se": "sv",
    "ua": "uk",
    "ee": "et",
    "si": "sl",
    "rs": "sr",
    "by": "be",
    "al": "sq",
    "vn": "vi",
    "ir": "fa",
    "il": "he",
    "gb": "en",
    "us": "en",
    "at": "de",
    "br": "pt",
    "ge": "ka",
    "am": "hy",
    "ba": "bs",
    "ph": "tl",
    "my": "ms",
    "in": "hi",
    "pk": "ur",
    "bd": "bn",
    "lk": "si",
    "mm": "my",
    "kh": "km",
    "la": "lo",
    "et": "am",
}
_NAMES = {
    "zh-Hant": "Chinese (traditional)",
    "zh": "Chinese",
    "no": "Norwegian",
    "nn": "Norwegian Nynorsk",
    "rm": "Romansh",
    "lo": "Lao",
    "ug": "Uyghur",
    "ss": "Swati",
    "st": "Sotho",
    "si": "Sinhala",
    "gd": "Scottish Gaelic",
    "war": "Waray",
    "cnr": "Montenegrin",
    "tlh": "Klingon",
}
_NOT_FOR_CORPORA = frozenset({"zzp", "xx-Bugi", "xx-Goth", UNKNOWN})


@cache
def detected_languages() -> dict[str, str]:
    """Return every language that CLD2 knows: code and English name."""
    detected = set(pycld2.DETECTED_LANGUAGES)
    codes = {MODERN.get(code, code): name for name, code in pycld2.LANGUAGES if name in detected}
    return {
        code: _NAMES.get(code) or name.replace("_", " ").title()
        for code, name in sorted(codes.items())
        if code not in _NOT_FOR_CORPORA
    }


def country_languages() -> dict[str, str]:
    """Return the codes of countries that users write for a language, and that language."""
    return dict(_COUNTRIES)


def known_languages() -> dict[str, str]:
    """Return every language that can be identified, by code with its English name, trained ones last."""
    return detected_languages() | {name: f"{name} (trained)" for name in trained_languages()}


def normalise(code: str) -> str | None:
    """Return the code by which a language is known here, or None.

    >>> normalise("pt-BR"), normalise("nb"), normalise("ces"), normalise("cz")
    ('pt', 'no', 'cs', None)
    """
    known = known_languages()
    asked = code.strip().replace("_", "-").lower()
    while asked:
        found = _ALIASES.get(asked, asked)
        if found in known:
            return found
        asked = asked.rpartition("-")[0]  # a script or region that makes no difference here
    return None


def nearest(code: str) -> list[str]:
    """Return the codes of the languages most similar to a wrong code or name, the likeliest first.

    >>> nearest("czech"), nearest("cz")
    (['cs'], ['cs'])
    """
    asked = code.strip().lower()
    known = known_languages()
    by_name = {name.lower(): code for code, name in known.items()}
    if asked in by_name:
        return [by_name[asked]]
    if asked in _COUNTRIES:
        return [_COUNTRIES[asked]]
    names = difflib.get_close_matches(asked, by_name, n=3, cutoff=0.6)
    codes = difflib.get_close_matches(asked, known, n=3, cutoff=0.6)
    return list(dict.fromkeys([by_name[name] for name in names] + codes))[:3]


def language_code(asked: str) -> str:
    """Return the code by which a language is known here; raise UsageError, with the nearest ones, for others."""
    code = normalise(asked)
    if code is None:
        offered = ", ".join(f"{near} ({known_languages()[near]})" for near in nearest(asked))
        raise UsageError(
            f"unknown language {asked!r}; did you mean {offered or 'a code such as cs, ur, tr'}? "
            "All codes: thresher language list"
        )
    return code
