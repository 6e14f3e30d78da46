"""The toy web over HTTP/1.1 on loopback. The Host header selects the host."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import msgspec
import uvloop
from msgspec import Struct

from thresher_lab.toyweb.answers import ToyAnswer, answer
from thresher_lab.toyweb.texts import require_source, text_source
from thresher_lab.toyweb.web import ToyWeb

ADDRESS = "127.0.0.1"
BACKLOG = 2_048
MAX_REQUEST_BYTES = 64 * 1024
CHUNK_BYTES = 16 * 1024
DRIP_PIECES = 20
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_CHILD = "from thresher_lab.toyweb.server import _child; _child()"


class Server(Struct, frozen=True):
    """A running toy web."""

    connect_to: str  # "127.0.0.1:PORT"
    processes: tuple[int, ...]  # their ids, for measurements
    journal: Path | None = None  # one line per request: monotonic seconds, host, path, status; tabs between


@contextmanager
def serve(
    web: ToyWeb, port: int = 0, processes: int = 1, journal: Path | str | None = None
) -> Iterator[Server]:
    """Serve a toy web in processes of its own until the block is left.

    The only state is the number of failed attempts at flaky URLs, which each process counts for itself.
    """
    require_source(web)  # The message of a child that cannot start would be lost.
    path = Path(journal) if journal else None
    listeners = _listen(port, processes)
    children: list[subprocess.Popen[bytes]] = []
    try:
        children = [_start(web, listener, path) for listener in listeners]
        for child in children:
            assert child.stdout is not None
            if child.stdout.readline() != b"ready\n":
                raise RuntimeError(f"a toy web process ended before it served (exit code {child.wait()})")
        bound = listeners[0].getsockname()[1]
        for listener in listeners:
            listener.close()  # Children have copies; a dead server now refuses connections.
        yield Server(f"{ADDRESS}:{bound}", tuple(child.pid for child in children), path)
    finally:
        for listener in listeners:
            listener.close()
        for child in children:
            _stop(child)


def serve_forever(
    web: ToyWeb,
    port: int = 0,
    processes: int = 1,
    journal: Path | str | None = None,
    *,
    ready: Callable[[Server], None] = lambda _: None,
) -> None:
    """Serve until interrupted or terminated; `ready` is called once, when connections are accepted."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with serve(web, port, processes, journal) as server:
            ready(server)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, previous)


