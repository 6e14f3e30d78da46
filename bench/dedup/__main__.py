"""Near duplicates of paragraphs: Thresher against a plain Python set of hashes, and datasketch (MinHash with LSH).

    python -m bench.dedup [--words 5000000]

Text consists of English words at their natural frequencies; one paragraph in five is a copy of an earlier one in
which each word was changed with a probability of 2 %, one in twenty is an exact copy. All contenders read the same
file and decide which paragraphs to drop; processor time is from the file to these decisions, with kernels loaded.
The set does the same sequential job in plain Python, so its answers must equal Thresher's. Memory is the maximum
beyond that of the program before. Everything runs twice: with the given number of words, and with four times as
many (datasketch once).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash

from bench.dedup.texts import changed, documents, resident
from bench.measure import ROOT, emit, peers_python, run, say, table
from thresher.pipeline.dedup.paragraphs import drop
from thresher.reader.quality.shingles import hash_shingles
from thresher_lab.toyweb.words import vocabulary

GROWTH = 4
SEED = 6
DOCUMENT_CHARACTERS = 6_000
NEW, CHANGED, COPIED = "new", "changed", "copied"
SHARES = {CHANGED: 0.2, COPIED: 0.05}  # of paragraphs
CHANGED_WORDS = 0.02
REMEMBERED = 50_000  # paragraphs that may be copied
LENGTHS = (7, 25, 50, 100)  # words of paragraphs, for the shares of copies that were found
SMALL_MEMORY = 16 << 20
COLUMNS = ("name", "words", "words_per_cpu_s", "bytes_per_distinct_run", "grown_mb", "found", "wrongly_gone")
WORD = re.compile(r"\w+")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.dedup", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--words", type=int, default=5_000_000, help="of the smaller corpus")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.contender:
        contend(asked.contender, asked.path)
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for words in (asked.words, GROWTH * asked.words):
            path = Path(folder) / f"{words}.jsonl"
            say(f"making {words:,} words")
            kinds, lengths = make(path, words)
            distinct = count_distinct(path)
            for name in (*CONTENDERS, *(("datasketch",) if words == asked.words else ())):
                say(f"{name}: {len(kinds):,} paragraphs")
                rows.append(figures(name, answer(name, path), kinds, lengths, distinct))
                emit(rows[-1])
            path.unlink()
        table(rows, COLUMNS)
        emit(ratios(rows))


def make(path: Path, words: int) -> tuple[list[str], list[int]]:
    """Write documents of so many words; return the kind and the number of words of each paragraph."""
    dice = random.Random(SEED)
    english = vocabulary("en")
    kinds: list[str] = []
    lengths: list[int] = []
    known: list[str] = []
    written = key = 0
    with path.open("wb") as file:
        while written < words:
            document = []
            key += 1
            for text in english.paragraphs(key, DOCUMENT_CHARACTERS):
                document.append((NEW, text))
                if known and dice.random() < SHARES[CHANGED] / (1 - sum(SHARES.values())):
                    document.append(
                        (CHANGED, changed(dice.choice(known), english.words, dice, CHANGED_WORDS))
                    )
                if known and dice.random() < SHARES[COPIED] / (1 - sum(SHARES.values())):
                    document.append((COPIED, dice.choice(known)))
            for kind, text in document:
                kinds.append(kind)
                lengths.append(text.count(" ") + 1)
                written += lengths[-1]
                if kind is NEW:
                    if len(known) < REMEMBERED:
                        known.append(text)
                    else:
                        known[dice.randrange(REMEMBERED)] = text
            file.write(msgspec.json.encode([text for _, text in document]) + b"\n")
    return kinds, lengths


def count_distinct(path: Path) -> int:
    return len(np.unique(np.concatenate([hash_shingles(document).hashes for document in documents(path)])))


def thresher(path: Path, memory: int = 1 << 30) -> str:
    return "".join("01"[gone] for fates in drop(documents(path), memory=memory) for gone in fates)


def thresher_small(path: Path) -> str:
    return thresher(path, SMALL_MEMORY)


def python_set(path: Path) -> str:
    seen: set[int] = set()
    flags = []
    for document in documents(path):
        for text in document:
            words = WORD.findall(text.lower())
            runs = [hash(tuple(words[at : at + 7])) for at in range(len(words) - 6)]
            gone = sum(run in seen for run in runs) > 0.5 * len(runs)
            if not gone:
                seen.update(runs)
            flags.append("01"[gone])
    return "".join(flags)


CONTENDERS = {"thresher": thresher, "thresher, 16 MB": thresher_small, "python set": python_set}


def contend(name: str, path: Path) -> None:
    """Do the work, in a process of its own."""
    list(drop([["a b c d e f g h i j"] * 3]))  # kernels are loaded
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    started = time.process_time()
    gone = CONTENDERS[name](path)
    spent = time.process_time() - started
    print(json.dumps({"cpu_s": spent, "grown_bytes": resident("VmHWM") - before, "gone": gone}))


def answer(name: str, path: Path) -> dict[str, Any]:
    """Return the answer of a contender."""
    if name == "datasketch":
        peer = ROOT / "bench" / "peers" / "datasketch_minhash.py"
        command = [peers_python(), peer, path, "paragraphs", "0.5"]
    else:
        command = [sys.executable, "-m", "bench.dedup", "--contender", name, "--path", path]
    found: dict[str, Any] = json.loads(run(command).output)
    return found


def figures(
    name: str, said: dict[str, Any], kinds: list[str], lengths: list[int], distinct: int
) -> dict[str, Any]:
    """Return speed, memory and the share of planted copies that was found."""
    gone = np.array([one == "1" for one in said["gone"]])
    which, long = np.array(kinds), np.array(lengths)
    by_length = {
        f"{low}+": float(gone[(which == CHANGED) & (long >= low) & (long < high)].mean())
        for low, high in zip(LENGTHS, (*LENGTHS[1:], 1 << 30), strict=True)
        if ((which == CHANGED) & (long >= low) & (long < high)).any()
    }
    return {
        "bench": "dedup",
        "name": name,
        "words": int(long.sum()),
        "paragraphs": len(kinds),
        "distinct_runs": distinct,
        "cpu_s": said["cpu_s"],
        "words_per_cpu_s": round(long.sum() / said["cpu_s"]),
        "grown_mb": said["grown_bytes"] / 1e6,
        "bytes_per_distinct_run": said["grown_bytes"] / distinct,
        "found": float(gone[which == CHANGED].mean()),
        "found_by_words": by_length,
        "copies_found": float(gone[which == COPIED].mean()),
        "wrongly_gone": float(gone[which == NEW].mean()),
        "gone": int(gone.sum()),
        "answers": xxhash.xxh3_64_hexdigest(said["gone"].encode()),
    }


def ratios(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return Thresher's figures relative to the others', and with four times the words relative to once."""
    small, bounded, plain, peer, large, large_bounded, large_plain = rows
    return {
        "bench": "dedup",
        "name": "ratios",
        "speed_by_python_set": small["words_per_cpu_s"] / plain["words_per_cpu_s"],
        "speed_by_datasketch": small["words_per_cpu_s"] / peer["words_per_cpu_s"],
        "memory_by_python_set": small["grown_mb"] / plain["grown_mb"],
        "speed_by_fourth_of_words": large["words_per_cpu_s"] / small["words_per_cpu_s"],
        "bounded_speed_by_fourth_of_words": large_bounded["words_per_cpu_s"] / bounded["words_per_cpu_s"],
        "bounded_memory_by_setting": [
            row["grown_mb"] * 1e6 / SMALL_MEMORY for row in (bounded, large_bounded)
        ],
        "same_answers_as_python_set": [
            one["answers"] == other["answers"] for one, other in ((small, plain), (large, large_plain))
        ],
    }


if __name__ == "__main__":
    main()
