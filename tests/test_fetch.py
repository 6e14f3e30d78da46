"""A fetch ends in time, with the exact bytes or with a reason, and it never leads into a private network."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import resource
import socket
import ssl
import struct
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher import __version__, config
from thresher.crawl import fetch
from thresher.crawl.fetch import Fetcher, user_agent
from thresher.crawl.resolve import Resolver
from thresher.page import Failure, Reply

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"Content-Length: 2\r\n\r\nhi"
QUICK = config.Fetch(connect_timeout=0.3, first_byte_timeout=0.2, total_timeout=1.0, max_body_bytes=100_000)


def run(main, loop_factory=uvloop.new_event_loop):
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main)


class Web:
    """What a test's server saw."""

    def __init__(self):
        self.requests = []
        self.connections = 0
        self.port = 0
        self.hung_up = asyncio.Event()  # by the other side

    @property
    def address(self):
        return ("127.0.0.1", self.port)


@asynccontextmanager
async def web(answer, tls=None):
    """A server on loopback that says exactly what the test wants.

    `answer` is the bytes for every request, or a function of the writer and the request that gives bytes,
    None for silence, or a coroutine that writes for itself; after a coroutine the connection is closed.
    """
    seen = Web()
    waiting = set()

    async def serve(reader, writer):
        seen.connections += 1
        waiting.add(asyncio.current_task())
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                seen.requests.append(request)
                said = answer(writer, request) if callable(answer) else answer
                if inspect.isawaitable(said):
                    await said
                    break
                if said is not None:
                    writer.write(said)
        except (OSError, asyncio.IncompleteReadError):
            seen.hung_up.set()
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls, backlog=1000)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@asynccontextmanager
async def fetcher(limits=QUICK, **options):
    made = Fetcher(limits, user_agent("https://example.org/bot"), **options)
    try:
        yield made
    finally:
        await made.close()


def open_files():
    return {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}


def ask(answer, *urls, limits=QUICK, loop_factory=uvloop.new_event_loop, **options):
    """What a fetcher makes of a server that answers so, and what the server saw; one URL after the other."""

    async def main():
        async with web(answer) as seen, fetcher(limits, connect_to=seen.address) as crawler:
            return [await crawler.fetch(url, **options) for url in urls or ["http://a.cz/"]], seen

    return run(main(), loop_factory)


def outcome(answer, **options):
    [result], _ = ask(answer, **options)
    return result


async def endless(writer, piece, start=b""):
    writer.write(start)
    while True:
        writer.write(piece)
        await writer.drain()


# --- what is asked, and what is kept ---------------------------------------------------------------------


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_reply_has_the_exact_bytes(loop_factory):
    head = b"HTTP/1.1 200 Fine  \r\nServer: x\r\ncontent-TYPE:text/html; charset=x\r\nContent-Length: 5\r\n"
    [reply], seen = ask(head + b"\r\n\x00\xffabc", "http://a.cz/p?q=1", loop_factory=loop_factory)
    assert isinstance(reply, Reply)
    assert (reply.url, reply.status, reply.truncated) == ("http://a.cz/p?q=1", 200, "")
    assert reply.headers == head
    assert reply.body == b"\x00\xffabc"
    assert reply.header("Content-Type") == "text/html; charset=x"
    assert reply.address == "127.0.0.1"
    assert 0 < reply.elapsed < 1
    assert seen.requests[0].startswith(b"GET /p?q=1 HTTP/1.1\r\n")


def test_the_time_of_a_reply_is_the_clocks():
    async def main():
        async with web(HI) as seen, fetcher(connect_to=seen.address, clock=lambda: 12345.5) as crawler:
            return await crawler.fetch("http://a.cz/")

    assert run(main()).fetched == 12345.5


def test_content_encodings_are_kept_as_they_came():
    packed = gzip.compress(b"text " * 100)
    reply = outcome(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)
    assert reply.body == packed


def test_chunks_are_joined_and_trailers_dropped():
    reply = outcome(
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3;x=y\r\n yo\r\n0\r\nX-Late: 1\r\n\r\n"
    )
    assert (reply.body, reply.truncated, reply.header("X-Late")) == (b"hi yo", "", None)


