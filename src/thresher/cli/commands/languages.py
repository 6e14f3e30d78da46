"""Commands about languages: list them, train one from a sample, delete a trained one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from thresher.cli.app import AsJson, app, print_json, say, show

language = App(
    name="language",
    help="List the languages, or train one from a sample of text.\n\n"
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
    """Train a language without a model from a sample of it.

    Example: thresher language train hsb sorbian.txt

    Afterwards --lang accepts its name. It is kept in $THRESHER_LANGUAGES, or else among the data of the user. A
    corpus uses its own language, and the trained languages that its setting read.trained_languages names.

    Parameters
    ----------
    name
        Code for it, best that of ISO 639-3: hsb, or qaa for a language without one.
    sample
        Text file in UTF-8: running text from many sources, best a few hundred kilobytes.
    replace
        Also if a language of that name was trained before.
    """
    from thresher.cli.views.languages import entry, known_warning, training_report
    from thresher.reader.language.train import known_language, read_sample
    from thresher.reader.language.train import train_language as train

    made = entry(train(name, sample, replace=replace))
    if known := known_language(read_sample(sample)):
        say(known_warning(name, known))
    if json:
        print_json(made)
    for sentence in training_report(made):
        say(sentence)


@language.command(name="list")
def list_languages(*, json: AsJson = False) -> None:
    """List the languages that --lang accepts: shipped ones, then trained ones.

    Example: thresher language list --json
    """
    from thresher.cli.views.languages import all_languages, view

    found = all_languages()
    if json:
        print_json(found)
    else:
        show(view(found))


@language.command(name="forget")
def forget_language(name: str) -> None:
    """Delete a trained language; corpora made with it stay as they are.

    Example: thresher language forget hsb

    Parameters
    ----------
    name
        Name that it was trained under.
    """
    from thresher.reader.language.custom_models import forget

    forget(name)
    say(f"language {name!r} is forgotten")