def _listen(port: int, count: int) -> list[socket.socket]:
    """Return one socket per process on the same port: the kernel distributes the connections."""
    listeners: list[socket.socket] = []
    try:
        for _ in range(count):
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if count > 1:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind((ADDRESS, port))
            listener.listen(BACKLOG)
            port = listener.getsockname()[1]
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _start(web: ToyWeb, listener: socket.socket, journal: Path | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _CHILD, str(listener.fileno()), str(journal or "")]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[listener.fileno()]
    )
    assert child.stdin is not None
    child.stdin.write(msgspec.json.encode(web) + b"\n")
    child.stdin.flush()
    return child


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Close the input of a child, which ends it; kill it if it does not end in time."""
    assert child.stdin is not None and child.stdout is not None
    child.stdin.close()
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()


def _child() -> None:
    """Run one server process: the parameters come on standard input, whose end ends the process."""
    # The parent ends this process; a Ctrl-C at the terminal reaches both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = socket.socket(fileno=int(sys.argv[1]))
    web = msgspec.json.decode(sys.stdin.buffer.readline(), type=ToyWeb)
    for language in web.languages:
        text_source(web, language)  # Loaded now, so that the first request is as fast as others.
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(web, listener, sys.argv[2]))


async def _run(web: ToyWeb, listener: socket.socket, journal: str) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), over.set)
    log = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if journal else -1
    attempts: dict[str, int] = {}
    server = await loop.create_server(lambda: _Connection(web, attempts, log), sock=listener, backlog=BACKLOG)
    print("ready", flush=True)
    await over.wait()
    server.close()
    if log >= 0:
        os.close(log)
    os._exit(0)  # Connections that still send slowly are dropped.


class _Request(Struct, frozen=True, gc=False):
    method: str
    host: str
    target: str
    accept_encoding: str
    keep_alive: bool
    chunks: bool  # HTTP/1.1: the client knows chunked bodies

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.target}"


class _Connection(asyncio.Protocol):
    """One client. Requests are answered in their order; a delayed answer delays the next ones."""

    def __init__(self, web: ToyWeb, attempts: dict[str, int], log: int) -> None:
        self._web = web
        self._attempts = attempts
        self._log = log
        self._waiting = b""
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's class has the methods but not this base.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        if len(self._waiting) > MAX_REQUEST_BYTES:
            self._transport.abort()
        elif not self._busy:
            self._next()

    def pause_writing(self) -> None:
        self._busy = True

    def resume_writing(self) -> None:
        self._busy = False
        self._next()

    def _next(self) -> None:
        while not self._busy and not self._transport.is_closing():
            head, end, rest = self._waiting.partition(b"\r\n\r\n")
            if not end:
                return
            self._waiting = rest
            request = _parse(head)
            if request is None:
                self._transport.write(_BAD_REQUEST)
                self._transport.close()
                return
            self._respond(request)

    def _respond(self, request: _Request) -> None:
        url = request.url
        reply = answer(
            self._web, url, accept_encoding=request.accept_encoding, attempt=self._attempts.get(url, 0)
        )
        if reply.flaky:
            self._attempts[url] = self._attempts.get(url, 0) + 1
        if self._log >= 0:
            line = f"{time.monotonic():.6f}\t{request.host}\t{request.target}\t{reply.status}\n"
            os.write(self._log, line.encode("latin-1"))
        pieces = _pieces(reply, request)
        if reply.delay or len(pieces) > 1:
            self._busy = True
            pause = reply.drip / len(pieces)
            loop = asyncio.get_running_loop()
            loop.call_later(reply.delay, self._send, pieces, 0, pause, request.keep_alive)
        else:
            self._transport.write(pieces[0])
            if not request.keep_alive:
                self._transport.close()

    def _send(self, pieces: list[bytes], place: int, pause: float, keep_alive: bool) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(pieces[place])
        if place + 1 < len(pieces):
            asyncio.get_running_loop().call_later(pause, self._send, pieces, place + 1, pause, keep_alive)
        elif keep_alive:
            self._busy = False
            self._next()
        else:
            self._transport.close()


def _parse(head: bytes) -> _Request | None:
    """Return the request, or None if it is not HTTP/1."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    fields: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    method, target, version = words
    host = fields.get("host", "")
    if not target.startswith("/"):  # a request to a proxy
        parts = urlsplit(target)
        host, target = parts.netloc or host, parts._replace(scheme="", netloc="").geturl() or "/"
    modern = version != "HTTP/1.0"
    keep_alive = modern and method in ("GET", "HEAD") and fields.get("connection", "").lower() != "close"
    return _Request(method, host.lower(), target, fields.get("accept-encoding", ""), keep_alive, modern)


def _pieces(reply: ToyAnswer, request: _Request) -> list[bytes]:
    """Return the bytes of an answer: one piece, or several if they are sent slowly."""
    if request.method not in ("GET", "HEAD"):
        reply = ToyAnswer(405, [("Allow", "GET, HEAD")], b"")
    body, chunked = reply.body, reply.chunked and request.chunks
    lines = [f"HTTP/1.1 {reply.status} {_REASONS[reply.status]}"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}")
    if not request.keep_alive:
        lines.append("Connection: close")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    if request.method == "HEAD":
        return [head]
    size = max(1, len(body) // DRIP_PIECES) if reply.drip else CHUNK_BYTES if chunked else max(1, len(body))
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    if chunked:
        parts = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts] + [b"0\r\n\r\n"]
    return [head, *parts] if reply.drip else [b"".join([head, *parts])]
