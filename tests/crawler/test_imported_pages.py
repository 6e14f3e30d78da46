"""A crawl of a corpus with imported pages: known pages are not kept again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import thresher
from support.invariants import SETTINGS
from support.samples.archive_files import packed, page, response
from support.webs.toy_webs import all_seeds
from thresher import config as configuration
from thresher.crawler.api import crawl
from thresher.importing.run import import_files
from thresher.store.known_pages import ImportedPages
from thresher_lab.toyweb import Server, ToyWeb, serve

pytestmark = pytest.mark.slow

WEB = ToyWeb.calm(
    hosts=8, licensed=0.0, rich_hosts=0.9, hidden_hosts=0.0, pages_per_host=(5, 10), page_bytes=(4_000, 6_000)
)
STORE = {**SETTINGS.get("store", {}), "keep_raw": "all"}
EVERYTHING = {**SETTINGS, "store": STORE}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(WEB) as server:
        yield server


def texts(directory: Path) -> Counter[str]:
    return Counter(document.text_hash for document in thresher.open(directory))


@pytest.mark.parametrize("shards", [0, 2])
def test_pages_that_were_imported_first_are_not_kept_again_by_a_crawl(
    tmp_path: Path, server: Server, shards: int
) -> None:
    crawl(tmp_path / "other", "cs", all_seeds(WEB), settings=EVERYTHING, connect_to=server.connect_to)
    elsewhere = texts(tmp_path / "other")
    assert len(elsewhere) > 10
    (tmp_path / "corpus").mkdir()
    config = configuration.load(tmp_path / "other")
    (tmp_path / "corpus" / "corpus.toml").write_text(
        configuration.dump(config) + (f"\n[shards]\ncount = {shards}\n" if shards else "")
    )
    archives = sorted((tmp_path / "other" / "warc").glob("*.warc.gz"))
    assert import_files(tmp_path / "corpus", archives, processes=1).documents == len(elsewhere)
    crawl(tmp_path / "corpus", seeds=all_seeds(WEB), connect_to=server.connect_to)
    assert texts(tmp_path / "corpus") == elsewhere
    rows = thresher.open(tmp_path / "corpus").outcomes(["outcome", "reason", "detail"]).to_pylist()
    assert Counter(row["outcome"] for row in rows)["kept"] == 0
    named = Counter(row["reason"] for row in rows if row["detail"] == "same as imports/pages-000001.parquet")
    assert named["raw duplicate"] >= len(elsewhere)


def test_a_text_that_was_imported_with_another_page_is_known(tmp_path: Path) -> None:
    other = page(2).replace(b"Mill 2", b"Another title, and the same text")
    for name, data in (("a", [page(1), page(2)]), ("b", [page(3)])):
        path = tmp_path / f"{name}.warc.gz"
        path.write_bytes(packed(*(response(f"http://a.uk/{n}", body) for n, body in enumerate(data))))
        import_files(tmp_path / "corpus", [path], language="en", processes=1)
    known = ImportedPages.of(tmp_path / "corpus")
    (tmp_path / "c.warc.gz").write_bytes(packed(response("http://a.uk/", other)))
    import_files(tmp_path / "copy", [tmp_path / "c.warc.gz"], language="en", processes=1)
    documents = list(thresher.open(tmp_path / "corpus"))
    (copy,) = thresher.open(tmp_path / "copy")
    files = ["imports/pages-000001.parquet"] * 2 + ["imports/pages-000002.parquet"]
    assert [known.same_body(bytes.fromhex(each.raw_hash)) for each in documents] == files
    assert [known.same_text(bytes.fromhex(each.text_hash)) for each in documents] == files
    assert known.same_text(bytes.fromhex(copy.text_hash)) == files[0]
    assert known.same_body(bytes.fromhex(copy.raw_hash)) == ""
    assert (
        known.same_body(b"") == ImportedPages().same_body(b"\1" * 16) == known.same_text(b"\xff" * 16) == ""
    )
