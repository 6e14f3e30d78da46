"""Languages trained from a sample of text."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.samples.language_samples import (
    CZECH,
    DECLARED,
    FUNCTION_WORDS,
    GREEK,
    LOOK_ALIKES,
    code_of,
    invented_text,
)
from thresher.errors import UsageError
from thresher.reader.language import custom_models
from thresher.reader.language.custom_models import badness_model, forget, load, save, trained_languages
from thresher.reader.language.identify import (
    known_languages,
    languages,
    nearest,
    normalise,
    paragraph_languages,
)
from thresher.reader.language.ngram_profile import profile_of
from thresher.reader.language.train import train, train_language

pytestmark = pytest.mark.usefixtures("own_languages")


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "sample.txt"
    path.write_text(invented_text(900), "utf-8")
    return path


def test_a_trained_language_is_used_by_its_name_like_the_others(sample: Path) -> None:
    train_language("qmu", sample)
    assert normalise("QMU") == normalise("qmu-Latn") == "qmu"
    assert "qmu" in known_languages()
    assert nearest("qmuu")[0] == "qmu"
    (only,) = languages(invented_text(30, start=5_000))
    assert (only.code, only.share) == ("qmu", 1.0)
    assert paragraph_languages([CZECH, invented_text(3, start=7_000).replace("\n", " ")]) == ["cs", "qmu"]


def test_a_trained_language_takes_only_its_part_of_a_page(sample: Path) -> None:
    train_language("qmu", sample)
    found = {
        share.code: share.share for share in languages(f"{CZECH * 12}\n{invented_text(10, start=3_000)}")
    }
    assert found.keys() == {"cs", "qmu"}
    assert found["cs"] > found["qmu"] > 0.2


def test_a_trained_language_takes_no_text_of_another(sample: Path) -> None:
    train_language("qmu", sample)
    for code, text in LOOK_ALIKES.items():
        assert code_of(text) == code
    assert languages("12 345 — 67 %") == ()


def test_the_better_of_two_trained_languages_is_found(sample: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(invented_text(900).translate(str.maketrans("aeiou", "ouaei")), "utf-8")
    train_language("qmu", sample)
    train_language("qmv", other)
    text = invented_text(5, start=4_000)
    assert code_of(text) == "qmu"
    assert code_of(text.translate(str.maketrans("aeiou", "ouaei"))) == "qmv"


def test_a_trained_language_has_function_words_and_a_badness_model(sample: Path) -> None:
    made = train_language("qmu", sample)
    assert set(made.words[:6]) <= set(FUNCTION_WORDS)
    assert badness_model("qmu") == made.badness is not None
    assert badness_model("cs") is not None
    assert badness_model("qqq") is None


def test_a_small_sample_makes_a_language_without_a_badness_model() -> None:
    made = train("qmu", invented_text(120))
    assert made.badness is None
    assert made.profile.fits([invented_text(3, start=900)])[0] > made.floor


def test_a_trained_language_is_one_small_file(sample: Path, own_languages: Path) -> None:
    made = train_language("qmu", sample)
    (path,) = own_languages.iterdir()
    assert path.name == "qmu.language"
    assert path.stat().st_size < 300_000
    assert load(path) == made


def test_the_name_of_a_trained_language_is_durable(
    sample: Path, own_languages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("thresher.files.durable_files.sync_directory", synced.append)
    save(train("qmu", sample.read_text()))
    assert synced == [own_languages]


def test_trained_languages_are_stored_where_the_environment_says(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THRESHER_LANGUAGES")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    train_language("qmu", sample)
    assert (tmp_path / "data" / "thresher" / "languages" / "qmu.language").is_file()
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    custom_models.clear_cache()
    assert trained_languages() == {}
    assert custom_models.home() == tmp_path / "home" / ".local" / "share" / "thresher" / "languages"


def test_a_language_can_be_trained_again_only_on_purpose_and_forgotten(sample: Path) -> None:
    train_language("qmu", sample)
    with pytest.raises(UsageError, match="'qmu' was trained before"):
        train_language("qmu", sample)
    train_language("qmu", sample, replace=True)
    forget("qmu")
    assert normalise("qmu") is None
    with pytest.raises(UsageError, match="no language 'qmu' was trained"):
        forget("qmu")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cs", "'cs' is taken: Czech"),
        ("nb", "'nb' is another name for 'no'"),
        ("cs-cz", "'cs-cz' is another name for 'cs'"),
        ("Upper Sorbian", "cannot be the name of a language"),
        ("../../etc/passwd", "cannot be the name of a language"),
        ("", "cannot be the name of a language"),
        ("h" * 100, "cannot be the name of a language"),
    ],
)
def test_a_name_that_is_taken_or_malformed_is_refused(sample: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        train_language(name, sample)
    assert trained_languages() == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "too few"),
        (b"Just one line.", "too few"),
        (b"\x7fELF\x02\x01\x01" + bytes(9_000), "not text"),
        ("Příliš žluťoučký kůň ".encode("cp1250") * 900, "not text in UTF-8"),
        (b"12345, 67890; " * 3_000 + b"word " * 1_000, "mostly numbers"),
    ],
    ids=["empty", "short", "binary", "Latin-2", "numbers"],
)
def test_a_file_that_is_no_sample_is_refused_with_a_reason(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "sample.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        train_language("qmu", path)


def test_a_sample_that_is_not_there_or_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        train_language("qmu", tmp_path / "missing.txt")
    with pytest.raises(UsageError, match="cannot be read"):
        train_language("qmu", tmp_path)


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_a_file_that_is_no_trained_language_is_named_with_the_fix(content: bytes) -> None:
    path = custom_models.home() / "qmu.language"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"qmu\.language is not a trained language; train it again"):
        load(path)


def test_a_file_whose_parts_do_not_belong_together_is_refused(sample: Path, own_languages: Path) -> None:
    made = train_language("qmu", sample)
    path = own_languages / "qmu.language"
    content = msgspec.to_builtins(made, builtin_types=(bytes,))
    content["profile"]["scores"] = content["profile"]["scores"][:-1]
    path.write_bytes(msgspec.msgpack.encode(content))
    with pytest.raises(UsageError, match="not a trained language"):
        load(path)


def test_a_file_under_another_name_or_of_another_version_is_refused(
    sample: Path, own_languages: Path
) -> None:
    train_language("qmu", sample)
    moved = (own_languages / "qmu.language").rename(own_languages / "qmv.language")
    with pytest.raises(UsageError, match="holds 'qmu' in version 1, but 'qmv'"):
        load(moved)


PROFILE = profile_of(invented_text(300))


@given(st.text(max_size=200))
def test_the_score_of_a_text_does_not_depend_on_the_texts_beside_it(text: str) -> None:
    (alone,) = PROFILE.fits([text])
    assert alone <= 0
    assert PROFILE.fits([CZECH, text, GREEK])[1] == alone


def test_the_sample_fits_its_profile_better_than_other_text_does() -> None:
    mine, czech, greek = PROFILE.fits([invented_text(3, start=1_000), CZECH, GREEK])
    assert mine > -PROFILE.entropy > max(czech, greek)


@pytest.mark.parametrize(
    "key", ["hsb", "fao", "tgk", "kmr", "cym"], ids=["Sorbian", "Faroese", "Tajik", "Kurdish", "Welsh"]
)
def test_a_language_trained_from_half_a_declaration_is_found_in_the_other_half_only(
    key: str, declarations: dict[str, list[str]]
) -> None:
    paragraphs = [text for text in declarations[key] if len(text) >= 40]
    half = len(paragraphs) // 2
    save(train("qaa", "\n".join(paragraphs[:half])))
    found = [code_of(text) for text in paragraphs[half:]]
    assert found.count("qaa") >= 0.97 * len(found)
    others = [pair.split(":")[0] for pair in DECLARED.split()]
    taken = [
        text
        for other in others
        if other != key
        for text in declarations[other][5:45:2]
        if code_of(text) == "qaa"
    ]
    assert taken == []
