"""WACZ: a ZIP file that agrees with its manifest, and records that other readers find through its index."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from support.corpora.exports import TEXTS, exported, make
from thresher.exporting.formats import wacz
from thresher.exporting.registry import export
from thresher.store.corpus_files import CorpusError, CorpusFiles
from thresher.urls import canonical


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusFiles:
    return make(tmp_path, [*TEXTS[:2], *(f"Strana {n}." for n in range(7)), TEXTS[2]])


@pytest.fixture
def archive(corpus: CorpusFiles) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(exported(corpus, "wacz")))


def index(archive: zipfile.ZipFile) -> list[tuple[str, str, dict[str, Any]]]:
    lines = gzip.decompress(archive.read("indexes/index.cdx.gz")).decode().splitlines()
    split = [line.split(" ", 2) for line in lines]
    return [(key, time, json.loads(about)) for key, time, about in split]


def test_every_file_is_in_the_manifest_with_its_hash(archive: zipfile.ZipFile) -> None:
    assert archive.testzip() is None
    manifest = json.loads(archive.read("datapackage.json"))
    assert (manifest["profile"], manifest["wacz_version"]) == ("data-package", "1.1.1")
    listed = {resource["path"]: resource for resource in manifest["resources"]}
    assert set(listed) | {"datapackage.json", "datapackage-digest.json"} == set(archive.namelist())
    for path, resource in listed.items():
        data = archive.read(path)
        assert resource["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert resource["bytes"] == len(data)
        assert resource["name"] == Path(path).name
    digest = json.loads(archive.read("datapackage-digest.json"))
    assert digest["path"] == "datapackage.json"
    assert digest["hash"] == f"sha256:{hashlib.sha256(archive.read('datapackage.json')).hexdigest()}"


def test_packed_records_are_not_packed_again(archive: zipfile.ZipFile) -> None:
    for info in archive.infolist():
        if info.filename.endswith(".gz"):
            assert info.compress_type == zipfile.ZIP_STORED


def test_the_index_leads_to_every_record(archive: zipfile.ZipFile) -> None:
    found = index(archive)
    assert len(found) == 9
    assert [line[:2] for line in found] == sorted(line[:2] for line in found)
    for key, time, about in found:
        assert key == wacz.sort_key(about["url"])
        data = archive.read(f"archive/{about['filename']}")
        member = data[int(about["offset"]) : int(about["offset"]) + int(about["length"])]
        record = next(iter(ArchiveIterator(io.BytesIO(member))))
        assert record.rec_headers.get_header("WARC-Target-URI") == about["url"]
        body = record.content_stream().read()
        assert about["digest"] == f"sha256:{hashlib.sha256(body).hexdigest()}"
        assert (about["mime"], about["status"], time[:8]) == ("text/html", "200", "20260921")


def test_the_archive_is_a_whole_warc_file(archive: zipfile.ZipFile) -> None:
    found = list(
        ArchiveIterator(io.BytesIO(archive.read("archive/data-00000.warc.gz")), check_digests="raise")
    )
    assert [record.rec_type for record in found] == ["warcinfo"] + ["response"] * 9


def test_pages_are_listed(archive: zipfile.ZipFile) -> None:
    first, *pages = map(json.loads, archive.read("pages/pages.jsonl").splitlines())
    assert first["format"] == "json-pages-1.0"
    assert {page["url"] for page in pages} == {about["url"] for _, _, about in index(archive)}
    assert pages[0]["ts"] == "2026-09-21T14:13:20Z"
    assert pages[0]["title"] == 'A "title" <i>'
    assert len({page["id"] for page in pages}) == 9


@given(st.text().map(lambda text: canonical(f"http://a.cz/{text}") or text))
@example("http://[::1")
def test_any_url_has_a_key_that_is_one_word(url: str) -> None:
    assert " " not in wacz.sort_key(url) and wacz.sort_key(url) == wacz.sort_key(url).lower()


def test_a_long_index_has_blocks_that_are_found_without_reading_it_all(
    corpus: CorpusFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = index(zipfile.ZipFile(io.BytesIO(exported(corpus, "wacz"))))
    monkeypatch.setattr(wacz, "LINES_IN_BLOCK", 2)
    monkeypatch.setattr(wacz, "LINES_IN_MEMORY", 3)
    archive = zipfile.ZipFile(io.BytesIO(exported(corpus, "wacz")))
    assert index(archive) == whole, "lines that were sorted in portions are in one order"
    packed = archive.read("indexes/index.cdx.gz")
    first, *blocks = archive.read("indexes/index.idx").decode().splitlines()
    assert first.startswith("!meta 0 ")
    lines: list[str] = []
    for block in blocks:
        key, time, about = block.split(" ", 2)
        place = json.loads(about)
        data = packed[place["offset"] : place["offset"] + place["length"]]
        assert place["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        lines += gzip.decompress(data).decode().splitlines()
        assert f"{key} {time} " in "\n".join(lines)
    assert len(lines) == 9


def test_pages_without_a_stored_raw_page_are_reported(tmp_path: Path) -> None:
    corpus = make(tmp_path, TEXTS)
    batches = [
        batch.set_column(batch.schema.get_field_index("warc_file"), "warc_file", [None] * batch.num_rows)
        for batch in corpus.batches("docs")
    ]
    corpus.batches = lambda *_: iter(batches)  # type: ignore[method-assign,assignment]
    assert export(corpus, "wacz", io.BytesIO()).left_out == {wacz.NOT_KEPT: 2, "opted out": 1}


def test_a_missing_archive_is_named(corpus: CorpusFiles) -> None:
    (corpus.directory / "warc" / "thresher-00001.warc.gz").unlink()
    with pytest.raises(CorpusError, match=r"thresher-00001\.warc\.gz is missing; restore it"):
        exported(corpus, "wacz")
