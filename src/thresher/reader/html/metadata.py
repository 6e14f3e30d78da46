"""Metadata of a page: title, authors, dates, site name and language, from the most trusted source.

Each field has a list of keys in order of trust: names of <meta> elements, and `ld:` for JSON-LD. Visible
marks (<time>, bylines) are used last. Implausible values are skipped: an empty field is better than a wrong
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from thresher.reader.html.dates import DAY, MONTHS, credible_date
from thresher.reader.html.json_ld import MAX_VALUES, described
from thresher.reader.normalize import one_line
from thresher.records import Metadata

MAX_TITLE = 500  # characters
MAX_AUTHOR = 200
MAX_SITE_NAME = 100
MAX_NAME = 80  # characters of one author
MAX_WORDS = 8  # of one author: what is longer is a sentence
MAX_CODE = 64  # characters of a language's tag
MAX_PEOPLE = 3  # in bylines; more of them belong to teasers or comments

_PUBLISHED = (
    *("article:published_time", "og:article:published_time", "ld:date_published", "datepublished"),
    *("dc.date.issued", "dcterms.issued", "citation_publication_date", "parsely-pub-date", "sailthru.date"),
    *("originalpublicationdate", "pubdate", "publishdate", "publish-date", "publish_date", "pdate"),
    *("dc.date", "dcterms.date", "dcterms.created", "dc.date.created", "dc.created", "datecreated"),
    *("ld:date_created", "date"),
)
_MODIFIED = (
    *("article:modified_time", "og:article:modified_time", "ld:date_modified", "datemodified"),
    *("og:updated_time", "dcterms.modified", "dc.date.modified", "dc.modified", "last-modified"),
)
_AUTHOR = (
    *("ld:author", "author", "article:author", "og:article:author", "citation_author", "citation_authors"),
    *("dc.creator", "dcterms.creator", "parsely-author", "sailthru.author", "byl", "byline"),
)
_TITLE = ("og:title", "ld:headline", "headline", "twitter:title", "dc.title", "<title>")
_SITE_NAME = (
    *("og:site_name", "ld:site", "application-name", "ld:publisher", "publisher", "dc.publisher"),
    "apple-mobile-web-app-title",
)
_LANGUAGE = ("<html>", "content-language", "og:locale")
_WANTED = frozenset((*_PUBLISHED, *_MODIFIED, *_AUTHOR, *_TITLE, *_SITE_NAME, *_LANGUAGE))

Said: TypeAlias = dict[str, list[str]]  # statements of the page, by key


def metadata(
    metas: Sequence[tuple[str, str]],
    json_ld: Sequence[str],
    times: Sequence[tuple[str, str]],
    bylines: Sequence[str],
    title: str,
    html_lang: str,
    now: float,
) -> Metadata:
    """Return the metadata of a page at a given time. The function is total: any strings give a result."""
    said: Said = {"<title>": [title], "<html>": [html_lang]}
    for name, content in metas:
        if (key := name.strip()) in _WANTED and content:
            values = said.setdefault(key, [])
            if len(values) < MAX_VALUES:
                values.append(content)
    for field, values in described(json_ld).items():
        said.setdefault(f"ld:{field}", values)
    sites = _site_names(said)
    return Metadata(
        title=_title(said, sites),
        author="; ".join(_authors(said, bylines, sites)),
        published=credible_date(_values(said, _PUBLISHED), now) or _first_shown(times, now),
        modified=credible_date(_values(said, _MODIFIED), now),
        site_name=sites[0] if sites else "",
        language_declared=next(filter(None, map(_language, _values(said, _LANGUAGE))), ""),
    )


def _values(said: Said, keys: Iterable[str]) -> Iterator[str]:
    """Yield all values of some keys, in the order of the keys."""
    return (value for key in keys if key in said for value in said[key])


def _line(text: str, limit: int) -> str:
    return one_line(text[: 4 * limit])[:limit].rstrip()


# Title and site

_SEPARATOR = re.compile(r"\s*(?:[|│•·»«]|::)\s*|\s+(?:--|[-–—:/~])\s+")
_SEPARATOR_SIZE = 4  # characters at most, in a text of one line


def _site_names(said: Said) -> list[str]:
    """Return the names that a page gives to its site, the most trusted first."""
    lines = (_line(name, MAX_SITE_NAME) for name in _values(said, _SITE_NAME))
    names = dict.fromkeys(line for line in lines if line and "://" not in line and not line.startswith("@"))
    return list(names) or _rest_of_title(said)


def _rest_of_title(said: Said) -> list[str]:
    """Return the parts that <title> adds to the page's own title: "The Herald" in "Storm | The Herald"."""
    whole = _line(said["<title>"][0], MAX_TITLE)
    for own in _values(said, ("og:title", "ld:headline")):
        line = _line(own, MAX_TITLE)
        if line and whole.startswith(line) and (mark := _SEPARATOR.match(whole, len(line))):
            rest = whole[mark.end() :]
            is_name = rest[:1].isalpha() and not _SEPARATOR.search(rest) and not _BY.match(rest)
            if is_name and len(rest) <= MAX_SITE_NAME:
                return [rest]
    return []


