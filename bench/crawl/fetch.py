"""Requests per processor second of the client: Thresher's fetcher against aiohttp, over plain HTTP on loopback.

python -m bench.fetch [--requests 20000]

Bodies of 2 KB and 50 KB from 200 hosts, one connection each, kept alive; both clients take the body as it came.
Then the memory of each with 2,000 connections open at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import uvloop

from bench.measure import ROOT, emit, peers_python, run, say, table
from thresher.config import FetchSettings
from thresher.crawler.fetching.fetcher import Fetcher
from thresher.records import Reply

ADDRESS = "127.0.0.1"
HOSTS = 200
CONNECTIONS = 2_000
SIZES = (2_000, 50_000)
COLUMNS = ("name", "bytes", "requests", "wall_s", "cpu_s", "requests_per_cpu_s", "rss_mb")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fetch", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", type=int, default=20_000, help="of each client for each size of body")
    parser.add_argument("--part", choices=("server", "client"), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--hosts", type=int, default=HOSTS, help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part == "server":
        uvloop.run(_serve())
    elif asked.part == "client":
        print(json.dumps(uvloop.run(_fetch(asked.port, asked.hosts, asked.requests, asked.path))))
    else:
        _contest(asked.requests)


def _contest(requests: int) -> None:
    clients: dict[str, list[object]] = {
        "thresher": [sys.executable, "-m", "bench.fetch", "--part", "client"],
        "aiohttp": [peers_python(), ROOT / "bench" / "peers" / "aiohttp_client.py"],
    }
    rows = []
    tasks = [(f"/{size}", HOSTS, requests) for size in SIZES]
    tasks.append((f"/held/{CONNECTIONS}", CONNECTIONS, CONNECTIONS))
    with _server() as port:
        for path, hosts, count in tasks:
            for name, command in clients.items():
                say(f"{name}: {count:,} requests of {path} to {hosts:,} hosts")
                arguments = {"port": port, "hosts": hosts, "requests": count, "path": path}
                options = [part for key, value in arguments.items() for part in (f"--{key}", str(value))]
                figures: dict[str, Any] = {"name": name, "path": path, "hosts": hosts}
                figures |= json.loads(run([*command, *options]).output)
                figures["requests_per_cpu_s"] = figures["requests"] / figures["cpu_s"]
                emit(figures)
                rows.append(figures)
    table(rows, ("path", *COLUMNS))
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    ratios = {
        ours["path"]: ours["requests_per_cpu_s"] / peer["requests_per_cpu_s"] for ours, peer in pairs[:-1]
    }
    emit({"name": "ratios", **ratios, "rss_mb": pairs[-1][0]["rss_mb"] / pairs[-1][1]["rss_mb"]})


async def _fetch(port: int, hosts: int, requests: int, path: str) -> dict[str, float]:
    """Fetch with Thresher: one request after the other per host, all hosts at once."""
    fetcher = Fetcher(
        FetchSettings(connections=hosts), "bench (+bench@example.org)", connect_to=(ADDRESS, port)
    )
    received = 0

    async def ask(host: int, times: int) -> None:
        nonlocal received
        for _ in range(times):
            reply = await fetcher.fetch(f"http://h{host}.example{path}")
            assert isinstance(reply, Reply) and reply.status == 200, reply
            received += len(reply.body)

    if not path.startswith("/held/"):
        await asyncio.gather(*[ask(host, 1) for host in range(hosts)])  # connections are open from here on
    received = 0
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*[ask(host, requests // hosts) for host in range(hosts)])
    figures = {
        "requests": requests // hosts * hosts,
        "bytes": received,
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }
    await fetcher.close()
    return figures


@contextmanager
def _server() -> Iterator[int]:
    """Start a server process and return its port."""
    command = [sys.executable, "-m", "bench.fetch", "--part", "server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None
        try:
            yield int(child.stdout.readline())
        finally:
            child.terminate()


async def _serve() -> None:
    held: list[asyncio.Transport] = []
    server = await asyncio.get_running_loop().create_server(
        lambda: _Connection(held), ADDRESS, 0, backlog=CONNECTIONS
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class _Connection(asyncio.Protocol):
    """Protocol that answers /BYTES with so many bytes, and /held/COUNT once COUNT requests are waiting."""

    _answers: dict[int, bytes] = {}  # noqa: RUF012  # shared on purpose

    def __init__(self, held: list[asyncio.Transport]) -> None:
        self._held = held
        self._waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while b"\r\n\r\n" in self._waiting:
            head, _, self._waiting = self._waiting.partition(b"\r\n\r\n")
            _, *rest = head.split(b" ", 2)[1].split(b"/")
            if rest[0] != b"held":
                self._transport.write(self._answer(int(rest[0])))
                continue
            self._held.append(self._transport)
            if len(self._held) == int(rest[1]):
                for transport in self._held:
                    transport.write(self._answer(SIZES[0]))
                self._held.clear()

    def _answer(self, size: int) -> bytes:
        if size not in self._answers:
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {size}\r\n\r\n"
            self._answers[size] = head.encode() + b"x" * size
        return self._answers[size]


if __name__ == "__main__":
    main()
