"""A fetch connects to public addresses only, and trusts certified servers only."""

from __future__ import annotations

import asyncio
import ssl

import pytest
import trustme

from support.webs.http_server import (
    HI,
    FixedResolver,
    fetcher,
    run,
    to_loopback,
    web,
)
from thresher import config
from thresher.crawler.fetching import fetcher as fetch
from thresher.crawler.fetching.dns import Resolver
from thresher.crawler.fetching.fetcher import Fetcher
from thresher.errors import UsageError
from thresher.records import Failure


def refused(url, resolver=None, **limits):
    async def main():
        async with web(HI) as seen:
            settings = config.FetchSettings(ports=(80, 443, 8080, seen.port), **limits)
            async with fetcher(settings, resolver=resolver) as crawler:
                result = await crawler.fetch(url.replace("PORT", str(seen.port)))
                return result, seen.connections

    result, connections = run(main())
    assert connections == 0
    return result


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "127.1",
        "0.0.0.0",
        "0",
        "10.0.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "[::1]",
        "[::]",
        "[::ffff:7f00:1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fd00:ec2::254]",
        "１２７.0.0.1",
    ],
)
def test_an_address_that_is_not_public_is_never_connected_to(host):
    failure = refused(f"http://{host}:PORT/")
    assert (failure.reason, failure.transient) == ("blocked address", False)


def test_a_name_with_private_addresses_is_never_connected_to():
    async def lookup(host):
        return ["10.0.0.1", "127.0.0.1"]

    failure = refused("http://a.cz:PORT/", Resolver(config.FetchSettings(), lookup=lookup))
    assert (failure.reason, failure.detail) == ("blocked address", "10.0.0.1 is private")


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "::1"])
def test_the_address_of_the_socket_has_the_last_word(address):
    failure = refused("http://a.cz:PORT/", FixedResolver(address))
    assert (failure.reason, failure.transient) == ("blocked address", False)
    assert "loopback" in failure.detail


@pytest.mark.parametrize(
    "url", ["http://a.cz:22/", "https://a.cz:25/", "http://a.cz:6379/", "http://a.cz:0/"]
)
def test_a_port_that_is_not_for_the_web_is_blocked(url):
    resolver = FixedResolver("8.8.8.8")
    failure = refused(url, resolver)
    assert (failure.reason, failure.transient, resolver.asked) == ("blocked port", False, [])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.cz",
        "//a.cz/",
        "ftp://a.cz/",
        "file:///etc/passwd",
        "gopher://a.cz/",
        "javascript:alert(1)",
        "data:text/html,x",
        "http:a.cz",
        "http://",
        "http:///x",
        "http://a.cz:99999/",
        "http://a b.cz/",
        "http://a.cz/a b",
        "http://a.cz/\r\nEvil: x",
        "http://a.cz/\0",
        "http://a.cz/ž",
        "http://a.cz\\@b.cz/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://a.cz/" + "x" * 3_000,
        "http://%00/",
        "http://\ud800.cz/",
    ],
)
def test_text_that_is_not_a_web_address_is_a_bad_url(url):
    resolver = FixedResolver("8.8.8.8")
    assert refused(url, resolver) == Failure(url, "bad url")
    assert resolver.asked == []


def test_a_name_that_does_not_exist_is_a_dns_failure():
    async def lookup(host):
        return []

    failure = refused("http://a.cz/", Resolver(config.FetchSettings(), lookup=lookup))
    assert (failure.reason, failure.transient) == ("dns", False)


def test_a_name_server_that_fails_is_a_dns_failure_in_passing():
    async def lookup(host):
        raise OSError("server \x1b[31mfailure")

    failure = refused("http://a.cz/", Resolver(config.FetchSettings(), lookup=lookup))
    assert (failure.reason, failure.transient, failure.detail) == ("dns", True, "server ?[31mfailure")


def test_a_fixed_route_must_be_an_address():
    with pytest.raises(UsageError, match=r"nowhere\.cz.* try 127\.0\.0\.1"):
        Fetcher(config.FetchSettings(), "x", connect_to=("nowhere.cz", 80))


def direct(url, *addresses, tls=None):
    """Fetch as on the real web, except that all addresses lead to this machine."""

    async def main():
        async with web(HI, tls) as seen:
            limits = config.FetchSettings(ports=(seen.port,), connect_timeout=2.0)
            options = to_loopback(*addresses)
            async with fetcher(limits, **options) as crawler:
                result = await crawler.fetch(url.replace("PORT", str(seen.port)))
                return result, seen, options["resolver"].asked

    return run(main())


def test_without_a_fixed_route_hosts_are_found_by_name():
    reply, seen, asked = direct("http://a.cz:PORT/x")
    assert (reply.body, reply.address, asked) == (b"hi", "127.0.0.1", ["a.cz"])
    assert f"Host: a.cz:{seen.port}".encode() in seen.requests[0]


def test_an_address_that_cannot_be_reached_is_followed_by_the_next():
    reply, _, _ = direct("http://a.cz:PORT/", "127.0.0.2", "127.0.0.1")
    assert (reply.body, reply.address) == (b"hi", "127.0.0.1")


def test_when_no_address_can_be_reached_the_name_is_looked_up_again_next_time():
    failure, _, asked = direct("http://a.cz:PORT/", "127.0.0.2", "127.0.0.3")
    assert (failure.reason, failure.transient) == ("connect", True)
    assert asked == ["a.cz", "forget a.cz"]


# TLS


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def trusted(authority, tmp_path, monkeypatch):
    """Make the authority the only one that this machine trusts."""
    path = tmp_path / "authorities.pem"
    authority.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


def certified(authority, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_a_server_with_a_trusted_certificate_is_fetched_from(authority, trusted):
    reply, _, _ = direct("https://a.cz:PORT/", tls=certified(authority, "a.cz"))
    assert (reply.status, reply.body) == (200, b"hi")


def test_a_certificate_without_a_trusted_authority_is_a_tls_failure(trusted):
    failure, seen, _ = direct("https://a.cz:PORT/", tls=certified(trustme.CA(), "a.cz"))
    assert (failure.reason, failure.transient, seen.requests) == ("tls", False, [])


def test_a_certificate_for_another_host_is_a_tls_failure(authority, trusted):
    failure, seen, _ = direct("https://a.cz:PORT/", tls=certified(authority, "b.cz"))
    assert (failure.reason, failure.transient, seen.requests) == ("tls", False, [])


def test_an_old_protocol_is_a_tls_failure(authority, trusted):
    context = certified(authority, "a.cz")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    failure, _, _ = direct("https://a.cz:PORT/", tls=context)
    assert (failure.reason, failure.transient) == ("tls", False)


def test_plain_http_where_tls_is_expected_is_a_tls_failure():
    async def main():
        async def babble(reader, writer):
            writer.write(HI)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        limits = config.FetchSettings(ports=(port,))
        async with server, fetcher(limits, **to_loopback()) as crawler:
            return await crawler.fetch(f"https://a.cz:{port}/")

    failure = run(main())
    assert (failure.reason, failure.transient) == ("tls", False)


def test_without_certificate_authorities_there_is_no_fetcher(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    monkeypatch.setattr(fetch, "_CA_BUNDLES", ())
    with pytest.raises(UsageError, match="install ca-certificates"):
        Fetcher(config.FetchSettings(), "x")
