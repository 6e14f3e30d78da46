"""Peer of the fetch benchmark: aiohttp on uvloop, with every host at the one address of the server."""

import argparse
import asyncio
import json
import resource
import socket
import time

import aiohttp
import uvloop
from aiohttp.abc import AbstractResolver


class Loopback(AbstractResolver):
    """Resolver that maps every name to this machine."""

    async def resolve(self, host, port=0, family=socket.AF_INET):
        return [
            {
                "hostname": host,
                "host": "127.0.0.1",
                "port": port,
                "family": family,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
        ]

    async def close(self):
        pass


async def fetch(port, hosts, requests, path):
    connector = aiohttp.TCPConnector(limit=hosts, resolver=Loopback(), family=socket.AF_INET)
    received = 0
    async with aiohttp.ClientSession(
        connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:

        async def ask(host, times):
            nonlocal received
            for _ in range(times):
                async with session.get(
                    f"http://h{host}.example:{port}{path}", allow_redirects=False
                ) as reply:
                    received += len(await reply.read())

        if not path.startswith("/held/"):
            # Connections are open from here on.
            await asyncio.gather(*[ask(host, 1) for host in range(hosts)])
        received = 0
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*[ask(host, requests // hosts) for host in range(hosts)])
        return {
            "requests": requests // hosts * hosts,
            "bytes": received,
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("port", "hosts", "requests"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--path")
    asked = parser.parse_args()
    print(json.dumps(uvloop.run(fetch(asked.port, asked.hosts, asked.requests, asked.path))))
