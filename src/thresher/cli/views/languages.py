"""The languages that --lang accepts, as `thresher language` shows them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.console import Group
from rich.table import Table
from rich.text import Text

from thresher.cli.views.terminal import harmless
from thresher.reader.language.badness import FEWEST_PIECES, PIECE
from thresher.reader.language.codes import known_languages
from thresher.reader.language.custom_models import SUFFIX, CustomModel, badness_model, home, trained_languages
from thresher.records import LanguageShare

BADNESS_TAKES = FEWEST_PIECES * PIECE  # characters of running text


class KnownLanguage(Struct, frozen=True):
    """A language that can be identified, and its models."""

    code: str
    name: str
    trained: bool  # from a user's sample; a shipped one came with the package
    badness: bool  # there is a Badness model
    letters: int | None = None  # in the sample of a trained one
    file: str | None = None  # in which a trained one is kept


def all_languages() -> list[KnownLanguage]:
    """Return every language that --lang accepts, trained ones last."""
    trained = trained_languages()
    return [
        entry(trained[code])
        if code in trained
        else KnownLanguage(code, name, trained=False, badness=badness_model(code) is not None)
        for code, name in known_languages().items()
    ]


def entry(trained: CustomModel) -> KnownLanguage:
    """Return the entry of a trained language in the list."""
    return KnownLanguage(
        code=trained.name,
        name=known_languages()[trained.name],
        trained=True,
        badness=trained.badness is not None,
        letters=trained.profile.size,
        file=str(home() / (trained.name + SUFFIX)),
    )


def known_warning(name: str, known: LanguageShare) -> str:
    """Return the warning for a sample that is in a known language."""
    language = known_languages()[known.code]
    return (
        f"warning: {known.share:.0%} of this sample is {language} ({known.code}), which is known without training; "
        f"a corpus that uses {name!r} will take {language} pages for it"
    )


def training_report(made: KnownLanguage) -> list[str]:
    """Return sentences about a language that was just trained."""
    said = [
        f"{made.code!r} was made of {made.letters:,} letters and is stored in {made.file}",
        f"--lang {made.code} works from now on",
    ]
    if not made.badness:
        said.append(
            f"it has no Badness model, since that takes {BADNESS_TAKES:,} characters of running text or more, "
            "best a few hundred thousand: add to the sample, then train again with --replace"
        )
    return said


def view(languages: Sequence[KnownLanguage]) -> Group:
    """Return the list for people; its summary is at the end, where the terminal stops."""
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for heading in ("code", "language", "Badness", "from"):
        table.add_column(heading)
    for language in languages:
        origin = f"a sample of {language.letters:,} letters" if language.trained else ""
        cells = language.code, language.name, "yes" if language.badness else "no", origin
        table.add_row(*(Text(harmless(cell)) for cell in cells))
    trained = sum(language.trained for language in languages)
    badness = sum(language.badness for language in languages)
    summary = (
        f"{len(languages) - trained:,} languages shipped, {trained:,} trained (in {home()}); "
        f"{badness:,} have a Badness model"
    )
    return Group(table, Text(), Text(harmless(summary)))
