"""Reader processes, and the fork server that they are forked from.

A reader reads replies from its socket, one after the other, and answers with pages. Loading its models takes a
second and 100 MB, so the fork server loads them once. Forked readers start in milliseconds and share its memory.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

import msgspec

from thresher import reasons
from thresher.config import ReadSettings
from thresher.records import Failure, ReadResult, Reply
from thresher.workers import signals
from thresher.workers.protocol import use_batch_scheduling

# New objects between two collections: a page makes some thousands, few of them in cycles.
GC_THRESHOLD = 100_000
FRAME = struct.Struct("!I")
LONGEST_REQUEST = 1 << 16  # bytes
WARM_UP = Reply(  # any page loads the models
    "http://example.org/",
    200,
    b"HTTP/1.1 200\r\nContent-Type: text/html\r\n",
    b"<p>word</p>" * 200,
    0.0,
    0.0,
    "",
)


Read = Callable[[Reply, str, ReadSettings], ReadResult]


class ReaderRequest(msgspec.Struct, frozen=True):
    """A request for a reader; the socket that it reads from is passed with the message."""

    language: str
    settings: ReadSettings


def main(load: Callable[[], Read], descriptor: int) -> None:
    """Fork a reader for each request, until all clients have closed the socket."""
    signals.ignore()
    use_batch_scheduling()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # readers are not waited for
    read: Read | None = None
    with socket.socket(fileno=descriptor) as requests:
        while True:
            message, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, 1)
            if not message:
                return
            request = msgspec.msgpack.decode(message, type=ReaderRequest)
            with socket.socket(fileno=descriptors[0]) as pipe:
                read = read or _loaded(load, request)
                if os.fork() == 0:
                    requests.close()
                    with suppress(OSError):  # the client has gone
                        _serve(read, request, pipe)
                    os._exit(0)


def _loaded(load: Callable[[], Read], request: ReaderRequest) -> Read:
    read = load()
    _read(read, WARM_UP, request)
    gc.freeze()  # models stay; visiting them in each collection takes a twentieth of the time
    gc.set_threshold(GC_THRESHOLD)
    return read


def _serve(read: Read, request: ReaderRequest, pipe: socket.socket) -> None:
    """Read replies and answer until the other end closes the socket."""
    resource.setrlimit(resource.RLIMIT_AS, (request.settings.memory, request.settings.memory))
    decode = msgspec.msgpack.Decoder(Reply).decode
    encode = msgspec.msgpack.Encoder().encode
    answer = encode(os.getpid())  # the first frame says that the reader is ready, and its process
    while True:
        pipe.sendall(FRAME.pack(len(answer)) + answer)
        if not (frame := _receive(pipe)):
            return
        answer = encode(_read(read, decode(frame), request))


def _read(read: Read, reply: Reply, request: ReaderRequest) -> ReadResult | Failure:
    try:
        return read(reply, request.language, request.settings)
    except Exception as fault:  # the edge: it must not end the crawl; the traceback goes into the log
        reason = reasons.OUT_OF_MEMORY if isinstance(fault, MemoryError) else reasons.READER_FAULT
        return Failure(reply.url, reason, traceback.format_exc(limit=-6))


def _receive(pipe: socket.socket) -> bytes:
    """Receive one frame, or b"" at the end."""
    head = pipe.recv(FRAME.size, socket.MSG_WAITALL)
    if len(head) < FRAME.size:
        return b""
    (length,) = FRAME.unpack(head)
    body = bytearray(length)
    view = memoryview(body)
    while view:
        count = pipe.recv_into(view)
        if not count:
            return b""
        view = view[count:]
    return bytes(body)


def _reader() -> Read:
    from thresher.reader.extract import read  # with the first request: its kernels take half a second to load

    return read


if __name__ == "__main__":
    main(_reader, int(sys.argv[1]))
