"""A server on loopback that answers exactly as a test says, and a fetcher to ask it."""

from __future__ import annotations

import asyncio
import inspect
import socket
import struct
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from thresher import config
from thresher.crawler.fetching.fetcher import Fetcher, user_agent

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"Content-Length: 2\r\n\r\nhi"
QUICK = config.FetchSettings(
    connect_timeout=5.0, first_byte_timeout=5.0, total_timeout=10.0, max_body_bytes=100_000
)


def run(main, loop_factory=uvloop.new_event_loop):
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main)


class ServerLog:
    """The requests and connections of a test's server."""

    def __init__(self):
        self.requests = []
        self.connections = 0
        self.port = 0
        self.hung_up = asyncio.Event()  # set when the client closes a connection

    @property
    def address(self):
        return ("127.0.0.1", self.port)


@asynccontextmanager
async def web(answer, tls=None):
    """Serve on loopback exactly the bytes of a test.

    `answer` is the bytes for every request, or a function of writer and request that returns bytes, None for
    silence, or a coroutine that writes itself; after a coroutine the connection is closed.
    """
    log = ServerLog()
    waiting = set()

    async def serve(reader, writer):
        log.connections += 1
        waiting.add(asyncio.current_task())
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                log.requests.append(request)
                reply = answer(writer, request) if callable(answer) else answer
                if inspect.isawaitable(reply):
                    await reply
                    break
                if reply is not None:
                    writer.write(reply)
        except (OSError, asyncio.IncompleteReadError):
            log.hung_up.set()
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls, backlog=1000)
    log.port = server.sockets[0].getsockname()[1]
    try:
        yield log
    finally:
        server.close()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@asynccontextmanager
async def fetcher(limits=QUICK, **options):
    one = Fetcher(limits, user_agent("https://example.org/bot"), **options)
    try:
        yield one
    finally:
        await one.close()


def open_files():
    return {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}


def ask(answer, *urls, limits=QUICK, loop_factory=uvloop.new_event_loop, **options):
    """Fetch URLs one after the other; return the results and the log of the server."""

    async def main():
        async with web(answer) as log, fetcher(limits, connect_to=log.address) as crawler:
            return [await crawler.fetch(url, **options) for url in urls or ["http://a.cz/"]], log

    return run(main(), loop_factory)


def outcome(answer, **options):
    [result], _ = ask(answer, **options)
    return result


async def endless(writer, piece, start=b""):
    writer.write(start)
    while True:
        writer.write(piece)
        await writer.drain()


async def reset(writer, start):
    """Close with RST instead of FIN."""
    writer.write(start)
    await writer.drain()
    for _ in range(
        20
    ):  # The client, in the same event loop, has to read the bytes before the reset drops them.
        await asyncio.sleep(0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def hang_up(writer, start):
    writer.write(start)
    await writer.drain()


class FixedResolver:
    """A resolver that returns given addresses without a check, as after DNS rebinding."""

    def __init__(self, *addresses):
        self.addresses = addresses
        self.asked = []

    async def resolve(self, host):
        self.asked.append(host)
        return self.addresses

    def forget(self, host):
        self.asked.append(f"forget {host}")


def to_loopback(*addresses):
    """Return options for a fetcher that finds every host on this machine and may connect to it."""
    return {"resolver": FixedResolver(*(addresses or ["127.0.0.1"])), "allow": lambda address: ""}
