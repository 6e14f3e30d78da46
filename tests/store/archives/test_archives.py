"""Archives of other crawlers: all records of a sound file, and the readable ones of a damaged file."""

from __future__ import annotations

import gzip
import io
import random
import re
import struct
import tracemalloc
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from fastwarc.warc import ArchiveIterator
from hypothesis import given, settings
from hypothesis import strategies as st

from store.test_warc import reply, written
from support.samples.archive_files import arc, http, packed, page, record, response
from thresher.records import Reply
from thresher.store.archives import packed as unpacking
from thresher.store.archives.records import ArchiveCounts, ArchiveRecord, records
from thresher.store.archives.replies import RefusedRecord, reply_of, stored_reply, unchunked

LIMIT = 1 << 23


def found(data: bytes, limit: int = LIMIT) -> tuple[list[ArchiveRecord], ArchiveCounts]:
    counts = ArchiveCounts()
    return list(records(io.BytesIO(data), limit, counts)), counts


def urls(data: bytes) -> list[str]:
    return [each.field("warc-target-uri") for each in found(data)[0]]


def lz4(data: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "lz4") as stream:
        stream.write(data)
    return bytes(out.getvalue())


THREE = [response(f"http://a.cz/{n}", page(n)) for n in range(3)]
ADDRESSES = [f"http://a.cz/{n}" for n in range(3)]
PLAIN = b"".join(THREE)


# sound files


def archives_of(suites: Path) -> list[Path]:
    return sorted(path for path in (suites / "warc").rglob("*") if re.search(r"\.w?arc\b", path.name))


def by_fastwarc(path: Path) -> tuple[list[str], bool]:
    """Return the types of all records that fastwarc reads, and whether it reached the end."""
    kinds: list[str] = []
    with path.open("rb") as file:
        try:
            kinds.extend(str(each.record_type) for each in ArchiveIterator(file, parse_http=False))
        except OSError:
            return kinds, False
    return kinds, True


def test_every_archive_of_the_suites_has_the_records_that_fastwarc_finds_in_it(suites: Path) -> None:
    paths = archives_of(suites)
    assert len(paths) >= 20
    sound = 0
    for path in paths:
        expected, whole = by_fastwarc(path)
        kinds = [each.kind for each in found(path.read_bytes())[0]]
        if whole:
            assert kinds == expected, path.name
        else:  # it gave up, at an ARC file or at damage
            assert kinds[: len(expected)] == expected and len(kinds) > len(expected), path.name
        sound += whole
    assert sound >= 18


def test_every_page_of_the_suites_is_found_again_at_its_offset(suites: Path) -> None:
    pages = 0
    for path in archives_of(suites):
        for each in found(path.read_bytes())[0]:
            reply = reply_of(each, LIMIT)
            if isinstance(reply, Reply):
                assert stored_reply(path, each.offset, reply.url, reply.fetched, LIMIT) == reply
                pages += 1
    assert pages > 50


@pytest.mark.parametrize(
    "pack",
    [b"".join, lambda parts: packed(*parts), lambda parts: gzip.compress(b"".join(parts))]
    + [
        lambda parts, one=one: b"".join(map(one, parts)) for one in (zstandard.ZstdCompressor().compress, lz4)
    ],
    ids=["plain", "gzip", "gzip as a whole", "zstd", "lz4"],
)
def test_records_are_the_same_however_they_are_packed(pack) -> None:
    data = pack(THREE)
    assert urls(data) == ADDRESSES
    read, counts = found(data)
    assert (counts.records, counts.damaged, counts.bytes_skipped) == (3, 0, 0)
    assert [each.block for each in read] == [http(page(n)) for n in range(3)]


