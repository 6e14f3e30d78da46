"""Near duplicates of documents: Thresher's MinHash against datasketch's MinHash with LSH.

    python -m bench.dedup_documents [--documents 20000]

Documents of English words at their natural frequencies; one in four is a copy of an earlier one, each copied at
most once, in which words were changed with one of several probabilities. Both use 128 permutations and a threshold
of 0.8 of the Jaccard similarity of shingles of seven words. That similarity is known for each copy, hence the right
decisions are known. Processor time is from the file to the decisions, with kernels loaded.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bench.dedup.texts import changed, documents, resident
from bench.measure import ROOT, emit, peers_python, run, say, table
from thresher.pipeline.dedup.documents import drop
from thresher.reader.quality.shingles import hash_shingles
from thresher_lab.toyweb.words import vocabulary

SEED = 7
CHARACTERS = 4_000  # of a document
COPIES = 0.25  # of documents
CHANGES = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05)  # of words
THRESHOLD = 0.8
COLUMNS = ("name", "documents", "documents_per_cpu_s", "grown_mb", "found", "wrongly_gone", "new_ones_gone")
NEW = -1.0  # similarity of documents that are no copies


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.dedup_documents", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.path:
        contend(asked.path)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.jsonl"
        say(f"making {asked.documents:,} documents")
        similarities, changes = make(path, asked.documents)
        peer = [peers_python(), ROOT / "bench" / "peers" / "datasketch_minhash.py", path, "documents"]
        commands = {
            "thresher": [sys.executable, "-m", "bench.dedup_documents", "--path", path],
            "datasketch": [*peer, str(THRESHOLD)],
        }
        rows = []
        for name, command in commands.items():
            say(name)
            rows.append(figures(name, json.loads(run(command).output), similarities, changes))
            emit(rows[-1])
        table(rows, COLUMNS)


def make(path: Path, many: int) -> tuple[list[float], list[float]]:
    """Write documents; return the similarity of each to its original, and the share of words changed."""
    dice = random.Random(SEED)
    english = vocabulary("en")
    originals: list[list[str]] = []
    similarities: list[float] = []
    changes: list[float] = []
    with path.open("wb") as file:
        for key in range(many):
            if originals and dice.random() < COPIES:
                original = originals.pop(dice.randrange(len(originals)))
                changes.append(dice.choice(CHANGES))
                words = english.words
                document = [changed(text, words, dice, changes[-1]) for text in original]
                similarities.append(similarity(original, document))
            else:
                document = english.paragraphs(key, CHARACTERS)
                originals.append(document)
                changes.append(NEW)
                similarities.append(NEW)
            file.write(msgspec.json.encode(document) + b"\n")
    return similarities, changes


def similarity(one: list[str], other: list[str]) -> float:
    """Return the Jaccard similarity of the shingles of seven words."""
    ours, theirs = (set(hash_shingles(document).hashes.tolist()) for document in (one, other))
    return len(ours & theirs) / len(ours | theirs)


def contend(path: Path) -> None:
    """Do Thresher's work, in a process of its own."""
    list(drop([["a b c d e f g h i j"] * 3]))  # kernels are loaded
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    started = time.process_time()
    gone = "".join("01"[one] for one in drop(documents(path), threshold=THRESHOLD))
    spent = time.process_time() - started
    print(json.dumps({"cpu_s": spent, "grown_bytes": resident("VmHWM") - before, "gone": gone}))


def figures(
    name: str, said: dict[str, Any], similarities: list[float], changes: list[float]
) -> dict[str, Any]:
    """Return speed, the share of sufficiently similar documents that were found, and of others dropped."""
    gone = np.array([one == "1" for one in said["gone"]])
    similar, change = np.array(similarities), np.array(changes)
    return {
        "bench": "dedup_documents",
        "name": name,
        "documents": len(gone),
        "cpu_s": said["cpu_s"],
        "documents_per_cpu_s": round(len(gone) / said["cpu_s"]),
        "grown_mb": said["grown_bytes"] / 1e6,
        "found": float(gone[similar >= THRESHOLD].mean()),
        "wrongly_gone": float(gone[(similar != NEW) & (similar < THRESHOLD)].mean()),
        "new_ones_gone": float(gone[similar == NEW].mean()),
        "gone_by_change": {
            str(one): [float(similar[change == one].mean()), float(gone[change == one].mean())]
            for one in CHANGES
        },
    }


if __name__ == "__main__":
    main()