def _title(said: Said, sites: Sequence[str]) -> str:
    """Return the page's own title; the name of the site only if there is nothing else."""
    names = dict.fromkeys(name for site in sites for name in (site, _SEPARATOR.split(site, 1)[0]) if name)
    first = ""
    for candidate in _values(said, _TITLE):
        title = _line(candidate, MAX_TITLE)
        for name in names:
            title = _without(title, name)
        if title and title not in names:
            return title
        first = first or title
    return first


def _without(title: str, name: str) -> str:
    """Return the title without the site's name at its end or beginning, where a separator precedes it."""
    size, folded = len(name), name.casefold()
    if title[-size:].casefold() == folded:
        rest = title[:-size]
        mark = _SEPARATOR.search(rest, max(1, len(rest) - _SEPARATOR_SIZE))
        if mark and mark.end() == len(rest):
            title = rest[: mark.start()]
    if title[:size].casefold() == folded and (mark := _SEPARATOR.match(title, size)):
        title = title[mark.end() :] or title
    return title


# Dates


def _first_shown(times: Sequence[tuple[str, str]], now: float) -> str:
    """Return the first visible date, if none is earlier: teasers are older, comments are newer."""
    dates = [shown for attribute, text in times if (shown := credible_date((attribute, text), now))]
    return dates[0] if dates and dates[0][:DAY] == min(dates)[:DAY] else ""


# Authors

_DAYS = "mon|tue|wed|thu|fri|sat|sun"
_BY = re.compile(
    r"(?:(?:article|exclusive|posted|post|published|story|submitted|text|words|written)\s+)*by\b\s*:?\s*"
    r"|(?:authors?|autor(?:en|es|a|ka)?|auteur|autore|авторы?|текст|συντάκτης|作者|记者|記者|文|撰文)\s*[:：]\s*",
    re.IGNORECASE,
)
# These begin names and headings, too (Von Miller, Author Archive), so a full name must follow.
_VON = re.compile(r"(?:von|par|por|di|door|av|af|author|autor|auteur|автор|από)\s+", re.IGNORECASE)
# Text that ends a name: another field, an address, a date.
_END = re.compile(
    r"[|│•·»«<>()\[\]{}【】]|//|https?:|www\.|(?<!\S)[^\s@]{0,64}@|,?\s(?:[-–—/~]+\s"
    rf"|(?:(?:{_DAYS})[a-z]*,?\s)?(?:(?:{'|'.join(month[:3] for month in MONTHS)})[a-z]*\.?\s)?\d"
    r"|(?:(?-i:at|on)|last updated|posted|published|reviewed|updated)\b)",
    re.IGNORECASE,
)
_AND = re.compile(r"\s+(?:and|und|et|och|og|и|και|&)\s+", re.IGNORECASE)
_SENTENCE = re.compile(r"[^\W\d_]{4}[.!?…]\s|[!?…]$|[:：，。、；！？]")
_HOST = re.compile(r"\S+\.[a-z]{2,6}", re.IGNORECASE)
_SMALL = "af al av bin da de del della den der di do dos du e el ibn la le of ten ter van von y zu zur"
_NOBODY = "admin administrator anonymous author by guest none null root undefined unknown user webmaster"
_OFFICES = (
    "author ceo columnist comment comments contributor correspondent director editor editors email expert facebook "
    "founder login manager member moderator posts profile reply reporter reviewer rss tweet twitter writer"
)
_PARTICLES, _NO_NAMES, _IN_NO_NAME = (frozenset(words.split()) for words in (_SMALL, _NOBODY, _OFFICES))


