"""Training of the boilerplate model: sets with different conventions are learned side by side."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lab.test_gold import write_set
from reader.html.test_boilerplate import MENU, SENTENCES
from thresher.errors import UsageError
from thresher.reader.html.boilerplate import BoilerplateModel, BoilerplateTrees, cut, score
from thresher.reader.html.scan_page import scan
from thresher_lab.training.gold import GoldPage
from thresher_lab.training.train_boilerplate import train

OLD, NEW, BARE = (
    "",
    '<meta name="viewport" content="width=device-width">',
    "<meta name=generator content=hand>",
)
COMMENT = "To se mi moc nelíbí, my jsme tam byli také a bylo to tam úplně jinak, než se tu píše."


def page(head: str, dice: random.Random) -> tuple[str, list[str], list[str]]:
    """Return a page with a menu, a text and comments: its source, its paragraphs and its comments."""
    texts = [f"{SENTENCES['cs']} {dice.random()}." for _ in range(dice.randint(3, 6))]
    comments = [f"{COMMENT} {dice.random()}." for _ in range(dice.randint(3, 6))]
    menu = "".join(f"<li><a href={n}>{item}</a>" for n, item in enumerate(MENU["cs"]))
    story = "".join(f"<p>{text}</p>" for text in texts)
    thread = "".join(f"<li><div>{comment}</div>" for comment in comments)
    html = f"<head>{head}<body><ul>{menu}</ul><div>{story}</div><ol>{thread}</ol>"
    return html, texts, comments


def marked(name: str, head: str, *, with_comments: bool) -> list[GoldPage]:
    """Return a set of pages of one kind, with or without comments as text."""
    dice = random.Random(name)
    pages = []
    for number in range(60):
        html, texts, comments = page(head, dice)
        gold = "\n".join(texts + comments if with_comments else texts)
        pages.append(GoldPage(name, str(number), f"{name}{number}.example", "", html, gold))
    return pages


def found(model: BoilerplateModel, head: str) -> tuple[bool, bool]:
    """Return whether all paragraphs of a new page are found, and whether its comments are; menus must not be."""
    html, texts, comments = page(head, random.Random(f"new {head}"))
    markup = scan(html.encode(), 100)
    scores = score(markup, BoilerplateTrees(model))
    text = {block for block, each in zip(markup.texts, scores, strict=True) if each < cut(scores, markup)}
    assert not text & set(MENU["cs"])
    return set(texts) <= text, set(comments) <= text


def test_a_page_is_read_like_the_annotated_pages_that_it_resembles() -> None:
    model = train([*marked("blogs", OLD, with_comments=True), *marked("news", NEW, with_comments=False)])
    assert found(model, OLD) == (True, True)
    assert found(model, NEW) == (True, False)


def test_a_page_unlike_annotated_ones_is_read_like_taught_ones() -> None:
    model = train(
        [*marked("blogs", OLD, with_comments=True), *marked("shops", NEW, with_comments=True)],
        marked("web", BARE, with_comments=False),
    )
    assert found(model, BARE) == (True, False)
    assert found(model, OLD) == (True, True)


def test_one_set_is_enough_to_learn_from() -> None:
    assert found(train(marked("news", OLD, with_comments=False)), NEW) == (True, False)


def test_a_small_set_keeps_its_own_convention() -> None:
    small = marked("blogs", OLD, with_comments=True)[:2]
    assert found(train([*small, *marked("news", NEW, with_comments=False)]), NEW) == (True, False)


@pytest.mark.parametrize("pages", [[], [GoldPage("own", "1", "a.example", "", "<p>a b c d e", "a b c d e")]])
def test_pages_without_any_boilerplate_are_refused(pages: list[GoldPage]) -> None:
    with pytest.raises(UsageError, match="add pages, or use --all"):
        train(pages)


def test_the_command_writes_a_model_that_reads(tmp_path: Path) -> None:
    pages = marked("own", OLD, with_comments=False)
    gold = write_set(tmp_path / "own", {one.id: (one.html, one.text) for one in pages})
    out = tmp_path / "model" / "own.msgpack"
    done = run("--all", gold, "--out", out)
    assert done.returncode == 0, done.stderr
    assert found(msgspec.msgpack.decode(out.read_bytes(), type=BoilerplateModel), OLD) == (True, False)


@pytest.mark.parametrize("taught", [False, True])
def test_a_directory_that_is_no_set_is_an_error_with_the_fix(taught: bool, tmp_path: Path) -> None:
    gold = write_set(tmp_path / "own", {"1": ("<p>a", "a")})
    done = run(*([gold, "--taught"] if taught else []), tmp_path / "none", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "html/" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "thresher_lab.training.train_boilerplate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
