"""Count sentences with a word, a phrase or a regular expression by tantivy, for bench.query.

index FOLDER VERTICAL makes an index; answer FOLDER reads {name: query} from standard input and prints, for each,
the number of sentences and the milliseconds of processor time.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import tantivy
import zstandard

TIMES = 3


def make_index(folder: Path, vertical: Path) -> None:
    schema = tantivy.SchemaBuilder().add_text_field("word", tokenizer_name="whitespace").build()
    folder.mkdir(parents=True)
    writer = tantivy.Index(schema, str(folder)).writer(200_000_000, 1)
    words: list[str] = []
    with zstandard.ZstdDecompressor().stream_reader(vertical.open("rb")) as source:
        rest = b""
        while block := source.read(1 << 22):
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            for line in lines:
                if line == b"</s>":
                    writer.add_document(tantivy.Document(word=" ".join(words)))
                    words = []
                elif not line.startswith(b"<"):
                    words.append(line.split(b"\t", 1)[0].decode())
    writer.commit()
    writer.wait_merging_threads()


def answer(folder: Path) -> None:
    index = tantivy.Index.open(str(folder))
    searcher = index.searcher()
    answers = {}
    for name, query in json.load(sys.stdin).items():
        words = re.findall(r'"([^"]*)"', query)
        is_plain = all(re.fullmatch(r"\w+", word) for word in words)
        if is_plain:
            asked = index.parse_query(f'"{" ".join(words)}"', ["word"])
        else:
            asked = tantivy.Query.regex_query(index.schema, "word", words[0])
        best = float("inf")
        for _ in range(TIMES):
            start = time.process_time()
            count = searcher.search(asked, limit=1, count=True).count
            best = min(best, time.process_time() - start)
        answers[name] = {"sentences": count, "cpu_ms": best * 1e3}
    print(json.dumps(answers))


if __name__ == "__main__":
    if sys.argv[1] == "index":
        make_index(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        answer(Path(sys.argv[2]))
