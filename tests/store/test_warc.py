"""Raw pages: other WARC readers read the files, for any response of a server."""

import errno
import gzip
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from thresher.errors import DataError
from thresher.files import durable_files
from thresher.records import Reply
from thresher.store.warc import WarcError, WarcWriter, http_head, read_record, records

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PAGE = b"<p>Some text that is long enough to be worth compressing, and some more of the same text.</p>" * 20


def reply(body: bytes = PAGE, headers: bytes = HEAD, **changes) -> Reply:
    fields = {
        "url": "http://a.cz/",
        "status": 200,
        "fetched": 1_790_000_000.125,
        "elapsed": 0.5,
        "address": "192.0.2.7",
    }
    return Reply(body=body, headers=headers, **{**fields, **changes})


def writer(directory: Path, committed=None, max_bytes: int = 1 << 30) -> WarcWriter:
    return WarcWriter(
        directory / "warc", committed or {}, max_bytes, "thresher/1", {"operator": "me@example.org"}
    )


def written(directory: Path, *replies: Reply) -> Path:
    warc = writer(directory)
    for each in replies:
        warc.add(each)
    warc.flush()
    warc.close()
    return directory / "warc" / "thresher-00001.warc.gz"


def as_warcio(path: Path) -> list[tuple[str, str | None, bytes]]:
    """Return type, URL and raw payload of each record, and check every digest."""
    found = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests=True):
            payload = record.raw_stream.read()
            assert record.digest_checker.passed is not False, record.digest_checker.problems
            found.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), payload))
    return found


def as_fastwarc(path: Path) -> list[tuple[str, str | None, bytes]]:
    found = []
    with path.open("rb") as file:
        for record in FastIterator(file, parse_http=False):
            assert record.verify_block_digest()
            record.parse_http()
            if record.is_http and record.headers["WARC-Type"] == "response":
                assert record.verify_payload_digest()
            found.append(
                (record.headers["WARC-Type"], record.headers.get("WARC-Target-URI"), record.reader.read())
            )
    return found


def header_of(path: Path, name: str) -> str | None:
    """Return a WARC header of the last record."""
    with path.open("rb") as file:
        return [record.rec_headers.get_header(name) for record in ArchiveIterator(file)][-1]


def http_headers_of(path: Path) -> list[tuple[str, str]]:
    with path.open("rb") as file:
        return [record.http_headers.headers for record in ArchiveIterator(file) if record.http_headers][-1]


def test_a_reply_reads_the_same_in_warcio_in_fastwarc_and_here(tmp_path: Path):
    path = written(tmp_path, reply(), reply(b"", url="http://a.cz/empty"))
    expected = [("response", "http://a.cz/", PAGE), ("response", "http://a.cz/empty", b"")]
    assert as_warcio(path)[1:] == expected
    assert as_fastwarc(path)[1:] == expected
    assert [(r.kind, r.url, r.reply().body) for r in records(path)][1:] == expected


def test_a_reply_comes_back_as_it_was_but_for_its_duration(tmp_path: Path):
    original = reply(headers=HEAD + b"Content-Length: %d\r\n" % len(PAGE), truncated="time")
    warc = writer(tmp_path)
    name, offset = warc.add(original)
    warc.flush()
    found = read_record(tmp_path / "warc" / name, offset)
    assert found == Reply(
        original.url, 200, original.headers, PAGE, original.fetched, 0.0, original.address, "time"
    )


def test_a_record_says_where_when_and_how_it_was_fetched(tmp_path: Path):
    path = written(tmp_path, reply(truncated="length"))
    assert header_of(path, "WARC-Date") == "2026-09-21T14:13:20.125000Z"
    assert header_of(path, "WARC-IP-Address") == "192.0.2.7"
    assert header_of(path, "WARC-Truncated") == "length"
    assert header_of(path, "WARC-Record-ID").startswith("<urn:uuid:")
    assert header_of(path, "Content-Type") == "application/http;msgtype=response"


