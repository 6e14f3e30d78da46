"""libcurl in an event loop: the transfer of one request, and the driver of thousands of transfers."""

from __future__ import annotations

import asyncio
import re
import select
import socket
from collections.abc import Callable
from typing import Any

import pycurl
from msgspec import Struct

from thresher import config
from thresher.records import Failure, Reply, Truncated

# Reasons for a missing reply, and whether a later try may succeed.
REASONS = {
    "dns": True,  # False if the name does not exist
    "connect": True,
    "timeout": True,
    "disconnect": True,
    "tls": False,
    "blocked address": False,
    "blocked port": False,
    "protocol": False,
    "headers too large": False,
    "bad url": False,
}

MAX_HEADER_LINES = 1_000
MAX_INTERIM = 16  # 1xx responses before the final one; a few 103s are normal
MAX_PIECES = 65_536  # of one body: servers send packets, only attackers send single bytes
MAX_EVENTS = 256  # sockets that are served before other callbacks of the event loop run

_END = -1  # returned by a callback to make libcurl end the transfer and close the connection
_TOO_LARGE = 100  # CURLE_TOO_LARGE: pycurl has no name for it
_REASON_OF_CODE = {
    pycurl.E_URL_MALFORMAT: "bad url",
    pycurl.E_COULDNT_RESOLVE_HOST: "bad url",  # a name that libcurl refuses, since it looks up none here
    pycurl.E_COULDNT_CONNECT: "connect",
    pycurl.E_OPERATION_TIMEDOUT: "timeout",
    pycurl.E_ABORTED_BY_CALLBACK: "disconnect",
    pycurl.E_PARTIAL_FILE: "disconnect",
    pycurl.E_GOT_NOTHING: "disconnect",
    pycurl.E_SEND_ERROR: "disconnect",
    pycurl.E_RECV_ERROR: "disconnect",
    pycurl.E_SSL_CONNECT_ERROR: "tls",
    pycurl.E_SSL_CIPHER: "tls",
    pycurl.E_PEER_FAILED_VERIFICATION: "tls",
    pycurl.E_SSL_CACERT_BADFILE: "tls",
    pycurl.E_SSL_ISSUER_ERROR: "tls",
    pycurl.E_SSL_INVALIDCERTSTATUS: "tls",
    _TOO_LARGE: "headers too large",
}

# Reasons for a truncated body after complete headers; with any other reason there is no reply.
_TRUNCATION: dict[str, Truncated] = {"": "", "disconnect": "disconnect", "headers too large": "length"}

_INSIDE_A_LINE = re.compile(rb"[\0\r\n]")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


class Request(Struct, frozen=True):
    """One request with its limits."""

    url: str  # as the caller gave it
    wire: str  # as it is sent
    ask: tuple[str, str]  # the Accept header, and a Host header line unless libcurl's own is right
    limit: int  # of body bytes
    deadline: float  # loop time


_NO_REQUEST = Request("", "", ("", ""), 0, 0.0)


