"""Saved pages are imported with the addresses that they claim."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import thresher
from support.corpora.imported_pages import bring_pages, pages, text, texts
from support.corpora.imports import (
    run_import,
)
from support.samples.archive_files import page
from thresher.errors import UsageError
from thresher.importing.run import import_files
from thresher.importing.sources import address
from thresher.store.imported_files import PageFileStats


def test_a_folder_of_saved_pages_is_imported_with_the_addresses_that_they_claim(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "deep").mkdir(parents=True)
    (folder / "1.html").write_bytes(page(1, '<link href="https://a.uk/one?a=1&amp;b=2" rel="canonical">'))
    (folder / "2.HTM").write_bytes(page(2, "<meta property='og:url' content=https://a.uk/two>"))
    (folder / "3.html").write_bytes(b"<!-- saved from url=(0020)https://a.uk/three -->" + page(3))
    (folder / "deep" / "4.xhtml").write_bytes(page(4).decode().encode("utf-16"))
    (folder / "picture.png").write_bytes(b"\x89PNG")
    done = import_files(tmp_path / "corpus", [folder], language="en")
    assert done.pages == PageFileStats(records=4, pages=4, kept=4)
    found = pages(tmp_path)
    here = (folder / "deep" / "4.xhtml").as_uri()
    assert [each.url for each in found] == [
        "https://a.uk/one?a=1&b=2",
        "https://a.uk/two",
        "https://a.uk/three",
        here,
    ]
    assert texts(found) == [text(n) for n in range(1, 5)]
    assert [each.charset for each in found] == ["utf-8", "utf-8", "utf-8", "utf-16le"]
    assert thresher.open(tmp_path / "corpus").raw(found[0]).body == (folder / "1.html").read_bytes()
    assert import_files(tmp_path / "corpus", [folder]).skipped == ("saved",)
    more = import_files(tmp_path / "corpus", [folder / "1.html", folder / "2.HTM"])
    assert more.pages and more.pages.rejected == {"raw duplicate": 2}
    assert more.files == ("1.html", "2.HTM")


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (b"<link rel=canonical href=https://a.cz/x>", "https://a.cz/x"),
        (b"<link rel='alternate canonical' href='/x'>", None),
        (b"<link rel=alternate href=https://a.cz/x>", None),
        (
            b"<meta name=og:url content='https://a.cz/y'><link rel=canonical href=https://a.cz/x>",
            "https://a.cz/x",
        ),
        (
            b"<link rel=canonical href=ftp://a.cz/><meta property=og:url content=https://a.cz/y>",
            "https://a.cz/y",
        ),
        (b"<link " * 100_000, None),
        (b"", None),
    ],
)
def test_the_claimed_address_of_a_page_must_be_on_the_web(markup: bytes, expected: str | None) -> None:
    assert address(markup) == expected


def test_a_folder_without_pages_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.")
    with pytest.raises(UsageError, match=r"is a directory without saved pages .*give them: .*/\*"):
        import_files(tmp_path / "corpus", [tmp_path], language="en")
    with pytest.raises(UsageError, match=r"none\.warc does not exist"):
        import_files(tmp_path / "corpus", [tmp_path / "a.txt", tmp_path / "none.warc"], language="en")
    (tmp_path / "a.html").write_bytes(page(1))
    with pytest.raises(UsageError, match="--attributes applies to vertical"):
        import_files(tmp_path / "corpus", [tmp_path / "a.html"], language="en", attributes=["word"])
    assert not (tmp_path / "corpus").exists()


def test_a_saved_page_may_come_through_a_pipe(tmp_path: Path) -> None:
    claiming = page(1, '<link rel="canonical" href="http://a.uk/claimed">')
    for body, url in ((claiming, "http://a.uk/claimed"), (page(2), "file:///dev/stdin")):
        done = run_import(
            "corpus", "-", "--format", "html", "--lang", "en", "--json", cwd=tmp_path, input=body
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["files"] == ["stdin"]
        found = pages(tmp_path)[-1]
        assert (found.url, found.warc_file) == (url, None)
    assert texts(pages(tmp_path)) == [text(1), text(2)]
    again = run_import("corpus", "-", "--format", "html", cwd=tmp_path, input=claiming)
    assert "stdin was imported before" in again.stderr and len(pages(tmp_path)) == 2


def test_a_saved_page_that_is_too_long_is_rejected_and_recognised(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "corpus.toml").write_text('language = "en"\n[fetch]\nmax_body_bytes = 70000\n')
    done = bring_pages(tmp_path, "a.html", page(1) + b" " * 140_000)
    assert done.pages and done.pages.rejected == {"truncated": 1}
    assert import_files(tmp_path / "corpus", [tmp_path / "a.html"]).skipped == ("a.html",)


def test_a_name_that_is_not_unicode_is_imported(tmp_path: Path) -> None:
    name = os.fsdecode(b"p\xff.html")
    (tmp_path / name).write_bytes(page(1))
    assert import_files(tmp_path / "corpus", [tmp_path / name], language="en").documents == 1
    (found,) = pages(tmp_path)
    assert found.url.endswith("/p%FF.html")