def test_each_file_begins_with_the_software_that_wrote_it(tmp_path: Path):
    path = written(tmp_path, reply())
    kind, _, block = as_warcio(path)[0]
    assert kind == "warcinfo"
    assert block.splitlines() == [
        b"software: thresher/1",
        b"format: WARC File Format 1.1",
        b"operator: me@example.org",
    ]


def test_a_description_cannot_smuggle_lines(tmp_path: Path):
    warc = WarcWriter(tmp_path / "warc", {}, 1 << 30, "a\r\nWARC-Type: b", {"x": "č\n\ud800"})
    warc.add(reply())
    warc.flush()
    _, _, block = as_warcio(tmp_path / "warc" / "thresher-00001.warc.gz")[0]
    assert block.decode().splitlines() == [
        "software: a WARC-Type: b",
        "format: WARC File Format 1.1",
        "x: č ?",
    ]


def test_every_record_is_a_gzip_member_of_its_own(tmp_path: Path):
    warc = writer(tmp_path)
    places = [warc.add(reply(url=f"http://a.cz/{n}")) for n in range(5)]
    warc.flush()
    data = (tmp_path / "warc" / "thresher-00001.warc.gz").read_bytes()
    for n, (name, offset) in enumerate(places):
        inflater = zlib.decompressobj(wbits=31)
        assert f"http://a.cz/{n}\r\n".encode() in inflater.decompress(data[offset:])
        assert inflater.eof
        assert read_record(tmp_path / "warc" / name, offset).url == f"http://a.cz/{n}"


@pytest.mark.parametrize("size", [0, 1, 65_530, 65_535, 65_536, 200_000])
def test_a_compressed_body_is_stored_as_it_came(tmp_path: Path, size: int):
    body = os.urandom(size)
    path = written(tmp_path, reply(body, HEAD + b"Content-Encoding: gzip\r\n"))
    assert body[:65_535] in path.read_bytes()
    assert as_warcio(path)[1][2] == as_fastwarc(path)[1][2] == body
    assert gzip.decompress(path.read_bytes()).endswith(body + b"\r\n\r\n")


def test_a_gzip_body_is_unpacked_by_other_readers(tmp_path: Path):
    path = written(tmp_path, reply(gzip.compress(PAGE), HEAD + b"content-encoding: gzip\r\n"))
    with path.open("rb") as file:
        *_, content = [record.content_stream().read() for record in ArchiveIterator(file, check_digests=True)]
    assert content == PAGE


def test_warcio_check_passes_bodies_with_wrong_headers(tmp_path: Path):
    # Not "br": warcio 1.8 fails in the brotli package itself, for any body.
    claims = [
        HEAD + b"Content-Encoding: %s\r\n" % coding for coding in (b"gzip", b"deflate", b"zstd", b"x, gzip")
    ]
    bodies = [PAGE, gzip.compress(PAGE)[:40], b"\x1f\x8b", b"", os.urandom(50)]
    path = written(tmp_path, *(reply(body, headers) for body in bodies for headers in claims))
    checker = Checker(SimpleNamespace(inputs=[str(path)], verbose=False))
    assert checker.process_all() == 0
    assert len(as_fastwarc(path)) == 21


def test_a_transfer_encoding_that_was_undone_is_renamed(tmp_path: Path):
    path = written(tmp_path, reply(headers=HEAD + b"transfer-encoding: chunked\r\n"))
    assert http_headers_of(path) == [
        ("Content-Type", "text/html"),
        ("X-Crawler-transfer-encoding", "chunked"),
        ("Content-Length", str(len(PAGE))),
    ]
    with path.open("rb") as file:
        *_, content = [record.content_stream().read() for record in ArchiveIterator(file)]
    assert content == PAGE


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([b"5"], [("Content-Length", "5")]),
        ([], [("Content-Length", "5")]),
        ([b"7"], [("X-Crawler-Content-Length", "7"), ("Content-Length", "5")]),
        ([b"-1"], [("X-Crawler-Content-Length", "-1"), ("Content-Length", "5")]),
        (
            [b"5", b"9"],
            [("X-Crawler-Content-Length", "5"), ("X-Crawler-Content-Length", "9"), ("Content-Length", "5")],
        ),
    ],
)
def test_only_the_right_content_length_keeps_its_name(tmp_path: Path, lengths, expected):
    lines = b"".join(b"Content-Length: %s\r\n" % length for length in lengths)
    path = written(tmp_path, reply(b"12345", b"HTTP/1.1 200 OK\r\n" + lines))
    assert http_headers_of(path) == expected


