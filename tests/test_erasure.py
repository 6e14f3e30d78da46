"""Erasure: nothing is left of the documents and all else is unchanged, also after a kill at any moment."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import thresher
from support.corpora.batch_corpora import Here
from support.corpora.erasures import SPELLINGS
from support.invariants import SETTINGS, check_raw
from support.webs.toy_webs import all_seeds
from thresher.config import load as load_config
from thresher.crawler.api import crawl
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.engine import Crawl
from thresher.crawler.parts import crawl_parts
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.erasure import ErasureReport, forget, ids_of_nothing
from thresher.errors import DataError, NoCorpusError
from thresher.importing.formats import texts
from thresher.importing.run import import_files
from thresher.pipeline.runs.run import process
from thresher.search.index.manifest import read as read_manifest
from thresher.search.index.update import update
from thresher.simulation.record import load as load_record
from thresher.store.erasure_log import (
    FILE,
    ErasureMatcher,
    erasure_request,
    load,
    log_request,
)
from thresher.store.imported_files import documents, files
from thresher_lab.toyweb import ToyWeb, serve

pytestmark = pytest.mark.slow

WEB = ToyWeb.calm(hosts=5, licensed=0.0, pages_per_host=(6, 12), page_bytes=(4_000, 6_000))
STORE = {"segment_bytes": 3_000, "warc_bytes": 30_000, "commit_pages": 8, "keep_raw": "all"}
JUDGE = {
    "language": False,
    "min_language_share": 0.0,
    "min_text_chars": 200,
    "max_badness": 0.0,
}  # most pages are kept
WHEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a crawl in many small files, stopped with a queue; two imports; an index."""
    directory = tmp_path_factory.mktemp("corpora") / "corpus"
    settings = {**SETTINGS, "store": STORE, "judge": JUDGE, "budget": {"max_pages": 40}}
    with serve(WEB) as server:
        ending = crawl(directory, "cs", all_seeds(WEB), settings=settings, connect_to=server.connect_to)
    assert ending.reason == "page budget"
    rows = [{"id": f"l{n}", "url": f"https://x.sk/{n}", "text": f"Dopis číslo {n}."} for n in range(4)]
    letters = directory.parent / "letters.jsonl"
    letters.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    old = directory.parent / "old.vert"
    old.write_text("".join(f'<doc id="http://old.cz/{n}">\nslovo{n}\n</doc>\n' for n in range(3)))
    import_files(directory, [letters, old])
    update(directory, annotator="plain", processes=1, opted_out=True)
    return directory


@pytest.fixture
def corpus(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "corpus"))


def a_host(directory: Path) -> str:
    """Return the host with the most documents."""
    hosts = thresher.open(directory).documents(["host"]).column("host").to_pylist()
    return max(sorted(set(hosts)), key=hosts.count)


def rows(directory: Path, is_other: Callable[[str], bool] = lambda _: True) -> dict[str, list[Any]]:
    """Return the rows of other pages, without the places of raw pages and the sources."""
    found = thresher.open(directory)
    places = ("warc_file", "warc_offset", "source", "detail")
    plain = {
        name: [
            {key: value for key, value in row.items() if name == "links" or key not in places}
            for row in table.to_pylist()
        ]
        for name, table in (
            ("docs", found.documents()),
            ("outcomes", found.outcomes()),
            ("links", found.links()),
        )
    }
    return {
        name: [
            row
            for row in table
            if all(is_other(row[key]) for key in ("url", "source", "target") if key in row)
        ]
        for name, table in plain.items()
    }


def traces(directory: Path, name: str) -> list[str]:
    """Return the files that contain a name, packed or not; raw pages of others may link to it."""
    found = []
    for path in directory.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = gzip.decompress(data)
            found += [str(path.relative_to(directory))] if name.encode() in data else []
    return found


