"""Reader processes: a page that ruins its reader does not keep others from being read."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest
import uvloop

from thresher.config import ReadSettings
from thresher.errors import EngineError
from thresher.records import Failure, ReadResult, Reply
from thresher.workers.fork_server import ForkServer
from thresher.workers.protocol import Call, perform
from thresher.workers.reader_pool import ReaderPool, reader_count

T = TypeVar("T")

# A reader that follows commands in the page.
OBEDIENT = """
import os, signal, sys, time
from thresher.workers import reader_worker as worker
from thresher.records import ReadResult

def read(reply, language, settings):
    match reply.body:
        case b"die": os.kill(os.getpid(), 9)
        case b"stall": signal.pause()
        case b"raise": raise ValueError("no such thing")
        case b"eat": bytearray(10 << 30)
        case b"parent": return ReadResult(reply.url, "html", title=str(os.getppid()))
        case b"toil":
            until = time.process_time() + 0.5
            while time.process_time() < until: pass
    return ReadResult(reply.url, "html", title=reply.body.decode("latin-1")[:10])

worker.main(lambda: read, int(sys.argv[1]))
"""
BROKEN = "raise SystemExit(3)"


def reply(number: int, body: bytes) -> Reply:
    return Reply(f"http://a.cz/{number}", 200, b"HTTP/1.1 200 OK\r\n", body, 0.0, 0.0, "")


def with_readers(
    work: Callable[[ReaderPool], Awaitable[T]],
    script: str = OBEDIENT,
    deadline: float = 2.0,
    processes: int = 2,
) -> T:
    async def run() -> T:
        readers = ReaderPool(
            ReadSettings(processes=processes, deadline=deadline), "cs", ForkServer(("-c", script))
        )
        await readers.start()
        try:
            return await work(readers)
        finally:
            await readers.close()

    return uvloop.run(run())


async def read_all(readers: ReaderPool, bodies: list[bytes]) -> list[ReadResult | Failure]:
    return await asyncio.gather(*(readers.read(reply(n, body)) for n, body in enumerate(bodies)))


def test_each_request_gets_its_own_page() -> None:
    bodies = [b"%d" % number for number in range(50)]
    pages = with_readers(lambda readers: read_all(readers, bodies))
    assert [page.title for page in pages if isinstance(page, ReadResult)] == [
        body.decode() for body in bodies
    ]


def test_pages_are_read_in_the_order_of_their_replies_a_bounded_number_at_once() -> None:
    bodies = [b"toil", b"1", b"raise", *(str(number).encode() for number in range(3, 20))]
    taken: list[int] = []

    def replies() -> Iterator[tuple[int, Reply]]:
        for number, body in enumerate(bodies):
            taken.append(number)
            yield number, reply(number, body)

    async def work(readers: ReaderPool) -> list[tuple[int, str]]:
        found = []
        async for number, given, page in readers.read_in_order(replies(), 4):
            assert given.url == page.url
            assert len(taken) <= len(found) + 1 + 4
            found.append((number, page.title if isinstance(page, ReadResult) else page.reason))
        return found

    titles = [body.decode() for body in bodies]
    titles[2] = "reader fault"
    assert with_readers(work) == list(enumerate(titles))


def test_no_page_is_left_with_the_readers_when_the_reading_in_order_is_closed() -> None:
    async def work(readers: ReaderPool) -> int:
        pages = readers.read_in_order(((None, reply(number, b"x")) for number in range(20)), 8)
        await anext(pages)
        await pages.aclose()
        return readers.backlog

    assert with_readers(work) == 0


def test_readers_ignore_requests_to_terminate() -> None:
    """A service manager sends it to all processes at once."""

    async def work(readers: ReaderPool) -> list[ReadResult | Failure]:
        (parent,) = await read_all(readers, [b"parent"])
        assert isinstance(parent, ReadResult) and parent.title
        before = readers.pids()
        for process in (int(parent.title), *before):
            os.kill(process, signal.SIGTERM)
        pages = await read_all(readers, [b"1", b"parent"])
        assert readers.pids() == before
        return pages

    assert all(isinstance(page, ReadResult) for page in with_readers(work))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("poison", "reason"),
    [
        (b"die", "reader died"),
        (b"stall", "reader stalled"),
        (b"raise", "reader fault"),
        (b"eat", "out of memory"),
    ],
)
def test_a_page_that_ruins_its_reader_fails_alone(poison: bytes, reason: str) -> None:
    answers = with_readers(lambda readers: read_all(readers, [b"a", b"b", poison, b"c", poison, b"d", b"e"]))
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    assert [(failure.url, failure.reason) for failure in failures] == [
        ("http://a.cz/2", reason),
        ("http://a.cz/4", reason),
    ]
    assert [answer.title for answer in answers if isinstance(answer, ReadResult)] == ["a", "b", "c", "d", "e"]


def test_large_replies_pass_both_ways_without_a_jam() -> None:
    bodies = [bytes([65 + n]) * 3_000_000 for n in range(12)]
    pages = with_readers(lambda readers: read_all(readers, bodies), deadline=20.0, processes=1)
    assert [page.title for page in pages if isinstance(page, ReadResult)] == [
        body[:10].decode() for body in bodies
    ]


def test_readers_that_cannot_start_end_the_crawl_instead_of_blaming_its_pages() -> None:
    with pytest.raises(EngineError, match="do not start"):
        with_readers(lambda readers: read_all(readers, [b"a"]), script=BROKEN, processes=1)


class DeadForkServer(ForkServer):
    """A fork server that has always died before it is given an order, as may happen on a busy machine."""

    def _open(self) -> socket.socket:
        door = super()._open()
        assert self._process
        self._process.wait()
        return door


def test_the_message_does_not_depend_on_when_the_fork_server_died() -> None:
    async def run() -> None:
        readers = ReaderPool(ReadSettings(processes=1), "cs", DeadForkServer(("-c", BROKEN)))
        await readers.start()
        try:
            await readers.read(reply(0, b"a"))
        finally:
            await readers.close()

    with pytest.raises(EngineError, match="do not start"):
        uvloop.run(run())


async def parent(readers: ReaderPool) -> int:
    """Return the process that the reader comes from."""
    (page,) = await read_all(readers, [b"parent"])
    assert isinstance(page, ReadResult) and page.title
    return int(page.title)


def test_readers_and_their_replacements_come_from_one_fork_server() -> None:
    async def parents(readers: ReaderPool) -> list[int]:
        before = await parent(readers)
        await read_all(readers, [b"die", b"stall"])
        return [before, await parent(readers)]

    before, after = with_readers(parents, processes=1)
    assert before == after


def test_a_killed_fork_server_is_replaced() -> None:
    async def parents(readers: ReaderPool) -> list[int]:
        before = await parent(readers)
        os.kill(before, signal.SIGKILL)
        assert await read_all(readers, [b"a"]) == [ReadResult("http://a.cz/0", "html", title="a")]
        await read_all(readers, [b"die"])
        return [before, await parent(readers)]

    before, after = with_readers(parents, processes=1)
    assert before != after


def toil() -> int:
    """Have a page read that takes its reader half a second."""
    return len(with_readers(lambda readers: read_all(readers, [b"toil"]), processes=1))


def test_the_processor_time_of_a_call_includes_its_readers() -> None:
    ended = perform(0, Call(f"{__name__}:toil", {}))
    assert (ended.result, ended.fault) == (1, "")
    assert ended.cpu_seconds >= 0.5


def test_readers_do_not_preempt_other_processes() -> None:
    async def policy(readers: ReaderPool) -> int:
        return os.sched_getscheduler(await parent(readers))

    assert with_readers(policy) == os.SCHED_BATCH


def test_one_core_is_left_to_the_crawler() -> None:
    assert reader_count(ReadSettings(processes=3)) == 3
    assert reader_count(ReadSettings()) >= 1


def test_the_real_reader_reads_in_a_process() -> None:
    async def work() -> ReadResult | Failure:
        readers = ReaderPool(ReadSettings(processes=1), "cs")
        await readers.start()
        try:
            html = (
                b"<html><title>T</title><body><p>"
                + b"Dobry den. " * 50
                + b"<a href=/x>x</a></p></body></html>"
            )
            return await readers.read(reply(1, html))
        finally:
            await readers.close()

    page = uvloop.run(work())
    assert isinstance(page, ReadResult)
    assert (page.title, [link.url for link in page.links]) == ("T", ["http://a.cz/x"])
