"""A fetch ends within its limits: of size, of time, with broken connections and with answers that are not HTTP."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.webs.http_server import (
    HI,
    OK,
    ask,
    endless,
    fetcher,
    hang_up,
    outcome,
    reset,
    run,
    to_loopback,
    web,
)
from thresher import config
from thresher.crawler.fetching import fetcher as fetch
from thresher.records import Failure


def test_an_endless_body_is_cut_exactly_at_the_limit():
    reply = outcome(lambda writer, _: endless(writer, b"x" * 1000, OK + b"\r\n"), max_body_bytes=12_345)
    assert (reply.body, reply.truncated) == (b"x" * 12_345, "length")


@pytest.mark.parametrize(("size", "truncated"), [(99_999, ""), (100_000, ""), (100_001, "length")])
def test_a_body_is_cut_only_when_it_is_over_the_limit(size, truncated):
    reply = outcome(OK + b"Content-Length: %d\r\n\r\n" % size + b"x" * size)
    assert (len(reply.body), reply.truncated) == (min(size, 100_000), truncated)


def test_a_body_sent_byte_by_byte_is_cut_before_it_costs_much(monkeypatch):
    monkeypatch.setattr("thresher.crawler.fetching.curl.MAX_PIECES", 500)
    reply = outcome(lambda w, _: endless(w, b"1\r\nx\r\n" * 100, OK + b"Transfer-Encoding: chunked\r\n\r\n"))
    assert (reply.body, reply.truncated) == (b"x" * 501, "length")


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"X: y\r\n" * 2_000 + b"\r\n",
        OK + b"X: y\r\n" * 10_000 + b"\r\n",
        OK + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
        OK + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n",
        lambda writer, _: endless(writer, b"X: y\r\n" * 100, OK),
        lambda writer, _: endless(writer, b"y" * 1000, OK + b"X: "),
        lambda writer, _: endless(writer, b" z\r\n" * 100, OK + b"X: y\r\n"),
    ],
)
def test_headers_without_end_are_too_large(answer):
    failure = outcome(answer)
    assert (failure.reason, failure.transient) == ("headers too large", False)


def test_interim_responses_are_dropped():
    reply = outcome(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HI)
    assert reply.headers == OK + b"Content-Length: 2\r\n"
    assert reply.body == b"hi"


def test_interim_responses_without_end_are_refused():
    failure = outcome(lambda writer, _: endless(writer, b"HTTP/1.1 100 Continue\r\n\r\n" * 10))
    assert (failure.reason, failure.transient) == ("protocol", False)


def test_trailers_without_end_are_cut_off():
    start = OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"
    reply = outcome(lambda writer, _: endless(writer, b"X: y\r\n" * 100, start))
    assert (reply.body, reply.truncated, reply.header("X")) == (b"hi", "length", None)


# limits of time


def test_a_server_that_never_answers_is_given_up():
    limits = config.FetchSettings(first_byte_timeout=0.2)
    failure = outcome(lambda writer, _: None, limits=limits)
    assert (failure.reason, failure.transient) == ("timeout", True)
    assert limits.first_byte_timeout / 2 < failure.elapsed < limits.total_timeout


def test_a_body_that_never_ends_is_kept_as_far_as_it_came():
    limits = config.FetchSettings(total_timeout=1.0)
    reply = outcome(OK + b"Content-Length: 10\r\n\r\nhi", limits=limits)
    assert (reply.status, reply.body, reply.truncated) == (200, b"hi", "time")
    assert limits.total_timeout / 2 < reply.elapsed


@pytest.mark.parametrize("answer", [OK + b"X: y\r\n", lambda w, _: endless(w, b" " * 1000, OK + b"X: y\r\n")])
def test_headers_that_never_end_are_no_reply(answer):
    failure = outcome(answer, limits=config.FetchSettings(total_timeout=0.1))
    assert (failure.reason, failure.transient) == ("timeout", True)


def test_a_body_that_drips_too_slowly_is_given_up_long_before_the_deadline():
    async def drip(writer, start):
        writer.write(start)
        while True:
            writer.write(b"X: y\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    def answer(writer, request):
        return drip(writer, OK + b"\r\n" if b"/body" in request else OK)

    async def main():
        limits = config.FetchSettings(min_rate=200, min_rate_seconds=1)
        async with web(answer) as seen, fetcher(limits, connect_to=seen.address) as crawler:
            return await asyncio.gather(crawler.fetch("http://a.cz/body"), crawler.fetch("http://b.cz/head"))

    body, head = run(asyncio.wait_for(main(), config.FetchSettings().total_timeout / 2))
    assert (body.status, body.truncated) == (200, "time")
    assert (head.reason, head.transient) == ("timeout", True)


def test_a_chunk_extension_without_end_is_given_up():
    reply = outcome(
        lambda w, _: endless(w, b"x" * 100, OK + b"Transfer-Encoding: chunked\r\n\r\n2;"),
        limits=config.FetchSettings(total_timeout=1.0),
    )
    assert (reply.body, reply.truncated) == (b"", "time")


def test_a_handshake_that_never_comes_is_given_up():
    async def main():
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        try:
            limits = config.FetchSettings(connect_timeout=0.1, ports=(port,))
            async with fetcher(limits, **to_loopback()) as crawler:
                return await crawler.fetch(f"https://a.cz:{port}/")
        finally:
            listener.close()

    failure = run(main())
    assert (failure.reason, failure.transient) == ("timeout", True)


# connections that break


def test_a_closed_port_is_a_failure_to_connect():
    async def main():
        async with web(HI) as seen:
            pass
        async with fetcher(connect_to=seen.address) as crawler:
            return await crawler.fetch("http://a.cz/")

    failure = run(main())
    assert (failure.reason, failure.transient) == ("connect", True)


@pytest.mark.parametrize("end", [reset, hang_up])
@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 20", OK, OK + b"Content-Length: 10\r\n"])
def test_a_connection_lost_before_the_body_is_a_disconnection(end, start):
    failure = outcome(lambda writer, _: end(writer, start))
    assert (failure.reason, failure.transient) == ("disconnect", True)


@pytest.mark.parametrize("end", [reset, hang_up])
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 10\r\n\r\nhi", b"Transfer-Encoding: chunked\r\n\r\n9\r\nhi"]
)
def test_a_body_that_breaks_off_is_kept_as_far_as_it_came(end, framing):
    reply = outcome(lambda writer, _: end(writer, OK + framing))
    assert (reply.status, reply.body, reply.truncated) == (200, b"hi", "disconnect")


def test_a_body_without_length_ends_with_the_connection():
    reply = outcome(lambda writer, _: hang_up(writer, OK + b"\r\nhi"))
    assert (reply.body, reply.truncated) == (b"hi", "")


def test_a_connection_that_was_closed_while_idle_is_opened_again():
    async def main():
        async with (
            web(lambda writer, _: hang_up(writer, HI)) as seen,
            fetcher(connect_to=seen.address) as crawler,
        ):
            return [(await crawler.fetch("http://a.cz/")).body for _ in range(3)], seen.connections

    assert run(main()) == ([b"hi"] * 3, 3)


# answers that are wrong


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>no headers at all</html>",
        b"\x00\x01\x02\r\n\r\n",
        b"\r\n\r\n",
        b"ICY 200 OK\r\n\r\nhi",
        b"HTTP/1.1 0 Zero\r\n\r\n",
        b"HTTP/1.1 -1 Less\r\n\r\n",
        b"HTTP/1.1 042 Low\r\n\r\n",
        b"HTTP/1.1 twohundred OK\r\n\r\n",
        b"HTTP/1.1200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nnot http any more",
        OK + b"no colon\r\n\r\n",
        OK + b"X: a\0b\r\n\r\n",
        OK + b"X: a\rSet-Cookie: b\r\n\r\n",
        OK + b"Content-Length: 2\r\nContent-Length: 4\r\n\r\nhi  ",
        OK + b"Content-Length: -2\r\n\r\nhi",
        OK + b"Content-Length: 2, 4\r\n\r\nhi  ",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhi",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\nhi",
        OK + b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\nhi",
        OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffffffff\r\nhi",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi and more than two\r\n0\r\n\r\n",
    ],
)
def test_a_reply_that_is_not_http_is_a_protocol_failure(answer):
    failure = outcome(answer)
    assert (failure.reason, failure.transient) == ("protocol", False)


@pytest.mark.parametrize("status", [299, 451, 600, 999])
def test_odd_statuses_are_left_to_others_to_judge(status):
    reply = outcome(b"HTTP/1.1 %d Odd\r\nContent-Length: 2\r\n\r\nhi" % status)
    assert (reply.status, reply.body) == (status, b"hi")


def test_bare_line_feeds_are_made_whole():
    reply = outcome(b"HTTP/1.1 200 OK\nX: y\r\nContent-Length: 2\n\nhi")
    assert reply.headers == b"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 2\r\n"
    assert reply.body == b"hi"


def test_a_folded_header_is_one_line():
    reply = outcome(OK + b"X: a\r\n  b\r\nContent-Length: 2\r\n\r\nhi")
    assert reply.header("X") == "a b"


def test_escapes_and_strange_letters_in_headers_are_kept():
    reply = outcome(b"HTTP/1.1 200 \x1b[2J\xff\r\nX: \x1b]52;\xe2\x82\xac\r\nContent-Length: 2\r\n\r\nhi")
    assert reply.headers.startswith(b"HTTP/1.1 200 \x1b[2J\xff\r\nX: \x1b]52;\xe2\x82\xac\r\n")


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_body_has_none_even_if_one_is_sent(status):
    answer = b"HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nhi" % status
    replies, _ = ask(answer, "http://a.cz/", "http://a.cz/2")
    assert [(reply.status, reply.body) for reply in replies] == [(status, b"")] * 2


def test_bytes_after_a_response_are_never_taken_for_the_next_one():
    smuggled = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    replies, _ = ask(HI + smuggled, "http://a.cz/", "http://a.cz/2", "http://a.cz/3")
    assert [reply.body for reply in replies] == [b"hi"] * 3


def test_chunks_win_over_a_length():
    answer = OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
    replies, _ = ask(answer, "http://a.cz/", "http://a.cz/2")
    assert [reply.body for reply in replies] == [b"hi", b"hi"]


@settings(max_examples=150)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(lambda rest: OK + rest),
        st.lists(
            st.sampled_from([OK, b"HTTP/1.1 100 C\r\n", b"X: y", b"\r\n", b"\n", b"\r", b"\0", b" ", b"5"])
        ).map(b"".join),
    )
)
def test_any_bytes_give_a_value_with_clean_headers(answer):
    result = outcome(lambda writer, _: hang_up(writer, answer))
    if isinstance(result, Failure):
        assert result.reason in fetch.REASONS
    else:
        lines = result.headers.split(b"\r\n")
        assert lines.pop() == b""
        assert lines[0].startswith(b"HTTP/")
        assert not any(sign in line for line in lines for sign in (b"\r", b"\n", b"\0"))
