"""Commands about languages: which there are, and how there come to be more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from thresher.cli.app import AsJson, app, print_json, say, show

language = App(
    name="language",
    help="The languages there are, and new ones from a sample of text.\n\n"
    "Example: thresher language train hsb sorbian.txt",
)
app.command(language)


@language.command(name="train")
def train_language(
    name: str,
    sample: Path,
    *,
    replace: Annotated[bool, Parameter(negative=())] = False,
    json: AsJson = False,
) -> None:
    """Make a language that nobody has a model for from a sample of it.

    Example: thresher language train hsb sorbian.txt

    Afterwards --lang knows it by its name. It is kept in $THRESHER_LANGUAGES, or else among the data of the user.

    Parameters
    ----------
    name
        Code for it, best that of ISO 639-3: hsb, or qaa for what has none.
    sample
        Text file in UTF-8: running text from many sources, best a few hundred kilobytes.
    replace
        Also if a language of that name was trained before.
    """
    from thresher.languages import account, entry
    from thresher.read.training import train_language as train

    made = entry(train(name, sample, replace=replace))
    if json:
        print_json(made)
    for sentence in account(made):
        say(sentence)


@language.command(name="list")
def list_languages(*, json: AsJson = False) -> None:
    """List the languages that can be asked for: those shipped, then those trained.

    Example: thresher language list --json
    """
    from thresher.languages import all_languages, view

    found = all_languages()
    if json:
        print_json(found)
    else:
        show(view(found))


@language.command(name="forget")
def forget_language(name: str) -> None:
    """Delete a language that was trained; corpora made with it stay as they are.

    Example: thresher language forget hsb

    Parameters
    ----------
    name
        Name that it was trained under.
    """
    from thresher.read.trained import forget

    forget(name)
    say(f"language {name!r} is forgotten")