def test_a_zstd_archive_may_begin_with_the_dictionary_of_its_records() -> None:
    dictionary = zstandard.ZstdCompressionDict(page(0) + page(1), dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packer = zstandard.ZstdCompressor(dict_data=dictionary)
    frames = b"".join(map(packer.compress, THREE))
    for content in (page(0) + page(1), zstandard.ZstdCompressor().compress(page(0) + page(1))):
        data = b"\x5d\x2a\x4d\x18" + struct.pack("<I", len(content)) + content + frames
        assert urls(data) == ADDRESSES
    assert urls(frames) == []  # it cannot be read without its dictionary


@pytest.mark.parametrize("packed_dictionary", [False, True])
def test_a_page_is_found_again_in_an_archive_that_begins_with_a_dictionary(
    tmp_path: Path, packed_dictionary: bool
) -> None:
    content = page(0) + page(1)
    dictionary = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    frames = b"".join(map(zstandard.ZstdCompressor(dict_data=dictionary).compress, THREE))
    content = zstandard.ZstdCompressor().compress(content) if packed_dictionary else content
    path = tmp_path / "a.warc.zst"
    path.write_bytes(b"\x5d\x2a\x4d\x18" + struct.pack("<I", len(content)) + content + frames)
    for number, each in enumerate(found(path.read_bytes())[0]):
        expected = reply_of(each, LIMIT)
        assert isinstance(expected, Reply) and expected.body == page(number)
        assert stored_reply(path, each.offset, expected.url, expected.fetched, LIMIT) == expected


@pytest.mark.growth
@pytest.mark.parametrize(
    "pack", [lambda data: gzip.compress(data, 1), zstandard.ZstdCompressor().compress, lz4]
)
def test_an_archive_packed_as_a_whole_may_be_large_and_takes_little_memory(pack) -> None:
    noise = random.Random(1).randbytes(1 << 20)  # so that it is large packed, too
    data = pack(b"".join(response(f"http://a.cz/{n}", noise[n:] + noise[:n]) for n in range(70)))
    assert len(data) > 64 << 20 or pack is not lz4
    counts = ArchiveCounts()
    tracemalloc.start()
    urls = [each.field("warc-target-uri") for each in records(io.BytesIO(data), 1 << 20, counts)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert urls == [f"http://a.cz/{n}" for n in range(70)]
    assert (counts.damaged, counts.bytes_skipped) == (0, 0)
    assert peak < 24 << 20


@pytest.mark.parametrize("version", ["0.17", "0.18", "1.0", "1.1"])
@pytest.mark.parametrize("line_end", [b"\r\n", b"\n"])
def test_all_versions_of_warc_are_read_and_line_ends_without_returns(version: str, line_end: bytes) -> None:
    data = response("http://a.cz/0", b"body", version=version).replace(b"\r\n", line_end)
    length = len(http(b"body").replace(b"\r\n", line_end))
    data = re.sub(rb"(?<=Content-Length: )\d+", str(length).encode(), data)
    (only,), counts = found(data * 2)[0][:1], found(data * 2)[1]
    reply = reply_of(only, LIMIT)
    assert isinstance(reply, Reply) and reply.body == b"body" and reply.header("Content-Type") == "text/html"
    assert counts.records == 2


def test_archives_of_thresher_itself_are_read_like_any_other(tmp_path: Path) -> None:
    replies = [reply(url=f"http://a.cz/{n}", body=page(n)) for n in range(3)]
    data = written(tmp_path, *replies).read_bytes()
    read = [reply_of(each, LIMIT) for each in found(data)[0]]
    assert read[0] == RefusedRecord("other")
    assert [(each.url, each.body, each.fetched, each.address) for each in read[1:]] == [
        (each.url, each.body, each.fetched, each.address) for each in replies
    ]


def test_folded_and_repeated_fields_and_an_address_in_brackets_are_understood() -> None:
    data = response("<http://a.cz/a b>", b"body").replace(
        b"WARC-Date", b"X-Long: one\r\n\ttwo\r\nX-Long: no\r\nWARC-Date"
    )
    (only,) = found(data)[0]
    assert only.field("x-long") == "one two"
    reply = reply_of(only, LIMIT)
    assert isinstance(reply, Reply) and reply.url == "http://a.cz/a%20b"
    assert reply.fetched == 1772357400.0


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_arc_files_are_read_in_both_versions(pack) -> None:
    first = b"filedesc://x.arc 0.0.0.0 20260301000000 text/plain 15\n1 0 somebody\n\n\n\n"
    second = b"http://a.cz/2 1.2.3.4 20260301000000 text/html 200 - - 120 x.arc %d\n" % len(
        http(b"two")
    ) + http(b"two")
    data = first + arc("http://a.cz/a b", http(b"one")) + second + b"\n"
    read = [reply_of(each, LIMIT) for each in found(pack(data))[0]]
    assert read[0] == RefusedRecord("other")
    assert [(each.url, each.body) for each in read[1:]] == [
        ("http://a.cz/a%20b", b"one"),
        ("http://a.cz/2", b"two"),
    ]


# contents


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (record("revisit", "http://a.cz/", http(b"")), "revisit", ""),
        (record("request", "http://a.cz/", b"GET / HTTP/1.1\r\n\r\n"), "other", ""),
        (record("resource", "http://a.cz/a.pdf", b"%PDF", "application/pdf"), "other", ""),
        (record("response", "dns:a.cz", b"20260301\na.cz. 60 IN A 1.2.3.4", "text/dns"), "", "not http"),
        (record("response", "http://a.cz/", b"no status line\r\n\r\n"), "", "not http"),
        (record("response", "http://a.cz/", b"HTTP/1.1 200 OK\r\nContent-Ty"), "", "truncated"),
        (response("http://a.cz/", b"moved", status="301 Moved"), "", "http 301"),
        (response("http://a.cz/", b"a" * 2_000_000), "", "truncated"),
        (response("http://a.cz/", b"a", WARC_Truncated="length"), "", "truncated"),
        (response("ftp://a.cz/", b"a"), "", "not http"),
    ],
)
def test_records_without_a_whole_page_are_refused_with_a_reason(data: bytes, kind: str, reason: str) -> None:
    (only,) = found(data, 1_000_000)[0]
    assert reply_of(only, 1_000_000) == RefusedRecord(kind, reason)