def check(directory: Path, matcher: ErasureMatcher, before: Path) -> None:
    """Check that nothing is left of the documents and that all else is unchanged."""
    assert rows(directory) == rows(before, lambda url: not matcher.covers(url))
    check_raw(directory)
    found = thresher.open(directory)
    for row in found.outcomes(["source", "detail"]).to_pylist():
        assert not matcher.covers(row["source"]) and not matcher.covers(row["detail"])
    assert not any(
        matcher.covers(one.id) or matcher.covers(one.meta.get("url")) for one in documents(directory)
    )
    manifest = read_manifest(directory)
    assert manifest is not None
    assert all(entry.deleted == 0 for entry in manifest.segments)
    known = len(found) + len(list(documents(directory)))
    assert sum(entry.documents for entry in manifest.segments) == known
    assert update(directory, annotator="plain", processes=1, opted_out=True).added == 0, (
        "keys are as they were"
    )
    assert not list(directory.rglob("*.tmp"))


@pytest.mark.parametrize("kind", ["host", "url", "domain", "import"])
def test_nothing_is_left_of_the_documents_and_all_else_is_unchanged(
    original: Path, corpus: Path, kind: str
) -> None:
    host = a_host(corpus)
    some = [row["url"] for row in rows(corpus)["docs"] if row["host"] == host]
    asked = {
        "host": erasure_request(hosts=[host.upper()]),
        "url": erasure_request(urls=[some[0].replace("http:", "https:"), some[-1]]),
        "domain": erasure_request(domains=[host.partition(".")[2] if host.count(".") > 1 else host]),
        "import": erasure_request(urls=["l1", "https://x.sk/2"], domains=["old.cz"]),
    }[kind]
    reported = forget(corpus, asked, dry_run=True)
    assert rows(corpus) == rows(original), "a dry run changes nothing"
    assert not (corpus / FILE).exists()
    assert forget(corpus, asked, now=WHEN) == reported, "a dry run reports the same counts"
    check(corpus, ErasureMatcher(asked), original)
    if kind == "import":
        assert reported == ErasureReport(imports=5, index=5)
        assert [one.id for one in documents(corpus)] == ["l0", "l3"]
    else:
        assert min(reported.documents, reported.raw, reported.outcomes, reported.links, reported.index) > 0
    if kind == "host":
        assert reported.waiting > 0
        assert reported.documents == len(some)
        assert not [
            name
            for name in traces(corpus, host)
            if name.startswith(("state/", "docs/", "outcomes/", "seeds", "status"))
        ]
    assert forget(corpus, asked) == ErasureReport(), "there is nothing left to forget"


def test_a_forgotten_host_is_never_visited_again(corpus: Path, tmp_path: Path) -> None:
    host = a_host(corpus)
    others = {row["url"] for row in rows(corpus)["docs"] if row["host"] != host}
    forget(corpus, erasure_request(hosts=[host]))
    journal = tmp_path / "journal"
    with serve(WEB, journal=journal) as server:
        ending = crawl(
            corpus, seeds=all_seeds(WEB), settings={"budget": {"max_pages": 0}}, connect_to=server.connect_to
        )
    assert ending.reason == "done"
    visited = {line.split("\t")[1] for line in journal.read_text().splitlines()}
    assert visited and host not in visited
    found = rows(corpus)
    assert others < {row["url"] for row in found["docs"]}, "the crawl went on"
    assert all(row["host"] != host for row in [*found["docs"], *found["outcomes"]])
    matcher = ErasureMatcher(erasure_request(hosts=[host]))
    assert not any(matcher.covers(row["source"]) or matcher.covers(row["target"]) for row in found["links"])
    assert len({row["seq"] for row in found["outcomes"]}) == len(found["outcomes"]), (
        "no number is given twice"
    )
    check_raw(corpus)


def test_a_queued_url_is_not_visited_after_its_erasure(corpus: Path, tmp_path: Path) -> None:
    host = a_host(corpus)
    assert forget(corpus, erasure_request(hosts=[host]), dry_run=True).waiting > 0
    log_request(corpus, erasure_request(hosts=[host]), {}, WHEN)  # killed right after
    journal = tmp_path / "journal"
    with serve(WEB, journal=journal) as server:
        crawl(corpus, settings={"budget": {"max_pages": 0}}, connect_to=server.connect_to)
    visited = {line.split("\t")[1] for line in journal.read_text().splitlines()}
    assert visited and host not in visited
    assert forget(corpus, erasure_request(hosts=[host]), dry_run=True).waiting == 0


