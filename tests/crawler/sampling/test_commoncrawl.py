"""Seeds from an index of Common Crawl: by language and top-level domain, the largest hosts first."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.cli import app
from thresher.crawler.sampling import commoncrawl
from thresher.crawler.sampling.commoncrawl import (
    IndexSeed,
    RankedSeeds,
    SeedCriteria,
    choose,
    is_index,
    seed_list,
)
from thresher.crawler.seeds import gather
from thresher.errors import UsageError
from thresher.reader.language import codes
from thresher.reader.language.identify import known_languages, normalise
from thresher.urls import host, tld

CZECH = SeedCriteria("cs", ("cz",), per_host=2)


def row(
    url: str, languages: str | None = "ces", status: int = 200, mime: str = "text/html"
) -> dict[str, Any]:
    return {
        "url": url,
        "url_host_tld": tld(host(url)),
        "fetch_status": status,
        "content_mime_detected": mime,
        "content_languages": languages,
    }


def columnar(path: Path, rows: list[dict[str, Any]], group: int = 2) -> Path:
    schema = pa.schema(
        [(name, pa.int16() if name == "fetch_status" else pa.string()) for name in row("http://a.cz/")]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=group)
    return path


def cdxj(path: Path, rows: list[dict[str, Any]]) -> Path:
    lines = ["!OpenWayback-CDXJ 1.0"]
    for each in rows:
        fields = {"url": each["url"], "mime": "unk", "mime-detected": each["content_mime_detected"]}
        fields |= {"status": str(each["fetch_status"]), "length": "1234"}
        fields |= {"languages": each["content_languages"]} if each["content_languages"] else {}
        surt = ",".join(reversed(host(each["url"]).split(".")))
        lines.append(f"{surt})/ 20260301093000 {json.dumps(fields)}")
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


ROWS = [
    row("http://small.cz/"),
    row("https://www.big.cz/a/long/path"),
    row("https://www.big.cz/b"),
    row("https://www.big.cz/"),
    row("https://www.big.cz/b"),
    row("https://www.big.cz/english", "eng"),
    row("https://www.big.cz/mostly-czech", "ces,eng"),
    row("https://www.big.cz/mostly-english", "eng,ces"),
    row("https://www.big.cz/gone", status=404),
    row("https://www.big.cz/paper.pdf", mime="application/pdf"),
    row("https://middle.cz/1"),
    row("https://middle.cz/2"),
    row("https://czech.com/"),
    row("https://unknown.cz/", None),
]
EXPECTED = [
    IndexSeed("https://www.big.cz/", "www.big.cz", 5),
    IndexSeed("https://www.big.cz/b", "www.big.cz", 5),
    IndexSeed("https://middle.cz/1", "middle.cz", 2),
    IndexSeed("https://middle.cz/2", "middle.cz", 2),
    IndexSeed("http://small.cz/", "small.cz", 1),
]
FORMS = {"index.parquet": columnar, "cdx-00000": cdxj, "cdx-00000.gz": cdxj}


@pytest.mark.parametrize("name", FORMS)
def test_seeds_are_pages_in_the_language_of_the_largest_hosts_first(tmp_path: Path, name: str) -> None:
    path = FORMS[name](tmp_path / name, ROWS)
    assert is_index(path)
    assert choose([path], CZECH) == RankedSeeds(
        tuple(EXPECTED), rows=14, pages=8, unknown_language=1, malformed=0
    )
    fewer = choose([path], SeedCriteria("cs", ("cz",), per_host=2, max_seeds=3))
    assert list(fewer.seeds) == EXPECTED[:3]
    everywhere = choose([path], SeedCriteria("cs", per_host=1))
    assert [seed.host for seed in everywhere.seeds] == ["www.big.cz", "middle.cz", "czech.com", "small.cz"]
    assert choose([path], SeedCriteria("")).pages == 12
    assert choose([path], SeedCriteria("de", ("cz",))).seeds == ()


def test_row_groups_of_other_domains_are_counted_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = columnar(tmp_path / "a.parquet", sorted(ROWS, key=lambda each: each["url_host_tld"]), group=1)
    read: list[int] = []
    real = commoncrawl._portion
    monkeypatch.setattr(
        commoncrawl, "_portion", lambda batch, criteria: read.append(1) or real(batch, criteria)
    )
    assert choose([path], SeedCriteria("cs", ("com",))).rows == 14
    assert len(read) == 1


def test_malformed_lines_are_counted_and_the_others_used(tmp_path: Path) -> None:
    path = cdxj(tmp_path / "cdx", ROWS[:1])
    with path.open("ab") as out:
        out.write(b'cz,b)/ 20260301093000 {"url": 5}\ncz,b)/ 2026\ncz,c)/ 2026 {"url": "\xff\n\n')
        out.write(
            b'cz,d)/ 20260301093000 {"url": "no address", "status": "200", "mime": "text/html", "languages": "ces"}'
        )
    chosen = choose([path], CZECH)
    assert [seed.url for seed in chosen.seeds] == ["http://small.cz/"]
    assert (chosen.rows, chosen.malformed, chosen.pages) == (5, 3, 1)


def test_other_files_are_not_taken_for_an_index(tmp_path: Path) -> None:
    for name, data in (("a.txt", b"http://a.cz/\n"), ("b", b""), ("c.gz", gzip.compress(b"http://a.cz/"))):
        (tmp_path / name).write_bytes(data)
        assert not is_index(tmp_path / name)
    assert not is_index(tmp_path / "none") and not is_index(tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"uri": ["http://a.cz/"]}, "has no column url; is it an index"),
        ({"url": ["http://a.cz/"]}, "no column content_languages.*since August 2018"),
    ],
)
def test_a_table_without_a_required_column_is_refused(
    tmp_path: Path, table: dict[str, Any], message: str
) -> None:
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=message):
        choose([tmp_path / "a.parquet"], CZECH)
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(UsageError, match=r"cannot be read.*download it again"):
        choose([tmp_path / "b.parquet"], CZECH)


def test_the_largest_hosts_are_found_with_a_small_table_of_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commoncrawl, "MAX_HOSTS", 40)
    chance = random.Random(5)
    sizes = {f"h{n:03d}.cz": chance.randrange(1, 12) for n in range(500)} | {"h250.cz": 30}
    rows = [row(f"http://{name}/{page}") for name, size in sorted(sizes.items()) for page in range(size)]
    chosen = choose(
        [columnar(tmp_path / "a.parquet", rows, 100)], SeedCriteria("cs", per_host=1, max_seeds=10)
    )
    expected = sorted(sizes, key=lambda name: (-sizes[name], name))[:10]
    assert [seed.host for seed in chosen.seeds] == expected
    assert [seed.pages for seed in chosen.seeds] == [sizes[name] for name in expected]


ADDRESSES = st.builds(
    "http://{}.{}/{}".format,
    st.sampled_from("abcd"),
    st.sampled_from(["cz", "com"]),
    st.sampled_from(["", "x", "yy"]),
)
LANGUAGES = st.sampled_from(["ces", "cs", "ces,slk", "slk,ces", "eng", None])
ENTRIES = st.builds(
    row, ADDRESSES, LANGUAGES, st.sampled_from([200, 200, 301]), st.sampled_from(["text/html", "image/png"])
)


@settings(max_examples=60)
@given(st.lists(ENTRIES, min_size=1, max_size=30), st.integers(1, 3), st.integers(1, 8))
def test_both_formats_give_the_seeds_of_a_plain_count(
    rows: list[dict[str, Any]], per_host: int, max_seeds: int
) -> None:
    criteria = SeedCriteria("cs", ("cz",), per_host, max_seeds)
    with tempfile.TemporaryDirectory() as folder:
        found = [
            choose([FORMS[name](Path(folder) / name, rows)], criteria)
            for name in ("index.parquet", "cdx-00000")
        ]
    good = [
        each["url"]
        for each in rows
        if (each["fetch_status"], each["content_mime_detected"], each["url_host_tld"])
        == (200, "text/html", "cz")
        and (each["content_languages"] or "").split(",")[0] in ("ces", "cs")
    ]
    pages = Counter(map(host, good))
    expected = []
    for name in sorted(pages, key=lambda name: (-pages[name], name)):
        urls = sorted({url for url in good if host(url) == name}, key=lambda url: (len(url), url))
        expected += [IndexSeed(url, name, pages[name]) for url in urls[:per_host]]
    for chosen in found:
        assert list(chosen.seeds) == expected[:max_seeds]
        assert (chosen.rows, chosen.pages) == (len(rows), len(good))


def test_every_language_of_two_letters_is_known_by_three_as_well() -> None:
    assert [normalise(code) for code in ("ces", "cze", "deu", "ger", "zho", "NOR", "ceb")] == [
        "cs", "cs", "de", "de", "zh", "no", "ceb",
    ]  # fmt: skip
    long = {normalise(pair.split("=")[0]) for pair in codes._LONG.split()}
    assert {code for code in known_languages() if len(code) == 2} <= long


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "thresher.cli", "seeds", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.slow
def test_the_command_writes_seeds_that_a_crawl_accepts(tmp_path: Path) -> None:
    path = columnar(tmp_path / "a.parquet", ROWS)
    done = run(path, "--lang", "ces", "--tld", ".cz", "--per-host", 2, "-o", tmp_path / "seeds.txt", "--json")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["url"] for line in done.stdout.splitlines()] == [seed.url for seed in EXPECTED]
    assert (tmp_path / "seeds.txt").read_text() == seed_list(EXPECTED)
    assert gather([str(tmp_path / "seeds.txt")]).urls == tuple(seed.url for seed in EXPECTED)
    assert "8 of 14 pages of the index meet the criteria" in done.stderr
    assert "pages left out because the index does not name their language: 1" in done.stderr
    plain = run(path, "--lang", "cs", "--max-seeds", 1)
    assert plain.stdout == "# www.big.cz: 5 pages\nhttps://www.big.cz/\n"
    none = run(path, "--lang", "de", "-o", tmp_path / "none.txt")
    assert (none.returncode, (tmp_path / "none.txt").exists()) == (1, False)


def test_mistakes_on_the_command_line_are_named(tmp_path: Path) -> None:
    path = columnar(tmp_path / "a.parquet", ROWS)
    (tmp_path / "list.txt").write_text("http://a.cz/\n")
    for arguments, message in (
        ([path, tmp_path / "list.txt", "--lang", "cs"], "not both at once"),
        ([tmp_path / "list.txt", "--lang", "cs", "--per-host", "2"], "need files of an index"),
        ([path, "--lang", "cs", "--per-host", "0"], "must be 1 or more"),
        ([path, "--lang", "cz"], "did you mean cs"),
    ):
        with pytest.raises(UsageError, match=message):
            app(["seeds", *map(str, arguments)])
    with pytest.raises(UsageError, match=r"perhaps an index of Common Crawl; .*thresher seeds"):
        gather([str(path)])
