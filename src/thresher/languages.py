"""The languages that can be asked for with --lang: what `thresher language` tells about them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.console import Group
from rich.table import Table
from rich.text import Text

from thresher.read.badness import FEWEST_PIECES, PIECE
from thresher.read.codes import known_languages
from thresher.read.trained import SUFFIX, Trained, badness_model, home, trained_languages
from thresher.terminal import harmless

BADNESS_TAKES = FEWEST_PIECES * PIECE  # characters of running text


class Language(Struct, frozen=True):
    """A language that can be told from others, and what there is for it."""

    code: str
    name: str
    trained: bool  # from somebody's sample; else it came with the package
    badness: bool  # whether there is a Badness model
    letters: int | None = None  # of the sample, where it was trained …
    file: str | None = None  # … and where it is kept


def all_languages() -> list[Language]:
    """Every language that can be asked for, those trained last."""
    trained = trained_languages()
    return [
        entry(trained[code])
        if code in trained
        else Language(code, name, trained=False, badness=badness_model(code) is not None)
        for code, name in known_languages().items()
    ]


def entry(trained: Trained) -> Language:
    """A trained language as the list tells it."""
    return Language(
        code=trained.name,
        name=known_languages()[trained.name],
        trained=True,
        badness=trained.badness is not None,
        letters=trained.profile.size,
        file=str(home() / (trained.name + SUFFIX)),
    )


def account(made: Language) -> list[str]:
    """What somebody wants to know who has just trained a language, in sentences."""
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


def view(languages: Sequence[Language]) -> Group:
    """The list for people, with a line that sums it up where the eye is: at the end."""
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