def _authors(said: Said, bylines: Sequence[str], sites: Sequence[str]) -> list[str]:
    """Return the authors' names from the most trusted source that names others than the site itself."""
    own = {site.casefold() for site in sites}
    of_site: list[str] = []
    for key in _AUTHOR:
        if key in said:
            names = [name for value in said[key] for name in _names(value)]
            if others := [name for name in names if name.casefold() not in own]:
                return _fitting(others)
            of_site = of_site or names
    return _fitting(_names_shown(bylines) or of_site)


def _fitting(names: Iterable[str]) -> list[str]:
    """Return each name once, as many as fit."""
    kept: dict[str, str] = {}
    room = MAX_AUTHOR
    for name in names:
        if name.casefold() not in kept and len(name) <= room:
            kept[name.casefold()] = name
            room -= len(name) + len("; ")
    return list(kept.values())


def _names(text: str) -> list[str]:
    """Return the names in a value that should hold nothing else."""
    line = one_line(text[: 4 * MAX_AUTHOR])
    rest = _after_by(line)
    return [name for name in _split(line if rest is None else rest, only_names=True) if _may_be_name(name)]


def _names_shown(bylines: Sequence[str]) -> list[str]:
    """Return the names in bylines, if the first of them is a name and there are not too many others."""
    after_by: dict[str, list[str]] = {}  # by first word: one person may be shown in several forms
    bare: dict[str, list[str]] = {}
    for byline in bylines:
        line = one_line(byline[:MAX_AUTHOR])
        rest = _after_by(line)
        if rest is None and len(line) > MAX_NAME:
            continue  # about the author, or a whole comment
        text, people, least = (line, bare, 2) if rest is None else (rest, after_by, 1)
        word = text.partition(" ")[0].casefold()
        if word and not people.get(word):
            names = _split(text, only_names=False)
            people[word] = names if all(_is_capitalised_name(name, least) for name in names) else []
    for people in (after_by, bare):
        if 0 < len(people) <= MAX_PEOPLE and (first := next(iter(people.values()))):
            return first
    return []


def _after_by(line: str) -> str | None:
    """Return the text after "By", or None if a line does not begin with it."""
    if by := _BY.match(line):
        return line[by.end() :]
    by = _VON.match(line)
    rest = line[by.end() :] if by else ""
    return rest if rest[:1].isupper() and " " in rest else None


def _split(text: str, only_names: bool) -> list[str]:
    """Split a list of names. A comma often precedes an office: "Jane Doe, MD"; but "A B, C D and E F"."""
    end = _END.search(text)
    line = (text[: end.start()] if end else text).strip(" ,;-–—*~'\"")
    pieces = line.split(";") if ";" in line else line.split(",")
    if ";" not in line and len(pieces) > 1:
        if only_names and len(pieces) == 2 and " " not in pieces[0]:
            return [line]  # "Doe, Jane"
        if not (all(" " in piece.strip() for piece in pieces) if only_names else _AND.search(pieces[-1])):
            del pieces[1:]
    return [name for piece in pieces for part in _AND.split(piece) if (name := part.strip(" ,"))]


def _may_be_name(name: str) -> bool:
    """Return True if a text may name a person or an organisation: no sentence, address or placeholder."""
    folded = name.casefold()
    if (
        not 2 <= len(name) <= MAX_NAME
        or not name[0].isalpha()
        or folded in _NO_NAMES
        or _HOST.fullmatch(name)
    ):
        return False
    words = name.split()
    small = sum(word[0].islower() and word not in _PARTICLES for word in words)
    is_handle = small == len(words) <= 2
    return (
        len(words) <= MAX_WORDS
        and (small <= 1 or is_handle)
        and _IN_NO_NAME.isdisjoint(folded.split())
        and not _SENTENCE.search(name)
    )


def _is_capitalised_name(name: str, least: int) -> bool:
    """Return True if visible words are a name: few of them, all capitalised."""
    words = name.split()
    capitals = all(not word[0].islower() or word in _PARTICLES for word in words)
    return least <= len(words) <= 4 and capitals and "_" not in name and _may_be_name(name)


# Language

