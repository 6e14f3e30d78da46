"""Names are looked up once, cached for a while, and give public addresses only."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from thresher.config import FetchSettings
from thresher.crawler.fetching.dns import MAX_ADDRESSES, Resolver, Unresolved

SETTINGS = FetchSettings(dns_seconds=100.0, dns_negative_seconds=50.0, dns_timeout=0.3)


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


class Names:
    """A name service in a dictionary that counts its queries; an exception is raised."""

    def __init__(self, **answers):
        self.answers = {name.replace("_", "."): answer for name, answer in answers.items()}
        self.asked = Counter()

    async def __call__(self, host):
        self.asked[host] += 1
        await asyncio.sleep(0)
        answer = self.answers.get(host, [])
        if isinstance(answer, Exception):
            raise answer
        return answer


def resolve(resolver, *hosts):
    async def main():
        found = [await resolver.resolve(host) for host in hosts]
        await resolver.close()
        return found

    return asyncio.run(main())


def test_addresses_come_in_the_order_in_which_they_were_given():
    names = Names(a_cz=["8.8.4.4", "8.8.8.8", "2a00::1", "8.8.4.4"])
    assert resolve(Resolver(SETTINGS, lookup=names), "a.cz") == [("8.8.4.4", "8.8.8.8", "2a00::1")]


def test_private_addresses_are_removed():
    names = Names(a_cz=["10.0.0.1", "8.8.8.8", "::1", "169.254.169.254"])
    assert resolve(Resolver(SETTINGS, lookup=names), "a.cz") == [("8.8.8.8",)]


def test_a_name_with_private_addresses_only_is_blocked_permanently():
    names = Names(a_cz=["127.0.0.1", "::1"])
    assert resolve(Resolver(SETTINGS, lookup=names), "a.cz") == [
        Unresolved("blocked address", "127.0.0.1 is loopback", transient=False)
    ]


def test_an_address_literal_is_judged_without_asking():
    names = Names()
    found = resolve(Resolver(SETTINGS, lookup=names), "8.8.8.8", "2a00::1", "127.0.0.1", "::ffff:7f00:1")
    assert found[:2] == [("8.8.8.8",), ("2a00::1",)]
    assert [answer.reason for answer in found[2:]] == ["blocked address"] * 2
    assert not names.asked


def test_a_thousand_addresses_are_cut_to_a_few():
    names = Names(a_cz=[f"8.8.{i // 250}.{i % 250}" for i in range(1000)])
    [found] = resolve(Resolver(SETTINGS, lookup=names), "a.cz")
    assert len(found) == MAX_ADDRESSES


def test_an_answer_is_remembered_no_longer_than_its_time():
    names, clock = Names(a_cz=["8.8.8.8"]), Clock()

    async def main():
        resolver = Resolver(SETTINGS, lookup=names, clock=clock)
        await resolver.resolve("a.cz")
        clock.now += 99
        await resolver.resolve("a.cz")
        assert names.asked["a.cz"] == 1
        clock.now += 1
        await resolver.resolve("a.cz")
        assert names.asked["a.cz"] == 2

    asyncio.run(main())


@pytest.mark.parametrize(("answer", "seconds"), [([], 50), (OSError("server failure"), 30)])
def test_a_failure_is_remembered_and_one_in_passing_not_as_long(answer, seconds):
    names, clock = Names(a_cz=answer), Clock()

    async def main():
        resolver = Resolver(SETTINGS, lookup=names, clock=clock)
        await resolver.resolve("a.cz")
        clock.now += seconds - 1
        await resolver.resolve("a.cz")
        assert names.asked["a.cz"] == 1
        clock.now += 1
        await resolver.resolve("a.cz")
        assert names.asked["a.cz"] == 2

    asyncio.run(main())


def test_a_dropped_name_is_looked_up_again():
    names = Names(a_cz=["8.8.8.8"])

    async def main():
        resolver = Resolver(SETTINGS, lookup=names)
        await resolver.resolve("a.cz")
        resolver.forget("a.cz")
        resolver.forget("never-heard-of.cz")
        await resolver.resolve("a.cz")

    asyncio.run(main())
    assert names.asked["a.cz"] == 2


def test_a_name_that_does_not_exist_is_no_passing_failure():
    assert resolve(Resolver(SETTINGS, lookup=Names()), "nowhere.cz") == [Unresolved("dns", "no such host")]


def test_a_name_server_that_fails_is_a_passing_failure():
    names = Names(a_cz=OSError("server failure"))
    assert resolve(Resolver(SETTINGS, lookup=names), "a.cz") == [
        Unresolved("dns", "server failure", transient=True)
    ]


def test_a_name_server_that_never_answers_is_given_up():
    async def silence(host):
        await asyncio.Event().wait()

    [found] = resolve(Resolver(FetchSettings(dns_timeout=0.02), lookup=silence), "a.cz")
    assert (found.reason, found.transient) == ("dns", True)


@pytest.mark.parametrize("host", ["", "a" * 254, "é.cz", "a b.cz"])
def test_text_that_is_not_a_host_name_is_not_looked_up(host):
    names = Names()
    [found] = resolve(Resolver(SETTINGS, lookup=names), host)
    assert (found.reason, found.transient, dict(names.asked)) == ("dns", False, {})


def test_concurrent_lookups_of_a_name_share_one_query():
    names = Names(a_cz=["8.8.8.8"])

    async def main():
        resolver = Resolver(SETTINGS, lookup=names)
        return await asyncio.gather(*(resolver.resolve("a.cz") for _ in range(100)))

    assert asyncio.run(main()) == [("8.8.8.8",)] * 100
    assert names.asked["a.cz"] == 1


def test_a_cancelled_lookup_does_not_cancel_others_of_the_same_name():
    names = Names(a_cz=["8.8.8.8"])

    async def main():
        resolver = Resolver(SETTINGS, lookup=names)
        first, second = (asyncio.ensure_future(resolver.resolve("a.cz")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == ("8.8.8.8",)
        assert first.cancelled()

    asyncio.run(main())
    assert names.asked["a.cz"] == 1


def test_the_longest_unused_names_are_forgotten_first():
    names = Names(**{f"h{i}_cz": ["8.8.8.8"] for i in range(4)})
    resolver = Resolver(SETTINGS, lookup=names, max_names=3)
    resolve(resolver, "h0.cz", "h1.cz", "h2.cz", "h0.cz", "h3.cz", "h0.cz", "h2.cz", "h1.cz")
    assert names.asked == {"h0.cz": 1, "h1.cz": 2, "h2.cz": 1, "h3.cz": 1}


def test_closing_answers_pending_lookups():
    async def silence(host):
        await asyncio.Event().wait()

    async def main():
        resolver = Resolver(FetchSettings(dns_timeout=60.0), lookup=silence)
        waiting = asyncio.ensure_future(resolver.resolve("a.cz"))
        await asyncio.sleep(0)
        await resolver.close()
        return await waiting

    assert asyncio.run(main()) == Unresolved("dns", "the resolver was closed", transient=True)


# --- the real thing, asking a name server on loopback --------------------------------------------------

A, CNAME, AAAA = 1, 5, 28
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3


class NameServer(asyncio.DatagramProtocol):
    """Answers from a table: (name, kind) -> code and records; a name that is not in it gets silence."""

    def __init__(self, table):
        self.table = table
        self.asked = []

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, sender):
        labels, at = [], 12
        while length := data[at]:
            labels.append(data[at + 1 : at + 1 + length].decode())
            at += 1 + length
        [kind] = struct.unpack_from("!H", data, at + 1)
        question = data[12 : at + 5]
        self.asked.append((".".join(labels).lower(), kind))
        if self.asked[-1] not in self.table:
            return
        code, records = self.table[self.asked[-1]]
        answer = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(value)) + value for kind, value in records
        )
        head = data[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        self.transport.sendto(head + question + answer, sender)


@asynccontextmanager
async def dns(table):
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(table), ("127.0.0.1", 0))
    resolver = Resolver(SETTINGS, nameservers=[f"127.0.0.1:{transport.get_extra_info('sockname')[1]}"])
    yield resolver, server
    await resolver.close()
    transport.close()


def ask_dns(host, table):
    async def main():
        async with dns(table) as (resolver, server):
            return await resolver.resolve(host), server.asked

    return asyncio.run(main())


def test_a_real_question_is_answered():
    found, asked = ask_dns(
        "a.cz", {("a.cz", A): (NOERROR, [(A, bytes([8, 8, 8, 8])), (A, bytes([10, 0, 0, 1]))])}
    )
    assert found == ("8.8.8.8",)
    assert asked == [("a.cz", A)]


def test_a_host_with_ipv6_only_is_found():
    address = socket.inet_pton(socket.AF_INET6, "2a00::1")
    found, _ = ask_dns("a.cz", {("a.cz", A): (NOERROR, []), ("a.cz", AAAA): (NOERROR, [(AAAA, address)])})
    assert found == ("2a00::1",)


def test_a_name_that_the_server_does_not_know_does_not_exist():
    found, _ = ask_dns("a.cz", {("a.cz", A): (NXDOMAIN, []), ("a.cz", AAAA): (NXDOMAIN, [])})
    assert found == Unresolved("dns", "no such host")


def test_an_alias_of_itself_has_no_address():
    loop = [(CNAME, b"\x01a\x02cz\x00")]
    found, _ = ask_dns("a.cz", {("a.cz", A): (NOERROR, loop), ("a.cz", AAAA): (NOERROR, loop)})
    assert (found.reason, found.transient) == ("dns", False)


@pytest.mark.parametrize("table", [{("a.cz", A): (SERVFAIL, [])}, {}], ids=["fails", "is silent"])
def test_a_name_server_that_fails_or_is_silent_is_a_passing_failure(table):
    found, _ = ask_dns("a.cz", table)
    assert (found.reason, found.transient) == ("dns", True)


@pytest.mark.parametrize("host", ["a..b", "." * 20, "a" * 64 + ".cz", "x\0y.cz"])
def test_a_malformed_name_does_not_exist(host):
    found, asked = ask_dns(host, {})
    assert (found.reason, found.transient, asked) == ("dns", False, [])
