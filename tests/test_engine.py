"""Reader processes: whatever a page does to its reader, the others are read."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
import uvloop

from thresher.config import Reading
from thresher.engine.calls import Call, perform
from thresher.engine.local import EngineFault, Readers, reader_count
from thresher.engine.nursery import Nursery
from thresher.page import Failure, Page, Reply

T = TypeVar("T")

# A reader that does what the page says.
OBEDIENT = """
import os, signal, sys, time
from thresher.engine import worker
from thresher.page import Page

def read(reply, language, settings):
    match reply.body:
        case b"die": os.kill(os.getpid(), 9)
        case b"stall": signal.pause()
        case b"raise": raise ValueError("no such thing")
        case b"eat": bytearray(10 << 30)
        case b"parent": return Page(reply.url, "html", title=str(os.getppid()))
        case b"toil":
            until = time.process_time() + 0.5
            while time.process_time() < until: pass
    return Page(reply.url, "html", title=reply.body.decode("latin-1")[:10])

worker.main(lambda: read, int(sys.argv[1]))
"""
BROKEN = "raise SystemExit(3)"


def reply(number: int, body: bytes) -> Reply:
    return Reply(f"http://a.cz/{number}", 200, b"HTTP/1.1 200 OK\r\n", body, 0.0, 0.0, "")


def with_readers(
    work: Callable[[Readers], Awaitable[T]], script: str = OBEDIENT, deadline: float = 2.0, processes: int = 2
) -> T:
    async def run() -> T:
        readers = Readers(Reading(processes=processes, deadline=deadline), "cs", Nursery(("-c", script)))
        await readers.start()
        try:
            return await work(readers)
        finally:
            await readers.close()

    return uvloop.run(run())


async def read_all(readers: Readers, bodies: list[bytes]) -> list[Page | Failure]:
    return await asyncio.gather(*(readers.read(reply(n, body)) for n, body in enumerate(bodies)))


def test_pages_come_back_to_whoever_asked() -> None:
    bodies = [b"%d" % number for number in range(50)]
    pages = with_readers(lambda readers: read_all(readers, bodies))
    assert [page.title for page in pages if isinstance(page, Page)] == [body.decode() for body in bodies]


def test_a_request_to_terminate_is_for_the_crawler_alone() -> None:
    """A service manager sends it to all processes at once."""

    async def work(readers: Readers) -> list[Page | Failure]:
        (parent,) = await read_all(readers, [b"parent"])
        assert isinstance(parent, Page) and parent.title
        before = readers.pids()
        for process in (int(parent.title), *before):
            os.kill(process, signal.SIGTERM)
        pages = await read_all(readers, [b"1", b"parent"])
        assert readers.pids() == before
        return pages

    assert all(isinstance(page, Page) for page in with_readers(work))


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
    assert [answer.title for answer in answers if isinstance(answer, Page)] == ["a", "b", "c", "d", "e"]


def test_large_replies_pass_both_ways_without_a_jam() -> None:
    bodies = [bytes([65 + n]) * 3_000_000 for n in range(12)]
    pages = with_readers(lambda readers: read_all(readers, bodies), deadline=20.0, processes=1)
    assert [page.title for page in pages if isinstance(page, Page)] == [body[:10].decode() for body in bodies]


def test_readers_that_cannot_start_end_the_crawl_instead_of_blaming_its_pages() -> None:
    with pytest.raises(EngineFault, match="do not start"):
        with_readers(lambda readers: read_all(readers, [b"a"]), script=BROKEN, processes=1)


async def parent(readers: Readers) -> int:
    """The process that the reader comes from."""
    (page,) = await read_all(readers, [b"parent"])
    assert isinstance(page, Page) and page.title
    return int(page.title)


def test_readers_come_from_one_process_those_that_replace_others_too() -> None:
    async def parents(readers: Readers) -> list[int]:
        before = await parent(readers)
        await read_all(readers, [b"die", b"stall"])
        return [before, await parent(readers)]

    before, after = with_readers(parents, processes=1)
    assert before == after


def test_if_the_process_that_readers_come_from_is_killed_there_is_another() -> None:
    async def parents(readers: Readers) -> list[int]:
        before = await parent(readers)
        os.kill(before, signal.SIGKILL)
        assert await read_all(readers, [b"a"]) == [Page("http://a.cz/0", "html", title="a")]
        await read_all(readers, [b"die"])
        return [before, await parent(readers)]

    before, after = with_readers(parents, processes=1)
    assert before != after


def toil() -> int:
    """Have a page read that takes its reader half a second."""
    return len(with_readers(lambda readers: read_all(readers, [b"toil"]), processes=1))


def test_a_calls_processor_time_is_also_that_of_its_readers() -> None:
    ended = perform(0, Call("test_engine:toil", {}))
    assert (ended.result, ended.fault) == (1, "")
    assert ended.cpu_seconds >= 0.5


def test_readers_leave_the_processor_to_others_who_are_at_work() -> None:
    async def policy(readers: Readers) -> int:
        return os.sched_getscheduler(await parent(readers))

    assert with_readers(policy) == os.SCHED_BATCH


def test_one_core_is_left_to_the_crawler() -> None:
    assert reader_count(Reading(processes=3)) == 3
    assert reader_count(Reading()) >= 1


def test_the_real_reader_reads_in_a_process() -> None:
    async def work() -> Page | Failure:
        readers = Readers(Reading(processes=1), "cs")
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
    assert isinstance(page, Page)
    assert (page.title, [link.url for link in page.links]) == ("T", ["http://a.cz/x"])
