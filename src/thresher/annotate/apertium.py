"""Annotator with the analysers of Apertium that are installed: dictionaries of word forms for many small languages.

Words are looked up one by one. The first reading is taken, since the authors of a dictionary put it first.
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
UNKNOWN = "unknown"  # part of speech of a word that is not in the dictionary
# Apertium names languages by codes of three letters; older packages have codes of two.
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
    """Return the file of an installed analyser for a language, or None."""
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
    """Return name and hash of the analyser of a language, or None if none is installed."""
    file = analyser(language)
    return (f"{file.name} {xxhash.xxh3_64_hexdigest(file.read_bytes())}",) if file else None


def apertium(language: str) -> Annotate:
    """Annotate with lemmas and parts of speech: the first reading of each word form."""
    file = analyser(language)
    if not file:
        raise FileNotFoundError(
            f"no analyser of Apertium for {language!r} in {' or '.join(map(str, FOLDERS))}; install its package"
        )
    analyse = _Process(file).analyse

    def reading(word: str) -> Token:
        if len(word) > LONGEST_WORD:
            return word, UNKNOWN
        return _first_reading(analyse(word)) or (word, UNKNOWN)

    return word_by_word(language, reading)


def _first_reading(answer: str) -> Token | None:
    r"""Return lemma and parts of speech in an answer like `^can't/can<vaux><pres>+not<adv>$`."""
    unit = _ONE_UNIT.fullmatch(answer)
    found = unit and [part for each in unit[1].split("+") if (part := _READING.match(each))]
    if not found:
        return None
    lemma = re.sub(r"\\(.)", r"\1", found[0][1])
    return " ".join(lemma.split()) or UNKNOWN, "+".join([part[2] for part in found])


class _Process:
    """A running lt-proc, which analyses a word at a time; it ends when this object is deleted."""

    def __init__(self, file: Path) -> None:
        command = [PROGRAM, "--null-flush", "--dictionary-case", str(file)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        weakref.finalize(self, self._process.communicate)

    def analyse(self, word: str) -> str:
        """Return the analysis of a word."""
        pipes = self._process
        assert pipes.stdin and pipes.stdout
        pipes.stdin.write(_SPECIAL.sub(r"\\\g<0>", word).encode("utf-8", "replace") + b"\0")
        pipes.stdin.flush()
        answer = b""
        while not answer.endswith(b"\0"):
            more = os.read(pipes.stdout.fileno(), 1 << 16)
            if not more:
                raise ChildProcessError(f"{PROGRAM} ended while it analysed {word!r}")
            answer += more
        return answer[:-1].decode("utf-8", "replace").strip()