_TAG = re.compile(
    r"([a-z]{2,3})(?:[-_]([a-z]{4}))?(?:[-_]([a-z]{2}|\d{3}))?(?:[-_][a-z\d]{2,8})*+\s*(?:[,;]|$)",
    re.IGNORECASE | re.ASCII,
)
_NO_LANGUAGE = frozenset(["und", "mul", "zxx", "mis"])
# Codes that were replaced, and one that never was: languages are written small and regions in capitals.
_WITHDRAWN = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "mol": "ro", "UK": "GB"}
# ISO 639: long codes of languages that also have a short one, which is the one to use.
_SHORT_CODES = (
    "aar:aa abk:ab afr:af aka:ak alb:sq amh:am ara:ar arg:an arm:hy asm:as ava:av ave:ae aym:ay aze:az "
    "bak:ba bam:bm baq:eu bel:be ben:bn bih:bh bis:bi bod:bo bos:bs bre:br bul:bg bur:my cat:ca ces:cs "
    "cha:ch che:ce chi:zh chu:cu chv:cv cor:kw cos:co cre:cr cym:cy cze:cs dan:da deu:de div:dv dut:nl "
    "dzo:dz ell:el eng:en epo:eo est:et eus:eu ewe:ee fao:fo fas:fa fij:fj fin:fi fra:fr fre:fr fry:fy "
    "ful:ff geo:ka ger:de gla:gd gle:ga glg:gl glv:gv gre:el grn:gn guj:gu hat:ht hau:ha hbs:sh heb:he "
    "her:hz hin:hi hmo:ho hrv:hr hun:hu hye:hy ibo:ig ice:is ido:io iii:ii iku:iu ile:ie ina:ia ind:id "
    "ipk:ik isl:is ita:it jav:jv jpn:ja kal:kl kan:kn kas:ks kat:ka kau:kr kaz:kk khm:km kik:ki kin:rw "
    "kir:ky kom:kv kon:kg kor:ko kua:kj kur:ku lao:lo lat:la lav:lv lim:li lin:ln lit:lt ltz:lb lub:lu "
    "lug:lg mac:mk mah:mh mal:ml mao:mi mar:mr may:ms mkd:mk mlg:mg mlt:mt mon:mn mri:mi msa:ms mya:my "
    "nau:na nav:nv nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn nob:nb nor:no nya:ny oci:oc oji:oj ori:or "
    "orm:om oss:os pan:pa per:fa pli:pi pol:pl por:pt pus:ps que:qu roh:rm ron:ro rum:ro run:rn rus:ru "
    "sag:sg san:sa sin:si slk:sk slo:sk slv:sl sme:se smo:sm sna:sn snd:sd som:so sot:st spa:es sqi:sq "
    "srd:sc srp:sr ssw:ss sun:su swa:sw swe:sv tah:ty tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th tib:bo "
    "tir:ti ton:to tsn:tn tso:ts tuk:tk tur:tr twi:tw uig:ug ukr:uk urd:ur uzb:uz ven:ve vie:vi vol:vo "
    "wel:cy wln:wa wol:wo xho:xh yid:yi yor:yo zha:za zho:zh zul:zu"
)
# ISO 3166, with Kosovo and the European Union.
_COUNTRIES = (
    "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV "
    "BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES "
    "ET EU FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID "
    "IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV "
    "LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR "
    "NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL "
    "SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC "
    "VE VG VI VN VU WF WS XK YE YT ZA ZM ZW"
)
_SHORTER = dict(pair.split(":") for pair in _SHORT_CODES.split())
_SHORT, _REGIONS = frozenset(_SHORTER.values()), frozenset(_COUNTRIES.split())


def _language(declared: str) -> str:
    """Return language, script and region in the form of BCP 47, as far as they exist, or ""."""
    return _normal_tag(declared[:MAX_CODE].strip())


@lru_cache(maxsize=10_000)
def _normal_tag(declared: str) -> str:
    parts = _TAG.match(declared)
    if not parts:
        return ""
    code, script, region = (part or "" for part in parts.groups())
    language = _current(_SHORTER.get(code.lower(), code.lower()))
    if language in _NO_LANGUAGE or (len(language) == 2 and language not in _SHORT):
        return ""
    country = _current(region.upper())
    known = country if country.isdigit() or country in _REGIONS else ""
    return "-".join(filter(None, (language, script.title(), known)))


def _current(code: str) -> str:
    return _WITHDRAWN.get(code, code)
