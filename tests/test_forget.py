"""Forgetting: nothing is left of what was asked, all else is as it was, whenever the command was killed."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from batch_corpora import Here
from invariants import SETTINGS, check_raw, start
from thresher.batch.run import process
from thresher.config import ConfigError
from thresher.config import load as load_config
from thresher.crawl.loop import Crawl
from thresher.crawl.start import crawl
from thresher.crawl.state import State
from thresher.engine.imports import import_pages
from thresher.forget import Forgot, forget, ids_of_nothing
from thresher.lab.record import load as load_record
from thresher.lab.toyweb import ToyWeb, serve
from thresher.query.manifest import read as read_manifest
from thresher.query.update import update
from thresher.store.corpus import CorpusError
from thresher.store.files import StoreError
from thresher.store.forgotten import FILE, Meant, Wish, hashed, load, wish, write_down
from thresher.store.importers import texts
from thresher.store.imports import documents, files, import_files
from thresher.url import key

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
    """A crawl in many small files, stopped with a queue; two imports; an index."""
    directory = tmp_path_factory.mktemp("corpora") / "corpus"
    settings = {**SETTINGS, "store": STORE, "judge": JUDGE, "budget": {"pages": 40}}
    with serve(WEB) as server:
        ending = crawl(directory, "cs", start(WEB), settings=settings, connect_to=server.connect_to)
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
    """The host with the most documents."""
    hosts = thresher.open(directory).docs(["host"]).column("host").to_pylist()
    return max(sorted(set(hosts)), key=hosts.count)


def rows(directory: Path, is_other: Callable[[str], bool] = lambda _: True) -> dict[str, list[Any]]:
    """What the tables have of other pages, but where the raw pages are and who led there."""
    found = thresher.open(directory)
    places = ("warc_file", "warc_offset", "source", "detail")
    plain = {
        name: [
            {key: value for key, value in row.items() if name == "links" or key not in places}
            for row in table.to_pylist()
        ]
        for name, table in (("docs", found.docs()), ("outcomes", found.outcomes()), ("links", found.links()))
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
    """Files in which a name stands, packed or not; other pages may well link to it."""
    found = []
    for path in directory.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = gzip.decompress(data)
            found += [str(path.relative_to(directory))] if name.encode() in data else []
    return found


def check(directory: Path, meant: Meant, before: Path) -> None:
    """Nothing is left, and all else is as it was."""
    assert rows(directory) == rows(before, lambda url: not meant.covers(url))
    check_raw(directory)
    found = thresher.open(directory)
    for row in found.outcomes(["source", "detail"]).to_pylist():
        assert not meant.covers(row["source"]) and not meant.covers(row["detail"])
    assert not any(meant.covers(one.id) or meant.covers(one.meta.get("url")) for one in documents(directory))
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
def test_nothing_is_left_of_what_was_asked_and_all_else_is_as_it_was(
    original: Path, corpus: Path, kind: str
) -> None:
    host = a_host(corpus)
    some = [row["url"] for row in rows(corpus)["docs"] if row["host"] == host]
    asked = {
        "host": wish(hosts=[host.upper()]),
        "url": wish(urls=[some[0].replace("http:", "https:"), some[-1]]),
        "domain": wish(domains=[host.partition(".")[2] if host.count(".") > 1 else host]),
        "import": wish(urls=["l1", "https://x.sk/2"], domains=["old.cz"]),
    }[kind]
    told = forget(corpus, asked, dry_run=True)
    assert rows(corpus) == rows(original), "a dry run changes nothing"
    assert not (corpus / FILE).exists()
    assert forget(corpus, asked, now=WHEN) == told, "and tells what would be done"
    check(corpus, Meant(asked), original)
    if kind == "import":
        assert told == Forgot(imports=5, index=5)
        assert [one.id for one in documents(corpus)] == ["l0", "l3"]
    else:
        assert min(told.documents, told.raw, told.outcomes, told.links, told.index) > 0
    if kind == "host":
        assert told.waiting > 0
        assert told.documents == len(some)
        assert not [
            name
            for name in traces(corpus, host)
            if name.startswith(("state/", "docs/", "outcomes/", "seeds", "status"))
        ]
    assert forget(corpus, asked) == Forgot(), "there is nothing left to forget"


def test_a_forgotten_host_is_never_visited_again(corpus: Path, tmp_path: Path) -> None:
    host = a_host(corpus)
    others = {row["url"] for row in rows(corpus)["docs"] if row["host"] != host}
    forget(corpus, wish(hosts=[host]))
    journal = tmp_path / "journal"
    with serve(WEB, journal=journal) as server:
        ending = crawl(
            corpus, seeds=start(WEB), settings={"budget": {"pages": 0}}, connect_to=server.connect_to
        )
    assert ending.reason == "done"
    visited = {line.split("\t")[1] for line in journal.read_text().splitlines()}
    assert visited and host not in visited
    found = rows(corpus)
    assert others < {row["url"] for row in found["docs"]}, "the crawl went on"
    assert all(row["host"] != host for row in [*found["docs"], *found["outcomes"]])
    meant = Meant(wish(hosts=[host]))
    assert not any(meant.covers(row["source"]) or meant.covers(row["target"]) for row in found["links"])
    assert len({row["seq"] for row in found["outcomes"]}) == len(found["outcomes"]), (
        "no number is given twice"
    )
    check_raw(corpus)


def test_a_url_that_waits_is_not_visited_once_it_is_to_be_forgotten(corpus: Path, tmp_path: Path) -> None:
    host = a_host(corpus)
    assert forget(corpus, wish(hosts=[host]), dry_run=True).waiting > 0
    write_down(corpus, wish(hosts=[host]), {}, WHEN)  # killed right after
    journal = tmp_path / "journal"
    with serve(WEB, journal=journal) as server:
        crawl(corpus, settings={"budget": {"pages": 0}}, connect_to=server.connect_to)
    visited = {line.split("\t")[1] for line in journal.read_text().splitlines()}
    assert visited and host not in visited
    assert forget(corpus, wish(hosts=[host]), dry_run=True).waiting == 0


def test_a_forgotten_url_is_not_queued_even_if_nobody_has_seen_it_yet(corpus: Path, tmp_path: Path) -> None:
    state = State(corpus / "state", read_only=True)
    waiting = sorted(value for _, value in state.committed(b"q", b"r"))
    state.close()
    url = next(url for url in start(WEB) if url)
    host = url.split("/")[2]
    forget(corpus, wish(urls=[url, f"http://{host}/never-seen"]))
    assert waiting
    forgotten = load(corpus)
    assert forgotten.holds(url) and forgotten.holds(f"https://{host}/never-seen")
    assert not forgotten.holds(f"http://{host}/never-seen?other=1")


def test_imports_refuse_what_was_forgotten(corpus: Path) -> None:
    forget(corpus, wish(urls=["l1"], hosts=["x.sk"], domains=["old.cz"]))
    again = corpus.parent / "again.jsonl"
    urls = ["https://x.sk/9", "http://a.x.sk/1", "http://www.old.cz/", "http://new.cz/"]
    again.write_text(
        "".join(f'{{"url": "{url}", "text": "Zas."}}\n' for url in urls) + '{"id": "l1", "text": "x"}\n'
    )
    found = import_files(corpus, [again])
    assert found.documents == 2
    assert found.remarks == ("again.jsonl: 3 × a document that is to stay forgotten, left out",)
    before = sum(file.rows for file in files(corpus))
    assert import_files(corpus, [corpus.parent / "corpus" / ".." / "again.jsonl"]).skipped == ("again.jsonl",)
    assert sum(file.rows for file in files(corpus)) == before


def test_an_input_of_which_all_was_forgotten_is_known_again(corpus: Path, original: Path) -> None:
    forget(corpus, wish(domains=["old.cz"]))
    assert [(file.rows, file.gaps) for file in files(corpus)] == [(4, ()), (0, (0, 1, 2))]
    assert import_files(corpus, [original.parent / "old.vert"]).skipped == ("old.vert",)


def test_each_call_leaves_a_line_that_names_only_what_was_asked(corpus: Path) -> None:
    host = a_host(corpus)
    forget(corpus, wish(hosts=[host]), now=WHEN)
    told = forget(corpus, wish(urls=["l1"]), now=WHEN)
    first, second = map(json.loads, (corpus / FILE).read_text().splitlines())
    assert first["time"] == "2026-01-02T00:00:00+00:00"
    assert first["asked"] == {"hosts": [host]}
    assert first["found"]["documents"] > 0
    assert second["asked"] == {"urls": ["l1"]}
    assert second["found"] == {name: getattr(told, name) for name in told.__struct_fields__}
    assert first["salt"] == second["salt"], "so that each name is looked up once"
    assert "http" not in (corpus / FILE).read_text()
    assert all(len(one) == 32 for one in [*first["hashes"], *second["hashes"]])


def test_a_record_of_a_crawl_can_be_read_after_some_of_it_is_forgotten(corpus: Path) -> None:
    forget(corpus, wish(hosts=[a_host(corpus)]))
    assert len(load_record(corpus).urls) == len(thresher.open(corpus).outcomes(["url"]))


def test_a_corpus_in_use_is_left_alone(corpus: Path) -> None:
    with (corpus / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match=r"is in use by process \d+; wait"):
            forget(corpus, wish(hosts=["a.cz"]))
    assert not (corpus / FILE).exists()


def test_a_corpus_whose_state_is_lost_is_left_alone(corpus: Path) -> None:
    shutil.rmtree(corpus / "state")
    with pytest.raises(StoreError, match="its state is gone"):
        forget(corpus, wish(hosts=["a.cz"]))


def test_a_corpus_that_was_never_crawled_can_forget(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "a"}\n{"id": "2", "text": "b"}\n')
    import_files(tmp_path / "corpus", [tmp_path / "a.jsonl"], language="cs")
    assert forget(tmp_path / "corpus", wish(urls=["2"])) == Forgot(imports=1)
    with pytest.raises(CorpusError, match="is no directory"):
        forget(tmp_path / "nowhere", wish(urls=["2"]))


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({}, "forget what"),
        ({"hosts": ["https://a.cz/"]}, r"--host 'https://a.cz/' is no name of a host; try www"),
        ({"domains": ["a.cz/x"]}, "is no name of a domain"),
        ({"urls": [""]}, "is no URL"),
        ({"urls": ["\udcff"]}, r"--url '\\udcff' is not UTF-8"),
        ({"hosts": ["*.cz"]}, r"--host '\*\.cz' is a pattern, .*--domain example\.cz"),
        ({"domains": ["example.?z"]}, "is a pattern"),
        ({"hosts": ["www[12].cz"]}, "is a pattern"),
        (
            {"hosts": [".example.cz"]},
            r"--host '\.example\.cz' has an empty part between its dots; try example\.cz",
        ),
        ({"domains": ["example..cz"]}, r"try example\.cz"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(asked: dict[str, list[str]], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        wish(**asked)


def test_who_is_meant() -> None:
    meant = Meant(wish(urls=["http://A.cz/x#top"], hosts=["b.cz"], domains=["c.cz"]))
    covered = ["https://a.cz/x", "http://b.cz/", "http://b.cz:8080/y", "http://c.cz/", "https://d.c.cz/z"]
    assert all(map(meant.covers, covered))
    others = ["http://a.cz/x/", "http://www.b.cz/", "http://cc.cz/", "http://d.cz/c.cz", "c.cz", "", None]
    assert not any(map(meant.covers, others))


# As others write URLs, hosts and ids: (URL or id, what else is known of the document).
AS_OTHERS_HAVE_IT: list[tuple[str, dict[str, str]]] = [
    ("http://blog.example.cz?p=12", {}),
    ("http://blog.example.cz#a", {}),
    ("HTTP://blog.example.cz/x", {}),
    ("http://blog.example.cz./x", {}),
    (" https://Blog.Example.cz:443/x", {}),
    ("http://blog.example.cz/" + "x" * 3_000, {}),
    ("https://žluťoučký.cz/x", {}),
    ("https://xn--luouk-uva4it5a4g.cz/y", {}),
    ("77", {"id": "77", "host": "blog.example.cz"}),
    ("78", {"id": "78", "host": "Žluťoučký.cz."}),
    ("79", {"id": "79", "host": "http://blog.example.cz/"}),
    ("a.jsonl#4", {"url": "HTTP://blog.example.cz?p=13"}),
]


@pytest.mark.parametrize(("name", "meta"), AS_OTHERS_HAVE_IT)
def test_a_host_is_known_however_others_write_it(name: str, meta: dict[str, str], tmp_path: Path) -> None:
    asked = wish(hosts=["blog.example.cz", "žluťoučký.cz"])
    assert Meant(asked).covers_document(name, meta)
    write_down(tmp_path, asked, {}, WHEN)
    assert load(tmp_path).holds_document({"id": name, **meta})
    others = wish(hosts=["example.cz", "blog.cz"], domains=["og.example.cz"], urls=["a.jsonl"])
    assert not Meant(others).covers_document(name, meta)


def test_imports_of_a_host_are_forgotten_however_they_were_written(tmp_path: Path) -> None:
    lines = [json.dumps({"id": name, **meta, "text": "Text."}) for name, meta in AS_OTHERS_HAVE_IT]
    lines += [json.dumps({"id": "http://other.cz", "text": "Jiný."})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text("\n".join(lines[::-1]))
    directory = tmp_path / "corpus"
    import_files(directory, [tmp_path / "a.jsonl"], language="cs")
    update(directory, annotator="plain", processes=1, opted_out=True)
    count = len(AS_OTHERS_HAVE_IT)
    asked = wish(hosts=["blog.example.cz", "žluťoučký.cz"])
    assert forget(directory, asked) == Forgot(imports=count, index=count)
    assert [one.id for one in documents(directory)] == ["http://other.cz"]
    assert update(directory, annotator="plain", processes=1, opted_out=True).added == 0
    assert import_files(directory, [tmp_path / "b.jsonl"]).documents == 1


def test_a_long_document_is_forgotten_with_all_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "LONGEST", 100)
    (tmp_path / "big.txt").write_text("Slovo za slovem.\n" * 20)
    (tmp_path / "other.jsonl").write_text('{"id": "big.txt#1#9", "text": "Jiný."}\n')
    directory = tmp_path / "corpus"
    import_files(directory, [tmp_path / "big.txt", tmp_path / "other.jsonl"], language="cs")
    update(directory, annotator="plain", processes=1, opted_out=True)
    parts = len(list(documents(directory))) - 1
    assert parts > 2
    assert forget(directory, wish(urls=["big.txt#1"])) == Forgot(imports=parts, index=parts)
    assert [one.id for one in documents(directory)] == ["big.txt#1#9"], "which has this id of its own"
    assert update(directory, annotator="plain", processes=1, opted_out=True).added == 0


def test_what_was_refused_before_is_refused_still(tmp_path: Path) -> None:
    names = [
        "url l1",
        f"url {key('http://a.cz/x?y=1').hex()}",
        "host b.cz",
        "domain c.cz",
        "host xn--hkkyrkk-5waec.fi",
    ]
    line = {
        "time": "",
        "asked": {},
        "found": {},
        "salt": "s",
        "hashes": [hashed(name, "s") for name in names],
    }
    (tmp_path / FILE).write_text(json.dumps(line) + "\n")
    refused = load(tmp_path).holds
    of_old = ["l1", "https://a.cz/x?y=1#z", "http://b.cz:8080/", "https://d.c.cz/?a", "http://häkkyräkkä.fi/"]
    assert all(map(refused, of_old))
    assert not refused("l2") and not refused("http://a.cz/x") and not refused("b.cz")


def test_an_id_of_nothing_is_told(corpus: Path) -> None:
    asked = wish(urls=["www.example.cz/x", "l1", "http://old.cz/0", "http://nowhere.cz/"])
    assert ids_of_nothing(corpus, asked) == ["www.example.cz/x"]


LABEL = st.text("abc", min_size=1, max_size=2)
HOST = st.lists(LABEL, min_size=1, max_size=3).map(lambda labels: ".".join([*labels, "cz"]))
URL = st.builds(lambda host, path: f"http://{host}/{path}", HOST, LABEL)


@given(st.frozensets(URL, max_size=3), st.frozensets(HOST, max_size=2), st.frozensets(HOST, max_size=2), URL)
def test_what_is_meant_is_what_is_refused_later(
    urls: frozenset[str], hosts: frozenset[str], domains: frozenset[str], url: str
) -> None:
    asked = Wish(urls, hosts, domains)
    with tempfile.TemporaryDirectory() as directory:
        write_down(Path(directory), asked, {}, WHEN)
        assert load(Path(directory)).holds(url) == Meant(asked).covers(url)


# killed

KILLED = """
import os, shutil, sys
from pathlib import Path
from thresher.crawl.state import State
from thresher.forget import forget
from thresher.store.forgotten import wish

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
    commit = State.commit
    def counted(self):
        if self._pending:
            step()
        commit(self)
        step()
    State.commit = counted
    sys.addaudithook(count)
    forget(directory, wish(hosts=[host], urls=["l1"]))

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
    """As a crawl that goes on does first; what was asked is refused at once, whatever is left of it."""
    at_work = Crawl(directory, load_config(directory))
    try:
        seen = at_work.books.seen.count
        at_work.seed([f"http://{host}/anything-new"])
        assert at_work.books.seen.count == (seen if (directory / FILE).exists() else seen + 1)
        at_work.commit()
    finally:
        at_work.books.close()


