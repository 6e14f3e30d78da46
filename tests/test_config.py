"""corpus.toml: typos and wrong types are named with the cure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.config import Budget, Config, ConfigError, Polite, Scope, dump, duration, load, parse, size


def test_what_was_dumped_is_loaded_again(tmp_path: Path) -> None:
    config = Config(
        language="cs",
        thresher="0.1.0",
        scope=Scope(tlds=("cz", "sk"), include=(r"/\d+/", 'a"b')),
        polite=Polite(contact="a\\b\n@example.org", delay=0.25),
        budget=Budget(pages=7, seconds=1.5),
    )
    (tmp_path / "corpus.toml").write_text(dump(config), "utf-8")
    assert load(tmp_path) == config


@given(st.text(), st.lists(st.text(max_size=5), max_size=3).map(tuple), st.floats(0, 1e6))
def test_any_text_survives_corpus_toml(contact: str, hosts: tuple[str, ...], delay: float) -> None:
    import tomllib

    try:
        contact.encode(), [host.encode() for host in hosts]
    except UnicodeEncodeError:
        return
    config = Config(polite=Polite(contact=contact, delay=delay), scope=Scope(hosts=hosts))
    assert parse(tomllib.loads(dump(config))) == config


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[polite]\ndealy = 3", "polite.dealy is not a setting; did you mean polite.delay?"),
        ("languege = 'cs'", "languege is not a setting; did you mean language?"),
        ('[polite]\ndelay = "fast"', 'polite.delay = "fast" cannot be used'),
        ('[polite]\ndelay = "fast"', "try delay = 5.0"),
        ("polite = 3", "polite = 3 cannot be used"),
        ("[policy]\nname = 'dfs'", "policy.name"),
        ('[process]\nstep = "filter"', "write [[process]] and below it step ="),
        ("[scope]\ninclude = ['(']", "not a regular expression"),
        ('[shards]\nscratch = "fast"', 'shards.scratch = "fast" is not the whole path of a folder'),
        ("[polite", "is not TOML"),
        ("schema = 99", "newer thresher"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, toml: str, message: str) -> None:
    (tmp_path / "corpus.toml").write_text(toml)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert message in str(caught.value)
    assert "corpus.toml" in str(caught.value)


def test_a_directory_without_corpus_toml_is_not_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not a corpus.*thresher crawl"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "value"), [("500", 500), ("20k", 20_000), ("1.5GB", 1_500_000_000), ("3 MiB", 3_000_000)]
)
def test_sizes_are_written_as_people_write_them(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("15m", 900), ("2h", 7200), ("1.5d", 129_600)])
def test_times_are_written_as_people_write_them(text: str, value: float) -> None:
    assert duration(text) == value


@pytest.mark.parametrize("text", ["", "many", "1.2.3", "-5", "5 parsecs"])
def test_nonsense_sizes_and_times_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        size(text)
    with pytest.raises(ConfigError):
        duration(text)