def test_we_say_who_we_are_and_what_we_read():
    async def main():
        async with web(HI) as seen, fetcher(connect_to=seen.address, language="cs") as crawler:
            await crawler.fetch("http://a.cz/robots.txt", accept="text/plain")
            await crawler.fetch("http://a.cz/")
            return seen.requests

    first, second = run(main())
    lines = first.split(b"\r\n")
    assert f"User-Agent: Thresher/{__version__} (+https://example.org/bot)".encode() in lines
    assert b"Accept: text/plain" in lines
    assert b"Accept-Encoding: gzip" in lines
    assert b"Accept-Language: cs, *;q=0.5" in lines
    assert f"Accept: {fetch.ACCEPT}".encode() in second.split(b"\r\n")


def test_a_contact_cannot_smuggle_a_header():
    assert "\n" not in user_agent("x\r\nEvil: y")


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("http://a.cz/", "a.cz", "/"),
        ("http://a.cz", "a.cz", "/"),
        ("http://a.cz?x", "a.cz", "/?x"),
        ("http://a.cz/a#b", "a.cz", "/a"),
        ("https://a.cz/x", "a.cz", "/x"),
        ("https://a.cz:443/x", "a.cz", "/x"),
        ("https://a.cz:8443/x", "a.cz:8443", "/x"),
        ("https://a.cz:80/x", "a.cz:80", "/x"),
        ("http://a.cz:443/x", "a.cz:443", "/x"),
        ("http://user:secret@a.cz/x", "a.cz", "/x"),
        ("http://a.cz/../b/./c", "a.cz", "/../b/./c"),
        ("http://127.0.0.1:22/x", "127.0.0.1:22", "/x"),
        ("http://[::1]/x", "[::1]", "/x"),
        ("http://localhost/x", "localhost", "/x"),
        ("http://čaj.cz/x", "xn--aj-dma.cz", "/x"),
    ],
)
def test_a_fixed_route_changes_nothing_of_the_request(url, host, path):
    [reply], seen = ask(HI, url)
    assert (reply.url, reply.body) == (url, b"hi")
    lines = seen.requests[0].split(b"\r\n")
    assert lines[0] == f"GET {path} HTTP/1.1".encode()
    assert f"Host: {host}".encode() in lines
    assert b"secret" not in seen.requests[0]


def test_a_redirect_is_returned_not_followed():
    answer = b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"
    [reply], seen = ask(answer)
    assert (reply.status, reply.header("Location"), len(seen.requests)) == (302, "file:///etc/passwd", 1)


def test_no_cookie_is_ever_sent_back():
    bomb = OK + b"".join(b"Set-Cookie: c%d=%s\r\n" % (i, b"x" * 100) for i in range(300))
    replies, seen = ask(bomb + b"Content-Length: 2\r\n\r\nhi", "http://a.cz/", "http://a.cz/2")
    assert [reply.status for reply in replies] == [200, 200]
    assert b"ookie:" not in b"".join(seen.requests)


