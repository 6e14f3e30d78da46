"""Pages that a crawl did not keep are read again where that is asked for, and kept if today's judge keeps them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import thresher
from batch_corpora import Here, made
from invariants import SETTINGS, start
from thresher.batch.results import processed
from thresher.batch.run import Poisoned, process
from thresher.config import ConfigError, Judging, Polite, dump, load
from thresher.crawl.politeness import Politeness
from thresher.crawl.start import crawl
from thresher.crawl.state import State
from thresher.forget import forget
from thresher.lab.toyweb import ToyWeb, serve
from thresher.page import Reply
from thresher.store.forgotten import wish
from thresher.store.segments import Segments
from thresher.store.tables import OUTCOMES

WEB = ToyWeb.calm(hosts=6, licensed=0.0, pages_per_host=(5, 10), page_bytes=(4_000, 6_000))
STRICT = {"min_text_chars": 2_700}
OF_PAGES = ["url", "title", "text", "badness", "language_share", "opt_out", "raw_hash", "text_hash"]


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two crawls of a small web, one with a judge who keeps little, one with the usual one."""
    folder = tmp_path_factory.mktemp("crawls")
    with serve(WEB) as server:
        for name, judge in (("strict", STRICT), ("usual", {})):
            settings = {**SETTINGS, "judge": judge}
            crawl(folder / name, "cs", start(WEB), settings=settings, connect_to=server.connect_to)
    yield folder


@pytest.fixture
def strict(crawls: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(crawls / "strict", tmp_path / "strict"))


def configure(directory: Path, judging: Judging, **step: Any) -> None:
    """From now on pages are judged like this, and read again."""
    config = replace(load(directory), judge=judging, process=({"step": "reread", **step},))
    (directory / "corpus.toml").write_text(dump(config))


def rows(corpus: Any, columns: list[str]) -> list[dict[str, Any]]:
    return sorted(corpus.docs(columns).to_pylist(), key=lambda row: str(row["url"]))


def test_a_looser_judge_leaves_what_a_crawl_with_it_would_have_kept(crawls: Path, strict: Path) -> None:
    before = thresher.open(strict)
    expected = rows(thresher.open(crawls / "usual"), OF_PAGES)
    assert 0 < len(before) < len(expected)
    configure(strict, Judging(), rejected=True)
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
    anything = Judging(language=False, min_text_chars=0, min_language_bytes=0, max_badness=0)
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


def test_pages_that_cannot_be_read_are_not_added(strict: Path) -> None:
    before = thresher.open(strict)
    expected = rows(before, OF_PAGES)
    configure(strict, Judging(), rejected=True, reasons=["too short"])
    config = load(strict)
    (strict / "corpus.toml").write_text(dump(replace(config, read=replace(config.read, deadline=1e-5))))
    report = process(strict, Here()).steps[-1].report
    assert rows(processed(strict), OF_PAGES) == expected
    outcomes = [row["reason"] for row in before.outcomes().to_pylist()]
    assert report["could_not_be_read"] == len(before) + outcomes.count("too short") > len(before)
    assert (report["read"], report["dropped"]) == (0, {})


def test_what_a_robots_txt_forbids_models_holds_for_pages_that_are_added(strict: Path) -> None:
    configure(strict, Judging(), rejected=True)
    process(strict, Here())
    hosts = [document.host for document in processed(strict) if not document.opt_out]
    kept = {document.url for document in thresher.open(strict)}
    host = next(one.host for one in processed(strict) if one.url not in kept and one.host in hosts)
    state = State(strict / "state")
    polite = Politeness(state, Polite(), lambda: 1_790_000_000.0)
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


def test_pages_that_were_forgotten_do_not_come_back(strict: Path) -> None:
    configure(strict, Judging(), rejected=True)
    process(strict, Here())
    kept = {document.url for document in thresher.open(strict)}
    both = {document.url for document in processed(strict)}
    unwanted = sorted(both - kept)[0]
    forget(strict, wish(urls=[unwanted]))
    process(strict, Here())
    assert {document.url for document in processed(strict)} == both - {unwanted}


def test_outcomes_that_are_not_sealed_yet_count_too(strict: Path, tmp_path: Path) -> None:
    configure(strict, Judging(), rejected=True)
    process(strict, Here())
    expected = rows(processed(strict), OF_PAGES)
    (sealed,) = (strict / "outcomes").iterdir()
    stream = Segments(tmp_path / "outcomes", OUTCOMES, {}, 1 << 40)
    for row in thresher.open(strict).outcomes().to_pylist():
        stream.append(*({**row, "time": row["time"].timestamp()}.values()))
    stream.flush()
    stream.close()
    sealed.unlink()
    (written,) = (tmp_path / "outcomes").iterdir()
    written.rename(sealed.with_suffix(".arrows"))
    (strict / "status.json").unlink()  # it would tell of the sealed file
    assert made(process(strict, Here())) == {"reread": 1}, "the same pages are chosen, and not read again"
    assert rows(processed(strict), OF_PAGES) == expected


def test_a_state_that_is_gone_is_told(strict: Path) -> None:
    configure(strict, Judging(), rejected=True)
    shutil.rmtree(strict / "state")
    with pytest.raises(Poisoned, match=r"state is gone, and with it what robots\.txt files said"):
        process(strict, Here())


def test_a_reason_that_is_misspelt_is_told(strict: Path) -> None:
    configure(strict, Judging(), rejected=True, reasons=["langauge"])
    with pytest.raises(
        ConfigError, match=r"reread: .*'langauge'; did you mean 'language'\? There are .*too short"
    ):
        process(strict, Here())
    # Others are no mistake: there may be no such page.
    for reason in ("language share", "too many bytes of language", "reader stalled", "too old"):
        configure(strict, Judging(), rejected=True, reasons=[reason])
        assert process(strict, Here()).steps[-1].report["added"] == 0


def test_reasons_alone_choose_nothing_which_is_told(strict: Path) -> None:
    configure(strict, Judging(), reasons=["language"])
    with pytest.raises(ConfigError, match=r"reread: .*add rejected = true"):
        process(strict, Here())
