"""The ledger of a crawl: raw pages, documents, links, outcomes and state, made durable together.

A commit appends to the files and syncs them, then writes the state (with the files' new lengths) in one
synced batch. On opening, files are cut back to the lengths in the state. So a page is in the corpus exactly
once, or its URL is still queued, whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from thresher._version import __version__
from thresher.config import Config, ConfigError
from thresher.crawl.imported import Imported
from thresher.crawl.state import State
from thresher.page import Candidate, Failure, Page, Reply, Verdict
from thresher.store.files import exclusive
from thresher.store.segments import Segments
from thresher.store.shards import ALONE, Shard
from thresher.store.tables import DOCS, LINKS, OUTCOMES, document_row, link_columns
from thresher.store.warc import WarcWriter
from thresher.url import domain as domain_of
from thresher.url import host as host_of

FILES = b"m/files"  # committed length of every file; null for one that is sealed
FIGURES = b"m/figures"
# Begins the detail of a duplicate; the number of the outcome it equals, or its URL, or a file of imports, follows.
TWIN = "same as "
RAW, TEXT = b"r", b"t"  # hash of a raw page, of a text -> number of the first outcome that had it
CLAIMED = b"k"  # hash of a text -> URL of another shard that had it first

_encode = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder(order="deterministic")


class Figures(Struct):
    """What a crawl amounts to so far."""

    outcomes: dict[str, int] = field(default_factory=dict)  # by kind
    rejected: dict[str, int] = field(default_factory=dict)  # by reason
    fetched: int = 0  # URLs that were answered, whatever the status
    ours: int = 0  # pages in the language of the corpus, kept or not
    downloaded: int = 0  # body bytes as received
    robots_bytes: int = 0  # of robots.txt, counted apart
    text_bytes: int = 0  # of kept documents
    wall_s: float = 0.0
    cpu_s: float = 0.0


class Outcome(Struct, frozen=True):
    """What became of a URL."""

    kind: Literal["kept", "rejected", "failed", "redirect", "disallowed", "quarantined"]
    reason: str = ""
    detail: str = ""


class Ledger:
    """Everything of a corpus directory that one crawler writes."""

    def __init__(
        self,
        directory: Path,
        config: Config,
        clock: Callable[[], float],
        shard: Shard = ALONE,
        imported: Imported | None = None,
    ) -> None:
        """`imported`: pages that the corpus has besides those of its crawl."""
        self.directory = directory
        self._imported = imported or Imported()
        self._config = config
        self._clock = clock
        self._shard = shard
        self._lock = ExitStack()
        self._lock.enter_context(exclusive(directory / "lock", partial(_busy, directory)))
        self.state = State(directory / "state")
        stored = self.state.get(FIGURES)
        self.figures = msgspec.msgpack.decode(stored, type=Figures) if stored else Figures()
        files = committed_files(self.state)
        _refuse_lost_state(directory, files)
        self._index = sum(self.figures.outcomes.values())
        store = config.store
        description = {"operator": config.polite.contact, "language": config.language, "robots": "obey"}
        self._warc = WarcWriter(
            directory / "warc",
            _under("warc", files),
            store.warc_bytes,
            f"thresher/{__version__}",
            description,
            shard,
        )
        self._docs = Segments(directory / "docs", DOCS, _under("docs", files), store.segment_bytes, shard)
        self._links = Segments(directory / "links", LINKS, _under("links", files), store.segment_bytes, shard)
        self._outcomes = Segments(
            directory / "outcomes", OUTCOMES, _under("outcomes", files), store.segment_bytes, shard
        )
        self._parts: dict[str, WarcWriter | Segments] = {
            "warc": self._warc,
            "docs": self._docs,
            "links": self._links,
            "outcomes": self._outcomes,
        }

    @property
    def _seq(self) -> int:
        """The number of the next outcome."""
        return self._shard.seq(self._index)

    # what happened to a URL

    def seen_before(self, page: Page) -> tuple[bool, bool]:
        """Whether the raw page and its text are in the books, or were imported."""
        raw, text, imported = page.raw_hash, page.text_hash, self._imported
        return (
            bool(raw) and (RAW + raw in self.state or bool(imported.raw(raw))),
            bool(text) and bool(self._first_with(text) or imported.text(text)),
        )

    def _first_with(self, text_hash: bytes) -> str:
        """Which outcome was the first with a text: its number, of another shard its URL; "" if there is none."""
        if first := self.state.get(TEXT + text_hash):
            return str(msgspec.msgpack.decode(first, type=int))
        claimed = self.state.get(CLAIMED + text_hash) if self._shard.count > 1 else None
        return claimed.decode() if claimed else ""

    def claim(self, text_hash: bytes, url: str) -> str:
        """Another shard has a page whose text may be new: who had it first, or "", and from now on it is that URL.

        Should its shard die before the page is in the books, the same URL asks again, and is told the same.
        """
        first = self._first_with(text_hash)
        if not first:
            self.state.put(CLAIMED + text_hash, url.encode())
        return "" if first == url else first

    def record(self, candidate: Candidate, answer: Reply | Failure | None, outcome: Outcome) -> None:
        """A URL that gave no page: its outcome joins the next commit."""
        self._outcome(candidate, answer, outcome, "", 0, self._keep_raw(answer, kept=False))

    def record_page(
        self,
        candidate: Candidate,
        reply: Reply,
        page: Page,
        verdict: Verdict,
        text_bytes: int,
        weights: Sequence[float],
        chances: Sequence[float | None],
        twin: str = "",
    ) -> None:
        """A page: raw record, document, links and outcome join the next commit; `twin`: who has its text."""
        raw = self._keep_raw(reply, kept=verdict.keep)
        seq = self._seq
        outcome = Outcome(
            "kept" if verdict.keep else "rejected", verdict.reason, self._twin(page, verdict, twin)
        )
        self._outcome(candidate, reply, outcome, verdict.language, text_bytes, raw)
        # A copy of what another shard is about to keep must not stand in the way if that page has to come again.
        if page.raw_hash and not twin and RAW + page.raw_hash not in self.state:
            self.state.put(RAW + page.raw_hash, _encode(seq))
        if verdict.keep:
            self.state.put(TEXT + page.text_hash, _encode(seq))
            self._docs.append(*document_row(reply, page, verdict, seq=seq, depth=candidate.depth, raw=raw))
        if self._config.store.links and page.links:
            self._links.extend(link_columns(page, verdict, weights, chances))

    def _twin(self, page: Page, verdict: Verdict, elsewhere: str) -> str:
        """Of a duplicate, which outcome is that of the page it equals, or in which file of imports that is."""
        if verdict.reason == "raw duplicate":
            first = self.state.get(RAW + page.raw_hash)
            told = msgspec.msgpack.decode(first, type=int) if first else self._imported.raw(page.raw_hash)
            return f"{TWIN}{told}"
        if verdict.reason == "text duplicate":
            told = self._first_with(page.text_hash) or elsewhere or self._imported.text(page.text_hash)
            return f"{TWIN}{told}"
        return ""

    def _keep_raw(self, answer: Reply | Failure | None, *, kept: bool) -> tuple[str, int] | None:
        wish = self._config.store.keep_raw
        if isinstance(answer, Reply) and (wish == "all" or (wish == "kept" and kept)):
            return self._warc.add(answer)
        return None

    def _outcome(
        self,
        candidate: Candidate,
        answer: Reply | Failure | None,
        outcome: Outcome,
        language: str,
        text_bytes: int,
        raw: tuple[str, int] | None,
    ) -> None:
        figures = self.figures
        status, received, moment = 0, candidate.spent, self._clock()
        if isinstance(answer, Reply):
            status, received, moment = answer.status, received + len(answer.body), answer.fetched
            figures.fetched += 1
        elif answer is not None:
            received += answer.bytes
        host = host_of(candidate.url)
        self._outcomes.append(
            self._seq,
            candidate.url,
            host,
            domain_of(host),
            moment,
            status,
            outcome.kind,
            outcome.reason,
            received,
            text_bytes,
            language,
            candidate.weight,
            candidate.depth,
            candidate.source,
            outcome.detail,
            *(raw or (None, None)),
        )
        self._index += 1
        figures.outcomes[outcome.kind] = figures.outcomes.get(outcome.kind, 0) + 1
        if outcome.kind == "rejected":
            figures.rejected[outcome.reason] = figures.rejected.get(outcome.reason, 0) + 1
        figures.ours += bool(language) and language == self._config.language
        figures.downloaded += received
        figures.text_bytes += text_bytes

    # commit

    def commit(self, status: dict[str, Any]) -> None:
        """Make all that was recorded durable at once, then tell the world: status.json."""
        for part in self._parts.values():
            part.flush()
        files = {
            f"{name}/{file}": n for name, part in self._parts.items() for file, n in part.lengths().items()
        }
        self.state.put(FILES, _encode(files))
        self.state.put(FIGURES, _encode(self.figures))
        self.state.commit()
        self._publish({**status, "files": files})
        for part in self._parts.values():
            part.retire()

    @property
    def pending(self) -> int:
        """Bytes of raw pages that wait in memory for the next commit."""
        return self._warc.pending

    def seal(self) -> None:
        """Turn the open segments into Parquet; the next commit makes that true."""
        for table in (self._docs, self._links, self._outcomes):
            table.seal()

    def _publish(self, status: dict[str, Any]) -> None:
        temporary = self.directory / "status.json.tmp"
        temporary.write_bytes(_json.encode(status))
        temporary.replace(self.directory / "status.json")

    def close(self) -> None:
        """Let go of everything; what was not committed is forgotten."""
        for part in self._parts.values():
            part.close()
        self.state.close()
        self._lock.close()


def committed_files(state: State) -> dict[str, int | None]:
    """Every file of the books, with its length as of the last commit; None: it never changes."""
    return msgspec.msgpack.decode(state.get(FILES) or _encode({}), type=dict[str, int | None])


def _refuse_lost_state(directory: Path, files: Mapping[str, int | None]) -> None:
    """Files that the state does not know are thought leftovers of a crash; without a state all would be."""
    try:
        reported = msgspec.json.decode((directory / "status.json").read_bytes(), type=_Reported).files
    except (OSError, msgspec.DecodeError):
        return
    if reported and not files:
        raise ConfigError(
            f"{directory} has pages but its state is gone ({directory / 'state'}); restore it from a backup, "
            "or keep the pages and start a new corpus in another directory"
        )


class _Reported(Struct):
    """What status.json says of the files."""

    files: dict[str, int | None] = field(default_factory=dict)


def _under(name: str, files: Mapping[str, int | None]) -> dict[str, int | None]:
    prefix = f"{name}/"
    return {file.removeprefix(prefix): length for file, length in files.items() if file.startswith(prefix)}


def _busy(directory: Path, owner: str) -> ConfigError:
    return ConfigError(
        f"{directory} is in use by another crawler (process {owner}); watch it with: thresher status {directory}"
    )