def test_a_proxy_in_the_environment_is_not_used(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert outcome(HI).status == 200


def test_alternative_services_and_strict_transport_are_not_heeded():
    promises = (
        b'Alt-Svc: h3=":443"\r\nStrict-Transport-Security: max-age=99999\r\nContent-Length: 2\r\n\r\nhi'
    )
    replies, _ = ask(OK + promises, "http://a.cz/", "http://a.cz/2")
    assert [reply.body for reply in replies] == [b"hi", b"hi"]


# --- one connection after another, and many at once ------------------------------------------------------


def test_two_requests_to_a_host_use_one_connection():
    replies, seen = ask(HI, "http://a.cz/", "http://a.cz/2")
    assert [reply.body for reply in replies] == [b"hi", b"hi"]
    assert seen.connections == 1


def test_two_hosts_never_share_a_connection():
    _, seen = ask(HI, "http://a.cz/", "http://b.cz/")
    assert seen.connections == 2


def test_three_hundred_fetches_at_once_all_get_their_own_answer():
    def echo(writer, request):
        path = request.split(b" ")[1]
        return OK + b"Content-Length: %d\r\n\r\n" % len(path) + path

    async def main():
        limits = config.Fetch(connections=100)
        async with web(echo) as seen, fetcher(limits, connect_to=seen.address) as crawler:
            urls = [f"http://h{i % 150}.cz/{i}" for i in range(300)]
            replies = await asyncio.gather(*map(crawler.fetch, urls))
            return [(r.url, r.body.decode()) for r in replies], [
                (u, "/" + u.rpartition("/")[2]) for u in urls
            ]

    got, wanted = run(main())
    assert got == wanted


def test_no_more_connections_are_opened_than_allowed():
    async def main():
        open_now, most = 0, 0

        async def slow(writer):
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            for _ in range(20):
                await asyncio.sleep(0)
            writer.write(HI)
            await writer.drain()
            open_now -= 1

        async with (
            web(lambda writer, _: slow(writer)) as seen,
            fetcher(config.Fetch(connections=5), connect_to=seen.address) as crawler,
        ):
            replies = await asyncio.gather(*(crawler.fetch(f"http://h{i}.cz/") for i in range(40)))
            assert {reply.body for reply in replies} == {b"hi"}
            return most

    assert 1 < run(main()) <= 5


def test_a_fetch_that_waits_its_turn_loses_none_of_its_time():
    async def unhurried(writer):
        await asyncio.sleep(0.1)
        writer.write(HI)
        await writer.drain()

    async def main():
        limits = config.Fetch(connections=1, total_timeout=0.3)
        async with (
            web(lambda writer, _: unhurried(writer)) as seen,
            fetcher(limits, connect_to=seen.address) as crawler,
        ):
            return await asyncio.gather(*(crawler.fetch(f"http://h{i}.cz/") for i in range(5)))

    assert [reply.truncated for reply in run(main())] == [""] * 5


@pytest.mark.parametrize(("files", "expected"), [(20_000, 500), (600, 344), (64, 32), (1, 1)])
def test_capacity_shrinks_with_the_number_of_files_that_may_be_open(monkeypatch, files, expected):
    monkeypatch.setattr(resource, "getrlimit", lambda what: (files, files))
    made = Fetcher(config.Fetch(connections=500), "x", connect_to=("127.0.0.1", 1))
    assert made.capacity == expected


def test_running_out_of_files_is_a_failure_to_connect_and_passes():
    async def main():
        async with web(HI) as seen, fetcher(connect_to=seen.address) as crawler:
            assert (await crawler.fetch("http://a.cz/")).status == 200
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(open_files()), hard))
            spare = []
            try:
                while True:
                    spare.append(socket.socket())
            except OSError:
                pass
            try:
                starved = await asyncio.gather(*(crawler.fetch(f"http://h{i}.cz/") for i in range(10)))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for one in spare:
                    one.close()
            return starved, await crawler.fetch("http://b.cz/")

    starved, after = run(main())
    assert {(failure.reason, failure.transient) for failure in starved} == {("connect", True)}
    assert after.body == b"hi"


def test_a_cancelled_fetch_leaves_the_fetcher_well_and_the_connection_closed():
    async def main():
        asked = asyncio.Event()

        def answer(writer, request):
            if b"/slow" not in request:
                return HI
            asked.set()
            return None

        async with web(answer) as seen, fetcher(config.Fetch(), connect_to=seen.address) as crawler:
            task = asyncio.ensure_future(crawler.fetch("http://a.cz/slow"))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await seen.hung_up.wait()
            reply = await crawler.fetch("http://a.cz/")
            return reply.body, seen.connections

    assert run(asyncio.wait_for(main(), 5)) == (b"hi", 2)


def test_a_fetch_can_be_cancelled_at_any_moment():
    async def main():
        async with web(HI) as seen, fetcher(connect_to=seen.address) as crawler:
            for moment in range(60):
                task = asyncio.ensure_future(crawler.fetch("http://a.cz/"))
                for _ in range(moment):
                    await asyncio.sleep(0)
                task.cancel()
                [result] = await asyncio.gather(task, return_exceptions=True)
                assert isinstance(result, asyncio.CancelledError | Reply)
                assert (await crawler.fetch("http://b.cz/")).body == b"hi"

    run(asyncio.wait_for(main(), 5), asyncio.new_event_loop)


