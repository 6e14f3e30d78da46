"""`thresher language`: languages trained from samples, listed and forgotten."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import thresher
from support.command_line import run
from support.invariants import SETTINGS
from support.samples.language_samples import STEMS
from support.webs.toy_webs import all_seeds
from thresher.crawler.api import crawl
from thresher.reader.language import custom_models
from thresher.reader.language.custom_models import save
from thresher.reader.language.train import train
from thresher_lab.toyweb import ToyWeb, serve

WEB = ToyWeb.calm(
    hosts=6, licensed=0.0, rich_hosts=1.0, hidden_hosts=0.0, pages_per_host=(8, 8), page_bytes=(2_500, 3_500)
)

# Beside the shared stems, small words of the invented language.
_SMALL_WORDS = ("ga", "wi", "tun", "oz", "ka", "shem", "ur", "ni", "lue", "zho")
_ENDINGS = ("", "en", "atu", "isho")


def made_up(sentences: int, seed: int) -> list[str]:
    """Return sentences of the made-up language, others for another seed."""
    chance = random.Random(seed)
    return [
        " ".join(
            f"{chance.choice(_SMALL_WORDS)} {chance.choice(STEMS)}{chance.choice(_ENDINGS)}"
            for _ in range(chance.randint(4, 7))
        ).capitalize()
        + "."
        for _ in range(sentences)
    ]


@pytest.fixture(autouse=True)
def languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a directory of trained languages that is not the user's."""
    directory = tmp_path / "languages"
    monkeypatch.setenv("THRESHER_LANGUAGES", str(directory))
    custom_models.clear_cache()
    yield directory
    custom_models.clear_cache()


def write_sample(path: Path, sentences: int) -> Path:
    path.write_text("\n".join(made_up(sentences, seed=1)), "utf-8")
    return path


def test_a_language_trained_from_a_sample_is_read_listed_and_forgotten(
    tmp_path: Path, languages: Path
) -> None:
    sample = write_sample(tmp_path / "sample.txt", 1_000)
    page = tmp_path / "page.html"
    paragraphs = (" ".join(made_up(12, seed)) for seed in range(2, 8))
    page.write_text(
        "<title>Melu</title>" + "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs), "utf-8"
    )
    assert run("read", page, "--lang", "qmu").returncode == 2

    trained = run("language", "train", "qmu", sample)
    assert trained.returncode == 0, trained.stderr
    letters = sum(map(str.isalpha, sample.read_text("utf-8")))
    file = languages / "qmu.language"
    assert f"{letters:,} letters" in trained.stderr and str(file) in trained.stderr and file.is_file()
    assert "--lang qmu" in trained.stderr and "no Badness" not in trained.stderr

    seen = json.loads(run("read", page, "--lang", "qmu", "--json").stdout)
    assert seen["languages"][0]["code"] == "qmu" and seen["languages"][0]["share"] > 0.9
    assert seen["verdict"] == {"keep": True, "reason": ""}
    assert seen["badness"] < 10

    listed = json.loads(run("language", "list", "--json").stdout)
    assert listed[-1] == {
        "code": "qmu",
        "name": "qmu (trained)",
        "trained": True,
        "badness": True,
        "letters": letters,
        "file": str(file),
    }
    assert run("language", "forget", "qmu").returncode == 0
    assert not file.exists()
    assert run("read", page, "--lang", "qmu").returncode == 2


def test_the_list_shows_shipped_languages_with_and_without_a_badness_model() -> None:
    listed = {each["code"]: each for each in json.loads(run("language", "list", "--json").stdout)}
    assert listed["cs"] == {
        "code": "cs",
        "name": "Czech",
        "trained": False,
        "badness": True,
        "letters": None,
        "file": None,
    }
    assert not listed["vo"]["badness"]
    shown = run("language", "list").stdout
    assert "Volapuk" in shown and f"{len(listed)} languages shipped, 0 trained" in " ".join(shown.split())


def test_a_sample_too_short_for_badness_is_reported_with_the_fix(tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "sample.txt", 150)
    trained = run("language", "train", "qmu", sample, "--json")
    assert trained.returncode == 0
    assert json.loads(trained.stdout)["badness"] is False
    assert "no Badness model" in trained.stderr
    assert "20,000 characters" in trained.stderr and "--replace" in trained.stderr
    write_sample(sample, 1_000)
    again = run("language", "train", "qmu", sample, "--replace", "--json")
    assert json.loads(again.stdout)["badness"] is True
    assert "no Badness" not in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "qmu", "nowhere.txt"], "nowhere.txt"),
        (["train", "qmu", "."], "cannot be read"),
        (["train", "qmu", "few.txt"], "too few"),
        (["train", "cs", "few.txt"], "Czech is known already"),
        (["train", "../qmu", "few.txt"], "cannot be the name"),
        (["train", "\x1b[31m", "few.txt"], "cannot be the name"),
        (["train", "old", "few.txt"], "trained before"),
        (["forget", "cs"], "there are: old"),
        (["forget", "../few"], "no language '../few' was trained"),
    ],
)
def test_a_mistake_about_languages_is_named_and_changes_nothing(
    tmp_path: Path, languages: Path, arguments: list[str], message: str
) -> None:
    save(train("old", "\n".join(made_up(150, seed=1))))
    write_sample(tmp_path / "few.txt", 5)
    shown = run("language", *arguments, cwd=tmp_path)
    assert (shown.returncode, message in shown.stderr) == (2, True), shown.stderr
    assert "\x1b" not in shown.stderr
    assert [path.name for path in languages.iterdir()] == ["old.language"]


def test_a_broken_model_is_named_with_the_fix(languages: Path) -> None:
    languages.mkdir()
    (languages / "qmu.language").write_bytes(b"\xc1")
    shown = run("language", "list")
    assert shown.returncode == 2
    assert "qmu.language is not a trained language" in shown.stderr and "delete" in shown.stderr


@pytest.mark.slow
def test_a_language_trained_from_a_known_one_is_reported_at_training_and_in_status(tmp_path: Path) -> None:
    settings = SETTINGS | {"judge": {"max_badness": 0.0}}
    with serve(WEB) as server:
        crawl(tmp_path / "first", "cs", all_seeds(WEB), settings=settings, connect_to=server.connect_to)
        sample = tmp_path / "sample.txt"
        texts = thresher.open(tmp_path / "first").documents(["text"]).column("text").to_pylist()
        sample.write_text("\n".join(texts), "utf-8")
        trained = run("language", "train", "qaa", sample)
        assert trained.returncode == 0
        assert "of this sample is Czech (cs), which is known without training" in trained.stderr

        crawl(tmp_path / "second", "cs", all_seeds(WEB), settings=settings, connect_to=server.connect_to)
        named = settings | {"read": {"trained_languages": ["qaa"]}}
        crawl(tmp_path / "third", "cs", all_seeds(WEB), settings=named, connect_to=server.connect_to)
    second, third = run("status", tmp_path / "second"), run("status", tmp_path / "third")
    assert thresher.open(tmp_path / "second").documents().num_rows == len(texts)
    assert "qaa" not in second.stderr
    assert thresher.open(tmp_path / "third").documents().num_rows == 0
    assert "most pages were rejected as qaa, a language you trained" in third.stderr


def test_a_trained_language_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text('language = "cs"\n')
    refused = run("config", tmp_path, "read.trained_languages", "qmu")
    assert refused.returncode == 2
    assert "names 'qmu', which was not trained here; there are: none" in refused.stderr
