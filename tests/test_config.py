"""Settings in corpus.toml: values, messages for mistakes, and changes that keep the user's text."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from thresher.config import (
    RENAMED,
    SCHEMA,
    BudgetSettings,
    Config,
    PoliteSettings,
    ScopeSettings,
    check_contact,
    dump,
    duration,
    load,
    parse,
    size,
)
from thresher.config.config_file import edited
from thresher.config.toml_tables import flat, readable
from thresher.crawler.prepare import change_settings
from thresher.errors import NoCorpusError, UsageError

WRITTEN = """\
# A corpus for a thesis.
language = "cs"  # not Slovak
thresher = "0.1.0"
schema = 2

[polite]
delay = 2  # agreed with the library
contact = "me@example.org"

[budget]
max_bytes = "20GB"   # all that the disk has
"""


def test_a_config_is_loaded_as_it_was_dumped(tmp_path: Path) -> None:
    config = Config(
        language="cs",
        thresher="0.1.0",
        scope=ScopeSettings(tlds=("cz", "sk"), include=(r"/\d+/", 'a"b')),
        polite=PoliteSettings(contact="a\\b\n@example.org", delay=0.25),
        budget=BudgetSettings(max_pages=7, max_time=1.5),
    )
    (tmp_path / "corpus.toml").write_text(dump(config), "utf-8")
    assert load(tmp_path) == config


@given(st.text(), st.lists(st.text(max_size=5), max_size=3).map(tuple), st.floats(0, 1e6))
def test_any_text_survives_corpus_toml(contact: str, hosts: tuple[str, ...], delay: float) -> None:
    try:
        contact.encode(), [host.encode() for host in hosts]
    except UnicodeEncodeError:
        return
    config = Config(polite=PoliteSettings(contact=contact, delay=delay), scope=ScopeSettings(hosts=hosts))
    assert parse(tomllib.loads(dump(config))) == config
    assert parse(tomllib.loads(edited(WRITTEN, config))) == config


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[polite]\ndealy = 3", "polite.dealy is not a setting; did you mean polite.delay?"),
        ("languege = 'cs'", "languege is not a setting; did you mean language?"),
        (
            '[polite]\ndelay = "fast"',
            'polite.delay must be a duration in seconds from 0 to 365d, got "fast"; for example delay = 5',
        ),
        ("[polite]\ndelay = -1", "polite.delay must be a duration in seconds from 0 to 365d, got -1"),
        ("[polite]\ndelay = nan", "polite.delay must be a duration in seconds from 0 to 365d, got NaN"),
        ("[budget]\nmax_pages = -3", "budget.max_pages must be a whole number of at least 0, got -3"),
        ("[judge]\nmin_language_share = 7", "judge.min_language_share must be a number from 0 to 1, got 7"),
        ("[fetch]\nmax_body_bytes = 'lots'", 'got "lots"; for example max_body_bytes = "8MiB"'),
        ("polite = 3", "polite must be a table, got 3; write [polite]"),
        ("[policy]\nname = 'dfs'", 'policy.name must be one of "bfs"'),
        ('[process]\nstep = "filter"', "write [[process]] with step ="),
        ("[scope]\ninclude = ['(']", "must be regular expressions"),
        ('[shards]\nscratch = "fast"', "shards.scratch must be the whole path of a folder"),
        ("[fetch]\nconnect_to = 'here'", "fetch.connect_to must be ADDR:PORT with an IP address, got 'here'"),
        ("[fetch]\nconnect_to = 'localhost:80'", "with an IP address, got 'localhost:80'"),
        ("[fetch]\nconnect_to = '127.0.0.1:١٢'", "with an IP address, got '127.0.0.1:١٢'"),
        ("[polite", "is not TOML"),
        ("", "language is missing"),
        ("[polite]\ndelay = 3", "language is missing"),
        ("schema = 99", "newer thresher"),
        (f"schema = 0x{'f' * 5000}", "newer thresher"),
        (f"schema = {'9' * 5000}", "is not TOML"),
        (f"a{'.a' * 50_000} = 1", "has a key of more than 100 parts"),
        ("#" * (2 << 20), "is larger than 1 MiB"),
        (f"[policy]\ntemperature = 0x{'f' * 5000}", "policy.temperature is too large"),
        (f"[fetch]\nports = [0x{'f' * 5000}]", "fetch.ports is too large"),
        (f"[read]\nprocesses = {10**6}", "read.processes must be a whole number from 0 to 4096"),
        (f"[polite]\ndelay = {10**12}", "polite.delay must be a duration in seconds from 0 to 365d"),
        (f"[scope]\nexclude = ['{'(' * 3000}{')' * 3000}']", "scope.exclude must be regular expressions"),
    ],
)
def test_a_mistake_is_named_with_the_value_and_the_fix(tmp_path: Path, toml: str, message: str) -> None:
    (tmp_path / "corpus.toml").write_text(toml)
    with pytest.raises(UsageError) as caught:
        load(tmp_path)
    assert message in str(caught.value)
    assert "corpus.toml" in str(caught.value)


def test_a_directory_without_corpus_toml_is_not_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(NoCorpusError, match=r"not a corpus.*thresher crawl"):
        load(tmp_path)


def test_every_setting_has_a_description_of_one_sentence() -> None:
    for key, setting, _ in flat(Config()):
        assert setting.description.endswith("."), key
        assert ". " not in setting.description, key


def test_every_default_is_a_value_that_the_setting_takes() -> None:
    assert parse(msgspec.to_builtins(Config())) == Config()
    tables = {key: readable(value, setting.unit) for key, setting, value in flat(Config())}
    for key, value in tables.items():
        section, _, name = key.rpartition(".")
        assert parse({section: {name: value}} if section else {name: value}) == Config(), key


# sizes and durations


def test_sizes_and_durations_may_be_strings_or_numbers() -> None:
    written = parse({"budget": {"max_bytes": "20GB", "max_time": "2h"}, "polite": {"delay": "1m"}})
    numbers = parse({"budget": {"max_bytes": 20_000_000_000, "max_time": 7200}, "polite": {"delay": 60.0}})
    assert written == numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [("500", 500), ("20k", 20_000), ("1.5GB", 1_500_000_000), ("3 MiB", 3 << 20), ("2ki", 2048)],
)
def test_a_size_has_decimal_and_binary_units(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("15m", 900), ("2h", 7200), ("1.5d", 129_600)])
def test_a_duration_has_units_from_seconds_to_days(text: str, value: float) -> None:
    assert duration(text) == value


@pytest.mark.parametrize("text", ["", "many", "1.2.3", "-5", "5 parsecs", "5ſ", "5kİ"])
def test_nonsense_sizes_and_durations_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        size(text)
    with pytest.raises(UsageError):
        duration(text)


@given(st.integers(0, 1 << 50) | st.integers(0, 2000).map(lambda count: count << 20))
def test_a_size_is_read_as_it_was_written(value: int) -> None:
    assert size(str(readable(value, "bytes"))) == value


@given(st.floats(0, 1e7) | st.integers(0, 10**6).map(float))
def test_a_duration_is_read_as_it_was_written(value: float) -> None:
    written = readable(value, "seconds")
    assert (duration(written) if isinstance(written, str) else written) == value


@pytest.mark.parametrize("parsed", [size, duration])
def test_an_amount_beyond_all_numbers_is_refused(parsed: Callable[[str], float]) -> None:
    with pytest.raises(UsageError, match="is not a"):
        parsed("9" * 400)


def test_a_file_that_cannot_be_parsed_is_named(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text("language = " + "[" * 10_000)
    with pytest.raises(UsageError, match="is not TOML"):
        load(tmp_path)


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_an_old_and_a_new_key_for_one_setting_are_refused(old: str) -> None:
    section, name = old.split(".")
    with pytest.raises(UsageError, match=f"{old} is the old name of {RENAMED[old]}, and both are given"):
        parse({section: {name: 5, RENAMED[old].partition(".")[2]: 6}})


# changes


def test_files_of_windows_editors_keep_their_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "corpus.toml"
    path.write_bytes(b"\xef\xbb\xbf" + WRITTEN.replace("\n", "\r\n").encode())
    change_settings(tmp_path, {"polite": {"delay": 0.5}, "read": {"deadline": 120.0}})
    changed = WRITTEN.replace("delay = 2 ", "delay = 0.5 ") + '\n[read]\ndeadline = "2m"\n'
    assert path.read_bytes() == changed.replace("\n", "\r\n").encode()


def test_comments_order_and_notation_survive_a_change() -> None:
    config = parse(tomllib.loads(WRITTEN))
    changed = replace(config, polite=replace(config.polite, delay=0.5))
    assert edited(WRITTEN, changed) == WRITTEN.replace("delay = 2 ", "delay = 0.5 ")


def test_a_setting_of_a_new_section_is_added_in_readable_form() -> None:
    config = parse(tomllib.loads(WRITTEN))
    changed = replace(config, read=replace(config.read, memory=3 << 30, deadline=120.0))
    assert edited(WRITTEN, changed) == WRITTEN + '\n[read]\ndeadline = "2m"\nmemory = "3GiB"\n'


def test_a_setting_that_returns_to_its_default_is_written_out() -> None:
    config = parse(tomllib.loads(WRITTEN))
    changed = replace(config, budget=BudgetSettings())
    assert "max_bytes = 0   # all that the disk has" in edited(WRITTEN, changed)


def test_steps_of_a_recipe_stay_as_they_are_when_another_setting_changes() -> None:
    written = WRITTEN + '\n[[process]]\nstep = "filter"  # the good ones\nmax_badness = 10.0\n'
    config = parse(tomllib.loads(written))
    text = edited(written, replace(config, store=replace(config.store, links=False)))
    assert written in text and tomllib.loads(text)["store"] == {"links": False}


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_an_old_key_is_read_with_a_warning_and_renamed_by_the_next_change(old: str) -> None:
    section, name = old.split(".")
    new = RENAMED[old].partition(".")[2]
    value = "true" if name == "runs" else "7"
    written = f"language = 'cs'\n[{section}]\n# why\n{name} = {value} # so\n\n[shards]\ncount = 2\n"
    with pytest.warns(FutureWarning, match=f"{old} is {RENAMED[old]} now"):
        config = parse(tomllib.loads(written))
    assert getattr(getattr(config, section), new) == (True if value == "true" else 7)
    text = edited(written, replace(config, language="sk", schema=SCHEMA))
    assert f"# why\n{new} = {value} # so\n" in text
    assert parse(tomllib.loads(text)) == replace(config, language="sk")


@pytest.mark.parametrize("table", ["polite = {delay = 2}\n", "polite.delay = 2\n"])
def test_other_ways_to_write_a_table_are_changed_too(table: str) -> None:
    written = f"language = 'cs'\nschema = {SCHEMA}\nthresher = ''\n{table}"
    config = parse(tomllib.loads(written))
    changed = replace(config, polite=PoliteSettings(delay=3.0, tries=5))
    assert parse(tomllib.loads(edited(written, changed))) == changed


# contact


@pytest.mark.parametrize("contact", ["me@example.org", "https://example.org/crawler", "http://a.cz"])
def test_a_webmaster_can_reach_an_address_or_a_page(contact: str) -> None:
    check_contact(contact)


@pytest.mark.parametrize(
    "contact", ["me", "", "me@here", "example.org", "ftp://a.cz/", "a b@c.cz", "https://x", "a\x00b@c.cz"]
)
def test_a_contact_without_an_address_is_refused_with_the_fix(contact: str) -> None:
    with pytest.raises(UsageError, match="e-mail address or an http"):
        check_contact(contact)