def test_closing_fails_what_is_under_way_and_leaks_no_file():
    async def fetch_and_close():
        all_asked = asyncio.Event()

        def answer(writer, request):
            if len(seen.requests) == 20:
                all_asked.set()

        async with web(answer) as seen:
            async with fetcher(connect_to=seen.address) as crawler:
                tasks = [asyncio.ensure_future(crawler.fetch(f"http://h{i}.cz/")) for i in range(20)]
                await all_asked.wait()
            return [*await asyncio.gather(*tasks), await crawler.fetch("http://a.cz/")]

    before = open_files()
    outcomes = run(fetch_and_close())
    assert {(outcome.reason, outcome.transient) for outcome in outcomes} == {("disconnect", True)}
    assert open_files() == before


def test_a_fetcher_can_be_closed_at_any_moment():
    async def main():
        faults = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
        async with web(HI) as seen:
            for moment in range(30):
                async with fetcher(connect_to=seen.address) as crawler:
                    task = asyncio.ensure_future(crawler.fetch("http://a.cz/"))
                    for _ in range(moment):
                        await asyncio.sleep(0)
                result = await task
                assert isinstance(result, Reply) or result.reason == "disconnect"
        return faults

    assert run(main(), asyncio.new_event_loop) == []


# --- limits of size --------------------------------------------------------------------------------------


def test_an_endless_body_is_cut_exactly_at_the_limit():
    reply = outcome(lambda writer, _: endless(writer, b"x" * 1000, OK + b"\r\n"), max_body_bytes=12_345)
    assert (reply.body, reply.truncated) == (b"x" * 12_345, "length")


@pytest.mark.parametrize(("size", "truncated"), [(99_999, ""), (100_000, ""), (100_001, "length")])
def test_a_body_is_cut_only_when_it_is_over_the_limit(size, truncated):
    reply = outcome(OK + b"Content-Length: %d\r\n\r\n" % size + b"x" * size)
    assert (len(reply.body), reply.truncated) == (min(size, 100_000), truncated)


def test_a_body_sent_byte_by_byte_is_cut_before_it_costs_much(monkeypatch):
    monkeypatch.setattr("thresher.crawl.curl.MAX_PIECES", 500)
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


# --- limits of time --------------------------------------------------------------------------------------


def test_a_server_that_never_answers_is_given_up():
    failure = outcome(lambda writer, _: None)
    assert (failure.reason, failure.transient) == ("timeout", True)
    assert 0.19 < failure.elapsed < 1


def test_a_body_that_never_ends_is_kept_as_far_as_it_came():
    reply = outcome(OK + b"Content-Length: 10\r\n\r\nhi", limits=config.Fetch(total_timeout=0.1))
    assert (reply.status, reply.body, reply.truncated) == (200, b"hi", "time")
    assert 0.09 < reply.elapsed < 1


@pytest.mark.parametrize("answer", [OK + b"X: y\r\n", lambda w, _: endless(w, b" " * 1000, OK + b"X: y\r\n")])
def test_headers_that_never_end_are_no_reply(answer):
    failure = outcome(answer, limits=config.Fetch(total_timeout=0.1))
    assert (failure.reason, failure.transient) == ("timeout", True)