@pytest.mark.parametrize(
    "line", [b"HTTP/2 200", b"ICY 200 OK", b"garbage", b"", b"HTTP/1.1  200", b"HTTP/1.1 -1"]
)
def test_a_status_line_that_readers_do_not_know_is_replaced(tmp_path: Path, line: bytes):
    path = written(tmp_path, reply(headers=line + b"\r\nX-A: b\r\n", status=404))
    with path.open("rb") as file:
        statuses = [r.http_headers.statusline for r in ArchiveIterator(file) if r.http_headers]
    assert statuses == ["404"]
    assert as_fastwarc(path)[1][2] == PAGE


@pytest.mark.parametrize(
    "hostile",
    [
        b"X-A: b\nWARC-Type: metadata\r\n",
        b"X-A: b\n\nnot the body\r\n",
        b"X-A: b\r\rTransfer-Encoding: chunked\r\n",
        b"X-A: \x00\x1b]52;c;aGk=\x07\r\n",
        b"X-A: \xff\xfe\r\n",
        b" folded first\r\n",
        b"X-A: b\r\n \t\r\n\r\nX-C: d\r\n",
        b"X-A: b\r\n Transfer-Encoding: chunked\r\n",
        b"\xc2\xa0\r\n\x85\r\n\xa0\r\nX-A: b\r\n",
        b"no colon\r\n: no name\r\n",
        b"Content-Length\t: 99999999999999999999\r\n",
    ],
)
def test_hostile_headers_cannot_move_the_body(tmp_path: Path, hostile: bytes):
    path = written(tmp_path, reply(headers=HEAD + hostile), reply(url="http://a.cz/next"))
    assert [payload for _, _, payload in as_warcio(path)[1:]] == [PAGE, PAGE]
    assert [payload for _, _, payload in as_fastwarc(path)[1:]] == [PAGE, PAGE]
    head = http_head(reply(headers=HEAD + hostile))[0]
    assert not set(head) & set(range(0x20)) - set(b"\r\n\t")
    assert b"\n" not in head.replace(b"\r\n", b"")


# Bytes that readers treat specially, so that chance meets them more often than one time in 256.
_pieces = st.sampled_from(
    b"\r\n|\r|\n|:| |\t|\x00|\x85|\xa0|\xc2\xa0|\xe2\x80\xa8|chunked|HTTP/1.1 200 OK|Content-Length|"
    b"transfer-encoding|Content-Encoding|gzip|WARC/1.1|3".split(b"|")
)
_messy = st.lists(_pieces | st.binary(max_size=3), max_size=25).map(b"".join)


@pytest.mark.slow
@settings(max_examples=150)
@given(headers=_messy, body=st.binary(max_size=300) | _messy, url=st.text(max_size=30))
@example(headers=b"", body=b"", url="http://a.cz/\r\nWARC-Type: x\ud800 č")
def test_every_reader_finds_the_body_of_any_response(headers: bytes, body: bytes, url: str):
    with tempfile.TemporaryDirectory() as directory:
        path = written(
            Path(directory), reply(body, headers, url=f"http://a.cz/{url}"), reply(url="http://b.cz/")
        )
        found = as_warcio(path)
        assert [payload for _, _, payload in found[1:]] == [body, PAGE]
        assert [payload for _, _, payload in as_fastwarc(path)[1:]] == [body, PAGE]
        assert [record.reply().body for record in records(path)][1:] == [body, PAGE]
        uri = found[1][1]
        assert uri is not None
        assert uri.isascii()
        assert uri.isprintable()


