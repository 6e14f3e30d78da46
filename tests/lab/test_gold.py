"""Gold: pages beside the text that people found in them."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import ROOT
from thresher.errors import UsageError
from thresher.reader.html import scan_page
from thresher_lab.training import gold
from thresher_lab.training.gold import GoldPage, labels, load, split, token_f1, tokens

MENU = ["Home", "News", "Weather in the north", "Subscribe to our letter", "Log in"]
STORY = [
    "The bridge over the river is open again",
    "After eleven months of work the first cars crossed the old bridge on Monday morning.",
    "The mayor thanked all those who had waited so patiently, and cut a ribbon.",
    "It will be closed again for one weekend in May.",
]


def write_set(
    folder: Path, pages: dict[str, tuple[str, str]], known: list[dict[str, str]] | None = None
) -> Path:
    """Write a set as its users would: {id: (page, text)}."""
    for part in ("html", "gold"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for id, (page, text) in pages.items():
        (folder / "html" / f"{id}.html").write_text(page, "utf-8")
        (folder / "gold" / f"{id}.txt").write_text(text, "utf-8")
    if known is not None:
        (folder / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in known), "utf-8")
    return folder


def site_of(page: str, tmp_path: Path, **known: str) -> str:
    rows = [{"id": "1", **known}] if known else None
    return load([write_set(tmp_path / "own", {"1": (page, "text")}, rows)])[0].host


def of_host(host: str) -> GoldPage:
    return GoldPage("own", "1", host, "", "", "")


# Loading


def test_texts_by_other_annotators_come_with_their_page(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "own", {"a.1": ("<p>x", "x"), "b": ("<p>y", "y")})
    (folder / "others").mkdir()
    for name, text in {"a.1.ann": "x!", "a.1.bob": "<p>x?</p>", "c.ann": "z"}.items():
        (folder / "others" / f"{name}.txt").write_text(text, "utf-8")
    first, second = load([folder])
    assert sorted(text.strip() for text in first.others) == ["x!", "x?"]
    assert second.others == ()


def test_a_page_comes_with_its_text_its_kind_and_its_site(tmp_path: Path) -> None:
    known = [
        {"id": "b", "page_type": "forum", "domain": "www.example.co.uk"},
        {"id": "a", "language": "Greek"},
    ]
    folder = write_set(tmp_path / "own", {"b": ("<p>Ja</p>", "Ja"), "a": ("<p>Ναι</p>", "Ναι")}, known)
    assert load([folder]) == [
        GoldPage("own", "a", "a.own.invalid", "Greek", "<p>Ναι</p>", "Ναι"),
        GoldPage("own", "b", "example.co.uk", "forum", "<p>Ja</p>", "Ja"),
    ]


def test_an_archive_is_read_like_the_folder_it_was_made_of(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "own", {"1": ("<p>one", "one"), "2": ("<p>two", "two")}, [{"id": "1"}])
    with tarfile.open(tmp_path / "own.tar.gz", "w:gz") as archive:
        archive.add(folder, "own")
    assert load([tmp_path / "own.tar.gz"]) == load([folder])


def test_files_need_no_extension(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "own", {"1": ("<p>one", "one")})
    (folder / "html" / "1.html").rename(folder / "html" / "1")
    (folder / "gold" / "1.txt").rename(folder / "gold" / "1")
    assert [page.id for page in load([folder])] == ["1"]


def test_pages_without_a_gold_text_are_left_out(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "own", {"1": ("<p>one", "one"), "2": ("<p>two", " \n")})
    (folder / "html" / "3.html").write_text("<p>three")
    assert [page.id for page in load([folder])] == ["1"]


def test_paragraph_tags_are_no_text_unless_the_text_is_about_them(tmp_path: Path) -> None:
    pages = {"1": ("", "<p>One.</p>\n<p>Two.</p>"), "2": ("", "Write <p> before a paragraph.")}
    first, second = load([write_set(tmp_path / "own", pages)])
    assert first.text.split() == ["One.", "Two."]
    assert second.text == "Write <p> before a paragraph."


def test_bytes_that_are_not_utf_8_are_replaced(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "own", {"1": ("", "one")})
    (folder / "html" / "1.html").write_bytes(b"\xef\xbb\xbf<p>caf\xe9")
    (folder / "gold" / "1.txt").write_bytes("cafe".encode("utf-16-le"))
    page = load([folder])[0]
    assert (page.html, page.text) == ("<p>caf\ufffd", "cafe")


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("missing.tar.gz", None, "No such file"),
        ("text.tar.gz", b"no archive", "give a folder or a .tar.gz"),
        ("cut.tar.gz", b"\x1f\x8b\x08\0\0\0\0\0", "give a folder or a .tar.gz"),
    ],
)
def test_anything_but_a_set_is_refused_with_the_fix(
    tmp_path: Path, path: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / path).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        load([tmp_path / path])


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no page html/ID"):
        load([tmp_path])


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"language": "Greek"}', '{"id": 17}', '{"id": "1", "url": null}']
)
def test_a_line_of_pages_jsonl_that_cannot_be_used_is_named(tmp_path: Path, line: str) -> None:
    folder = write_set(tmp_path / "own", {"1": ("", "one")})
    (folder / "pages.jsonl").write_text('{"id": "1"}\n\n' + line)
    with pytest.raises(UsageError, match=r"pages\.jsonl, line 3: .*; try "):
        load([folder])


def test_a_file_too_large_for_a_page_is_refused_before_it_is_read(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "own", {"1": ("", "one")})
    with (folder / "html" / "1.html").open("wb") as sparse:
        sparse.truncate(gold.MAX_FILE_BYTES + 1)
    with pytest.raises(UsageError, match=r"1\.html is too large"):
        load([folder])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10_000), value=st.binary(max_size=8), packed=st.booleans())
def test_a_damaged_archive_gives_pages_or_an_error(
    tmp_path: Path, at: int, value: bytes, packed: bool
) -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:gz" if packed else "w") as archive:
        for name, content in (("own/html/1", b"<p>one"), ("own/gold/1", b"one")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    whole = plain.getvalue()
    at %= len(whole)
    damaged = whole[:at] + value + whole[at + len(value) + 1 :]
    path = tmp_path / "own.tar.gz"
    path.write_bytes(damaged if packed else gzip.compress(damaged, 1))
    try:
        assert all(page.set == "own" for page in load([path]))
    except UsageError as error:
        assert str(path) in str(error)


# Sites


@pytest.mark.parametrize(
    ("known", "site"),
    [
        ({"url": "https://News.Example.org:8080/a?b"}, "example.org"),
        ({"host": "news.example.org"}, "example.org"),
        ({"domain": "somebody.blogspot.com"}, "somebody.blogspot.com"),
        ({"id": "2011_www.example.gr_0a7b"}, "example.gr"),
        ({"id": "no_site_17"}, ""),
    ],
)
def test_the_site_is_taken_from_pages_jsonl(tmp_path: Path, known: dict[str, str], site: str) -> None:
    id = known.get("id", "1")
    folder = write_set(tmp_path / "own", {id: ("", "text")}, [{"id": id, **known}])
    assert load([folder])[0].host == (site or f"{id}.own.invalid")


@pytest.mark.parametrize(
    "page",
    [
        "<link rel='canonical' href='http://www.example.org/a'><meta property='og:url' content='http://b.com/'>",
        '<LINK href="https://example.org/" rel="Canonical">',
        '<meta content="http://example.org/a" property="og:url"/><base href="http://b.com/">',
        "<base href=http://example.org/dir/>",
        '<link rel="canonical" href="/a"><a href="http://example.org/1">1</a>',
        '<a href="http://b.com/">b</a><a href="//example.org/1">1</a><a class=x href=http://www.example.org/2>2</a>',
        '<a href="http://example.org/"></a>' + '<a href="https://twitter.com/share?u=1">share</a>' * 3,
    ],
)
def test_the_site_is_taken_from_the_address_or_the_links_of_a_page(tmp_path: Path, page: str) -> None:
    assert site_of(page, tmp_path) == "example.org"


def test_a_page_without_an_address_is_a_site_of_its_own(tmp_path: Path) -> None:
    pages = {
        "1": ('<a href="/x">x</a> <a href="http://">y</a>', "text"),
        "2": ("<a href='mailto:a@b.org'>", "text"),
    }
    assert [page.host for page in load([write_set(tmp_path / "own", pages)])] == [
        "1.own.invalid",
        "2.own.invalid",
    ]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(page=st.text("<>\"'= /ahref:link.basemtcontoguplx\0é", max_size=120))
def test_any_page_has_a_site(tmp_path: Path, page: str) -> None:
    assert site_of(page, tmp_path)


# Halves


def test_pages_of_one_site_are_in_one_half() -> None:
    assert split(of_host("bbc.co.uk")) == split(of_host("bbc.com"))


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_every_page_is_in_one_half(host: str) -> None:
    assert split(of_host(host)) in ("train", "test")


def test_both_halves_have_about_as_many_sites() -> None:
    halves = [split(of_host(f"site{number}.org")) for number in range(1_000)]
    assert 400 < halves.count("test") < 600


# Tokens


def test_tokens_ignore_case_and_normal_form() -> None:
    assert tokens("Don't PANIC: e\u0301te\u0301, 3,5 км!") == ["don", "t", "panic", "été", "3", "5", "км"]


@pytest.mark.parametrize("text", ["汉字假名", "ひらカタ", "ภาษาไทย", "ພາສາລາວ", "မြန်မာ", "ភាសាខ្មែរ"])
def test_in_scripts_without_spaces_every_character_is_a_token(text: str) -> None:
    assert tokens(text) == list(text)


def test_scripts_can_be_mixed() -> None:
    assert tokens("iPhone手机 2部。한국어 말") == ["iphone", "手", "机", "2", "部", "한국어", "말"]


def test_f1_counts_each_token_as_often_as_it_occurs() -> None:
    found = token_f1("a a a b", "a b c d d d")
    assert found == (2 / 4, 2 / 6, 4 / 10)


def test_nothing_found_is_right_only_where_there_is_nothing() -> None:
    assert token_f1(" …", "").f1 == 1.0
    assert token_f1("", "a").f1 == token_f1("a", "").f1 == 0.0


@given(st.text("ab 字", max_size=30), st.text("ab 字", max_size=30))
def test_f1_is_a_share_and_perfect_for_equal_texts(one: str, other: str) -> None:
    found, turned = token_f1(one, other), token_f1(other, one)
    assert 0.0 <= min(found) <= max(found) <= 1.0
    assert (found.precision, found.recall, found.f1) == (turned.recall, turned.precision, turned.f1)
    assert token_f1(one, one).f1 == 1.0


# Labels of blocks


def test_the_text_is_separated_from_the_menus_around_it() -> None:
    page = [*MENU, *STORY, *MENU]
    assert labels(page, "\n".join(STORY)).tolist() == [0.0] * 5 + [1.0] * 4 + [0.0] * 5


def test_a_title_in_a_menu_and_a_teaser_are_not_the_text() -> None:
    page = [STORY[0], *MENU, *STORY, "Read also: " + STORY[1], STORY[0]]
    assert labels(page, "\n".join(STORY)).tolist() == [0.0] * 6 + [1.0] * 4 + [0.0] * 2


def test_a_title_that_stands_apart_is_the_one_nearest_to_the_text() -> None:
    page = [
        STORY[0],
        *MENU * 5,
        STORY[0],
        "By our reporter, five minutes to read",
        *STORY[1:],
        *MENU * 5,
        STORY[0],
    ]
    shares = labels(page, "\n".join(STORY))
    assert [place for place, share in enumerate(shares) if page[place] == STORY[0] and share == 1.0] == [26]


def test_text_in_another_order_is_text() -> None:
    page = [*MENU, *STORY[2:], *MENU, *STORY[:2]]
    assert labels(page, "\n".join(STORY)).tolist() == [0.0] * 5 + [1.0] * 2 + [0.0] * 5 + [1.0] * 2


def test_short_headings_belong_to_the_text_between_which_they_stand() -> None:
    page = ["May", *STORY[:2], "Advertisement", "May", "Show more", *STORY[2:], "May"]
    shares = labels(page, "\n".join([*STORY[:2], "May", *STORY[2:]]))
    assert shares.tolist() == [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0]


def test_a_block_that_was_edited_is_text_for_the_most_part() -> None:
    edited = STORY[1].replace("eleven", "twelve")
    share = labels([*MENU, STORY[0], edited, *STORY[2:]], "\n".join(STORY))[6]
    assert gold.UNCLEAR[1] < share < 1.0


def test_a_block_of_which_half_is_gold_is_unclear() -> None:
    share = labels(
        [STORY[1] + " The weather will stay as it is, warm and dry until the end of the week."], STORY[1]
    )[0]
    assert gold.UNCLEAR[0] < share < gold.UNCLEAR[1]


def test_chinese_is_aligned_by_characters() -> None:
    story = ["中新网北京电消防局确认今天下午发生火灾", "起火的是一家餐厅的烟道，无人员伤亡。"]
    assert labels(["新闻中心", *story, "中新网"], "".join(story)).tolist() == [0.0, 1.0, 1.0, 0.0]


def test_a_few_characters_in_common_are_chance() -> None:
    story = "中新网北京电消防局确认今天下午发生火灾"
    lost = "据本报记者从事故发生地附近的新闻中心发回的报道说，大火已经完全扑灭，原因不明"
    assert labels(["新闻中心", story], story + lost).tolist() == [0.0, 1.0]


def test_frequent_words_count_as_text_only_inside_the_text() -> None:
    notice = " ".join(f"word{number}" for number in range(30))
    page = [*[notice] * 70, f"{notice} {STORY[1]}", *[notice] * 5]
    assert labels(page, page[70]).tolist() == [0.0] * 70 + [1.0] + [0.0] * 5


def test_blocks_without_words_are_neither() -> None:
    assert labels(["***", STORY[1], "»"], STORY[1]).tolist() == [0.5, 1.0, 0.5]


def test_a_page_without_blocks_and_a_gold_without_words_are_no_matter() -> None:
    assert labels([], "gold").tolist() == []
    assert labels(["some words"], "…").tolist() == [0.0]


@pytest.mark.timeout(15)
def test_endless_repetition_costs_no_endless_time() -> None:
    rhyme = "la la la la di da " * 3_000
    assert len(labels([rhyme] * 3, rhyme)) == 3


WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=12).map(" ".join)


@given(st.lists(WORDS, max_size=12), WORDS)
def test_no_token_of_the_gold_is_used_twice(texts: list[str], text: str) -> None:
    shares = labels(texts, text)
    assert shares.shape == (len(texts),)
    assert all(0.0 <= share <= 1.0 for share in shares)
    used = sum(share * len(block.split()) for share, block in zip(shares, texts, strict=True))
    assert used <= len(text.split()) + 1e-6


@given(st.permutations(range(200)), st.lists(st.booleans(), min_size=10, max_size=10))
def test_whole_blocks_of_distinct_words_are_always_found(order: list[int], is_text: list[bool]) -> None:
    blocks = [" ".join(f"w{word}" for word in order[start : start + 20]) for start in range(0, 200, 20)]
    chosen = "\n".join(block for block, text in zip(blocks, is_text, strict=True) if text)
    assert labels(blocks, chosen).tolist() == [float(text) for text in is_text]


# The gold of other people


@pytest.fixture(scope="module")
def pages() -> list[GoldPage]:
    """Return three sets of other projects; skip the test if they are missing."""
    folder = Path(os.environ.get("THRESHER_GOLD", ROOT.parent / "shared" / "gold"))
    if not folder.is_dir():
        pytest.skip(f"no gold in {folder}; set THRESHER_GOLD")
    return load(folder / f"{name}.tar.gz" for name in ("daniel", "wcxb", "dragnet"))


def test_every_kind_of_page_is_in_both_halves(pages: list[GoldPage]) -> None:
    halves = defaultdict(list)
    for page in pages:
        halves[page.set, page.kind].append(split(page))
    assert len(halves) == 5 + 7 + 1
    for kind, found in halves.items():
        assert 0.42 <= found.count("test") / len(found) <= 0.58, kind


def test_nearly_every_page_has_a_site(pages: list[GoldPage]) -> None:
    assert sum(page.host.endswith(".invalid") for page in pages) < len(pages) / 100


@pytest.mark.parametrize(("name", "least"), [("daniel", 0.977), ("wcxb", 0.96), ("dragnet", 0.977)])
def test_the_blocks_called_text_give_the_gold_text_again(
    pages: list[GoldPage], name: str, least: float
) -> None:
    found = []
    for page in [page for page in pages if page.set == name][::10]:
        texts = scan_page.scan(page.html.encode(), 0).texts
        shares = labels(texts, page.text)
        text = "\n".join(text for text, share in zip(texts, shares, strict=True) if share >= 0.5)
        found.append(token_f1(text, page.text).f1)
    assert fmean(found) > least
