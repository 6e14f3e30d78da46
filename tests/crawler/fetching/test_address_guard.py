"""A crawler connects to public addresses only, however they are written."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.crawler.fetching.address_guard import refusal


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "198.20.0.1", "223.255.255.255"],
)
def test_a_public_ipv4_address_is_allowed(address):
    assert refusal(address) == ""


@pytest.mark.parametrize(
    "address", ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", "2a00:1450::1", "2001:4860::8888"]
)
def test_a_public_ipv6_address_is_allowed(address):
    assert refusal(address) == ""


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("169.254.169.254", "link-local"),
        ("100.64.0.1", "shared"),
        ("100.100.100.200", "shared"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "reserved"),
        ("192.0.2.1", "documentation"),
        ("198.51.100.7", "documentation"),
        ("203.0.113.9", "documentation"),
        ("198.18.0.1", "benchmark"),
        ("198.19.255.255", "benchmark"),
        ("224.0.0.1", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("fd00:ec2::254", "private"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
        ("3fff::1", "documentation"),
        ("2001:2::1", "benchmark"),
        ("100::1", "reserved"),
        ("4000::1", "reserved"),
    ],
)
def test_a_special_address_is_refused_with_the_reason(address, word):
    assert refusal(address) == word


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:7f00:1", "loopback"),
        ("::ffff:a9fe:a9fe", "link-local"),
        ("::127.0.0.1", "loopback"),
        ("::a00:1", "private"),
        ("2002:7f00:1::", "loopback"),
        ("2002:c0a8:101::1", "private"),
        ("64:ff9b::10.0.0.1", "private"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("64:ff9b:1::808:808", "private"),  # NAT64 for local use leads anywhere
        ("2001:0:7f00:1:0:0:f7f7:f7f7", "loopback"),  # the Teredo server
        ("2001:0:808:808:0:0:80ff:fffe", "loopback"),  # the Teredo client, its bits turned over
        ("2001:0:808:808:0:0:f7f7:f7f7", "reserved"),  # no web server uses Teredo
        ("::8.8.8.8", "reserved"),
    ],
)
def test_an_address_hidden_in_another_is_found_out(address, word):
    assert refusal(address) == word


@pytest.mark.parametrize("address", ["::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"])
def test_a_public_address_inside_another_is_allowed(address):
    assert refusal(address) == ""


@pytest.mark.parametrize(
    "text", ["", "example.org", "2130706433", "0x7f.1", "127.1", "1.2.3.4.5", "::1::", "\0"]
)
def test_text_that_is_not_an_address_is_refused(text):
    assert refusal(text) == "not an address"


def _destination(text: str) -> IPv4Address | IPv6Address:
    """Return the address that packets really go to, where the standard library would not look inside."""
    parsed = ip_address(text)
    if isinstance(parsed, IPv6Address):
        return parsed.ipv4_mapped or parsed.sixtofour or parsed
    return parsed


ipv4 = st.integers(0, 2**32 - 1).map(lambda n: str(IPv4Address(n)))
special_prefixes = st.sampled_from(
    [
        0,
        0xFFFF << 32,
        0x64FF9B << 96,
        0x2001 << 112,
        0x2002 << 112,
        0x20010DB8 << 96,
        0xFE80 << 112,
        0xFD00 << 112,
    ]
)
ipv6 = st.one_of(
    st.integers(0, 2**128 - 1),
    st.builds(lambda prefix, rest: prefix | rest, special_prefixes, st.integers(0, 2**96 - 1)),
    st.builds(lambda prefix, rest: prefix | rest, special_prefixes, st.integers(0, 2**32 - 1)),
).map(lambda n: str(IPv6Address(n)))


@given(st.one_of(ipv4, ipv6, st.ip_addresses().map(str)))
def test_the_rule_is_never_more_permissive_than_the_standard_librarys(address):
    assert refusal(address) or _destination(address).is_global


@given(ipv4)
def test_a_mapped_address_is_judged_as_the_one_it_carries(address):
    assert refusal(f"::ffff:{address}") == refusal(f"64:ff9b::{address}") == refusal(address)


@given(st.text(max_size=40))
def test_any_text_gets_an_answer(text):
    assert isinstance(refusal(text), str)