def test_a_body_that_was_stored_in_chunks_is_put_together() -> None:
    body = b"5;x=y\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    (only,) = found(response("http://a.cz/", body, "Transfer-Encoding: Chunked"))[0]
    reply = reply_of(only, LIMIT)
    assert isinstance(reply, Reply) and reply.body == b"hello world"
    assert unchunked(b"5\r\nhello\r\nzz\r\n world") == b"hellozz\r\n world"
    assert unchunked(b"ff\r\nhel") == b"hel"


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8))
def test_chunks_that_are_sound_leave_no_trace(parts: list[bytes]) -> None:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    assert unchunked(chunks + b"0\r\n\r\n") == b"".join(parts)


@pytest.mark.parametrize(
    ("date", "header", "moment"),
    [
        ("2026-03-01T09:30:00.5Z", "", 1772357400.5),
        ("2008-10-294T05:21:46-0700", "Date: Wed, 28 Jan 2009 17:05:56 GMT", 1233162356.0),
        ("1026-03-01T09:30:00Z", "", 0.0),
        ("", "Date: yesterday", 0.0),
    ],
)
def test_a_page_is_dated_by_its_record_or_by_its_server(date: str, header: str, moment: float) -> None:
    (only,) = found(response("http://a.cz/", b"a", header or "X: y", date=date))[0]
    reply = reply_of(only, LIMIT)
    assert isinstance(reply, Reply) and reply.fetched == moment


# damage


def test_all_whole_records_of_a_clipped_archive_are_read_and_the_last_is_reported_damaged() -> None:
    for data in (PLAIN[:-800], packed(*THREE)[:-100]):
        read, counts = found(data)
        assert [each.field("warc-target-uri") for each in read] == ADDRESSES
        assert [each.cut for each in read] == [False, False, True]
        assert counts.damaged == 1


def test_garbage_between_records_is_skipped_and_counted() -> None:
    junk = b"\0junk\r\nWARC no\r\n" * 100
    read, counts = found(junk + THREE[0] + junk + THREE[1] + THREE[2] + junk)
    assert len(read) == 3
    assert abs(counts.bytes_skipped - 3 * len(junk)) < 20
    assert read[0].offset == len(junk)
    read, counts = found(packed(THREE[0]) + junk + packed(*THREE[1:]) + b"\0" * 512)
    assert len(read) == 3
    assert counts.bytes_skipped == len(junk) + 512


@pytest.mark.parametrize("wrong", ["7", "90000", "999999999999"])
@pytest.mark.parametrize("pack", [b"".join, lambda parts: packed(*parts)], ids=["plain", "gzip"])
def test_a_wrong_length_does_not_cost_the_records_behind_it(pack, wrong: str) -> None:
    liar = response("http://a.cz/1", page(1), content_length=wrong)
    read, counts = found(pack([THREE[0], liar, THREE[2]]))
    assert [each.field("warc-target-uri") for each in read] == ADDRESSES
    assert read[2].block == http(page(2))
    assert counts.damaged or counts.bytes_skipped


