"""Pages in legacy encodings that do not declare them: the share decoded exactly as they were written.

python -m bench.encodings [--gold DIR] [--characters 2500] [--cuts 4] [--only pairs,others,labels]

DIR has udhr.tar.gz (the Universal Declaration, a file of XML for each language) and, where present, daniel.tar.gz
(news pages; see `thresher_lab.training.gold`). A page is a text of so many characters amid menus in ASCII. Each is
read with the top-level domain of its country and without. A page is right if every character is.

pairs: languages in every encoding that they were written in and that can carry the text; where it lacks a dash or
a quotation mark, the plain one stands for it. chardetng, charset-normalizer and resiliparse get the same pages.
others: unforeseen languages, in the Windows encodings that can carry them; chardetng alone beside.
labels: pages whose header names another encoding than their own.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import tarfile
import tempfile
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from chardetng_py import EncodingDetector

from bench.measure import GOLD, ROOT, emit, peers_python, run, say, table
from bench.peers.charsets import DETECTORS
from thresher.reader.encoding import charset
from thresher.reader.encoding.decode import decode
from thresher_lab.training.gold import load

PARTS = ("pairs", "others", "labels")
NEWS = {"Polish": "pl", "Russian": "ru", "Greek": "el", "Chinese": "zh"}  # DANIEL's kinds
NEWS_TEXTS = 12  # of a language
WINDOWS = tuple(f"windows-{number}" for number in range(1250, 1258))

_LATIN_2 = "windows-1250 iso-8859-2"
_WEST = "windows-1252 iso-8859-1 iso-8859-15"
_LATIN_10 = f"{_LATIN_2} iso-8859-16"
_NORDIC = f"{_WEST} iso-8859-10"
_BALTIC = "windows-1257 iso-8859-13 iso-8859-4"
_CYRILLIC = "windows-1251 iso-8859-5 koi8-r koi8-u ibm866 x-mac-cyrillic"
# Language: its files of the Declaration, the top-level domain of a country, its encodings.
LANGUAGES = {
    "cs": ("ces", "cz", _LATIN_2),
    "sk": ("slk", "sk", _LATIN_2),
    "pl": ("pol", "pl", f"{_LATIN_10} iso-8859-13"),
    "hu": ("hun", "hu", _LATIN_10),
    "sl": ("slv", "si", _LATIN_10),
    "hr": ("hrv", "hr", _LATIN_10),
    "bs": ("bos_latn", "ba", _LATIN_2),
    "sr-Latn": ("srp_latn", "rs", _LATIN_2),
    "ro": ("ron_1993 ron_2006", "ro", _LATIN_10),
    "sq": ("als", "al", f"{_LATIN_2} windows-1252"),
    "ru": ("rus", "ru", _CYRILLIC),
    "bg": ("bul", "bg", _CYRILLIC),
    "uk": ("ukr", "ua", _CYRILLIC),
    "be": ("bel", "by", _CYRILLIC),
    "sr": ("srp_cyrl", "rs", _CYRILLIC),
    "mk": ("mkd", "mk", _CYRILLIC),
    "el": ("ell_monotonic", "gr", "windows-1253 iso-8859-7"),
    "tr": ("tur", "tr", "windows-1254 iso-8859-9 iso-8859-3"),
    "he": ("heb", "il", "windows-1255 iso-8859-8"),
    "ar": ("arb", "sa", "windows-1256 iso-8859-6"),
    "lt": ("lit", "lt", _BALTIC),
    "lv": ("lav", "lv", _BALTIC),
    "et": ("est", "ee", f"{_BALTIC} {_WEST}"),
    "th": ("tha tha2", "th", "windows-874 tis-620 iso-8859-11"),
    "vi": ("vie", "vn", "windows-1258"),
    "ja": ("jpn jpn_osaka jpn_tokyo", "jp", "shift_jis euc-jp iso-2022-jp"),
    "zh": ("cmn_hans", "cn", "gb2312 gbk gb18030 big5"),
    "zh-Hant": ("cmn_hant", "tw", "big5 big5-hkscs gb18030"),
    "ko": ("kor", "kr", "euc-kr"),
    "eo": ("epo", "org", "iso-8859-3"),
    "mt": ("mlt", "mt", "iso-8859-3"),
    "cy": ("cym", "uk", "iso-8859-14"),
    "ga": ("gle", "ie", f"{_WEST} iso-8859-14"),
    "de": ("deu_1996", "de", _WEST),
    "fr": ("fra", "fr", _WEST),
    "es": ("spa", "es", _WEST),
    "it": ("ita", "it", _WEST),
    "pt": ("por_PT por_BR", "pt", _WEST),
    "nl": ("nld", "nl", _WEST),
    "sv": ("swe", "se", _NORDIC),
    "da": ("dan", "dk", _NORDIC),
    "nb": ("nob", "no", _NORDIC),
    "fi": ("fin", "fi", _NORDIC),
    "is": ("isl", "is", _NORDIC),
    "ca": ("cat", "cat", _WEST),
    "gl": ("glg", "gal", _WEST),
    "eu": ("eus", "eus", _WEST),
}
# Encodings for which Python's codec is closer to the authors' than the one of the reader.
WRITTEN = {
    "iso-8859-1": "latin-1",
    "iso-8859-9": "iso8859_9",
    "iso-8859-11": "iso8859_11",
    "tis-620": "tis_620",
    "gb2312": "gbk",
    "gbk": "gbk",
    "big5": "cp950",
    "big5-hkscs": "big5hkscs",
}
TONES = "\u0300\u0301\u0303\u0309\u0323"  # Vietnamese: windows-1258 has them as characters of their own
PLAIN = str.maketrans(
    {
        **dict.fromkeys("“”„«»", '"'),
        **dict.fromkeys("‘’‚ʼ", "'"),
        **dict.fromkeys("‐‑–—−", "-"),
        **dict.fromkeys(
            "\u0301\u00ad\u200b\u200c\u200d\u200e\u200f痩覑"
        ),  # left out; two signs of a slip of the pen
        **{"…": "...", "\u00a0": " ", "№": "N", "€": "EUR"},
    }
)


class Sample(NamedTuple):
    """A page as it was written, and the bytes and hints that it is read from."""

    pair: tuple[str, str]
    text: str
    body: bytes
    top_level_domain: str


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.encodings", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--gold", type=Path, default=GOLD, help="where the texts are; or set THRESHER_GOLD")
    parser.add_argument("--characters", type=int, default=2_500, help="of each text")
    parser.add_argument("--cuts", type=int, default=4, help="pages made of one text")
    parser.add_argument("--only", default=",".join(PARTS), help="some of the parts: %(default)s")
    asked = parser.parse_args()
    parts = asked.only.split(",")
    if unknown := set(parts).difference(PARTS):
        parser.error(f"--only {unknown.pop()}: choose from {', '.join(PARTS)}")
    declaration = asked.gold / "udhr.tar.gz"
    if not declaration.is_file():
        sys.exit(f"bench.encodings: {declaration} is not there; name its folder with --gold or THRESHER_GOLD")
    texts = _declarations(declaration)
    if "pairs" in parts:
        _pairs(list(_samples(texts, _news(asked.gold), asked.characters, asked.cuts)))
    if "others" in parts:
        _others(texts, asked.characters)
    if "labels" in parts:
        _labels(texts, asked.characters)


def _declarations(path: Path) -> dict[str, str]:
    """Return the paragraphs of the Declaration by key, without files that are no XML."""
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is None or not member.name.endswith(".xml"):
                continue
            try:
                root = ElementTree.fromstring(file.read())
            except ElementTree.ParseError:
                continue
            paragraphs = [
                "".join(part.itertext()).strip()
                for part in root.iter()
                if part.tag[-5:] in ("}para", "title")
            ]
            found[Path(member.name).stem.removeprefix("udhr_")] = "\n".join(filter(None, paragraphs))
    return found


def _news(folder: Path) -> dict[str, list[str]]:
    path = folder / "daniel.tar.gz"
    found: dict[str, list[str]] = defaultdict(list)
    for page in load([path]) if path.is_file() else ():
        if len(found[NEWS.get(page.kind, "")]) < NEWS_TEXTS:
            found[NEWS.get(page.kind, "")].append(page.text)
    return found


def _samples(
    texts: dict[str, str], news: dict[str, list[str]], characters: int, count: int
) -> Iterator[Sample]:
    for language, (keys, top_level_domain, encodings) in LANGUAGES.items():
        cuts = [cut for key in keys.split() for cut in _cuts(texts.get(key, ""), characters, count)]
        cuts += [cut for text in news.get(language, ()) for cut in _cuts(text, characters, 1)]
        for encoding in encodings.split():
            for cut in cuts:
                page = _written(_page(cut), encoding)
                if page is not None and (not page[1].isascii() or encoding == "iso-2022-jp"):
                    yield Sample((language, encoding), *page, top_level_domain)


def _cuts(text: str, characters: int, count: int) -> Iterator[str]:
    """Return pieces that begin at different places; after its end, the text continues with its beginning."""
    if len(text) >= characters:
        for number in range(count):
            start = len(text) * number // count
            yield f"{text[start:]}\n{text[:start]}"[:characters]


def _page(text: str) -> str:
    paragraphs = "".join(f"<p>{line.replace('<', '&lt;')}</p>\n" for line in text.split("\n"))
    return (
        f"<!DOCTYPE html>\n<html><head><title>{text[:30].replace('<', '')}</title></head>\n<body>"
        '<ul class="menu"><li><a href="/index.html">Home</a><li><a href="/about.html">About us</a></ul>\n'
        f'<div id="content">{paragraphs}</div><p class="footer">Copyright 2004</p></body></html>'
    )


def _written(text: str, encoding: str) -> tuple[str, bytes] | None:
    """Return the text as written in that encoding, and its bytes; None if it has no letters."""
    codec = WRITTEN.get(encoding) or charset.CODECS[encoding]
    text = unicodedata.normalize("NFC", text)
    if encoding == "windows-1258":
        text = "".join(map(_with_loose_tone, text))
    signs = {sign: sign for sign in set(text)}
    signs |= {sign: sign.translate(PLAIN) for sign in signs if not _carries(codec, encoding, sign)}
    text = "".join(map(signs.__getitem__, text))
    if encoding == "koi8-u":
        # Python's codec lacks the letter of Belarusian that the Encoding standard has.
        return _encoded(text, text.translate(str.maketrans("ўЎ", "╝╬")), codec)
    return _encoded(text, text, codec)


def _carries(codec: str, encoding: str, sign: str) -> bool:
    try:
        sign.encode(codec)
    except UnicodeEncodeError:
        return encoding == "koi8-u" and sign in "ўЎ"
    return True


def _encoded(text: str, spelt: str, codec: str) -> tuple[str, bytes] | None:
    try:
        return text, spelt.encode(codec)
    except UnicodeEncodeError:
        return None


def _with_loose_tone(letter: str) -> str:
    parts = unicodedata.normalize("NFD", letter)
    tones = "".join(part for part in parts if part in TONES)
    if not tones or _carries("cp1258", "", letter):
        return letter
    return unicodedata.normalize("NFC", "".join(part for part in parts if part not in TONES)) + tones


def _chardetng(body: bytes, top_level_domain: str) -> str:
    detector = EncodingDetector()
    detector.feed(body, last=True)
    guess: str = detector.guess(tld=top_level_domain.encode() or None, allow_utf8=True)
    return guess


def _decoded(body: bytes, label: str) -> str:
    """Decode with a detector's label; labels of the standard and of Python are both understood."""
    name = charset.named(label) or next((n for n, codec in charset.CODECS.items() if codec == label), None)
    try:
        return charset.decoded(body, name) if name else body.decode(label or "ascii", "replace")
    except LookupError:
        return ""


