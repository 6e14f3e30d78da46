"""Gold standard: saved pages with the text that people annotated, for training and for measuring readers.

A set is a folder, or a .tar.gz of a folder, of this form; everything is read as UTF-8:

    html/ID or html/ID.html     the page
    gold/ID or gold/ID.txt      its text, plain or in <p> paragraphs; a page with an empty one is left out
    others/ID.NAME.txt          optional: its text according to other annotators
    pages.jsonl                 optional: lines with "id" and, if known, "language" or "page_type" (its kind)
                                and "domain", "host" or "url" (its site)

If the site of a page is not given, it is taken from its id (`2011_www.example.org_17`), or else from the page.
"""

from __future__ import annotations

import heapq
import re
import tarfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from itertools import chain, groupby, islice
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
import xxhash
from msgspec import Struct
from numpy.typing import NDArray

from thresher.config import GIB, MIB
from thresher.errors import UsageError
from thresher.urls import canonical, domain, host

MAX_FILE_BYTES = 64 * MIB  # of one page
MAX_SET_BYTES = 8 * GIB  # unpacked: a set is held in memory
MAX_TAGS = 5_000  # searched for the site of a page
ADDRESS_TAGS = ("canonical", "og:url", "base")  # by which a page names its address, the most reliable first
# The first salt by which no language and no type of page has more than 58 % of its pages in one half.
SPLIT = 37

UNCLEAR = (0.3, 0.7)  # shares of gold of a block that is neither text nor boilerplate
MIN_RUN_TOKENS = 4  # shorter runs may be common to page and gold by chance
MIN_RUN_CHARACTERS = 8  # the same where tokens are characters
MAX_PAIRS = 64  # occurrences of a run on the page times in the gold; more frequent runs are ignored
# Tokens of the gold that no run covers, and tokens on the page between their neighbours, for a second pass.
MAX_GAP, MAX_SPAN = 20, 60

# Sites that all others link to; a page without an address of its own is unlikely to belong to one of them.
_ELSEWHERE = (
    "addthis.com amazon.com blogger.com doubleclick.net facebook.com feedburner.com flickr.com google.com "
    "instagram.com linkedin.com pinterest.com reddit.com twitter.com wikipedia.org x.com youtube.com"
)

# Thai, Lao, Burmese, Khmer, kana, bopomofo and Han: no spaces between words.
_SPACELESS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+")
_CHARACTER = re.compile(f"[{_SPACELESS}]")
_PARAGRAPH_TAG = re.compile(r"</?p>", re.IGNORECASE)
_HOST_NAME = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}")
_TAG = re.compile(r"<(link|meta|base|a)\s([^<>]{1,4000})", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""(?<![a-z:-])([a-z:-]+)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE
)

_Run: TypeAlias = tuple[int, int, int]  # tokens, start on the page, start in the gold
_File: TypeAlias = tuple[str, int, Callable[[], bytes]]  # name, size, function that reads the content


class GoldPage(Struct, frozen=True):
    """A page and its annotated text."""

    set: str  # the name of the folder or archive
    id: str
    host: str  # registered domain of its site; made of id and set if unknown
    kind: str  # its language or its type of page, or ""
    html: str
    text: str
    others: tuple[str, ...] = ()  # its text according to other annotators


