"""Seeds: bad lines are named, the rest is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from thresher.crawler.seeds import gather
from thresher.errors import UsageError


def test_urls_and_files_are_gathered_once_each_in_order(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("# my seeds\n\nhttps://B.cz\na.cz/x\nhttps://b.cz/\n", "utf-8")
    assert gather(["http://c.cz/#top", str(file)]).urls == ("http://c.cz/", "https://b.cz/", "http://a.cz/x")


def test_bad_lines_are_named_with_their_numbers_and_the_rest_is_used(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("http://good.cz/\nftp://bad.cz/\nnot a url\nhttp://\n")
    seeds = gather([str(file)])
    assert seeds.urls == ("http://good.cz/",)
    assert [remark.split(": ")[0] for remark in seeds.remarks] == [f"{file}:{n}" for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no usable seeds"),
        (b"# nothing\n", "no usable"),
        (b"http://a.cz\0", "binary"),
        (b"\xff\xfe", "no usable"),
    ],
)
def test_a_file_without_seeds_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "seeds"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        gather([str(file)])


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"nowhere\.txt.*one URL per line"):
        gather(["nowhere.txt"])