def four(version: str) -> list[bytes]:
    return [response(f"http://a.cz/{n}", page(n), version=version) for n in range(4)]


def four_of_arc(_: str) -> list[bytes]:
    return [arc(f"http://a.cz/{n}", http(page(n))) for n in range(4)]


@pytest.mark.parametrize(
    ("make", "version"),
    [*((four, version) for version in ("0.17", "0.18", "1.0", "1.1")), (four_of_arc, "")],
)
@pytest.mark.parametrize("left", [150, 800, 1_600])
def test_a_record_that_was_cut_in_a_line_ends_where_the_next_is_glued_to_it(
    make, version: str, left: int
) -> None:
    a, b, c, d = make(version)
    first = b"" if version else b"filedesc://x 0.0.0.0 20260301000000 text/plain 3\n1 0\n"
    read, counts = found(first + a + b[:-left] + c + d)
    pages = [each for each in read if not each.field("warc-target-uri").startswith("filedesc")]
    assert [each.field("warc-target-uri") for each in pages] == [f"http://a.cz/{n}" for n in range(4)]
    assert [each.cut for each in pages] == [False, True, False, False]
    assert [pages[at].block for at in (0, 2, 3)] == [http(page(n)) for n in (0, 2, 3)]
    assert pages[1].block == http(page(1))[: len(pages[1].block)]
    assert counts.damaged == 1
    assert reply_of(pages[1], LIMIT) == RefusedRecord("", "truncated")


def test_a_head_that_was_cut_gives_nothing_of_its_fields_to_the_next() -> None:
    request = record("request", "http://no.cz/", b"GET / HTTP/1.1\r\n\r\n")
    for left in (40, 70, 100):
        read, counts = found(THREE[0] + request[:left].rstrip(b" ") + THREE[1] + THREE[2])
        assert [each.field("warc-target-uri") for each in read] == ADDRESSES
        assert [each.kind for each in read] == ["response"] * 3
        assert counts.damaged == 1 and counts.bytes_skipped


def test_a_field_may_contain_a_version_of_warc() -> None:
    (only,) = found(response("http://a.cz/", b"a", X_Format="WARC/1.1"))[0]
    assert only.field("x-format") == "WARC/1.1" and not only.cut


def test_a_head_behind_garbage_without_a_line_end_is_found() -> None:
    assert urls(THREE[0] + b"garbage" + THREE[1] + b"\0" * 600 + THREE[2]) == ADDRESSES
    read, _ = found(THREE[0] + b"garbage" + THREE[1])
    assert [each.cut for each in read] == [False, False]  # the garbage is behind a whole record


@pytest.mark.parametrize("off", range(1, 12))
def test_a_length_that_ends_within_the_next_head_does_not_cost_that_record(off: int) -> None:
    liar = response("http://a.cz/1", page(1), content_length=str(len(http(page(1))) + 4 + off))
    read, _ = found(THREE[0] + liar + THREE[2])
    assert [each.field("warc-target-uri") for each in read] == ADDRESSES
    assert [each.cut for each in read] == [False, True, False]


def test_a_head_without_a_length_or_an_end_is_skipped() -> None:
    headless = THREE[1].replace(b"Content-Length", b"Content-Lenght")
    endless = b"WARC/1.0\r\n" + b"X: y\r\n" * 100_000
    for bad in (headless, response("http://a.cz/1", page(1), content_length="-5"), endless):
        for data in (THREE[0] + bad + THREE[2], packed(THREE[0], bad, THREE[2])):
            read, counts = found(data)
            assert [each.field("warc-target-uri") for each in read] == [ADDRESSES[0], ADDRESSES[2]]
            assert counts.damaged and counts.bytes_skipped


def test_a_missing_last_line_end_and_files_strung_together_are_no_damage() -> None:
    assert found(PLAIN.rstrip())[1] == found(PLAIN)[1]
    assert urls(PLAIN.rstrip() + b"\r\n\r\n" + PLAIN) == ADDRESSES * 2
    assert urls(packed(*THREE) * 2) == ADDRESSES * 2