def test_a_forgotten_url_that_was_never_seen_is_not_queued(corpus: Path, tmp_path: Path) -> None:
    state = KeyValueState(corpus / "state", read_only=True)
    waiting = sorted(value for _, value in state.committed(b"q", b"r"))
    state.close()
    url = next(url for url in all_seeds(WEB) if url)
    host = url.split("/")[2]
    forget(corpus, erasure_request(urls=[url, f"http://{host}/never-seen"]))
    assert waiting
    forgotten = load(corpus)
    assert forgotten.holds(url) and forgotten.holds(f"https://{host}/never-seen")
    assert not forgotten.holds(f"http://{host}/never-seen?other=1")


def test_imports_refuse_forgotten_documents(corpus: Path) -> None:
    forget(corpus, erasure_request(urls=["l1"], hosts=["x.sk"], domains=["old.cz"]))
    again = corpus.parent / "again.jsonl"
    urls = ["https://x.sk/9", "http://a.x.sk/1", "http://www.old.cz/", "http://new.cz/"]
    again.write_text(
        "".join(f'{{"url": "{url}", "text": "Zas."}}\n' for url in urls) + '{"id": "l1", "text": "x"}\n'
    )
    found = import_files(corpus, [again])
    assert found.documents == 2
    assert found.remarks == ("again.jsonl: 3 × a document that was erased with `thresher forget`, left out",)
    before = sum(file.rows for file in files(corpus))
    assert import_files(corpus, [corpus.parent / "corpus" / ".." / "again.jsonl"]).skipped == ("again.jsonl",)
    assert sum(file.rows for file in files(corpus)) == before


def test_an_input_is_skipped_again_once_all_its_documents_are_erased(corpus: Path, original: Path) -> None:
    forget(corpus, erasure_request(domains=["old.cz"]))
    assert [(file.rows, file.gaps) for file in files(corpus)] == [(4, ()), (0, (0, 1, 2))]
    assert import_files(corpus, [original.parent / "old.vert"]).skipped == ("old.vert",)


def test_each_call_leaves_a_line_that_names_only_the_request(corpus: Path) -> None:
    host = a_host(corpus)
    forget(corpus, erasure_request(hosts=[host]), now=WHEN)
    reported = forget(corpus, erasure_request(urls=["l1"]), now=WHEN)
    first, second = map(json.loads, (corpus / FILE).read_text().splitlines())
    assert first["time"] == "2026-01-02T00:00:00+00:00"
    assert first["asked"] == {"hosts": [host]}
    assert first["found"]["documents"] > 0
    assert second["asked"] == {"urls": ["l1"]}
    assert second["found"] == {name: getattr(reported, name) for name in reported.__struct_fields__}
    assert first["salt"] == second["salt"], "so that each name is looked up once"
    assert "http" not in (corpus / FILE).read_text()
    assert all(len(one) == 32 for one in [*first["hashes"], *second["hashes"]])


def test_a_record_of_a_crawl_can_be_read_after_some_of_it_is_forgotten(corpus: Path) -> None:
    forget(corpus, erasure_request(hosts=[a_host(corpus)]))
    assert len(load_record(corpus).urls) == len(thresher.open(corpus).outcomes(["url"]))


def test_a_corpus_in_use_is_left_alone(corpus: Path) -> None:
    with (corpus / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DataError, match=r"is in use by process \d+; wait"):
            forget(corpus, erasure_request(hosts=["a.cz"]))
    assert not (corpus / FILE).exists()


def test_a_corpus_with_a_lost_state_is_left_alone(corpus: Path) -> None:
    shutil.rmtree(corpus / "state")
    with pytest.raises(DataError, match="its state is gone"):
        forget(corpus, erasure_request(hosts=["a.cz"]))