@given(headers=_messy, body=st.binary(max_size=50))
def test_a_head_that_was_made_safe_is_not_changed_again(headers: bytes, body: bytes):
    once, _ = http_head(reply(body, headers))
    again, _ = http_head(reply(body, once.removesuffix(b"\r\n")))
    assert again == once


def test_an_invalid_address_is_left_out(tmp_path: Path):
    path = written(tmp_path, reply(address="x\r\nWARC-Type: y"))
    assert header_of(path, "WARC-IP-Address") is None


def test_a_new_file_is_started_once_one_is_full(tmp_path: Path):
    warc = writer(tmp_path, max_bytes=1)
    places = [warc.add(reply(url=f"http://a.cz/{n}")) for n in range(3)]
    assert [name for name, _ in places] == [f"thresher-0000{n}.warc.gz" for n in (1, 2, 3)]
    warc.flush()
    lengths = warc.lengths()
    assert list(lengths.values())[:2] == [None, None]
    assert lengths["thresher-00003.warc.gz"] == (tmp_path / "warc" / "thresher-00003.warc.gz").stat().st_size
    for n, (name, _) in enumerate(places):
        assert [url for _, url, _ in as_warcio(tmp_path / "warc" / name)] == [None, f"http://a.cz/{n}"]


def test_writing_continues_in_the_committed_file(tmp_path: Path):
    warc = writer(tmp_path)
    warc.add(reply(url="http://a.cz/1"))
    warc.flush()
    committed = warc.lengths()
    warc.add(reply(url="http://a.cz/lost"))
    warc.flush()
    warc.close()

    warc = writer(tmp_path, committed)
    warc.add(reply(url="http://a.cz/2"))
    warc.flush()
    found = as_warcio(tmp_path / "warc" / "thresher-00001.warc.gz")
    assert [url for _, url, _ in found] == [None, "http://a.cz/1", "http://a.cz/2"]


def test_a_finished_file_is_not_touched_again(tmp_path: Path):
    warc = writer(tmp_path, max_bytes=1)
    warc.add(reply())
    warc.add(reply())
    warc.flush()
    warc.close()
    committed = {"thresher-00001.warc.gz": None}
    warc = writer(tmp_path, committed)
    assert warc.lengths() == committed
    assert warc.add(reply())[0] == "thresher-00002.warc.gz"


def test_a_state_of_another_corpus_is_refused(tmp_path: Path):
    (tmp_path / "warc").mkdir()
    for n in (1, 2):
        (tmp_path / "warc" / f"thresher-0000{n}.warc.gz").write_bytes(b"12345")
    with pytest.raises(DataError, match="the state is not of this corpus"):
        writer(tmp_path, {"thresher-00001.warc.gz": 5, "thresher-00002.warc.gz": 5})