class F1(NamedTuple):
    """Precision and recall of tokens against the gold, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


class _Known(Struct, frozen=True):
    """The fields of a line of pages.jsonl that are used."""

    id: str
    language: str = ""
    page_type: str = ""
    domain: str = ""
    host: str = ""
    url: str = ""


def load(paths: Iterable[str | Path]) -> list[GoldPage]:
    """Load all pages of some sets that have a gold text, each set in the order of its ids."""
    return [page for path in paths for page in _load_set(Path(path))]


def split(page: GoldPage) -> Literal["train", "test"]:
    """Return the half of the gold that the site of a page belongs to, for any of its subdomains and TLDs."""
    name = page.host.partition(".")[0]
    return "test" if xxhash.xxh3_64_intdigest(f"{SPLIT} {name}".encode("utf-8", "replace")) & 1 else "train"


def tokens(text: str) -> list[str]:
    """Return the words of a text in lower case; the characters, in scripts without spaces."""
    return _TOKEN.findall(unicodedata.normalize("NFC", text).lower())


def token_f1(found: str, gold: str) -> F1:
    """Compare two texts as bags of tokens; if both are empty the score is 1."""
    ours, theirs = Counter(tokens(found)), Counter(tokens(gold))
    if not ours or not theirs:
        return F1(1.0, 1.0, 1.0) if not ours and not theirs else F1(0.0, 0.0, 0.0)
    common = (ours & theirs).total()
    precision, recall = common / ours.total(), common / theirs.total()
    return F1(precision, recall, 2 * common / (ours.total() + theirs.total()))


def labels(texts: Sequence[str], gold: str) -> NDArray[np.float64]:
    """Return for every block of a page the share of its tokens that is gold; 0.5 for blocks without tokens.

    The gold is aligned with the page run by run, the longest first, and each of its tokens is used once. So a title
    that is repeated in a menu, or a teaser of the text, is not taken for the text itself.
    """
    blocks = [tokens(text) for text in texts]
    page, wanted = list(chain.from_iterable(blocks)), tokens(gold)
    is_gold = np.zeros(len(page) + 1)
    is_gold[[place + 1 for place in _places(page, wanted) if place >= 0]] = 1.0
    ends = np.cumsum([0, *map(len, blocks)])
    lengths = np.diff(ends)
    shares: NDArray[np.float64] = np.diff(np.cumsum(is_gold)[ends]) / np.maximum(lengths, 1)
    shares[lengths == 0] = 0.5
    return shares


def _places(page: list[str], gold: list[str]) -> list[int]:
    """Return the place on the page of each token of the gold, or -1."""
    characters = 2 * sum(1 for token in gold if _CHARACTER.match(token)) > len(gold)
    places = _aligned(page, gold, MIN_RUN_CHARACTERS if characters else MIN_RUN_TOKENS)
    for start, end in list(_ranges([k for k, place in enumerate(places) if place < 0])):
        left, right = places[start - 1] + 1 if start else -1, places[end] if end < len(gold) else -1
        if left < 0:
            left = max(0, right - MAX_SPAN)
        elif right < 0:
            right = min(len(page), left + MAX_SPAN)
        if end - start <= MAX_GAP and left < right <= left + MAX_SPAN:
            inside = _aligned(page[left:right], gold[start:end], 1)
            places[start:end] = [left + place if place >= 0 else -1 for place in inside]
    return places


def _aligned(page: list[str], gold: list[str], least: int) -> list[int]:
    """Align common runs of at least `least` tokens, the longest first, without overlaps.

    Of runs of equal length, the one nearest to the diagonal of the longest run comes first.
    """
    runs = _runs(page, gold, least)
    places, taken = [-1] * len(gold), bytearray(len(page))
    main = max(runs, default=(0, 0, 0))
    heap = [_by_length(run, main) for run in runs]
    heapq.heapify(heap)
    while heap:
        length, _, at, start = heapq.heappop(heap)
        length = -length
        free = [k for k in range(length) if not taken[at + k] and places[start + k] < 0]
        if len(free) == length:
            taken[at : at + length] = b"\1" * length
            places[start : start + length] = range(at, at + length)
            continue
        for first, last in _ranges(free):
            if last - first >= least:
                heapq.heappush(heap, _by_length((last - first, at + first, start + first), main))
    return places


def _by_length(run: _Run, main: _Run) -> tuple[int, int, int, int]:
    """Return a key that sorts runs by length, then by distance from the diagonal of the main run."""
    length, at, start = run
    return -length, abs((at - start) - (main[1] - main[2])), at, start


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of consecutive numbers: 1 2 5 gives (1, 3), (5, 6)."""
    for _, row in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in row]
        yield members[0], members[-1] + 1


def _runs(page: list[str], gold: list[str], least: int) -> list[_Run]:
    """Return the maximal common runs of page and gold: (length, start on the page, start in the gold)."""
    ends: dict[int, int] = {}  # of the last run on each diagonal
    runs = []
    for at, start in _pairs(page, gold, least):
        if at < ends.get(at - start, 0):
            continue
        back, on = 0, least
        while at > back and start > back and page[at - back - 1] == gold[start - back - 1]:
            back += 1
        while at + on < len(page) and start + on < len(gold) and page[at + on] == gold[start + on]:
            on += 1
        ends[at - start] = at + on
        runs.append((back + on, at - back, start - back))
    return runs


def _pairs(page: list[str], gold: list[str], length: int) -> list[tuple[int, int]]:
    """Return the places where page and gold share `length` tokens in a row, without frequent ones."""
    in_gold, on_page = defaultdict(list), defaultdict(list)
    for start, gram in enumerate(zip(*(gold[k:] for k in range(length)), strict=False)):
        in_gold[gram].append(start)
    for at, gram in enumerate(zip(*(page[k:] for k in range(length)), strict=False)):
        if gram in in_gold:
            on_page[gram].append(at)
    rare = (gram for gram, places in on_page.items() if len(places) * len(in_gold[gram]) <= MAX_PAIRS)
    return sorted((at, start) for gram in rare for at in on_page[gram] for start in in_gold[gram])


