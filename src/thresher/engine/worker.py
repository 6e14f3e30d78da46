"""A reader process: reads replies from its socket, one after the other, and answers with pages."""

from __future__ import annotations

import gc
import resource
import socket
import struct
import sys
import traceback
from collections.abc import Callable

import msgspec

from thresher.config import Reading
from thresher.page import Failure, Page, Reply

GARBAGE = 100_000  # new objects between two collections: a page makes some thousands, hardly any in cycles
FRAME = struct.Struct("!I")
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


def main(read: Read, language: str, settings: Reading, descriptor: int) -> None:
    """Serve until the other side closes the socket."""
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory, settings.memory))
    decode = msgspec.msgpack.Decoder(Reply).decode
    encode = msgspec.msgpack.Encoder().encode
    with socket.socket(fileno=descriptor) as pipe:
        _read(read, WARM_UP, language, settings)
        gc.freeze()  # models stay; looking at them again and again costs a twentieth of the reading
        gc.set_threshold(GARBAGE)
        pipe.sendall(FRAME.pack(0))  # ready
        while frame := _receive(pipe):
            answer = encode(_read(read, decode(frame), language, settings))
            pipe.sendall(FRAME.pack(len(answer)) + answer)


def _read(read: Read, reply: Reply, language: str, settings: Reading) -> Page | Failure:
    try:
        return read(reply, language, settings)
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


if __name__ == "__main__":
    # Here, for the crawler imports this module too, and the kernels of the reader take half a second to load.
    from thresher.read.reader import read

    main(read, sys.argv[1], msgspec.json.decode(sys.argv[2], type=Reading), int(sys.argv[3]))