def test_a_full_disk_loses_no_record_and_doubles_none(tmp_path: Path, monkeypatch):
    warc = writer(tmp_path, max_bytes=1)
    for n in range(3):
        warc.add(reply(url=f"http://a.cz/{n}"))
    pending = warc.pending
    pwrite, left = os.pwrite, [pending // 2]

    def full(descriptor, data, offset):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = pwrite(descriptor, data[: left[0]], offset)
        left[0] -= count
        return count

    monkeypatch.setattr(durable_files.os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        warc.flush()
    assert 0 < warc.pending < pending
    monkeypatch.undo()
    warc.add(reply(url="http://a.cz/3"))
    warc.flush()
    assert warc.pending == 0
    found = [record.url for path in sorted((tmp_path / "warc").iterdir()) for record in records(path)]
    assert [url for url in found if url] == [f"http://a.cz/{n}" for n in range(4)]


@pytest.mark.slow
def test_a_file_cut_at_any_byte_gives_its_whole_records_and_then_a_clear_fault(tmp_path: Path):
    path = written(tmp_path, reply(b"1"), reply(b"2", HEAD + b"Content-Encoding: gzip\r\n"))
    data = path.read_bytes()
    ends = [record.offset + record.length for record in records(path)]
    cut = tmp_path / "cut.warc.gz"
    for size in range(len(data)):
        cut.write_bytes(data[:size])
        found = []
        if size in (0, *ends):
            found.extend(records(cut))
        else:
            with pytest.raises(WarcError, match=r"cut off|no record|damaged"):
                found.extend(records(cut))
        assert len(found) == sum(end <= size for end in ends)


def test_only_the_committed_part_is_read_when_asked(tmp_path: Path):
    path = written(tmp_path, reply(b"1"), reply(b"2"))
    first, second, third = records(path)
    assert list(records(path, end=third.offset)) == [first, second]
    assert list(records(path, start=second.offset)) == [second, third]


@pytest.mark.parametrize("offset", [0, 1, 10_000])
def test_an_offset_without_a_reply_is_a_clear_fault(tmp_path: Path, offset: int):
    path = written(tmp_path, reply())
    with pytest.raises(WarcError, match=rf"{offset}"):
        read_record(path, offset)


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("thresher.store.warc.MAX_RECORD_BYTES", 10_000)
    path = written(tmp_path, reply(b"0" * 1_000_000))
    with pytest.raises(WarcError, match="larger than 10000 bytes"):
        list(records(path))


@given(st.binary(max_size=200))
def test_a_member_that_is_no_record_is_a_clear_fault(block: bytes):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x.warc.gz"
        path.write_bytes(gzip.compress(block))
        with pytest.raises(WarcError):
            list(records(path))


def test_other_peoples_warc_files_give_records_or_a_clear_fault(suites: Path):
    for path in filter(Path.is_file, (suites / "warc").rglob("*")):
        try:
            list(records(path))
        except WarcError as error:
            assert str(path) in str(error)


class WarcLife(RuleBasedStateMachine):
    """Every committed record is there exactly once, at its place, after any number of crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.committed: dict[str, int | None] = {}
        self.saved: list[tuple[str, int, str]] = []
        self.added: list[tuple[str, int, str]] = []
        self.count = 0
        self.open()

    def open(self) -> None:
        self.warc = writer(self.directory, self.committed, max_bytes=1_500)

    @rule(size=st.integers(0, 600), encoded=st.booleans())
    def add(self, size: int, encoded: bool) -> None:
        self.count += 1
        url = f"http://a.cz/{self.count}"
        headers = HEAD + b"Content-Encoding: br\r\n" if encoded else HEAD
        self.added.append((*self.warc.add(reply(os.urandom(size), headers, url=url)), url))

    @rule()
    def flush_without_commit(self) -> None:
        self.warc.flush()

    @rule()
    def flush_and_commit(self) -> None:
        self.warc.flush()
        self.committed = self.warc.lengths()
        self.warc.retire()
        self.saved, self.added = self.saved + self.added, []

    @rule()
    def crash(self) -> None:
        self.warc.close()
        self.added = []
        self.open()
        on_disk = {path.name for path in (self.directory / "warc").iterdir()}
        assert on_disk == set(self.committed)

    @invariant()
    def what_was_committed_is_there_once(self) -> None:
        found = [
            (name, record.offset, record.url)
            for name, length in sorted(self.committed.items())
            for record in records(self.directory / "warc" / name, end=length)
            if record.kind == "response"
        ]
        assert found == self.saved

    def teardown(self) -> None:
        self.warc.close()
        for path in (self.directory / "warc").iterdir():
            as_warcio(path)
        shutil.rmtree(self.directory)


TestWarcLife = WarcLife.TestCase
TestWarcLife.settings = settings(max_examples=25, stateful_step_count=25)