def _pairs(samples: Sequence[Sample]) -> None:
    """Measure every page twice, with its top-level domain and without; peers that take no hint get it once."""
    say(f"{len(samples):,} pages of {len({sample.pair for sample in samples})} pairs")
    ours = _timed(samples, lambda body, top: decode(body, "text/html", top).utf8.decode())
    alone = _timed(samples, lambda body, top: _decoded(body, _chardetng(body, top)))
    contenders = {"thresher": ours, "chardetng": alone} | {name: _peer(name, samples) for name in DETECTORS}
    rows = []
    for pair in dict.fromkeys(sample.pair for sample in samples):
        row: dict[str, Any] = {"language": pair[0], "encoding": pair[1]}
        row |= {name: rights[pair][True] / rights[pair].total() for name, (rights, _) in contenders.items()}
        emit(row)
        rows.append(row)
    table([row for row in rows if row["thresher"] < 1], ("language", "encoding", *contenders))
    for name, (rights, seconds) in contenders.items():
        pages = sum(right.total() for right in rights.values())
        right = sum(right[True] for right in rights.values())
        mean = sum(float(row[name]) for row in rows) / len(rows)
        emit(
            {
                "name": name,
                "pages": pages,
                "right": right / pages,
                "mean_of_pairs": mean,
                "ms_per_page": 1e3 * seconds / pages,
            }
        )


