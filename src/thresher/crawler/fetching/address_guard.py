"""The guard of connections: a crawler may connect to public unicast addresses only."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# The IANA special-purpose registries, and the addresses of metadata services of clouds.
_IPV4 = tuple(
    (IPv4Network(network), word)
    for network, word in (
        ("0.0.0.0/8", "unspecified"),  # Linux connects 0.x.x.x to itself
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),  # carrier-grade NAT; a cloud has its metadata service at 100.100.100.200
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "metadata"),  # a cloud's host agent at an otherwise public address
        ("169.254.0.0/16", "link-local"),  # most clouds' metadata: 169.254.169.254
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "reserved"),  # relays of 6to4, withdrawn
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmark"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_IPV6 = tuple(
    (IPv6Network(network), word)
    for network, word in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b:1::/48", "private"),  # NAT64 for local use, which leads into private networks
        ("2001:2::/48", "benchmark"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_PROTOCOLS = IPv6Network("2001::/23")  # Teredo, ORCHID and similar protocols, without web servers
_MAPPED = IPv6Network("::ffff:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_LOW_32 = 0xFFFF_FFFF


@lru_cache(maxsize=65_536)
def refusal(address: str) -> str:
    """Return in a word why an address must not be connected to, "" for a public one.

    IPv6 addresses that embed an IPv4 address are judged by that, too.

    >>> refusal("93.184.215.14"), refusal("::ffff:7f00:1")
    ('', 'loopback')
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return "not an address"
    return _refusal_4(parsed) if isinstance(parsed, IPv4Address) else _refusal_6(parsed)


def _refusal_4(address: IPv4Address) -> str:
    return next((word for network, word in _IPV4 if address in network), "")


def _refusal_6(address: IPv6Address) -> str:
    if address.scope_id is not None:
        return "link-local"
    listed = next((word for network, word in _IPV6 if address in network), "")
    if listed:
        return listed
    inner = next(filter(None, map(_refusal_4, _embedded(address))), "")
    if inner:
        return inner
    if address in _MAPPED or address in _NAT64:
        return ""
    return "" if address in _PUBLIC_IPV6 and address not in _PROTOCOLS else "reserved"


def _embedded(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses that packets to an IPv6 address would reach or pass."""
    bits = int(address)
    if address in _MAPPED or address in _COMPATIBLE or address in _NAT64:
        return (IPv4Address(bits & _LOW_32),)
    if address in _SIX_TO_FOUR:
        return (IPv4Address(bits >> 80 & _LOW_32),)
    if address in _TEREDO:
        return (IPv4Address(bits >> 64 & _LOW_32), IPv4Address(~bits & _LOW_32))
    return ()
