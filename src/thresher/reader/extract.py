"""Reader: from a reply to a page, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import compress

from thresher import urls
from thresher.config import ReadSettings
from thresher.reader import feeds
from thresher.reader.encoding.charset import label_in
from thresher.reader.encoding.content_type import SNIFFED, sniff_kind
from thresher.reader.encoding.decode import GZIP_MAGIC, PIECE, decode, unpack
from thresher.reader.html import boilerplate, scan_page
from thresher.reader.html import links as page_links
from thresher.reader.html.directives import directives
from thresher.reader.html.metadata import metadata
from thresher.reader.language.badness import badness
from thresher.reader.language.custom_models import badness_model
from thresher.reader.language.identify import languages, normalise, paragraph_languages
from thresher.reader.quality import fingerprint
from thresher.reader.quality.shingles import page_shingles
from thresher.reader.quality.spam_signals import spam_signals
from thresher.records import Block, ReadResult, Reply, Shingles

ANCHORS_PER_LINK = 2  # how many times more links are looked at than kept: many are repeated
TITLE = 200  # characters of a text's first line that stand for its title
_DEFAULTS = ReadSettings()


def read(reply: Reply, language: str = "", settings: ReadSettings = _DEFAULTS) -> ReadResult:
    """Read a reply. Any bytes give a page, defects are values in it, and equal replies give equal pages."""
    headers = _headers(reply.headers)
    content_type = _content_type(headers)
    if not reply.status and content_type.startswith("text/plain"):
        return _read_text(reply, language, settings)
    body, fault = unpack(
        reply.body, ",".join(headers.get("content-encoding", [])), settings.max_decoded_bytes
    )
    if fault:
        return ReadResult(reply.url, "other", fault, charset_declared=label_in(content_type)[:40])
    body = _unpacked_sitemap(body, settings.max_decoded_bytes)
    kind, fault = sniff_kind(body, content_type)
    if kind == "html":
        return _read_html(reply, body, headers, language, settings)
    asked = directives(headers, (), reply.fetched)
    if kind == "other" and _may_be_text_sitemap(reply.url, content_type):
        found = feeds.text_sitemap(body, reply.url, settings.max_links)
        kind = "sitemap" if found else "other"
    else:
        found = (
            () if kind == "other" else feeds.links(body, reply.url, kind, settings.max_links, reply.fetched)
        )
    return ReadResult(
        url=reply.url,
        kind=kind,
        fault=fault,
        html_bytes=len(body),
        links=found,
        raw_hash=fingerprint.raw_hash(body),
        noindex=asked.noindex,
        nofollow=asked.nofollow,
        opt_out=asked.opt_out,
    )


def _read_html(
    reply: Reply, body: bytes, headers: dict[str, list[str]], language: str, settings: ReadSettings
) -> ReadResult:
    document = decode(body, _content_type(headers), _top_level_domain(reply.url))
    markup = scan_page.scan(document.utf8, ANCHORS_PER_LINK * settings.max_links)
    scores = boilerplate.score(markup)
    cut = boilerplate.cut(scores, markup, settings.mode)
    blocks = tuple(map(Block, markup.texts, scores.tolist()))
    if settings.paragraph_language:
        blocks = _marked(blocks, cut, _trained(language, settings.trained_languages))
    chosen = [block.boilerplate < cut for block in blocks]
    if settings.paragraph_language == "drop":
        chosen = _in_one_language(blocks, chosen)
    paragraphs = list(compress(markup.texts, chosen))
    text = "\n".join(paragraphs)
    found = page_links.links(markup, reply.url, scores, cut, settings.max_links)
    expected = badness_model(normalise(language) or language) if language else None
    asked = directives(headers, markup.metas, reply.fetched)
    return ReadResult(
        url=reply.url,
        kind="html",
        html_bytes=len(body),
        charset_declared=document.declared,
        charset=document.charset,
        title=markup.title,
        blocks=blocks,
        text=text,
        languages=languages(text, _trained(language, settings.trained_languages)),
        badness=badness(text, expected) if expected else None,
        links=found,
        raw_hash=fingerprint.raw_hash(body),
        text_hash=fingerprint.text_hash(paragraphs),
        noindex=asked.noindex,
        nofollow=asked.nofollow,
        license=page_links.licence(found),
        opt_out=asked.opt_out,
        metadata=metadata(
            markup.metas,
            markup.json_ld,
            markup.times,
            markup.bylines,
            markup.title,
            markup.language,
            reply.fetched,
        ),
        spam_signals=spam_signals(paragraphs, found, reply.url),
        shingles=page_shingles(markup.texts, chosen) if settings.shingles else Shingles(),
    )


def _read_text(reply: Reply, language: str, settings: ReadSettings) -> ReadResult:
    """Read a text that others extracted, as in WET archives; each line is a paragraph."""
    body = reply.body[: settings.max_decoded_bytes]
    lines = [line for raw in body.decode("utf-8", "replace").splitlines() if (line := " ".join(raw.split()))]
    blocks = tuple(Block(line, 0.0) for line in lines)
    if settings.paragraph_language:
        blocks = _marked(blocks, 1.0, _trained(language, settings.trained_languages))
    chosen = [True] * len(blocks)
    if settings.paragraph_language == "drop":
        chosen = _in_one_language(blocks, chosen)
    paragraphs = list(compress(lines, chosen))
    text = "\n".join(paragraphs)
    expected = badness_model(normalise(language) or language) if language else None
    return ReadResult(
        url=reply.url,
        kind="html",
        html_bytes=len(body),
        charset="utf-8",
        title=lines[0][:TITLE] if lines else "",
        blocks=blocks,
        text=text,
        languages=languages(text, _trained(language, settings.trained_languages)),
        badness=badness(text, expected) if expected else None,
        raw_hash=fingerprint.raw_hash(body),
        text_hash=fingerprint.text_hash(paragraphs),
        spam_signals=spam_signals(paragraphs, (), reply.url),
        shingles=page_shingles(lines, chosen) if settings.shingles else Shingles(),
    )


@cache
def _trained(language: str, named: tuple[str, ...]) -> frozenset[str] | None:
    """Return the trained languages that a page is compared with: its corpus's, or all without a corpus."""
    return frozenset((normalise(language) or language, *named)) if language else None


