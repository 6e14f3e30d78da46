"""Pages that a crawl did not keep are read again where that is asked for, and kept if today's judge keeps them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import thresher
from support.corpora.batch_corpora import Here, made
from support.invariants import SETTINGS
from support.webs.toy_webs import all_seeds
from thresher.config import JudgeSettings, PoliteSettings, ReadSettings, dump, load
from thresher.crawler.api import crawl
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.erasure import forget
from thresher.errors import UsageError
from thresher.pipeline.reread import rereading
from thresher.pipeline.runs.results import processed
from thresher.pipeline.runs.run import PoisonedTask, process
from thresher.records import Reply
from thresher.store.erasure_log import erasure_request
from thresher.store.schemas import OUTCOMES
from thresher.store.table_segments import TableSegments
from thresher.workers.fork_server import ForkServer
from thresher.workers.reader_pool import ReaderPool
from thresher_lab.toyweb import ToyWeb, serve

pytestmark = pytest.mark.slow

WEB = ToyWeb.calm(hosts=6, licensed=0.0, pages_per_host=(5, 10), page_bytes=(4_000, 6_000))
STRICT = {"min_text_chars": 2_700}
OF_PAGES = ["url", "title", "text", "badness", "language_share", "opt_out", "raw_hash", "text_hash"]


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Crawl a small web twice: with a strict judge and with the default one."""
    folder = tmp_path_factory.mktemp("crawls")
    with serve(WEB) as server:
        for name, judge in (("strict", STRICT), ("usual", {})):
            settings = {**SETTINGS, "judge": judge}
            crawl(folder / name, "cs", all_seeds(WEB), settings=settings, connect_to=server.connect_to)
    yield folder


@pytest.fixture
def strict(crawls: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(crawls / "strict", tmp_path / "strict"))


def configure(directory: Path, judging: JudgeSettings, **step: Any) -> None:
    """Set the judge and the step `reread` of a corpus."""
    config = replace(load(directory), judge=judging, process=({"step": "reread", **step},))
    (directory / "corpus.toml").write_text(dump(config))


def rows(corpus: Any, columns: list[str]) -> list[dict[str, Any]]:
    return sorted(corpus.documents(columns).to_pylist(), key=lambda row: str(row["url"]))


def test_rereading_with_a_looser_judge_equals_a_crawl_with_it(crawls: Path, strict: Path) -> None:
    before = thresher.open(strict)
    expected = rows(thresher.open(crawls / "usual"), OF_PAGES)
    assert 0 < len(before) < len(expected)
    configure(strict, JudgeSettings(), rejected=True)
    run = process(strict, Here())
    assert rows(processed(strict), OF_PAGES) == expected
    report = run.steps[-1].report
    assert (report["documents"], report["added"]) == (len(expected), len(expected) - len(before))
    assert report["dropped"]["language"] > 0
    # An added page is known by its outcome, and leads to its raw record.
    outcomes = {row["seq"]: row for row in before.outcomes().to_pylist()}
    for document in processed(strict):
        row = outcomes[document.seq]
        assert (row["url"], row["time"], row["depth"]) == (document.url, document.fetched, document.depth)
        assert before.raw(document).url == document.url
    assert made(process(strict, Here())) == {}


def test_pages_are_chosen_by_their_reason(strict: Path) -> None:
    anything = JudgeSettings(language=False, min_text_chars=0, min_language_bytes=0, max_badness=0)
    configure(strict, anything, rejected=True, reasons=["language"])
    reasons = {row["url"]: row["reason"] for row in thresher.open(strict).outcomes().to_pylist()}
    run = process(strict, Here())
    assert {reasons[document.url] for document in processed(strict)} == {"", "language"}
    configure(strict, anything, rejected=True)
    process(strict, Here())
    assert {reasons[document.url] for document in processed(strict)} == {"", "language", "too short"}
    configure(strict, anything)
    assert "added" not in process(strict, Here()).steps[-1].report
    assert run.steps[-1].report["added"] == list(reasons.values()).count("language")


# A reader that every page kills, except the one that warms it up.
KILLED = """
import os, sys
from thresher.workers import reader_worker as worker
from thresher.reader.extract import read

def killed(reply, language, settings):
    return read(reply, language, settings) if "example.org" in reply.url else os.kill(os.getpid(), 9)

worker.main(lambda: killed, int(sys.argv[1]))
"""


