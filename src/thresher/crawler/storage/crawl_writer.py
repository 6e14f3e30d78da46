"""The writer of all files of a crawl: raw pages, documents, links, outcomes and state, made durable together.

A commit appends to the files and syncs them, then writes the state (with the files' new lengths) in one synced
batch. On opening, files are cut back to the lengths in the state. So after any crash, a page is in the corpus
exactly once, or its URL is still queued.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, field

from thresher._version import __version__
from thresher.config import Config
from thresher.crawler.storage.keys import FILES, RAW_HASHES, STATS, TEXT_CLAIMS, TEXT_HASHES
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import DataError, UsageError
from thresher.files.durable_files import exclusive, replace
from thresher.judge import Judgement
from thresher.records import Candidate, Failure, Reply
from thresher.store.checked_files import json_file
from thresher.store.known_pages import ImportedPages
from thresher.store.schemas import DOCS, LINKS, OUTCOMES, document_row, link_columns
from thresher.store.shard_layout import ALONE, Shard
from thresher.store.table_segments import TableSegments
from thresher.store.warc import WarcWriter
from thresher.urls import domain as domain_of
from thresher.urls import host as host_of

# Begins the detail of a duplicate. The number of the outcome that it equals follows, or its URL, or a file of
# imports.
SAME_AS = "same as "

_encode = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder(order="deterministic")


class CrawlStats(Struct):
    """Statistics of a crawl so far."""

    outcomes: dict[str, int] = field(default_factory=dict)  # by kind
    rejected: dict[str, int] = field(default_factory=dict)  # by reason
    fetched: int = 0  # URLs that were answered, with any status
    ours: int = 0  # pages in the language of the corpus, kept or not
    downloaded: int = 0  # body bytes as received
    robots_bytes: int = 0  # of robots.txt, counted apart
    text_bytes: int = 0  # of kept documents
    wall_s: float = 0.0
    cpu_s: float = 0.0


class Outcome(Struct, frozen=True):
    """The outcome of a URL."""

    kind: Literal["kept", "rejected", "failed", "redirect", "disallowed", "quarantined"]
    reason: str = ""
    detail: str = ""


class LinkScores(NamedTuple):
    """The policy's expectations of all links of a page, in their order.

    Two columns, since the table of links is written by column, and pages have a hundred links.
    """

    weights: Sequence[float]  # expected yield
    # Probability that the link leads to a page that is kept; None if it was not queued, or nothing is known.
    chances: Sequence[float | None]


class CrawlWriter:
    """The files of a corpus directory, or of a shard, that one crawl process writes."""

    def __init__(
        self,
        directory: Path,
        config: Config,
        clock: Callable[[], float],
        shard: Shard = ALONE,
        imported: ImportedPages | None = None,
    ) -> None:
        """Open the files, cut back to the last commit; raise UsageError if another process has them open.

        `clock` gives the wall time of outcomes without a reply. `imported` are pages of the corpus that were not
        crawled.
        """
        self.directory = directory
        self._imported = imported or ImportedPages()
        self._config = config
        self._clock = clock
        self._shard = shard
        self._lock = ExitStack()
        self._lock.enter_context(crawl_lock(directory))
        self.kv = KeyValueState(directory / "state")
        stored = self.kv.get(STATS)
        self.stats = msgspec.msgpack.decode(stored, type=CrawlStats) if stored else CrawlStats()
        files = committed_files(self.kv)
        _refuse_lost_state(directory, files)
        self._index = sum(self.stats.outcomes.values())
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
        self._docs = TableSegments(
            directory / "docs", DOCS, _under("docs", files), store.segment_bytes, shard
        )
        self._links = TableSegments(
            directory / "links", LINKS, _under("links", files), store.segment_bytes, shard
        )
        self._outcomes = TableSegments(
            directory / "outcomes", OUTCOMES, _under("outcomes", files), store.segment_bytes, shard
        )
        self._parts: dict[str, WarcWriter | TableSegments] = {
            "warc": self._warc,
            "docs": self._docs,
            "links": self._links,
            "outcomes": self._outcomes,
        }

    @property
    def _seq(self) -> int:
        """The number of the next outcome."""
        return self._shard.seq(self._index)

    # outcomes

    def same_body(self, raw_hash: bytes) -> str:
        """Return the number of the first outcome with these bytes, or the file of imports; "" if there is none."""
        if first := self.kv.get(RAW_HASHES + raw_hash):
            return str(msgspec.msgpack.decode(first, type=int))
        return self._imported.same_body(raw_hash)

    def same_text(self, text_hash: bytes) -> str:
        """Return the number or URL of the first outcome with this text, or the file of imports; "" if none."""
        return self._first_with(text_hash) or self._imported.same_text(text_hash)

    def _first_with(self, text_hash: bytes) -> str:
        """Return number of the first outcome with a text, or URL if another shard claimed it; "" if none has it."""
        if first := self.kv.get(TEXT_HASHES + text_hash):
            return str(msgspec.msgpack.decode(first, type=int))
        claimed = self.kv.get(TEXT_CLAIMS + text_hash) if self._shard.count > 1 else None
        return claimed.decode() if claimed else ""

    def claim_text(self, text_hash: bytes, url: str) -> str:
        """Claim a text for another shard's page: return "" if the claim is granted, or the page that has the text.

        A repeated claim for the same URL is granted again, since the other shard may have lost the page in a crash.
        """
        first = self._first_with(text_hash)
        if not first:
            self.kv.put(TEXT_CLAIMS + text_hash, url.encode())
        return "" if first == url else first

    def record(self, candidate: Candidate, answer: Reply | Failure | None, outcome: Outcome) -> None:
        """Record the outcome of a URL that gave no page; it joins the next commit."""
        self._outcome(candidate, answer, outcome, "", 0, self._keep_raw(answer, kept=False))

    def record_page(
        self,
        candidate: Candidate,
        reply: Reply,
        judgement: Judgement,
        text_bytes: int,
        scores: LinkScores,
    ) -> None:
        """Append raw record, document, links and outcome of a page; they join the next commit.

        `text_bytes` is the text that the page adds to the corpus.
        """
        page, verdict = judgement.page, judgement.verdict
        raw = self._keep_raw(reply, kept=verdict.keep)
        seq = self._seq
        detail = f"{SAME_AS}{judgement.duplicate_of}" if judgement.duplicate_of else ""
        outcome = Outcome("kept" if verdict.keep else "rejected", verdict.reason, detail)
        self._outcome(candidate, reply, outcome, verdict.language, text_bytes, raw)
        # A copy of a page that another shard is about to keep is not recorded as the first one: if that shard loses
        # its page in a crash, the page must not be rejected when it is fetched again.
        if page.raw_hash and not judgement.owner and RAW_HASHES + page.raw_hash not in self.kv:
            self.kv.put(RAW_HASHES + page.raw_hash, _encode(seq))
        if verdict.keep:
            self.kv.put(TEXT_HASHES + page.text_hash, _encode(seq))
            self._docs.append(*document_row(reply, page, verdict, seq=seq, depth=candidate.depth, raw=raw))
        if self._config.store.links and page.links:
            self._links.extend(link_columns(page, verdict, scores.weights, scores.chances))

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
        stats = self.stats
        status, received, moment = 0, candidate.spent, self._clock()
        if isinstance(answer, Reply):
            status, received, moment = answer.status, received + len(answer.body), answer.fetched
            stats.fetched += 1
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
        stats.outcomes[outcome.kind] = stats.outcomes.get(outcome.kind, 0) + 1
        if outcome.kind == "rejected":
            stats.rejected[outcome.reason] = stats.rejected.get(outcome.reason, 0) + 1
        stats.ours += bool(language) and language == self._config.language
        stats.downloaded += received
        stats.text_bytes += text_bytes

    # commit

    def commit(self, status: dict[str, Any]) -> None:
        """Make everything recorded durable at once, then publish `status` in status.json."""
        for part in self._parts.values():
            part.flush()
        files = {
            f"{name}/{file}": n for name, part in self._parts.items() for file, n in part.lengths().items()
        }
        self.kv.put(FILES, _encode(files))
        self.kv.put(STATS, _encode(self.stats))
        self.kv.commit()
        self._publish({**status, "files": files})
        for part in self._parts.values():
            part.retire()

    @property
    def pending(self) -> int:
        """Bytes of raw pages that wait in memory for the next commit."""
        return self._warc.pending

    def seal(self) -> None:
        """Turn the open segments into Parquet with the next commit."""
        for table in (self._docs, self._links, self._outcomes):
            table.seal()

    def _publish(self, status: dict[str, Any]) -> None:
        replace(self.directory / "status.json", _json.encode(status))

    def close(self) -> None:
        """Close all files; changes since the last commit are dropped."""
        for part in self._parts.values():
            part.close()
        self.kv.close()
        self._lock.close()


def committed_files(state: KeyValueState) -> dict[str, int | None]:
    """Return the length of every file as of the last commit, None for a file that never changes again."""
    return msgspec.msgpack.decode(state.get(FILES) or _encode({}), type=dict[str, int | None])


def commit_files(state: KeyValueState, files: Mapping[str, int | None], removed: Collection[int]) -> None:
    """Commit the files of a crawl that were rewritten, without the hashes of removed outcomes, in one batch."""
    for prefix in (RAW_HASHES, TEXT_HASHES):
        for key, value in state.entries(prefix):
            if msgspec.msgpack.decode(value, type=int) in removed:
                state.delete(key)
    state.put(FILES, _encode(dict(files)))
    state.commit()


def remove_claims(state: KeyValueState, covers: Callable[[str], bool]) -> None:
    """Remove the claims of other shards for covered URLs, with the next commit."""
    for key, url in state.entries(TEXT_CLAIMS):
        if covers(url.decode()):
            state.delete(key)


def _refuse_lost_state(directory: Path, files: Mapping[str, int | None]) -> None:
    """Raise UsageError if there are files but no state: as leftovers of a crash, all of them would be deleted."""
    try:
        reported = json_file(directory / "status.json", _Reported).files
    except (OSError, DataError):
        return
    if reported and not files:
        raise UsageError(
            f"{directory} has pages but its state is gone ({directory / 'state'}); restore it from a backup, "
            "or keep the pages and start a new corpus in another directory"
        )


class _Reported(Struct):
    """The part of status.json that names files."""

    files: dict[str, int | None] = field(default_factory=dict)


def _under(name: str, files: Mapping[str, int | None]) -> dict[str, int | None]:
    prefix = f"{name}/"
    return {file.removeprefix(prefix): length for file, length in files.items() if file.startswith(prefix)}


def crawl_lock(directory: Path) -> AbstractContextManager[None]:
    """Hold the lock of a corpus for a crawl; raise UsageError, which names the process, if another one holds it."""
    return exclusive(
        directory / "lock",
        lambda owner: UsageError(
            f"{directory} is in use by another crawler (process {owner}); "
            f"watch it with: thresher status {directory}"
        ),
    )