def _marked(blocks: Sequence[Block], cut: float, trained: frozenset[str] | None) -> tuple[Block, ...]:
    """Return the blocks of a page; blocks of its text get their language."""
    texts = [block.text for block in blocks if block.boilerplate < cut]
    named = iter(paragraph_languages(texts, trained))
    return tuple(
        Block(block.text, block.boilerplate, next(named)) if block.boilerplate < cut else block
        for block in blocks
    )


def _in_one_language(blocks: Sequence[Block], chosen: Sequence[bool]) -> list[bool]:
    """Return the chosen blocks that are in the main language of the text or too short to tell."""
    sizes: Counter[str] = Counter()
    for paragraph in compress(blocks, chosen):
        if paragraph.language:
            sizes[paragraph.language] += len(paragraph.text)
    main = sizes.most_common(1)[0][0] if sizes else ""
    return [said and block.language in ("", main) for block, said in zip(blocks, chosen, strict=True)]


def _headers(raw: bytes) -> dict[str, list[str]]:
    """Return all values of each header by its lower-cased name, read in one pass."""
    found: dict[str, list[str]] = {}
    for line in raw.decode("latin-1").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), []).append(value.strip())
    return found


def _content_type(headers: dict[str, list[str]]) -> str:
    return headers.get("content-type", [""])[0]


def _top_level_domain(address: str) -> str:
    return urls.tld(urls.host(address)) if address.count("/") >= 2 else ""


def _may_be_text_sitemap(address: str, content_type: str) -> bool:
    """Return True if a plain text may be a sitemap, a list of URLs: `sitemap.txt`."""
    return address.endswith(".txt") and content_type.startswith(("text/plain", "application/octet-stream"))


def _unpacked_sitemap(body: bytes, limit: int) -> bytes:
    """Unpack a sitemap sent as a gzip file, regardless of its headers; return other bodies unchanged."""
    if body.startswith(GZIP_MAGIC) and feeds.kind_of(unpack(body[:PIECE], "gzip", limit).body[:SNIFFED]):
        return unpack(body, "gzip", limit).body or body
    return body
