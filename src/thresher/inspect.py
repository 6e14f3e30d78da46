"""A look at saved pages through the crawler's eyes: what `thresher read` shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from thresher.config import ConfigError, Judging, Reading
from thresher.crawl.start import language_code
from thresher.judge import judge
from thresher.page import Reply
from thresher.read import read
from thresher.terminal import concordance, harmless
from thresher.url import canonical

SHOWN_LINKS = 10


def look(path: Path, language: str, url: str, charset: str) -> dict[str, Any]:
    """What the reader finds in a saved page and what the judge says, as `read --json` tells it."""
    address = canonical(url)
    if address is None:
        raise ConfigError(f"--url {url!r} is not a web address; try https://example.org/page")
    code = language_code(language) if language else ""
    content_type = f"text/html; charset={charset}" if charset else "text/html"
    headers = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n".encode("latin-1", "replace")
    page = read(Reply(address, 200, headers, path.read_bytes(), 0.0, 0.0, ""), code, Reading())
    verdict = judge(page, code, Judging())
    return {
        "file": str(path),
        "title": page.metadata.title or page.title,
        "author": page.metadata.author,
        "published": page.metadata.published,
        "modified": page.metadata.modified,
        "site_name": page.metadata.site_name,
        "language_declared": page.metadata.language_declared,
        "text": page.text,
        "paragraphs": [
            {"text": block.text, "boilerplate": block.boilerplate, "language": block.language}
            for block in page.blocks
        ],
        "languages": [
            {"code": found.code, "bytes": found.bytes, "share": found.share} for found in page.languages
        ],
        "badness": page.badness,
        "suspicion": page.signs.suspicion,
        "charset": page.charset,
        "charset_declared": page.charset_declared,
        "license": page.license,
        "opt_out": page.opt_out,
        "links": [
            {
                "url": link.url,
                "anchor": link.anchor,
                "boilerplate": link.boilerplate,
                "in_text": link.in_text,
                "rel": link.rel,
            }
            for link in page.links
        ],
        "verdict": {"keep": verdict.keep, "reason": verdict.reason},
    }


def view(seen: dict[str, Any]) -> Group:
    """The same for people: every block with its score, text bright and boilerplate dim."""
    languages = ", ".join(f"{found['code']} {found['share']:.0%}" for found in seen["languages"]) or "unknown"
    badness = "no model" if seen["badness"] is None else f"{seen['badness']:.1f}"
    verdict = "keep" if seen["verdict"]["keep"] else f"reject: {seen['verdict']['reason']}"
    head = Table.grid(padding=(0, 2))
    for name, value in (
        ("file", seen["file"]),
        ("title", seen["title"]),
        ("languages", languages),
        ("badness", badness),
        ("charset", f"{seen['charset']} (declared: {seen['charset_declared'] or 'nothing'})"),
        ("verdict", verdict),
    ):
        head.add_row(Text(name, style="bold"), Text(harmless(value)))
    blocks = Table(box=None, padding=(0, 1), header_style="bold")
    blocks.add_column("score", justify="right")
    blocks.add_column("block")
    for block in seen["paragraphs"]:
        style = "" if block["boilerplate"] < 0.5 else "dim"
        blocks.add_row(
            Text(f"{block['boilerplate']:.2f}", style=style), Text(harmless(block["text"]), style=style)
        )
    links = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("score", "link", "anchor"):
        links.add_column(name)
    for link in sorted(seen["links"], key=lambda link: float(link["boilerplate"]))[:SHOWN_LINKS]:
        links.add_row(
            Text(f"{link['boilerplate']:.2f}"),
            Text(harmless(link["url"], 60)),
            Text(harmless(link["anchor"], 40)),
        )
    return Group(head, Text(), blocks, Text(), links)


def view_demo(found: dict[str, Any], directory: Path) -> Group:
    """The result of the demo: what the oracle says, a taste of the text, and what to try next."""
    lines: list[Text | Group] = [
        Text(
            f"{found['found']:,} of {found['good']:,} good texts of this web are in the corpus; ",
            style="bold",
        )
        + Text(f"{found['strange']:,} documents are in it that an oracle would not keep.")
    ]
    for sample in found["samples"]:
        lines += [
            Text(),
            Text(harmless(sample["title"], 100), style="bold"),
            Text(sample["url"], style="dim"),
        ]
        lines.append(Text(harmless(sample["text"], 300)))
    lines += [Text(), Text(f"{found['hits']:,} hits of {found['query']}", style="bold")]
    lines.append(concordance(found["concordance"], Console().width))
    lines += [Text(), Text("Next:", style="bold")]
    lines += [
        Text(f"  thresher status {directory}"),
        Text(f"  thresher search {directory} '[word=\"a.*\"]' --freq word@match"),
        Text(f"  thresher export {directory} --format vertical | head -40"),
        Text(f'  python -c \'import thresher; print(thresher.open("{directory}").docs(["url", "title"]))\''),
    ]
    return Group(*lines)