@pytest.mark.parametrize("pack", [packed, lambda one: zstandard.ZstdCompressor().compress(one), lz4])
def test_a_member_that_is_overwritten_costs_no_other(pack) -> None:
    members = [pack(each) for each in THREE]
    broken = bytearray(members[1])
    broken[40:60] = b"\xff" * 20
    read, counts = found(members[0] + bytes(broken) + members[2])
    kept = [each.field("warc-target-uri") for each in read if not each.cut]
    assert ADDRESSES[0] in kept and ADDRESSES[2] in kept
    assert counts.bytes_skipped


@pytest.mark.growth
def test_a_long_record_and_a_bomb_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "BOMB_BYTES", 1 << 26)
    zeros = gzip.compress(bytes(1 << 20), 9) * 200  # a member each, of one record
    head = record("response", "http://a.cz/long", b"", content_length=str(200 << 20))[:-4]
    bomb = gzip.compress(bytes(150 << 20), 9)
    tracemalloc.start()
    read, counts = found(gzip.compress(head) + zeros + packed(THREE[0]) + bomb + packed(THREE[2]), 1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each.field("warc-target-uri") for each in read] == [
        "http://a.cz/long",
        ADDRESSES[0],
        ADDRESSES[2],
    ]
    assert len(read[0].block) == 1 << 20 and read[0].cut
    assert counts.bytes_skipped > 150_000
    assert peak < 16 << 20


def test_going_back_over_damage_takes_no_more_than_another_reading() -> None:
    # Every few bytes a member begins that reads well for a while, and none of them ends.
    member = packed(THREE[0])[:200]
    source = unpacking.PackedStream(io.BytesIO(member * 3_000))
    reads = 0
    real = source.read

    def counting() -> bytes:
        nonlocal reads
        data = real()
        reads += len(data)
        return data

    source.read = counting  # type: ignore[method-assign]
    for _ in unpacking.unpacked(source):
        pass
    assert source.offset == 600_000
    assert reads < 20 * 600_000 + (1 << 20)


SMALL = [response(f"http://a.cz/{n}", b"<p>body %d</p>" % n) for n in range(4)]
FILES = [
    b"".join(SMALL),
    packed(*SMALL),
    gzip.compress(b"".join(SMALL)),
    b"".join(map(zstandard.ZstdCompressor().compress, SMALL)),
    b"".join(map(lz4, SMALL)),
    b"filedesc://x 0.0.0.0 20260301000000 text/plain 3\n1 0\n"
    + b"".join(arc(f"http://a.cz/{n}", http(b"a")) for n in range(4)),
]


@settings(max_examples=400)
@given(st.sampled_from(FILES), st.integers(0, 2**32))
def test_no_damage_makes_the_reader_raise_hang_or_invent(data: bytes, seed: int) -> None:
    chance = random.Random(seed)
    broken = bytearray(data)
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(broken))
        match chance.randrange(4):
            case 0:
                del broken[at:]
            case 1:
                broken[at] = chance.randrange(256)
            case 2:
                del broken[at : at + chance.randrange(200)]
            case _:
                broken[at:at] = chance.randbytes(chance.randrange(200))
        broken = broken or bytearray(b"\0")
    read, counts = found(bytes(broken))
    assert len(read) == counts.records <= 5
    assert sum(len(each.block) for each in read) < 10_000
    for each in read:
        assert 0 <= each.offset <= len(broken)
        reply_of(each, LIMIT)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_to_their_end(data: bytes) -> None:
    reported = bytearray()
    list(records(io.BytesIO(data), LIMIT, on_read=reported.extend))
    assert bytes(reported) == data


@given(st.lists(st.sampled_from(range(5)), min_size=1, max_size=4), st.integers(0, 3))
def test_records_before_damage_are_unchanged(where: list[int], number: int) -> None:
    data = packed(*SMALL)
    borders = [0]
    for each in SMALL:
        borders.append(borders[-1] + len(packed(each)))
    broken = bytearray(data)
    for place in where:
        broken[borders[number] + 20 + place] ^= 0x55
    kept = Counter(each.block for each in found(bytes(broken))[0] if not each.cut)
    for other, each in enumerate(found(data)[0]):
        assert other == number or kept[each.block] >= 1
