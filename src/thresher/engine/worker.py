"""Reader processes, and the nursery that they come from.

A reader reads replies from its socket, one after the other, and answers with pages. To load what it needs takes a
second and 100 MB; so a process that has loaded it splits readers off, in milliseconds, and they share its memory.
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

from thresher.config import Reading
from thresher.engine import signals
from thresher.engine.calls import stand_back
from thresher.page import Failure, Page, Reply

GARBAGE = 100_000  # new objects between two collections: a page makes some thousands, hardly any in cycles
FRAME = struct.Struct("!I")
LONGEST_ORDER = 1 << 16
WARM_UP = Reply(  # reading anything at all loads the models
    "http://example.org/",
    200,
    b"HTTP/1.1 200\r\nContent-Type: text/html\r\n",
    b"<p>word</p>" * 200,
    0.0,
    0.0,
    "",
)


Read = Callable[[Reply, str, Reading], Page]


class Order(msgspec.Struct, frozen=True):
    """Which reader is wanted; the socket it shall read from comes with it."""

    language: str
    settings: Reading


def main(load: Callable[[], Read], descriptor: int) -> None:
    """Split off a reader for each order, until nobody is left who could send one."""
    signals.ignore()
    stand_back()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no reader is waited for
    read: Read | None = None
    with socket.socket(fileno=descriptor) as door:
        while True:
            message, descriptors, _, _ = socket.recv_fds(door, LONGEST_ORDER, 1)
            if not message:
                return
            order = msgspec.msgpack.decode(message, type=Order)
            with socket.socket(fileno=descriptors[0]) as pipe:
                read = read or _loaded(load, order)
                if os.fork() == 0:
                    door.close()
                    with suppress(OSError):  # whoever ordered it has gone
                        _serve(read, order, pipe)
                    os._exit(0)


def _loaded(load: Callable[[], Read], order: Order) -> Read:
    read = load()
    _read(read, WARM_UP, order)
    gc.freeze()  # models stay; looking at them again and again costs a twentieth of the reading
    gc.set_threshold(GARBAGE)
    return read


def _serve(read: Read, order: Order, pipe: socket.socket) -> None:
    """Read until the other side closes the socket."""
    resource.setrlimit(resource.RLIMIT_AS, (order.settings.memory, order.settings.memory))
    decode = msgspec.msgpack.Decoder(Reply).decode
    encode = msgspec.msgpack.Encoder().encode
    answer = encode(os.getpid())  # the first frame says that it is ready, and who it is
    while True:
        pipe.sendall(FRAME.pack(len(answer)) + answer)
        if not (frame := _receive(pipe)):
            return
        answer = encode(_read(read, decode(frame), order))


def _read(read: Read, reply: Reply, order: Order) -> Page | Failure:
    try:
        return read(reply, order.language, order.settings)
    except Exception as fault:  # the edge: a fault of the reader must not end the crawl, and must be found
        reason = "out of memory" if isinstance(fault, MemoryError) else "reader fault"
        return Failure(reply.url, reason, traceback.format_exc(limit=-6))


def _receive(pipe: socket.socket) -> bytes:
    """One frame, or b"" at the end."""
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
    from thresher.read.reader import read  # not before one is wanted: its kernels take half a second to load

    return read


if __name__ == "__main__":
    main(_reader, int(sys.argv[1]))