def test_a_corpus_that_was_never_crawled_can_forget(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "a"}\n{"id": "2", "text": "b"}\n')
    import_files(tmp_path / "corpus", [tmp_path / "a.jsonl"], language="cs")
    assert forget(tmp_path / "corpus", erasure_request(urls=["2"])) == ErasureReport(imports=1)
    with pytest.raises(NoCorpusError, match="does not exist"):
        forget(tmp_path / "nowhere", erasure_request(urls=["2"]))


def test_imports_of_a_host_are_forgotten_however_they_were_written(tmp_path: Path) -> None:
    lines = [json.dumps({"id": name, **meta, "text": "Text."}) for name, meta in SPELLINGS]
    lines += [json.dumps({"id": "http://other.cz", "text": "Jiný."})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text("\n".join(lines[::-1]))
    directory = tmp_path / "corpus"
    import_files(directory, [tmp_path / "a.jsonl"], language="cs")
    update(directory, annotator="plain", processes=1, opted_out=True)
    count = len(SPELLINGS)
    asked = erasure_request(hosts=["blog.example.cz", "žluťoučký.cz"])
    assert forget(directory, asked) == ErasureReport(imports=count, index=count)
    assert [one.id for one in documents(directory)] == ["http://other.cz"]
    assert update(directory, annotator="plain", processes=1, opted_out=True).added == 0
    assert import_files(directory, [tmp_path / "b.jsonl"]).documents == 1


def test_a_long_document_is_forgotten_with_all_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "MAX_DOCUMENT_BYTES", 100)
    (tmp_path / "big.txt").write_text("Slovo za slovem.\n" * 20)
    (tmp_path / "other.jsonl").write_text('{"id": "big.txt#1#9", "text": "Jiný."}\n')
    directory = tmp_path / "corpus"
    import_files(directory, [tmp_path / "big.txt", tmp_path / "other.jsonl"], language="cs")
    update(directory, annotator="plain", processes=1, opted_out=True)
    parts = len(list(documents(directory))) - 1
    assert parts > 2
    assert forget(directory, erasure_request(urls=["big.txt#1"])) == ErasureReport(imports=parts, index=parts)
    assert [one.id for one in documents(directory)] == ["big.txt#1#9"], "which has this id of its own"
    assert update(directory, annotator="plain", processes=1, opted_out=True).added == 0


def test_an_unknown_id_is_reported(corpus: Path) -> None:
    asked = erasure_request(urls=["www.example.cz/x", "l1", "http://old.cz/0", "http://nowhere.cz/"])
    assert ids_of_nothing(corpus, asked) == ["www.example.cz/x"]