_Rights = tuple[dict[tuple[str, str], Counter[bool]], float]


def _timed(samples: Sequence[Sample], read: Callable[[bytes, str], str]) -> _Rights:
    rights: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    read(samples[0].body, "")
    seconds = 0.0
    for sample in samples:
        for top_level_domain in ("", sample.top_level_domain):
            started = time.process_time()
            text = read(sample.body, top_level_domain)
            seconds += time.process_time() - started
            rights[sample.pair][text == sample.text] += 1
    return rights, seconds


def _peer(name: str, samples: Sequence[Sample]) -> _Rights:
    rights: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    with tempfile.NamedTemporaryFile("w", prefix="thresher-bench-", suffix=".jsonl") as file:
        file.writelines(json.dumps({"body": base64.b64encode(s.body).decode()}) + "\n" for s in samples)
        file.flush()
        command: list[str | Path] = [
            peers_python(),
            ROOT / "bench" / "peers" / "charsets.py",
            name,
            file.name,
        ]
        found = json.loads(run(command).output)
    for sample, label in zip(samples, found["encodings"], strict=True):
        rights[sample.pair][_decoded(sample.body, label) == sample.text] += 1
    return rights, found["cpu_s"]


def _others(texts: dict[str, str], characters: int) -> None:
    """Measure languages without an alphabet in our table, which must not suffer from the others."""
    known = {key for keys, _, _ in LANGUAGES.values() for key in keys.split()}
    samples = []
    for key, text in texts.items():
        pages = [page for page in map(_page, _cuts(text, characters, 2)) if key not in known]
        for page in pages:
            seen = set()
            for encoding in ("windows-1252", *WINDOWS):
                written = _written(page, encoding)
                if written is not None and not written[1].isascii() and written[1] not in seen:
                    seen.add(written[1])
                    samples.append(Sample((key, encoding), *written, ""))
    for name, read in {
        "thresher": lambda body, top: decode(body, "text/html", top).utf8.decode(),
        "chardetng": lambda body, top: _decoded(body, _chardetng(body, top)),
    }.items():
        rights, _ = _timed(samples, read)
        for encoding in WINDOWS:
            of_encoding = sum((right for pair, right in rights.items() if pair[1] == encoding), Counter())
            if of_encoding:
                emit(
                    {
                        "name": name,
                        "languages": "others",
                        "encoding": encoding,
                        "pages": of_encoding.total(),
                        "right": of_encoding[True] / of_encoding.total(),
                    }
                )


def _labels(texts: dict[str, str], characters: int) -> None:
    """Measure UTF-8 (sound, and with one broken byte) and legacy pages under a wrong label."""
    for said in ("utf-8", "windows-1252", "windows-1251", "gbk"):
        rights: dict[str, Counter[bool]] = defaultdict(Counter)
        for keys, top_level_domain, encodings in LANGUAGES.values():
            for cut in _cuts(texts.get(keys.split()[0], ""), characters, 2):
                page = _page(cut)
                pages = {
                    "utf-8": (page, page.encode()),
                    "utf-8, a byte broken": (page + "\ufffd.", page.encode() + b"\xff."),
                }
                usual = encodings.split()[0]
                if usual not in (said, "windows-1252") and (written := _written(page, usual)):
                    pages["legacy"] = written
                for name, (text, body) in pages.items():
                    if not body.isascii():
                        document = decode(body, f"text/html; charset={said}", top_level_domain)
                        rights[name][document.utf8.decode() == text] += 1
        emit({"said": said} | {name: right[True] / right.total() for name, right in rights.items()})


if __name__ == "__main__":
    main()
