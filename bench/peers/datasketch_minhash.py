"""Run datasketch's MinHash with LSH over shingles of seven words; text similar to kept text is dropped.

    datasketch_minhash.py PATH paragraphs|documents THRESHOLD

Started by bench.dedup and bench.dedup_documents. PATH has a JSON list of paragraphs, a document, in every line.
Prints seconds of processor time, memory and a 0 or 1 for each paragraph or document.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from datasketch import MinHash, MinHashLSH

ORDERS = 128
WORD = re.compile(r"\w+")


def resident(mark: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(mark))


def runs_of(text: str) -> set[bytes]:
    words = WORD.findall(text.lower())
    return {" ".join(words[at : at + 7]).encode() for at in range(len(words) - 6)}


def main(path: Path, unit: str, threshold: float) -> None:
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    started = time.process_time()
    known = MinHashLSH(threshold=threshold, num_perm=ORDERS)
    gone = []
    with path.open("rb") as lines:
        for line in lines:
            found = map(runs_of, json.loads(line))
            for runs in [set().union(*found)] if unit == "documents" else found:
                signature = MinHash(num_perm=ORDERS)
                signature.update_batch(runs)
                is_known = bool(runs) and bool(known.query(signature))
                if runs and not is_known:
                    known.insert(len(gone), signature)
                gone.append(is_known)
    spent = time.process_time() - started
    grown = resident("VmHWM") - before
    print(json.dumps({"cpu_s": spent, "grown_bytes": grown, "gone": "".join(str(int(one)) for one in gone)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