class Transfer:
    """A reusable curl handle with the state of its present request."""

    def __init__(
        self,
        settings: config.FetchSettings,
        options: list[tuple[int, Any]],
        allow: Callable[[str], str] | None,
    ) -> None:
        self.easy = pycurl.Curl()
        self.asked: tuple[str, str] | None = None
        self._settings = settings
        self._allow = allow
        for option, value in options:
            self.easy.setopt(option, value)
        self.easy.setopt(pycurl.HEADERFUNCTION, self._take_header)
        self.easy.setopt(pycurl.WRITEFUNCTION, self._take_body)
        if allow is not None:
            self.easy.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self.clear()

    def clear(self) -> None:
        """Drop the state of the last request."""
        self.request = _NO_REQUEST
        self.future: asyncio.Future[Reply | Failure] | None = None
        self.fetched = self.started = self.marked = self.given_up = 0.0
        self.lines: list[bytes] = []
        self.body = bytearray()
        self.header_bytes = self.marked_bytes = self.interim = self.pieces = 0
        self.complete = False  # whether all headers of the final response have arrived
        self.stopped: Truncated = ""  # why the body was cut off
        self.fault = self.detail = ""  # why the whole response was refused

    def ask(self, ask: tuple[str, str], headers: list[str]) -> None:
        """Set the headers of this request and of later ones."""
        accept, host_header = ask
        self.easy.setopt(pycurl.HTTPHEADER, [f"Accept: {accept}", *headers, *filter(None, [host_header])])
        self.asked = ask

    def begin(
        self,
        request: Request,
        route: str,
        future: asyncio.Future[Reply | Failure],
        fetched: float,
        started: float,
    ) -> None:
        """Prepare the handle for a request."""
        # An address in CONNECT_TO leaves libcurl no name to look up; Host and TLS go by the URL.
        self.easy.setopt(pycurl.CONNECT_TO, [route])
        self.easy.setopt(pycurl.URL, request.wire)
        self.request = request
        self.future = future
        self.fetched = fetched
        self.started = started

    def lateness(self, now: float) -> str:
        """Return the time limit that has passed, "" if none has."""
        limits = self._settings
        if now >= self.request.deadline:
            return "not done in time"
        received = self.header_bytes + len(self.body)
        if not received:
            waited = now - self.started - limits.first_byte_timeout
            return "no answer" if waited > 0 and waited > self._sent_after() else ""
        if not self.marked_bytes:
            self.marked, self.marked_bytes = now, received
        elif (seconds := now - self.marked) >= limits.min_rate_seconds:
            if received - self.marked_bytes < limits.min_rate * seconds:
                return "too slow"
            self.marked, self.marked_bytes = now, received
        return ""

    def give_up(self, now: float) -> None:
        """End the body where it is."""
        self.stopped = "time"
        self.given_up = now - self.started

    def refuse(self, fault: str, detail: str) -> int:
        """Refuse the response; return the value that makes libcurl end the transfer."""
        self.fault, self.detail = fault, detail
        return _END

    def _sent_after(self) -> float:
        """Return the seconds from the start until the request was sent; libcurl limits the time to connect."""
        return float(self.easy.getinfo(pycurl.PRETRANSFER_TIME)) or self._settings.connect_timeout

    def outcome(self, code: int, message: str) -> Reply | Failure:
        """Return the reply or failure of the request."""
        easy, request = self.easy, self.request
        elapsed = self.given_up or easy.getinfo(pycurl.TOTAL_TIME)
        status = easy.getinfo(pycurl.RESPONSE_CODE)
        reason = self.fault or self._reason(code, message)
        truncated = self.stopped or _TRUNCATION.get(reason)
        if self.complete and status >= 100 and truncated is not None and not self.fault:
            headers = _header_block(self.lines)
            body = bytes(memoryview(self.body)[: request.limit])
            ip = easy.getinfo(pycurl.PRIMARY_IP)
            return Reply(request.url, status, headers, body, self.fetched, elapsed, ip, truncated)
        reason = reason or ("protocol" if self.complete else "disconnect")
        detail = self.detail if self.fault else printable(message)
        return Failure(request.url, reason, detail, REASONS[reason], elapsed, len(self.body))

    def _reason(self, code: int, message: str) -> str:
        if code == pycurl.E_OK:
            return ""
        if code == pycurl.E_RECV_ERROR and "chunk" in message:
            return "protocol"  # libcurl has no code for a broken chunked encoding
        if code == pycurl.E_SSL_CONNECT_ERROR and self.easy.getinfo(pycurl.OS_ERRNO):
            return "disconnect"
        return _REASON_OF_CODE.get(code, "protocol")

    def _cut_off(self) -> int:
        self.stopped = "length"
        return _END

    def _take_header(self, line: bytes) -> int | None:
        self.header_bytes += len(line)
        lines = self.lines
        if self.header_bytes > self._settings.max_header_bytes or len(lines) > MAX_HEADER_LINES:
            return self._cut_off() if self.complete else self.refuse("headers too large", "")
        if self.complete:
            return None  # a trailer: counted, not kept
        if line not in (b"\r\n", b"\n"):
            lines.append(line)
        elif lines and lines[0].partition(b" ")[2].startswith(b"1"):
            lines.clear()
            self.interim += 1
            if self.interim > MAX_INTERIM:
                return self.refuse("protocol", "too many interim responses")
        else:
            self.complete = True
        return None

    def _take_body(self, piece: bytes) -> int | None:
        if not self.complete:
            return self.refuse("protocol", "a body before the headers")  # after 101 there is no HTTP
        self.body += piece
        self.pieces += 1
        if len(self.body) > self.request.limit or self.pieces > MAX_PIECES:
            return self._cut_off()
        return None

    def _open_socket(self, _purpose: int, target: Any) -> Any:
        """Check the address of a connection at the last moment, since this address is the one that is used."""
        assert self._allow is not None
        if kind := self._allow(target.addr[0]):
            self.refuse("blocked address", f"{target.addr[0]} is {kind}")
            return pycurl.SOCKET_BAD
        try:
            return _LentSocket(target.family, target.socktype, target.protocol)
        except OSError:  # no file descriptors left
            return pycurl.SOCKET_BAD