def test_what_drips_too_slowly_is_given_up_long_before_the_deadline():
    async def drip(writer, start):
        writer.write(start)
        while True:
            writer.write(b"X: y\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    def answer(writer, request):
        return drip(writer, OK + b"\r\n" if b"/body" in request else OK)

    async def main():
        limits = config.Fetch(min_rate=200, min_rate_seconds=1)
        async with web(answer) as seen, fetcher(limits, connect_to=seen.address) as crawler:
            return await asyncio.gather(crawler.fetch("http://a.cz/body"), crawler.fetch("http://b.cz/head"))

    body, head = run(asyncio.wait_for(main(), 5))
    assert (body.status, body.truncated) == (200, "time")
    assert (head.reason, head.transient) == ("timeout", True)


def test_a_chunk_extension_without_end_is_given_up():
    reply = outcome(
        lambda w, _: endless(w, b"x" * 100, OK + b"Transfer-Encoding: chunked\r\n\r\n2;"),
        limits=config.Fetch(total_timeout=0.2),
    )
    assert (reply.body, reply.truncated) == (b"", "time")


def test_a_handshake_that_never_comes_is_given_up():
    async def main():
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        try:
            limits = config.Fetch(connect_timeout=0.1, ports=(port,))
            async with fetcher(limits, **to_loopback()) as crawler:
                return await crawler.fetch(f"https://a.cz:{port}/")
        finally:
            listener.close()

    failure = run(main())
    assert (failure.reason, failure.transient) == ("timeout", True)


# --- connections that break ------------------------------------------------------------------------------


def test_a_closed_port_is_a_failure_to_connect():
    async def main():
        async with web(HI) as seen:
            pass
        async with fetcher(connect_to=seen.address) as crawler:
            return await crawler.fetch("http://a.cz/")

    failure = run(main())
    assert (failure.reason, failure.transient) == ("connect", True)


async def reset(writer, start):
    """RST instead of FIN."""
    writer.write(start)
    await writer.drain()
    await asyncio.sleep(0.02)  # what was written has to arrive before the reset sweeps it away
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def hang_up(writer, start):
    writer.write(start)
    await writer.drain()


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


# --- answers that are wrong ------------------------------------------------------------------------------


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
def test_what_is_not_http_is_a_protocol_failure(answer):
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
def test_a_status_without_body_has_none_whatever_is_sent(status):
    answer = b"HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nhi" % status
    replies, _ = ask(answer, "http://a.cz/", "http://a.cz/2")
    assert [(reply.status, reply.body) for reply in replies] == [(status, b"")] * 2


def test_what_follows_a_response_is_never_taken_for_the_next_one():
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


# --- where a connection may lead -------------------------------------------------------------------------


class Anywhere:
    """A resolver without scruples: what rebinding would make of a good one."""

    def __init__(self, *addresses):
        self.addresses = addresses
        self.asked = []

    async def resolve(self, host):
        self.asked.append(host)
        return self.addresses

    def forget(self, host):
        self.asked.append(f"forget {host}")


def to_loopback(*addresses):
    """Options for a fetcher that finds every host on this machine and may go there."""
    return {"resolver": Anywhere(*(addresses or ["127.0.0.1"])), "allow": lambda address: ""}


def refused(url, resolver=None, **limits):
    async def main():
        async with web(HI) as seen:
            settings = config.Fetch(ports=(80, 443, 8080, seen.port), **limits)
            async with fetcher(settings, resolver=resolver) as crawler:
                result = await crawler.fetch(url.replace("PORT", str(seen.port)))
                return result, seen.connections

    result, connections = run(main())
    assert connections == 0
    return result


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "127.1",
        "0.0.0.0",
        "0",
        "10.0.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "[::1]",
        "[::]",
        "[::ffff:7f00:1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fd00:ec2::254]",
        "１２７.0.0.1",
    ],
)
def test_an_address_that_is_not_public_is_never_connected_to(host):
    failure = refused(f"http://{host}:PORT/")
    assert (failure.reason, failure.transient) == ("blocked address", False)


def test_a_name_with_private_addresses_is_never_connected_to():
    async def lookup(host):
        return ["10.0.0.1", "127.0.0.1"]

    failure = refused("http://a.cz:PORT/", Resolver(config.Fetch(), lookup=lookup))
    assert (failure.reason, failure.detail) == ("blocked address", "10.0.0.1 is private")


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "::1"])
def test_the_address_of_the_socket_has_the_last_word(address):
    failure = refused("http://a.cz:PORT/", Anywhere(address))
    assert (failure.reason, failure.transient) == ("blocked address", False)
    assert "loopback" in failure.detail


@pytest.mark.parametrize(
    "url", ["http://a.cz:22/", "https://a.cz:25/", "http://a.cz:6379/", "http://a.cz:0/"]
)
def test_a_port_that_is_not_for_the_web_is_blocked(url):
    resolver = Anywhere("8.8.8.8")
    failure = refused(url, resolver)
    assert (failure.reason, failure.transient, resolver.asked) == ("blocked port", False, [])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.cz",
        "//a.cz/",
        "ftp://a.cz/",
        "file:///etc/passwd",
        "gopher://a.cz/",
        "javascript:alert(1)",
        "data:text/html,x",
        "http:a.cz",
        "http://",
        "http:///x",
        "http://a.cz:99999/",
        "http://a b.cz/",
        "http://a.cz/a b",
        "http://a.cz/\r\nEvil: x",
        "http://a.cz/\0",
        "http://a.cz/ž",
        "http://a.cz\\@b.cz/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://a.cz/" + "x" * 3_000,
        "http://%00/",
        "http://\ud800.cz/",
    ],
)
def test_what_is_no_web_address_is_a_bad_url(url):
    resolver = Anywhere("8.8.8.8")
    assert refused(url, resolver) == Failure(url, "bad url")
    assert resolver.asked == []


