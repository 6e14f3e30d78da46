"""Metadata of pages that are given as their parts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from thresher.reader.html.metadata import metadata
from thresher.records import Metadata

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()


def of(
    *metas: tuple[str, str],
    json_ld: Any = (),
    times: Any = (),
    bylines: Any = (),
    title: str = "",
    html_lang: str = "",
) -> Metadata:
    """Return the metadata of a page with these <meta> elements and other parts."""
    scripts = [script if isinstance(script, str) else json.dumps(script) for script in json_ld]
    return metadata(metas, scripts, times, bylines, title, html_lang, NOW)


def author(value: str) -> str:
    return of(("author", value)).author


def published(value: str) -> str:
    return of(("article:published_time", value)).published


def language(value: str) -> str:
    return of(html_lang=value).language_declared
