"""A fetch returns the exact bytes, and connections are shared fairly and closed."""

from __future__ import annotations

import asyncio
import gzip
import resource
import socket
import time

import pytest
import uvloop

from support.webs.http_server import (
    HI,
    OK,
    ask,
    fetcher,
    open_files,
    outcome,
    run,
    web,
)
from thresher import __version__, config
from thresher.crawler.fetching import fetcher as fetch
from thresher.crawler.fetching.fetcher import Fetcher, user_agent
from thresher.records import Reply


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_reply_has_the_exact_bytes(loop_factory):
    head = b"HTTP/1.1 200 Fine  \r\nServer: x\r\ncontent-TYPE:text/html; charset=x\r\nContent-Length: 5\r\n"
    started = time.monotonic()
    [reply], seen = ask(head + b"\r\n\x00\xffabc", "http://a.cz/p?q=1", loop_factory=loop_factory)
    assert isinstance(reply, Reply)
    assert (reply.url, reply.status, reply.truncated) == ("http://a.cz/p?q=1", 200, "")
    assert reply.headers == head
    assert reply.body == b"\x00\xffabc"
    assert reply.header("Content-Type") == "text/html; charset=x"
    assert reply.address == "127.0.0.1"
    assert 0 < reply.elapsed < time.monotonic() - started
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


def test_requests_name_the_product_its_contact_and_the_accepted_content():
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


def test_alternative_services_and_strict_transport_are_ignored():
    promises = (
        b'Alt-Svc: h3=":443"\r\nStrict-Transport-Security: max-age=99999\r\nContent-Length: 2\r\n\r\nhi'
    )
    replies, _ = ask(OK + promises, "http://a.cz/", "http://a.cz/2")
    assert [reply.body for reply in replies] == [b"hi", b"hi"]


# one connection after another, and many at once


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
        limits = config.FetchSettings(connections=100)
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
            fetcher(config.FetchSettings(connections=5), connect_to=seen.address) as crawler,
        ):
            replies = await asyncio.gather(*(crawler.fetch(f"http://h{i}.cz/") for i in range(40)))
            assert {reply.body for reply in replies} == {b"hi"}
            return most

    assert 1 < run(main()) <= 5


def test_a_fetch_that_waits_its_turn_loses_none_of_its_time():
    async def unhurried(writer):
        await asyncio.sleep(0.2)
        writer.write(HI)
        await writer.drain()

    async def main():
        limits = config.FetchSettings(connections=1, total_timeout=2.0)
        async with (
            web(lambda writer, _: unhurried(writer)) as seen,
            fetcher(limits, connect_to=seen.address) as crawler,
        ):
            return await asyncio.gather(*(crawler.fetch(f"http://h{i}.cz/") for i in range(12)))

    assert [reply.truncated for reply in run(main())] == [""] * 12


@pytest.mark.parametrize(("files", "expected"), [(20_000, 500), (600, 344), (64, 32), (1, 1)])
def test_capacity_shrinks_with_the_number_of_files_that_may_be_open(monkeypatch, files, expected):
    monkeypatch.setattr(resource, "getrlimit", lambda resource: (files, files))
    made = Fetcher(config.FetchSettings(connections=500), "x", connect_to=("127.0.0.1", 1))
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


def test_a_cancelled_fetch_closes_its_connection_and_leaves_the_fetcher_usable():
    async def main():
        asked = asyncio.Event()

        def answer(writer, request):
            if b"/slow" not in request:
                return HI
            asked.set()
            return None

        async with web(answer) as seen, fetcher(config.FetchSettings(), connect_to=seen.address) as crawler:
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


def test_closing_fails_pending_requests_and_leaks_no_file():
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
