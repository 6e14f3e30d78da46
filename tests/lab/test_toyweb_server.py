"""The server of the toy web: HTTP/1.1 on loopback, slow and flaky where the oracle says so."""

from __future__ import annotations

import gzip
import http.client
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import brotli
import pytest
import zstandard

from support.webs.toy_webs import WEB, Walk, all_seeds, first, headers, plain_body
from thresher.urls import host as host_name
from thresher_lab.toyweb import Server, ToyWeb, serve


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(WEB, journal=tmp_path_factory.mktemp("toyweb") / "journal") as running:
        yield running


def get(connection: http.client.HTTPConnection, url: str, **extra: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    connection.request("GET", target, headers={"Host": parts.netloc, **extra})
    reply = connection.getresponse()
    return reply.status, dict(reply.getheaders()), reply.read()


def connect(server: Server) -> http.client.HTTPConnection:
    address, port = server.connect_to.split(":")
    return http.client.HTTPConnection(address, int(port), timeout=10)


def test_pages_come_over_http_as_the_oracle_says(server: Server, walked: Walk) -> None:
    decoders = {"br": brotli.decompress, "gzip": gzip.decompress, "zstd": unzstd, "": bytes}
    connection = connect(server)
    met = Counter[str]()
    for url, found in list(walked.items())[::7]:
        if found.kind in ("slow", "drip", "flaky"):
            continue
        status, fields, body = get(connection, url, **{"Accept-Encoding": "gzip, br, zstd"})
        assert status == found.status
        coding = fields.get("Content-Encoding", "")
        met[coding + " chunked" * ("Transfer-Encoding" in fields)] += 1
        assert decoders[coding](body) == plain_body(WEB, url)
    connection.close()
    assert {"gzip", "gzip chunked", "br", "zstd", ""} <= set(met)


def unzstd(body: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(body)


def test_an_encoding_that_was_not_asked_for_is_not_used(server: Server, walked: Walk) -> None:
    connection = connect(server)
    url = next(
        url for url, f in walked.items() if f.kind == "text" and "Content-Encoding" in headers(WEB, url)
    )
    for accepted in ("identity", "gzip;q=0, br;q=0, zstd;q=0"):
        assert "Content-Encoding" not in get(connection, url, **{"Accept-Encoding": accepted})[1]
    connection.close()


def test_an_unknown_host_is_answered_502(server: Server) -> None:
    connection = connect(server)
    assert get(connection, "http://nowhere.example/")[0] == 502
    connection.close()


def test_a_flaky_page_is_there_at_the_second_attempt(server: Server, walked: Walk) -> None:
    connection = connect(server)
    url = first(walked, "flaky")
    status, fields, _ = get(connection, url)
    assert status in (429, 503)
    assert fields["Retry-After"] == str(WEB.retry_after)
    assert get(connection, url)[0] == get(connection, url)[0] == 200
    connection.close()


def test_slow_and_dripping_pages_take_their_time_and_come_whole(server: Server, walked: Walk) -> None:
    connection = connect(server)
    for kind, least in (("slow", WEB.slow_seconds), ("drip", WEB.drip_seconds * 0.9)):
        url = first(walked, kind)
        started = time.monotonic()
        assert get(connection, url)[2] == plain_body(WEB, url)
        assert time.monotonic() - started >= least
    connection.close()


def test_requests_sent_at_once_are_answered_in_order(server: Server, walked: Walk) -> None:
    import socket

    urls = [first(walked, kind) for kind in ("slow", "lost", "text")]
    address, port = server.connect_to.split(":")
    with socket.create_connection((address, int(port)), timeout=10) as client:
        requests = [f"GET /{u.split('/', 3)[3]} HTTP/1.1\r\nHost: {host_name(u)}\r\n" for u in urls]
        client.sendall(("\r\n".join(requests) + "Connection: close\r\n\r\n").encode())
        received = b"".join(iter(lambda: client.recv(65_536), b""))
    assert [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", received)] == [200, 404, 200]


@pytest.mark.parametrize("request_", [b"\x16\x03\x01\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/2\r\n\r\n"])
def test_malformed_requests_are_answered_400_and_closed(server: Server, request_: bytes) -> None:
    import socket

    address, port = server.connect_to.split(":")
    with socket.create_connection((address, int(port)), timeout=10) as client:
        client.sendall(request_)
        assert b"".join(iter(lambda: client.recv(65_536), b"")).startswith(b"HTTP/1.1 400 ")


def test_the_journal_has_one_line_for_every_request(tmp_path: Path) -> None:
    web = ToyWeb.calm(hosts=5)
    url = all_seeds(web)[0]
    before = time.monotonic()
    with serve(web, processes=2, journal=tmp_path / "journal") as running:
        for path in ("robots.txt", "", "nothing"):  # each on a connection of its own: any process may take it
            connection = connect(running)
            get(connection, url + path)
            connection.close()
    lines = [line.split("\t") for line in (tmp_path / "journal").read_text().splitlines()]
    assert [(name, path, status) for _, name, path, status in lines][1:] == [
        (host_name(url), "/", "200"),
        (host_name(url), "/nothing", "404"),
    ]
    times = [float(line[0]) for line in lines]
    assert before <= times[0] <= times[1] <= times[2] <= time.monotonic()


def test_serving_forever_prints_its_address_and_ends_when_terminated() -> None:
    script = (
        "from thresher_lab.toyweb import ToyWeb, serve_forever\n"
        "serve_forever(ToyWeb.calm(hosts=3), ready=lambda server: print(server.connect_to, flush=True))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address, port = process.stdout.readline().strip().split(":")
        connection = http.client.HTTPConnection(address, int(port), timeout=10)
        try:
            status, _, _ = get(connection, "http://nowhere.example/")
        finally:
            connection.close()
            process.terminate()
        assert status == 502
        assert process.wait(timeout=10) == 0
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(address, int(port), timeout=10).connect()
