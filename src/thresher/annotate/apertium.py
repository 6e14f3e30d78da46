"""Apertium's analysers, as far as they are installed: dictionaries of word forms, many of them for small languages.

They are asked word by word, and the first reading counts: the one that the makers of a dictionary put first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import weakref
from pathlib import Path

import xxhash

from thresher.annotate.analysers import LONGEST_WORD, Annotate, Token, word_by_word

FOLDERS = (Path("/usr/local/share/apertium"), Path("/usr/share/apertium"))
PROGRAM = "lt-proc"
UNKNOWN = "unknown"  # part of speech of what is in no dictionary
# Apertium names languages by three letters, and once did by two.
_PAIRS = (
    "af=afr an=arg ar=ara ast=ast be=bel bg=bul br=bre bs=hbs ca=cat cnr=hbs cs=ces cy=cym da=dan de=deu "
    "en=eng eo=epo es=spa eu=eus fr=fra frp=frp gl=glg he=heb hi=hin hr=hbs id=ind is=isl it=ita kk=kaz "
    "mk=mkd mr=mar ms=zlm mt=mlt nb=nob nl=nld nn=nno no=nob oc=oci pl=pol pt=por ro=ron ru=rus sc=srd "
    "sh=hbs sk=slk sl=slv sr=hbs sv=swe szl=szl tg=tgk tr=tur tt=tat uk=ukr ur=urd "
)
CODES = dict(pair.split("=") for pair in _PAIRS.split())
_SPECIAL = re.compile(r"[\\^$/<>{}\[\]@]")
_ONE_UNIT = re.compile(r"\^(?:\\.|[^\\/$^])+/((?:\\.|[^\\/$^])+)(?:/(?:\\.|[^\\$^])+)?\$")
_READING = re.compile(r"((?:\\.|[^\\<+])+)<((?:\\.|[^\\>])+)>")


def analyser(language: str) -> Path | None:
    """The file of an installed analyser for a language, or None."""
    if not shutil.which(PROGRAM):
        return None
    codes = [CODES.get(language, language), language]
    files = [
        file
        for code in codes
        for folder in FOLDERS
        for pattern in (f"*/{code}.automorf.bin", f"*/{code}-*.automorf.bin")
        for file in sorted(folder.glob(pattern))
    ]
    return files[0] if files else None


def parts_of_apertium(language: str) -> tuple[str, ...] | None:
    """The analyser of a language and the hash of its file, or None where there is none."""
    file = analyser(language)
    return (f"{file.name} {xxhash.xxh3_64_hexdigest(file.read_bytes())}",) if file else None


def apertium(language: str) -> Annotate:
    """Lemmas and parts of speech, the first reading of each word form."""
    file = analyser(language)
    if not file:
        raise FileNotFoundError(
            f"no analyser of Apertium for {language!r} in {' or '.join(map(str, FOLDERS))}"
        )
    ask = _Process(file).ask

    def reading(word: str) -> Token:
        if len(word) > LONGEST_WORD:
            return word, UNKNOWN
        return _first_reading(ask(word)) or (word, UNKNOWN)

    return word_by_word(language, reading)


def _first_reading(answer: str) -> Token | None:
    r"""Lemma and parts of speech from an answer like `^can't/can<vaux><pres>+not<adv>$`."""
    unit = _ONE_UNIT.fullmatch(answer)
    found = unit and [part for each in unit[1].split("+") if (part := _READING.match(each))]
    if not found:
        return None
    lemma = re.sub(r"\\(.)", r"\1", found[0][1])
    return " ".join(lemma.split()) or UNKNOWN, "+".join([part[2] for part in found])


class _Process:
    """A running lt-proc, which is asked one word at a time; it ends with this object."""

    def __init__(self, file: Path) -> None:
        command = [PROGRAM, "--null-flush", "--dictionary-case", str(file)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        weakref.finalize(self, self._process.communicate)

    def ask(self, word: str) -> str:
        pipes = self._process
        assert pipes.stdin and pipes.stdout
        pipes.stdin.write(_SPECIAL.sub(r"\\\g<0>", word).encode("utf-8", "replace") + b"\0")
        pipes.stdin.flush()
        answer = b""
        while not answer.endswith(b"\0"):
            more = os.read(pipes.stdout.fileno(), 1 << 16)
            if not more:
                raise ChildProcessError(f"{PROGRAM} ended when it was asked about {word!r}")
            answer += more
        return answer[:-1].decode("utf-8", "replace").strip()