def test_a_kill_at_any_moment_leaves_a_corpus_that_can_be_read_and_finished(
    original: Path, tmp_path: Path
) -> None:
    host = a_host(original)
    asked = wish(hosts=[host], urls=["l1"])
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
        check(directory, Meant(asked), original)
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
    import_pages(corpus, [], [saved])
    urls = thresher.open(corpus).docs(["url"]).column("url").to_pylist()
    assert {"http://saved0.cz/", "http://saved1.cz/", "http://saved2.cz/"} <= set(urls)
    assert forget(corpus, wish(hosts=["saved1.cz"])).imports == 1
    left = thresher.open(corpus).docs(["url"]).column("url").to_pylist()
    assert sorted(left) == sorted(set(urls) - {"http://saved1.cz/"})
    (saved / "again.html").write_text((saved / "1.html").read_text().replace("Odstavec", "Jiný odstavec"))
    again = import_pages(corpus, [], [saved / "again.html"])
    assert again.pages and again.pages.rejected == {"forgotten": 1}


def test_results_of_processing_are_forgotten_too(corpus: Path) -> None:
    engine = Here()
    run = process(corpus, engine)
    host = a_host(corpus)
    forget(corpus, wish(hosts=[host]))
    left = [
        path for path in (corpus / "runs").rglob("*") if path.is_file() and host.encode() in path.read_bytes()
    ]
    assert left == []
    again = process(corpus, engine)
    assert again.state == "done" and again.steps[1].report["documents"] < run.steps[1].report["documents"]
