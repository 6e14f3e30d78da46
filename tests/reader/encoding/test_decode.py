"""Content encodings and character encodings, decoded or refused."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zlib
from pathlib import Path

import brotli
import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from thresher.reader import read
from thresher.reader.encoding.charset import CODECS, declared_inside, named
from thresher.reader.encoding.charset_guess import AGAINST_GUESS, detect, likelier
from thresher.reader.encoding.decode import decode, unpack
from thresher.records import Reply

LIMIT = 32 << 20
PAGE = "<p>Příliš žluťoučký kůň úpěl ďábelské ódy.</p>\n".encode() * 400


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


PACKED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE[:100]) + gzip.compress(PAGE[100:]),
    "deflate": zlib.compress(PAGE),
    "Deflate ": raw_deflate(PAGE),
    "br": brotli.compress(PAGE),
    "zstd": zstandard.compress(PAGE),
    "identity": PAGE,
    "": PAGE,
    "gzip, br": brotli.compress(gzip.compress(PAGE)),
}


@pytest.mark.parametrize("coding", PACKED)
def test_every_coding_of_the_web_is_undone(coding: str) -> None:
    assert unpack(PACKED[coding], coding, LIMIT) == (PAGE, "")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_costs_little_and_is_named(coding: str) -> None:
    mebibyte = bytes(1 << 20)
    packers = {
        "gzip": zlib.compressobj(wbits=31),
        "deflate": zlib.compressobj(),
        "zstd": zstandard.ZstdCompressor().compressobj(),
    }
    if coding == "br":
        packer = brotli.Compressor(quality=1)
        bomb = b"".join(packer.process(mebibyte) for _ in range(64)) + packer.finish()
    else:
        packer = packers[coding]
        bomb = b"".join(packer.compress(mebibyte) for _ in range(64)) + packer.flush()
    tracemalloc.start()
    try:
        assert unpack(bomb, coding, 4 << 20) == (b"", "decompression bomb")
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_a_body_may_be_exactly_as_large_as_allowed() -> None:
    assert unpack(gzip.compress(bytes(1000)), "gzip", 1000).body == bytes(1000)
    assert unpack(gzip.compress(bytes(1001)), "gzip", 1000).fault == "decompression bomb"


def test_codings_that_are_unknown_or_too_many_are_faults() -> None:
    assert unpack(PAGE, "rot13", LIMIT).fault == "unknown encoding"
    assert unpack(PAGE, "gzip, gzip, gzip", LIMIT).fault == "too many encodings"


def test_a_truncated_stream_gives_the_bytes_before_the_end() -> None:
    incompressible = os.urandom(50_000)
    for coding, packed in {
        "gzip": gzip.compress(incompressible),
        "br": brotli.compress(incompressible),
        "deflate": zlib.compress(incompressible),
    }.items():
        body, fault = unpack(packed[:-20_000], coding, LIMIT)
        assert fault == ""
        assert len(body) > 10_000
        assert incompressible.startswith(body)


def test_a_stream_of_rubbish_is_a_fault_but_plain_markup_under_a_false_label_is_read() -> None:
    assert unpack(b"\xff\xfe rubbish", "gzip", LIMIT).fault == "damaged encoding"
    assert unpack(b"<html>plain", "gzip", LIMIT).body == b"<html>plain"


@given(st.binary(max_size=400), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br"]))
def test_no_bytes_break_a_decompressor(body: bytes, coding: str) -> None:
    assert unpack(body, coding, 1 << 16).fault in ("", "damaged encoding", "decompression bomb")


def test_encodings_are_found_as_the_html_standard_says_unless_the_bytes_are_plainly_utf8(
    suites: Path,
) -> None:
    cases = []
    for file in sorted((suites / "encoding").glob("*.dat")):
        for case in file.read_bytes().split(b"#data\n")[1:]:
            data, _, encoding = case.partition(b"\n#encoding\n")
            cases.append((data, encoding.split(b"\n")[0].decode().strip()))
    assert len(cases) == 82
    others = [(data, wanted) for data, wanted in cases if decode(data).charset != named(wanted)]
    # The page declares EUC-JP and is UTF-8 throughout: the bytes decide, not the label.
    assert [wanted for _, wanted in others] == ["euc-jp"]
    assert "日本" in others[0][0].decode("utf-8")


TEXTS = {
    "windows-1250": "Příliš žluťoučký kůň úpěl ďábelské ódy a šel si lehnout. ",
    "windows-1251": "Широкая электрификация южных губерний даст мощный толчок. ",
    "windows-1252": "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter. ",
    "windows-1254": "Pijamalı hasta, yağız şoföre çabucak güvendi ve teşekkür etti. ",
    "windows-1253": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, είπε και έφυγε. ",
    "shift_jis": "いろはにほへと散りぬるを我が世誰ぞ常ならむ。",
    "euc-jp": "いろはにほへと散りぬるを我が世誰ぞ①常ならむ。",
    "iso-2022-jp": "いろはにほへと散りぬるを我が世誰ぞ常ならむ。",
    "gbk": "我们在这里看书，他们也来了。",
    "big5": "我們在這裡看書，他們也來了。",
    "euc-kr": "우리는 여기에서 책을 읽고 있습니다. ",
    "koi8-r": "Съешь же ещё этих мягких французских булок. ",
    "utf-16le": "<p>Kůň pěl ódy</p>",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_declared_encoding_is_decoded(name: str) -> None:
    text = TEXTS[name] * 20
    document = decode(text.encode(CODECS[name]), f"text/html; charset={name}")
    assert (document.utf8.decode(), document.charset, document.declared) == (text, name, name)


@pytest.mark.parametrize(
    "name", ["windows-1250", "windows-1251", "shift_jis", "euc-kr", "big5", "iso-2022-jp"]
)
def test_an_undeclared_encoding_is_guessed(name: str) -> None:
    text = TEXTS[name] * 20
    document = decode(text.encode(CODECS[name]), "text/html")
    assert document.utf8.decode() == text
    assert document.declared == ""


def test_utf8_beats_a_label_that_says_otherwise() -> None:
    czech = TEXTS["windows-1250"].encode()
    for label in ("iso-8859-1", "windows-1250", "gbk"):
        assert decode(czech, f"text/html; charset={label}") == (czech, "utf-8", label)


def test_a_page_that_is_not_the_utf8_it_claims_to_be_is_guessed() -> None:
    text = TEXTS["windows-1250"] * 20
    document = decode(text.encode("cp1250"), "text/html; charset=utf-8")
    assert (document.utf8.decode(), document.charset, document.declared) == (text, "windows-1250", "utf-8")


def test_a_few_broken_bytes_do_not_overturn_a_label() -> None:
    document = decode("Příliš žluťoučký kůň".encode() * 9 + b"\xff\xff\xff\xff.", "text/html; charset=utf-8")
    assert document.charset == "utf-8"
    assert document.utf8.decode().endswith("kůň\ufffd\ufffd\ufffd\ufffd.")


def test_a_last_character_cut_in_two_is_dropped() -> None:
    assert decode("kůň".encode()[:-1], "").utf8.decode() == "ků"


def test_a_byte_order_mark_beats_the_header_and_is_taken_off() -> None:
    document = decode("\ufeffkůň".encode("utf-16-le"), "text/html; charset=utf-8")
    assert (document.utf8.decode(), document.charset, document.declared) == ("kůň", "utf-16le", "utf-8")


def test_the_header_beats_the_page() -> None:
    body = b"<meta charset=windows-1251>" + TEXTS["windows-1250"].encode("cp1250")
    assert decode(body, "text/html; charset=windows-1250").charset == "windows-1250"
    assert decode(body, "text/html; charset=nonsense").charset == "windows-1251"


def test_utf7_is_never_decoded_and_dangerous_encodings_give_nothing() -> None:
    attack = b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-"
    assert decode(attack, "text/html; charset=utf-7").utf8 == attack
    assert decode(b"\x1b$)C\x0e!!", "text/html; charset=iso-2022-kr").utf8.decode() == "\ufffd"


def test_a_declaration_late_in_the_page_is_found_like_a_parser_finds_it() -> None:
    late = b"<!--" + b"x" * 3000 + b"--><meta charset=koi8-r>"
    assert declared_inside(late) == "koi8-r"


def test_labels_have_the_meaning_that_browsers_give_them() -> None:
    meanings = {"latin1": "windows-1252", "US-ASCII": "windows-1252", " iso-8859-9\n": "windows-1254"}
    meanings |= {"gb2312": "gbk", "x-sjis": "shift_jis", "ks_c_5601-1987": "euc-kr", "unicode": "utf-16le"}
    assert {label: named(label) for label in meanings} == meanings
    assert named("utf-7") is None


@given(st.binary(max_size=600), st.sampled_from(["", *CODECS, "nonsense"]))
def test_any_bytes_under_any_label_become_utf8(body: bytes, label: str) -> None:
    document = decode(body, f"text/html; charset={label}" if label else "", "cz")
    document.utf8.decode("utf-8")
    assert document.charset in CODECS


@given(st.binary(max_size=300))
def test_sniffing_always_names_an_encoding(tail: bytes) -> None:
    assert decode(b"<meta " + tail).charset in CODECS
    assert decode(tail, "text/html; charset=windows-1251").charset in CODECS


UNDECLARED = {
    (
        "iso-8859-2",
        "sr",
        "rs",
    ): "Čovječanstvo je, međutim, željelo šumu; kuća žute boje ipak će pasti, rekla je đakova žena. ",
    (
        "iso-8859-3",
        "eo",
        "",
    ): "Ĉiuj homoj estas denaske liberaj, kaj ĝuste tial ŝi aŭdis la ĵaluzan eĥoŝanĝon ĉiuĵaŭde. ",
    (
        "iso-8859-15",
        "fr",
        "fr",
    ): "Sa sœur a le cœur gros : l'œuvre déçoit, et le bœuf à l'œil doré coûte 3 € près d'ici. ",
    (
        "iso-8859-16",
        "pl",
        "pl",
    ): "Zażółć gęślą jaźń: mężny bądź, chroń pułk twój i sześć flag, powiedział święty żółw. ",
    ("windows-874", "th", ""): "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ",
    (
        "koi8-u",
        "be",
        "by",
    ): "Усе людзі нараджаюцца свабоднымі і роўнымі ў сваёй годнасці і правах, і ўсе яны ўмеюць любіць. ",
    (
        "x-mac-cyrillic",
        "ru",
        "ru",
    ): "Все люди рождаются свободными и равными в своём достоинстве и правах, и я знаю это. ",
}


@pytest.mark.parametrize("encoding, language, country", UNDECLARED)
def test_encodings_that_browsers_do_not_guess_are_recognised_by_their_letters(
    encoding: str, language: str, country: str
) -> None:
    text = UNDECLARED[encoding, language, country] * 12
    spelt = text.replace("ў", "╝").replace("Ў", "╬") if encoding == "koi8-u" else text
    page = f"<ul><li><a href=/>Home</a></ul><p>{spelt}</p>".encode(CODECS[encoding])
    for hint in ("", country):
        assert (
            decode(page, "text/html", hint).utf8.decode() == f"<ul><li><a href=/>Home</a></ul><p>{text}</p>"
        )


def test_letters_of_an_unforeseen_language_do_not_change_a_guess() -> None:
    tzeltal = (
        "Spisil winiketik te ya xbejk’ajik ta k’inalil ay jrerechotik, mayuk mach’a chukul ya xbejk’aj. "
    )
    for text in (tzeltal * 20, "L’uomo “nuovo” – così – c’è, e l’altro no. " * 20):
        assert decode(text.encode("cp1252"), "text/html").utf8.decode() == text


def test_a_label_that_servers_add_by_themselves_gives_way_to_letters_that_speak_against_it() -> None:
    for name in ("windows-1250", "windows-1251", "windows-1253"):
        text = TEXTS[name] * 20
        document = decode(text.encode(CODECS[name]), "text/html; charset=iso-8859-1")
        assert (document.utf8.decode(), document.declared) == (text, "iso-8859-1")
    french = TEXTS["windows-1252"] * 20
    assert decode(french.encode("cp1252"), "text/html; charset=iso-8859-1").utf8.decode() == french


@pytest.mark.parametrize("content_type", ["text/html", "text/html; charset=windows-1251"])
def test_utf8_with_a_broken_byte_is_utf8_all_the_same(content_type: str) -> None:
    body = TEXTS["windows-1250"].encode() * 5 + b"\xff."
    assert decode(body, content_type).utf8.decode() == TEXTS["windows-1250"] * 5 + "\ufffd."


def test_japanese_signs_are_the_same_in_both_of_its_encodings() -> None:
    in_shift_jis = decode("３～５、－１".encode("cp932") * 9, "text/html; charset=shift_jis")
    in_euc_jp = decode("３〜５、−１".encode("euc_jp") * 9, "text/html; charset=euc-jp")
    assert in_euc_jp.utf8 == in_shift_jis.utf8


@given(st.binary(max_size=400), st.sampled_from(sorted(set(CODECS) - {"replacement"})))
def test_letters_never_lead_to_an_encoding_that_does_not_exist(body: bytes, name: str) -> None:
    assert likelier(body, name, AGAINST_GUESS) in CODECS
    assert detect(body, "rs") in CODECS


def test_every_input_of_the_html_suite_is_read(suites: Path) -> None:
    inputs = [
        case.partition(b"\n#errors")[0]
        for file in sorted((suites / "html5").glob("*.dat"))
        for case in file.read_bytes().split(b"#data\n")[1:]
    ]
    assert len(inputs) > 1_700
    for body in inputs:
        page = read(
            Reply(
                "http://a.example/", 200, b"HTTP/1.1 200\r\nContent-Type: text/html\r\n", body, 0.0, 0.0, ""
            )
        )
        msgspec.msgpack.encode(page)
        assert page.kind == "html" or page.fault == "binary"  # a few are all control characters