def test_a_name_that_does_not_exist_is_a_dns_failure():
    async def lookup(host):
        return []

    failure = refused("http://a.cz/", Resolver(config.Fetch(), lookup=lookup))
    assert (failure.reason, failure.transient) == ("dns", False)


def test_a_name_server_that_fails_is_a_dns_failure_in_passing():
    async def lookup(host):
        raise OSError("server \x1b[31mfailure")

    failure = refused("http://a.cz/", Resolver(config.Fetch(), lookup=lookup))
    assert (failure.reason, failure.transient, failure.detail) == ("dns", True, "server ?[31mfailure")


def test_a_fixed_route_must_be_an_address():
    with pytest.raises(config.ConfigError, match=r"nowhere\.cz.* try 127\.0\.0\.1"):
        Fetcher(config.Fetch(), "x", connect_to=("nowhere.cz", 80))


def direct(url, *addresses, tls=None):
    """A fetch as in the wild, but for the addresses, which lead here."""

    async def main():
        async with web(HI, tls) as seen:
            limits = config.Fetch(ports=(seen.port,), connect_timeout=2.0)
            options = to_loopback(*addresses)
            async with fetcher(limits, **options) as crawler:
                result = await crawler.fetch(url.replace("PORT", str(seen.port)))
                return result, seen, options["resolver"].asked

    return run(main())


def test_without_a_fixed_route_hosts_are_found_by_name():
    reply, seen, asked = direct("http://a.cz:PORT/x")
    assert (reply.body, reply.address, asked) == (b"hi", "127.0.0.1", ["a.cz"])
    assert f"Host: a.cz:{seen.port}".encode() in seen.requests[0]


def test_an_address_that_cannot_be_reached_is_followed_by_the_next():
    reply, _, _ = direct("http://a.cz:PORT/", "127.0.0.2", "127.0.0.1")
    assert (reply.body, reply.address) == (b"hi", "127.0.0.1")


def test_when_no_address_can_be_reached_the_name_is_asked_for_anew_next_time():
    failure, _, asked = direct("http://a.cz:PORT/", "127.0.0.2", "127.0.0.3")
    assert (failure.reason, failure.transient) == ("connect", True)
    assert asked == ["a.cz", "forget a.cz"]


# --- TLS -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def trusted(authority, tmp_path, monkeypatch):
    """The authority is the only one that this machine trusts."""
    path = tmp_path / "authorities.pem"
    authority.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


def certified(authority, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_a_server_with_a_trusted_certificate_is_fetched_from(authority, trusted):
    reply, _, _ = direct("https://a.cz:PORT/", tls=certified(authority, "a.cz"))
    assert (reply.status, reply.body) == (200, b"hi")


def test_a_certificate_that_nobody_vouches_for_is_a_tls_failure(trusted):
    failure, seen, _ = direct("https://a.cz:PORT/", tls=certified(trustme.CA(), "a.cz"))
    assert (failure.reason, failure.transient, seen.requests) == ("tls", False, [])


def test_a_certificate_for_another_host_is_a_tls_failure(authority, trusted):
    failure, seen, _ = direct("https://a.cz:PORT/", tls=certified(authority, "b.cz"))
    assert (failure.reason, failure.transient, seen.requests) == ("tls", False, [])


def test_an_old_protocol_is_a_tls_failure(authority, trusted):
    context = certified(authority, "a.cz")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    failure, _, _ = direct("https://a.cz:PORT/", tls=context)
    assert (failure.reason, failure.transient) == ("tls", False)


def test_plain_http_where_tls_is_expected_is_a_tls_failure():
    async def main():
        async def babble(reader, writer):
            writer.write(HI)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        limits = config.Fetch(ports=(port,))
        async with server, fetcher(limits, **to_loopback()) as crawler:
            return await crawler.fetch(f"https://a.cz:{port}/")

    failure = run(main())
    assert (failure.reason, failure.transient) == ("tls", False)


def test_without_certificate_authorities_there_is_no_fetcher(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    monkeypatch.setattr(fetch, "_CA_BUNDLES", ())
    with pytest.raises(config.ConfigError, match="install ca-certificates"):
        Fetcher(config.Fetch(), "x")