def _load_set(path: Path) -> list[GoldPage]:
    name = path.name.removesuffix(".tar.gz")
    pages: dict[str, str] = {}
    texts: dict[str, str] = {}
    others: defaultdict[str, list[str]] = defaultdict(list)
    known: dict[str, _Known] = {}
    for inner, content in _files(path):
        if inner.name == "pages.jsonl":
            known = _known(path, content)
        elif inner.parent.name == "html":
            pages[inner.name.removesuffix(".html")] = content
        elif inner.parent.name == "gold":
            texts[inner.name.removesuffix(".txt")] = _plain(content)
        elif inner.parent.name == "others":
            others[inner.name.removesuffix(".txt").rpartition(".")[0]].append(_plain(content))
    ids = sorted(id for id in pages.keys() & texts.keys() if texts[id].strip())
    if not ids:
        raise UsageError(
            f"{path} has no page html/ID or html/ID.html with its text in gold/ID or gold/ID.txt"
        )
    return [_page(name, known.get(id) or _Known(id), pages[id], texts[id], others[id]) for id in ids]


def _page(name: str, known: _Known, html: str, text: str, others: Iterable[str]) -> GoldPage:
    site = _site_known(known) or _site_of(html) or f"{known.id}.{name}.invalid"
    return GoldPage(name, known.id, site, known.language or known.page_type, html, text, tuple(others))


def _files(path: Path) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the files of a set with their contents, from a folder or an archive."""
    total = 0
    try:
        for name, size, content in _folder(path) if path.is_dir() else _archive(path):
            total += size
            if size > MAX_FILE_BYTES or total > MAX_SET_BYTES:
                raise UsageError(
                    f"{path}: {name} is too large; the limits are {MAX_FILE_BYTES:,} bytes for a page "
                    f"and {MAX_SET_BYTES:,} for a set"
                )
            yield PurePosixPath(name), content().decode("utf-8", "replace").removeprefix("\ufeff")
    except (OSError, tarfile.TarError) as error:
        raise UsageError(
            f"{path}: {error}; give a folder or a .tar.gz that contains html/ and gold/"
        ) from error


def _folder(folder: Path) -> Iterator[_File]:
    for pattern in ("pages.jsonl", "html/*", "gold/*", "others/*"):
        for path in folder.glob(pattern):
            yield str(path.relative_to(folder)), path.stat().st_size, path.read_bytes


def _archive(path: Path) -> Iterator[_File]:
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            if member.isfile() and (opened := archive.extractfile(member)):
                yield member.name, member.size, opened.read


def _known(path: Path, lines: str) -> dict[str, _Known]:
    """Return the lines of pages.jsonl by id."""
    decode = msgspec.json.Decoder(_Known).decode
    known = {}
    for number, line in enumerate(lines.splitlines(), 1):
        if line.strip():
            try:
                row = decode(line)
            except msgspec.DecodeError as error:
                example = '{"id": "17", "language": "Greek", "domain": "example.org"}'
                raise UsageError(f"{path}: pages.jsonl, line {number}: {error}; try {example}") from error
            known[row.id] = row
    return known


def _plain(text: str) -> str:
    """Return a gold text without the tags of its paragraphs, if it has such tags."""
    text = text.replace("\0", "")  # remains of UTF-16 that was read as UTF-8
    return _PARAGRAPH_TAG.sub("\n", text) if text.lstrip()[:3].lower() == "<p>" else text


def _site_known(known: _Known) -> str:
    """Return the site of a page from pages.jsonl or from its id, or ""."""
    named = (part for part in known.id.lower().split("_") if _HOST_NAME.fullmatch(part))
    candidates = (known.url, known.domain, known.host, *named)
    return next(filter(None, map(_registered, candidates)), "")


def _site_of(html: str) -> str:
    """Return the site that a page names as its address, or else the site that it links to most, or ""."""
    linked: Counter[str] = Counter()
    declared: dict[str, str] = {}
    for tag in islice(_TAG.finditer(html), MAX_TAGS):
        attributes = {name.lower(): unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(tag[2])}
        site = _absolute_site(attributes.get("href") or attributes.get("content", ""))
        role = (attributes.get("rel") or attributes.get("property", "")).lower()
        match tag[1].lower():
            case "a":
                linked[site] += 1
            case "base":
                declared.setdefault("base", site)
            case "link" | "meta" if role in ADDRESS_TAGS:
                declared.setdefault(role, site)
    for elsewhere in ("", *_ELSEWHERE.split()):
        del linked[elsewhere]
    candidates = (*map(declared.get, ADDRESS_TAGS), *(site for site, _ in linked.most_common(1)))
    return next(filter(None, candidates), "")


def _absolute_site(target: str) -> str:
    """Return the site of an absolute link; "" for relative links."""
    return _registered(target) if target.strip()[:8].lower().startswith(("http://", "https://", "//")) else ""


def _registered(name: str) -> str:
    """Return the registered domain of a URL or host name, or ""."""
    name = name.strip()
    if name.startswith("//") or "://" not in name:
        name = f"http://{name.lstrip('/')}"
    address = canonical(name) if name != "http://" else None
    return domain(host(address)) if address else ""
