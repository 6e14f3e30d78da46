"""Reading a corpus: readers see whole commits, also while a crawl is writing."""

import json
import os
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest

from thresher.errors import DataError, NoCorpusError, UsageError
from thresher.records import Block, LanguageShare, ReadResult, Reply, Verdict
from thresher.store import corpus_files as corpora
from thresher.store import partition
from thresher.store.corpus_files import CorpusError, CorpusFiles, Document
from thresher.store.schemas import DOCS, LINKS, OUTCOMES, document_row
from thresher.store.table_segments import TableSegments
from thresher.store.warc import WarcWriter

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


class Crawl:
    """A writer like a crawl: it adds pages and publishes commits in status.json."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "corpus.toml").write_text('schema = 1\nlanguage = "cs"\n')
        self.warc = WarcWriter(directory / "warc", {}, 1 << 30, "thresher", {})
        self.docs = TableSegments(directory / "docs", DOCS, {}, 1 << 40)
        self.count = 0

    def add(self, pages: int) -> None:
        for n in range(self.count, self.count + pages):
            url = f"http://www.a.cz/{n}"
            body = f"<p>Text {n}</p>".encode()
            reply = Reply(
                url,
                200,
                HEAD + b"Content-Length: %d\r\n" % len(body),
                body,
                1_790_000_000.5 + n,
                0,
                "192.0.2.7",
            )
            page = ReadResult(
                url,
                "html",
                text=f"Text {n}",
                title=f"Titulek {n}",
                blocks=(Block("Menu", 0.9), Block(f"Text {n}", 0.125)),
                languages=(LanguageShare("cs", 6, 1.0),),
                badness=float(n) if n % 2 else None,
                opt_out=("noai",) if n % 10 == 3 else (),
                text_hash=bytes([n] * 16),
            )
            raw = self.warc.add(reply)
            self.docs.append(
                *document_row(reply, page, Verdict(True, "", "cs", 1.0, 6), seq=n, depth=1, raw=raw)
            )
        self.count += pages

    def flush(self) -> None:
        self.warc.flush()
        self.docs.flush()

    def publish(self) -> None:
        files = {f"docs/{name}": length for name, length in self.docs.lengths().items()}
        files |= {f"warc/{name}": length for name, length in self.warc.lengths().items()}
        temporary = self.directory / "status.json.tmp"
        temporary.write_text(json.dumps({"pages": {"kept": self.count}, "files": files}))
        temporary.replace(self.directory / "status.json")

    def commit(self) -> None:
        self.flush()
        self.publish()
        self.docs.retire()

    def seal(self) -> None:
        self.docs.seal()
        self.commit()


@pytest.fixture
def crawl(tmp_path: Path) -> Crawl:
    return Crawl(tmp_path)


@pytest.fixture
def corpus(crawl: Crawl) -> CorpusFiles:
    """Return five documents in Parquet and three in the open stream."""
    crawl.add(5)
    crawl.seal()
    crawl.add(3)
    crawl.commit()
    return corpora.open(crawl.directory)


def seqs(corpus: CorpusFiles) -> list[int]:
    return corpus.documents(["seq"]).column("seq").to_pylist()


def test_sealed_and_open_segments_are_one_table(corpus: CorpusFiles):
    table = corpus.documents()
    assert table.schema == DOCS
    assert table.column("seq").to_pylist() == list(range(8))
    assert table.column("paragraphs").to_pylist()[7] == [
        {"text": "Menu", "boilerplate": 0.9, "language": ""},
        {"text": "Text 7", "boilerplate": 0.125, "language": ""},
    ]
    assert len(corpus) == 8


def test_the_columns_asked_for_come_in_the_order_asked_for(corpus: CorpusFiles):
    table = corpus.documents(["text", "url"])
    assert table.column_names == ["text", "url"]
    assert table.slice(6, 1).to_pylist() == [{"text": "Text 6", "url": "http://www.a.cz/6"}]


def test_an_unknown_column_or_table_is_named_with_the_known_ones(corpus: CorpusFiles):
    with pytest.raises(CorpusError, match=r"docs has no column 'txt'; it has url, host"):
        corpus.documents(["txt"])
    with pytest.raises(
        CorpusError, match=r"columns must be a list of names, got 'url'; for example \['url'\]"
    ):
        corpus.documents("url")
    with pytest.raises(CorpusError, match=r"unknown table 'pages'; choose one of docs, links, outcomes"):
        corpus.batches("pages")


def test_tables_without_rows_have_their_columns(corpus: CorpusFiles):
    assert (corpus.links().schema, corpus.links().num_rows) == (LINKS, 0)
    assert (corpus.outcomes().schema, corpus.outcomes().num_rows) == (OUTCOMES, 0)


def test_pandas_takes_the_documents(corpus: CorpusFiles):
    frame = corpus.documents().to_pandas()
    assert list(frame["title"])[:2] == ["Titulek 0", "Titulek 1"]
    assert str(frame["fetched"].dt.tz) == "UTC"
    assert frame["language_share"].sum() == 8


def test_polars_takes_the_documents(corpus: CorpusFiles):
    frame = polars.from_arrow(corpus.documents())
    assert isinstance(frame, polars.DataFrame)
    assert frame.filter(polars.col("paragraphs").list.len() == 2).height == 8


def test_duckdb_takes_the_documents(corpus: CorpusFiles):
    docs = corpus.documents()
    rows = duckdb.sql("select host, count(*), sum(languages[1].bytes) from docs group by host").fetchall()
    assert rows == [("www.a.cz", 8, 48)]
    assert docs.num_rows == 8


def test_duckdb_reads_the_sealed_files(corpus: CorpusFiles):
    files = corpus.directory / "docs" / "*.parquet"
    assert duckdb.sql(f"select max(seq) from '{files}'").fetchall() == [(4,)]


def test_documents_are_records(corpus: CorpusFiles):
    assert list(Document.__struct_fields__) == DOCS.names
    found = list(corpus)
    assert [document.seq for document in found] == list(range(8))
    last = found[7]
    assert last.paragraphs == (Block("Menu", 0.9), Block("Text 7", 0.125))
    assert last.languages == (LanguageShare("cs", 6, 1.0),)
    assert last.fetched.timestamp() == 1_790_000_007.5
    assert (found[3].opt_out, found[4].opt_out) == (("noai",), ())
    assert (found[0].badness, found[1].badness) == (None, 1.0)


def test_the_raw_page_of_a_document_can_be_read(corpus: CorpusFiles):
    for document in corpus:
        reply = corpus.raw(document)
        assert (reply.url, reply.body) == (document.url, f"<p>{document.text}</p>".encode())


def test_a_raw_page_that_is_not_there_is_a_clear_fault(corpus: CorpusFiles):
    document = next(iter(corpus))
    fields = {name: getattr(document, name) for name in document.__struct_fields__}
    with pytest.raises(CorpusError, match="was not kept"):
        corpus.raw(Document(**{**fields, "warc_file": None}))
    with pytest.raises(CorpusError, match=r"thresher-00009.warc.gz is missing"):
        corpus.raw(Document(**{**fields, "warc_file": "../warc/thresher-00009.warc.gz"}))
    with pytest.raises(DataError, match="no reply at offset 0"):
        corpus.raw(Document(**{**fields, "warc_offset": 0}))


def test_statistics_are_as_of_the_last_commit(corpus: CorpusFiles):
    assert corpus.stats() == {"pages": {"kept": 8}}


def test_a_corpus_without_figures_says_how_to_get_them(crawl: Crawl):
    with pytest.raises(CorpusError, match="has no statistics yet"):
        corpora.open(crawl.directory).stats()


def test_only_committed_rows_are_seen(crawl: Crawl):
    corpus = corpora.open(crawl.directory)
    crawl.add(2)
    crawl.commit()
    crawl.add(3)
    crawl.flush()
    assert seqs(corpus) == [0, 1]
    crawl.publish()
    assert seqs(corpus) == [0, 1, 2, 3, 4]


def test_reading_continues_while_the_crawl_seals_and_deletes(crawl: Crawl):
    crawl.add(3)
    crawl.commit()
    corpus = corpora.open(crawl.directory)
    batches = corpus.batches("docs", ["seq"])
    crawl.add(2)
    crawl.seal()
    assert not list((crawl.directory / "docs").glob("*.arrows"))
    assert [n for batch in batches for n in batch.column(0).to_pylist()] == [0, 1, 2]
    assert seqs(corpus) == [0, 1, 2, 3, 4]


def test_a_stream_that_is_sealed_under_the_readers_eyes_is_looked_for_again(crawl: Crawl, monkeypatch):
    crawl.add(3)
    crawl.commit()
    corpus = corpora.open(crawl.directory)
    stale = partition.status(crawl.directory)
    crawl.seal()
    read, calls = partition.status, []

    def first_stale(part):
        calls.append(1)
        return stale if len(calls) == 1 else read(part)

    monkeypatch.setattr(partition, "status", first_stale)
    assert seqs(corpus) == [0, 1, 2]
    assert len(calls) == 2


def test_a_committed_file_that_is_missing_is_named(crawl: Crawl):
    crawl.add(1)
    crawl.commit()
    (crawl.directory / "docs" / "docs-00001.arrows").unlink()
    with pytest.raises(CorpusError, match=r"docs-00001\.arrows.* is missing, but was committed"):
        corpora.open(crawl.directory).documents()


def test_a_sealed_file_that_is_damaged_is_named(corpus: CorpusFiles):
    (corpus.directory / "docs" / "docs-00001.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(CorpusError, match=r"docs-00001\.parquet cannot be read"):
        corpus.documents()


@pytest.mark.parametrize(
    "damage", [None, b"", b"{", b"[]", b'{"files": 3}', b'{"files": {"docs/x": "y"}}', b"\xff"]
)
def test_without_a_status_the_files_speak_for_themselves(corpus: CorpusFiles, damage: bytes | None):
    status = corpus.directory / "status.json"
    if damage is None:
        status.unlink()
    else:
        status.write_bytes(damage)
    assert seqs(corpus) == list(range(8))


def test_without_a_status_a_stream_cut_anywhere_gives_its_whole_batches(crawl: Crawl):
    ends = []
    for _ in range(2):
        crawl.add(2)
        crawl.flush()
        ends += crawl.docs.lengths().values()
    corpus = corpora.open(crawl.directory)
    path = crawl.directory / "docs" / "docs-00001.arrows"
    data = path.read_bytes()
    for size in [*range(0, len(data), 11), *ends]:
        path.write_bytes(data[:size])
        assert len(corpus) == 2 * sum(end <= size for end in ends)


def test_without_a_status_the_sealed_file_of_a_number_wins(crawl: Crawl):
    crawl.add(3)
    crawl.docs.seal()
    assert {path.suffix for path in (crawl.directory / "docs").iterdir()} == {".arrows", ".parquet"}
    (crawl.directory / "docs" / "docs-00002.parquet.tmp").write_bytes(b"half")
    assert seqs(corpora.open(crawl.directory)) == [0, 1, 2]


def test_a_column_that_older_segments_did_not_have_is_null(tmp_path: Path):
    (tmp_path / "corpus.toml").write_text('schema = 1\nlanguage = "cs"\n')
    older = pa.schema([field for field in LINKS if field.name not in ("weight", "chance")])
    table = TableSegments(tmp_path / "links", older, {}, 1 << 40)
    table.append("http://a.cz/", "http://b.cz/", "B", 0.5, True, "", None, True)
    table.seal()
    links = corpora.open(tmp_path).links()
    assert links.schema == LINKS
    assert links.column("weight").to_pylist() == links.column("chance").to_pylist() == [None]


def test_paragraphs_of_older_segments_have_no_language(tmp_path: Path):
    (tmp_path / "corpus.toml").write_text('schema = 1\nlanguage = "cs"\n')
    plain = pa.struct([("text", pa.large_string()), ("boilerplate", pa.float64())])
    older = pa.schema([("url", pa.string()), ("paragraphs", pa.list_(pa.field("element", plain)))])
    table = TableSegments(tmp_path / "docs", older, {}, 1 << 40)
    table.append("http://a.cz/", [Block("Text.", 0.25)])
    table.seal()
    (found,) = corpora.open(tmp_path).documents(["paragraphs"]).to_pylist()
    assert found["paragraphs"] == [{"text": "Text.", "boilerplate": 0.25, "language": None}]


def test_a_directory_without_a_corpus_is_refused_with_the_fix(tmp_path: Path):
    with pytest.raises(NoCorpusError, match="nowhere does not exist; make a corpus: thresher crawl"):
        corpora.open(tmp_path / "nowhere")
    with pytest.raises(NoCorpusError, match=r"is not a corpus .*no corpus\.toml"):
        corpora.open(tmp_path)


def test_a_newer_schema_is_refused_with_both_numbers(tmp_path: Path):
    (tmp_path / "corpus.toml").write_text('schema = 7\nthresher = "9.1"\n')
    with pytest.raises(UsageError, match=r"schema = 7 .*9\.1.* knows schema 2: upgrade"):
        corpora.open(tmp_path)


def test_a_damaged_corpus_toml_is_named(tmp_path: Path):
    (tmp_path / "corpus.toml").write_bytes(b"schema = = 1")
    with pytest.raises(UsageError, match=r"corpus\.toml is not TOML"):
        corpora.open(tmp_path)


def test_a_file_that_may_not_be_read_is_named(corpus: CorpusFiles):
    file = corpus.directory / "docs" / "docs-00002.arrows"
    file.chmod(0)
    me = os.geteuid()
    if me == 0:  # Root may read everything, so another user is assumed for a while.
        for directory in (file.parent, *corpus.directory.parents[: len(corpus.directory.parents) - 2]):
            directory.chmod(0o755)
        corpus.directory.chmod(0o755)
        os.seteuid(65534)
    try:
        with pytest.raises(CorpusError, match="may not be read"):
            corpus.documents()
    finally:
        os.seteuid(me)


def test_settings_of_a_stored_corpus_are_typed(corpus: CorpusFiles):
    assert corpus.config.language == "cs"


def test_output_never_takes_the_place_of_a_file_of_a_corpus(
    crawl: Crawl, tmp_path_factory: pytest.TempPathFactory
):
    ours, outside = crawl.directory, tmp_path_factory.mktemp("outside")
    (ours / "runs").symlink_to(outside)
    (outside / "link").symlink_to(ours / "docs")
    for path in (ours / "corpus.toml", ours / "docs/new/x", ours / "runs/x.svg", outside / "link/x"):
        with pytest.raises(UsageError, match="would be damaged; choose another name"):
            corpora.check_output(path)
    for path in (ours / "export.jsonl", ours / "exports/docs", outside / "docs"):
        corpora.check_output(path)


@pytest.mark.parametrize("data", [b"", b'{"files": 3}', b'{"a": "\xff"}'])
def test_statistics_that_are_damaged_are_not_taken_for_a_corpus_without_a_crawl(crawl: Crawl, data: bytes):
    (crawl.directory / "status.json").write_bytes(data)
    with pytest.raises(DataError, match=r"status\.json is damaged") as raised:
        corpora.open(crawl.directory).stats()
    assert not isinstance(raised.value, CorpusError)