def test_every_file_is_synced_before_it_takes_the_place_of_another(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    unsynced: list[str] = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def traced_fsync(descriptor: int) -> None:
        fsync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)

    def checked(move: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        def moved(source: Path, target: Path) -> None:
            if Path(source).is_file() and Path(source).stat().st_ino not in synced:
                unsynced.append(Path(target).name)
            move(source, target)

        return moved

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(os, "rename", checked(rename))
    monkeypatch.setattr(os, "replace", checked(replace))
    assert forget(corpus, erasure_request(hosts=[a_host(corpus)], urls=["l1"])).documents
    assert unsynced == []


# killed

KILLED = """
import os, shutil, sys
from pathlib import Path
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.erasure import forget
from thresher.store.erasure_log import erasure_request

original, copies, host, stride = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.link", "os.truncate", "shutil.rmtree")

def run(directory, steps):
    left = steps
    def step():
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
    def count(event, arguments):
        writes = event != "open" or isinstance(arguments[1], str) and arguments[1] not in ("r", "rb")
        if event in EVENTS and writes and str(directory) in str(arguments[0]):
            step()
    commit = KeyValueState.commit
    def counted(self):
        if self._pending:
            step()
        commit(self)
        step()
    KeyValueState.commit = counted
    sys.addaudithook(count)
    forget(directory, erasure_request(hosts=[host], urls=["l1"]))

for steps in range(0, 100_000, stride):
    copy = copies / f"{steps:06d}"
    shutil.copytree(original, copy)
    child = os.fork()
    if not child:
        try:
            run(copy, steps)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print(copy, status, flush=True)
    if status != 9:
        break
"""
STRIDE = 5


def open_crawl(directory: Path, host: str) -> None:
    """Open the crawl as it continues, and check that forgotten URLs are refused, also if some are left."""
    config = load_config(directory)
    at_work = Crawl(CrawlState(directory, config), crawl_parts(config))
    try:
        seen = at_work.state.seen.count
        at_work.seed([f"http://{host}/anything-new"])
        assert at_work.state.seen.count == (seen if (directory / FILE).exists() else seen + 1)
        at_work.commit()
    finally:
        at_work.state.close()


# Documents are deleted from the index before they leave the corpus.
@pytest.mark.filterwarnings("ignore:the index holds:thresher.errors.ThresherWarning")
@pytest.mark.faults
def test_a_kill_at_any_moment_leaves_a_corpus_that_can_be_read_and_finished(
    original: Path, tmp_path: Path
) -> None:
    host = a_host(original)
    asked = erasure_request(hosts=[host], urls=["l1"])
    total = len(thresher.open(original))
    arguments = [sys.executable, "-c", KILLED, str(original), str(tmp_path), host, str(STRIDE)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(arguments, env=environment, check=True, timeout=100, capture_output=True, text=True)
    ends = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    assert [int(status) for _, status in ends[:-1]] == [signal.SIGKILL] * (len(ends) - 1), done.stderr
    assert len(ends) > 10
    assert ends[-1][1] == "0"
    gone = forget(original, asked, dry_run=True).documents
    for number, (name, _) in enumerate(ends):
        directory = Path(name)
        if number % 2:
            open_crawl(directory, host)
        found = thresher.open(directory)
        assert len(list(found)) in (total, total - gone)
        assert all(found.raw(document).url == document.url for document in found)
        assert found.search('[word=".*"]').count() > 0
        forget(directory, asked)
        check(directory, ErasureMatcher(asked), original)
        shutil.rmtree(directory)


def test_pages_of_archives_are_forgotten_and_refused_when_they_come_again(
    corpus: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    for number in range(3):
        link = f'<link rel="canonical" href="http://saved{number}.cz/">'
        body = "".join(
            f"<p>Odstavec {n} ze stránky {number}, která se ukládá. {'Slovo ' * 30}</p>" for n in range(9)
        )
        page = (
            f"<html><head><title>{number}</title>{link}</head><body><article>{body}</article></body></html>"
        )
        (saved / f"{number}.html").write_text(page)
    import_files(corpus, [saved])
    urls = thresher.open(corpus).documents(["url"]).column("url").to_pylist()
    assert {"http://saved0.cz/", "http://saved1.cz/", "http://saved2.cz/"} <= set(urls)
    assert forget(corpus, erasure_request(hosts=["saved1.cz"])).imports == 1
    left = thresher.open(corpus).documents(["url"]).column("url").to_pylist()
    assert sorted(left) == sorted(set(urls) - {"http://saved1.cz/"})
    (saved / "again.html").write_text((saved / "1.html").read_text().replace("Odstavec", "Jiný odstavec"))
    again = import_files(corpus, [saved / "again.html"])
    assert again.pages and again.pages.rejected == {"forgotten": 1}


def test_results_of_processing_are_forgotten_too(corpus: Path) -> None:
    engine = Here()
    run = process(corpus, engine)
    host = a_host(corpus)
    forget(corpus, erasure_request(hosts=[host]))
    left = [
        path for path in (corpus / "runs").rglob("*") if path.is_file() and host.encode() in path.read_bytes()
    ]
    assert left == []
    again = process(corpus, engine)
    assert again.state == "done" and again.steps[1].report["documents"] < run.steps[1].report["documents"]