def test_pages_that_cannot_be_read_are_not_added(strict: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(ReaderPool):
        def __init__(self, settings: ReadSettings, language: str) -> None:
            super().__init__(settings, language, ForkServer(("-c", KILLED)))

    monkeypatch.setattr(rereading, "ReaderPool", Killed)
    before = thresher.open(strict)
    expected = rows(before, OF_PAGES)
    configure(strict, JudgeSettings(), rejected=True, reasons=["too short"])
    report = process(strict, Here()).steps[-1].report
    assert rows(processed(strict), OF_PAGES) == expected
    outcomes = [row["reason"] for row in before.outcomes().to_pylist()]
    assert report["could_not_be_read"] == len(before) + outcomes.count("too short") > len(before)
    assert (report["read"], report["dropped"]) == (0, {})


def test_opt_outs_of_robots_txt_hold_for_added_pages(strict: Path) -> None:
    configure(strict, JudgeSettings(), rejected=True)
    process(strict, Here())
    hosts = [document.host for document in processed(strict) if not document.opt_out]
    kept = {document.url for document in thresher.open(strict)}
    host = next(one.host for one in processed(strict) if one.url not in kept and one.host in hosts)
    state = KeyValueState(strict / "state")
    polite = Politeness(state, PoliteSettings(), lambda: 1_790_000_000.0)
    said = b"User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"
    polite.learn_robots(host, Reply(f"http://{host}/robots.txt", 200, b"", said, 0.0, 0.0, ""))
    polite.flush()
    state.commit()
    state.close()
    status = strict / "status.json"
    status.write_bytes(status.read_bytes() + b"\n")  # as any commit changes it
    process(strict, Here())
    added = [one for one in processed(strict) if one.url not in kept and one.host == host]
    assert added and all("content-signal: ai-train=no" in one.opt_out for one in added)
    others = [one for one in processed(strict) if one.url not in kept and one.host != host]
    assert all(not one.opt_out for one in others)


def test_erased_pages_do_not_come_back(strict: Path) -> None:
    configure(strict, JudgeSettings(), rejected=True)
    process(strict, Here())
    kept = {document.url for document in thresher.open(strict)}
    both = {document.url for document in processed(strict)}
    unwanted = sorted(both - kept)[0]
    forget(strict, erasure_request(urls=[unwanted]))
    process(strict, Here())
    assert {document.url for document in processed(strict)} == both - {unwanted}


def test_outcomes_in_an_open_segment_count(strict: Path, tmp_path: Path) -> None:
    configure(strict, JudgeSettings(), rejected=True)
    process(strict, Here())
    expected = rows(processed(strict), OF_PAGES)
    (sealed,) = (strict / "outcomes").iterdir()
    stream = TableSegments(tmp_path / "outcomes", OUTCOMES, {}, 1 << 40)
    for row in thresher.open(strict).outcomes().to_pylist():
        stream.append(*({**row, "time": row["time"].timestamp()}.values()))
    stream.flush()
    stream.close()
    sealed.unlink()
    (written,) = (tmp_path / "outcomes").iterdir()
    written.rename(sealed.with_suffix(".arrows"))
    (strict / "status.json").unlink()  # it would name the sealed file
    assert made(process(strict, Here())) == {"reread": 1}, "the same pages are chosen, and not read again"
    assert rows(processed(strict), OF_PAGES) == expected


def test_a_missing_state_is_named_with_the_fix(strict: Path) -> None:
    configure(strict, JudgeSettings(), rejected=True)
    shutil.rmtree(strict / "state")
    with pytest.raises(
        PoisonedTask, match=r"state is missing, and with it the opt-outs from robots\.txt files"
    ):
        process(strict, Here())


def test_a_misspelt_reason_is_refused_with_a_suggestion(strict: Path) -> None:
    configure(strict, JudgeSettings(), rejected=True, reasons=["langauge"])
    with pytest.raises(
        UsageError, match=r"reread: .*'langauge'; did you mean 'language'\? Reasons are .*too short"
    ):
        process(strict, Here())
    # Other reasons are valid: there may simply be no page that was rejected for them.
    for reason in ("language share", "too many bytes of language", "reader stalled", "too old"):
        configure(strict, JudgeSettings(), rejected=True, reasons=[reason])
        assert process(strict, Here()).steps[-1].report["added"] == 0


def test_reasons_without_rejected_are_refused(strict: Path) -> None:
    configure(strict, JudgeSettings(), reasons=["language"])
    with pytest.raises(UsageError, match=r"reread: .*add rejected = true"):
        process(strict, Here())
