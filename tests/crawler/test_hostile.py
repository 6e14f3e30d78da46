"""A crawl of hostile servers: every URL gets one outcome, the good page is kept, and the crawl ends."""

from __future__ import annotations

import gzip
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest

import thresher
from support.invariants import check_raw, check_stats
from thresher.crawler.api import crawl

pytestmark = pytest.mark.slow

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
SENTENCE = (
    "Byl jednou jeden král a ten měl tři dcery, které se na něj každý den dívaly a ptaly se, co je za den. "
)


def html(body: str) -> bytes:
    data = f"<html><head><title>T</title></head><body>{body}</body></html>".encode()
    return OK + b"Content-Length: %d\r\n\r\n" % len(data) + data


def packed(coding: str, data: bytes) -> bytes:
    return OK + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (coding.encode(), len(data)) + data


def endless(piece: bytes, head: bytes = OK + b"\r\n") -> Callable[[Any], None]:
    def send(connection: Any) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return send


def redirect(location: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


ANSWERS: dict[str, bytes | Callable[[Any], None]] = {
    "/good": html(f"<p>{SENTENCE * 6}</p><p>{SENTENCE * 8}</p>" + "<!-- -->" * 200),
    "/endless": endless(b"x" * 65_536),
    "/endless-header": endless(b"X-More: " + b"y" * 1_000 + b"\r\n", OK),
    "/many-1xx": endless(b"HTTP/1.1 103 Early Hints\r\n\r\n", b""),
    "/silent": lambda connection: connection.recv(1),
    "/garbage": b"\x00\xff\xfe not http at all \r\n\r\n",
    "/half": OK + b"Content-Length: 100000\r\n\r\n<html>",
    "/chunks": OK + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\nx\r\n",
    "/gzip-bomb": packed("gzip", gzip.compress(b"\0" * 80_000_000, 1)),
    "/br-bomb": packed("br", brotli.compress(b"\0" * 80_000_000, quality=1)),
    "/nested": packed("gzip, gzip, gzip, br", b"x"),
    "/unknown-coding": packed("rot13", b"<html>uryyb"),
    "/deep": html("<div>" * 100_000),
    "/attributes": html("<p " + " ".join(f"a{n}=1" for n in range(50_000)) + ">x"),
    "/loop": redirect("/loop"),
    "/self": redirect("/self#again"),
    "/file": redirect("file:///etc/passwd"),
    "/script": redirect("javascript:alert(1)"),
    "/no-location": b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n",
    "/long-location": redirect("/" + "a" * 20_000),
    "/escape": OK + b"X-Evil: \x1b]52;c;AA\x07\r\nContent-Length: 3\r\n\r\n\x1b[m",
    "/status-999": b"HTTP/1.1 999 Whatever\r\nContent-Length: 2\r\n\r\nhi",
    "/partial": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nhi",
    "/empty": b"HTTP/1.1 204 No Content\r\n\r\n",
    "/pdf-as-html": OK + b"Content-Length: 3008\r\n\r\n%PDF-1.7" + b"\x01" * 3_000,
}
FRONT = html("".join(f'<a href="{path}">x</a> ' for path in ANSWERS))


class Handler(socketserver.BaseRequestHandler):
    """One answer a connection, exactly as written."""

    def handle(self) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            piece = self.request.recv(65_536)
            if not piece:
                return
            request += piece
        path = request.split(b" ", 2)[1].decode()
        answer = FRONT if path == "/" else ANSWERS.get(path, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
        try:
            if callable(answer):
                answer(self.request)
            else:
                self.request.sendall(answer)
        except OSError:
            pass  # the crawler closed the connection, as it should


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@pytest.fixture
def server() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Handler) as hostile:
        threading.Thread(target=hostile.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{hostile.server_address[1]}"
        hostile.shutdown()


def test_every_hostile_answer_has_its_outcome_and_the_good_page_is_kept(tmp_path: Path, server: str) -> None:
    settings = {
        "polite": {"delay": 0.0, "backoff": 0.01, "tries": 2, "host_failures": 1_000},
        "fetch": {"first_byte_timeout": 0.3, "total_timeout": 1.0, "max_body_bytes": 1_000_000},
        "read": {"deadline": 5.0, "max_decoded_bytes": 4_000_000, "processes": 1},
        "judge": {"max_badness": 0.0},  # one sentence over and over is no language
        "policy": {"name": "bfs"},  # such a host is closed soon otherwise
    }
    assert (
        crawl(tmp_path, "cs", ["http://hostile.cz/"], settings=settings, connect_to=server).reason == "done"
    )
    rows = {
        row["url"].removeprefix("http://hostile.cz"): row
        for row in thresher.open(tmp_path).outcomes().to_pylist()
    }
    assert set(rows) == {"/", *ANSWERS}
    assert {path for path, row in rows.items() if row["outcome"] == "kept"} == {"/good"}
    outcomes = {path: f"{row['outcome']}: {row['reason']}" for path, row in rows.items()}
    assert {
        path: outcomes[path] for path in ("/endless", "/half", "/gzip-bomb", "/br-bomb", "/nested", "/deep")
    } == {
        "/endless": "failed: truncated",
        "/half": "failed: truncated",
        "/gzip-bomb": "rejected: decompression bomb",
        "/br-bomb": "rejected: decompression bomb",
        "/nested": "rejected: too many encodings",
        "/deep": "rejected: too short",
    }
    assert {outcomes[path] for path in ("/loop", "/self")} == {"failed: redirect loop"}
    assert {outcomes[path] for path in ("/file", "/script", "/no-location", "/long-location")} <= {
        "failed: bad redirect",
        "failed: redirect loop",
    }
    assert outcomes["/silent"] == "failed: timeout"
    assert outcomes["/status-999"] == "failed: http 999"
    assert max(row["bytes"] for row in rows.values()) <= 2 * 1_000_000  # two tries at most, each cut off
    check_stats(tmp_path)


def test_raw_records_of_hostile_answers_are_read_by_other_tools(tmp_path: Path, server: str) -> None:
    settings = {
        "polite": {"delay": 0.0, "backoff": 0.01, "tries": 1, "host_failures": 1_000},
        "fetch": {"first_byte_timeout": 0.3, "total_timeout": 1.0, "max_body_bytes": 1_000_000},
        "scope": {"exclude": ["br-bomb", "nested"]},  # warcio's own trouble with brotli
        "policy": {"name": "bfs"},
    }
    crawl(tmp_path, "cs", ["http://hostile.cz/"], settings=settings, connect_to=server)
    check_raw(tmp_path)