class _LentSocket(socket.socket):
    """A socket for pycurl, which duplicates it and drops it: then it is closed without a warning."""

    def __del__(self) -> None:
        self.close()


class Driver:
    """libcurl's multi interface in an event loop.

    The sockets are in an epoll set of their own, and the loop watches one descriptor. That costs half as much as
    registering every socket with the loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connections: int,
        finished: Callable[[Any, int, str], None],
    ) -> None:
        self.loop = loop
        self._finished = finished
        self._running = 0
        self._watched: set[int] = set()
        self._kick: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._epoll = select.epoll()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        loop.add_reader(self._epoll.fileno(), self._serve_sockets)

    def start(self, easy: Any) -> None:
        """Start a transfer; `finished` is called when libcurl has ended it."""
        self._multi.add_handle(easy)
        self._running += 1

    def stop(self, easy: Any) -> None:
        """Remove a transfer, ended or not."""
        self._multi.remove_handle(easy)
        self._running -= 1

    def close(self) -> None:
        """Close all sockets and timers. No transfer may be under way."""
        self.loop.remove_reader(self._epoll.fileno())
        self._multi.close()
        self._epoll.close()
        for alarm in (self._kick, self._timer):
            if alarm is not None:
                alarm.cancel()

    def _watch(self, wanted: int, fd: int, _multi: Any, _data: Any) -> None:
        if wanted == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.remove(fd)
                self._epoll.unregister(fd)
            return
        # EPOLLIN and EPOLLOUT are 1 and 4, libcurl's POLL_IN and POLL_OUT 1 and 2.
        events = wanted & 1 | (wanted & 2) << 1
        if fd in self._watched:
            self._epoll.modify(fd, events)
        else:
            self._watched.add(fd)
            self._epoll.register(fd, events)

    def _serve_sockets(self) -> None:
        act = self._multi.socket_action
        running = self._running
        for fd, events in self._epoll.poll(0, MAX_EVENTS):
            if fd in self._watched:  # serving one socket may close another
                # libcurl finds errors and hang-ups when it reads.
                _, running = act(fd, (events != select.EPOLLOUT) | (events & select.EPOLLOUT) >> 1)
        if running < self._running:
            self._collect()

    def _set_timer(self, milliseconds: int) -> None:
        if milliseconds == 0:
            if self._kick is None:
                self._kick = self.loop.call_soon(self._serve_time)
            return
        # libcurl sets its timer at every step of a transfer, mostly to a later time. Called too early, it sets the
        # timer again; so only a timer that would be too late is replaced.
        at = self.loop.time() + milliseconds / 1000
        if milliseconds > 0 and (self._timer is None or at < self._timer_at):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(at, self._ring)
            self._timer_at = at

    def _ring(self) -> None:
        self._timer = None
        self._serve_time()

    def _serve_time(self) -> None:
        self._kick = None
        _, running = self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        if running < self._running:
            self._collect()

    def _collect(self) -> None:
        left = 1
        while left:
            left, done, failed = self._multi.info_read()
            for easy in done:
                self._finished(easy, pycurl.E_OK, "")
            for easy, code, message in failed:
                self._finished(easy, code, message)


def _header_block(lines: list[bytes]) -> bytes:
    """Return header lines unchanged, except that each ends in CRLF and holds no other line end."""
    block = b"".join(lines)
    if b"\0" not in block and block.count(b"\r\n") == block.count(b"\n") == block.count(b"\r"):
        return block
    return b"".join(_INSIDE_A_LINE.sub(b"", line) + b"\r\n" for line in lines)


def printable(text: str) -> str:
    """Return text that may come from a server, with unprintable characters replaced, for logs and records."""
    return _UNPRINTABLE.sub("?", text)[:200]
