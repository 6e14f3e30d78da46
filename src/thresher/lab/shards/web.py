"""A web of any size that is nowhere: tables of domains, hosts and addresses; pages and links come out of hashes.

Its shape is that of webs that were measured. The hyperlink graph of Common Crawl of 2012 (Web Data Commons) has
3.56 billion pages with 36 links each, 101 million hosts and 43 million registered domains: 2.4 hosts to a domain,
35 pages to a host. Links are as on a recorded web of 103 hosts (`python -m bench.costs`), which has 35 to a page.
How sizes and popularity fall and who shares an address are assumptions; each has a constant with a name.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.lab.shards.dice import below, draw, favoured, scattered, share
from thresher.read.scan.kernel import NUMBER, inner
from thresher.store.shards import owner

# Links of a page, of those that a crawl may follow.
MENU = 18  # to pages of the host, on each of its pages
INSIDE = 7  # other links inside the host
NEXT_DOOR = 2  # links to other hosts of the domain
OUT_MENU = 3.5  # links to other domains on each page of a host, in the mean over hosts
OUT = 2.6  # other links to other domains, in the mean over pages
FRONT_PAGES = 0.14  # of links to other domains
FAVOURED = 0.7  # share of links that go where most links go; the others go anywhere
MOST_OUT = 96  # links to other domains, of either kind
MOST_LINKS = MENU + INSIDE + NEXT_DOOR + 2 * MOST_OUT

BIGGEST = 1_000_000  # pages of the first domain; …
SIZES = 0.8  # … the n-th has as many divided by n to this power
HOSTS = 1.5  # a domain has n hosts or more with a probability of n to minus this power: 2.6 in the mean
MOST_HOSTS = 10_000
HOSTED = 0.4  # share of domains that share an address with others: at a hoster, behind a proxy, …
HOSTED_DOMAINS = 50  # … so many to an address in the mean, …
HOSTERS = 0.8  # … and at the n-th address as many as at the first divided by n to this power
HOSTS_TO_ADDRESS = 8  # of a domain with addresses of its own

_HOST_COUNTS, _IS_HOSTED, _HOSTER = 1, 2, 3  # what is drawn of a domain …
_OF_PAGE, _OF_HOST, _WHERE, _OF_DOMAIN = 11, 12, 13, 14  # … and what of links

Ids = NDArray[np.int32]


class Web(NamedTuple):
    """Who is where. Pages are numbered through, those of a host from its first one on; that is its front page."""

    seed: int
    first_hosts: Ids  # by domain, and one more
    first_pages: Ids  # by host, and one more
    domains: Ids  # by host
    addresses: Ids  # by host
    shards: Ids  # by host
    doors: Ids  # by address: the shard that knows when it may be visited

    @property
    def pages(self) -> int:
        return int(self.first_pages[-1])


_IDS = types.Array(types.int32, 1, "C")
WEB = types.NamedTuple((NUMBER, _IDS, _IDS, _IDS, _IDS, _IDS, _IDS), Web)


def plan(domains: int, shards: int, *, biggest: int = BIGGEST, seed: int = 1) -> Web:
    """A web of so many registered domains, dealt out to so many shards."""
    ranks = np.arange(1, domains + 1)
    sizes = np.maximum(biggest * ranks**-SIZES, 1.0).astype(np.int64)
    counts = np.minimum(_shares(seed, domains, _HOST_COUNTS) ** (-1 / HOSTS), MOST_HOSTS).astype(np.int64)
    counts = np.minimum(counts, np.maximum(sizes // 2, 1))
    first_hosts = np.concatenate(([0], np.cumsum(counts)))
    hosts = np.repeat(np.arange(domains), counts)
    places = np.arange(len(hosts)) - first_hosts[hosts]
    # The first host of a domain is its largest, the n-th has an n-th of its pages.
    parts = 1.0 / (places + 1)
    whole = np.bincount(hosts, parts, domains)
    pages = np.maximum((sizes[hosts] * parts / whole[hosts]).astype(np.int64), 1)
    addresses, count = _addresses(seed, hosts, places)
    owners = np.fromiter((owner(name(domain), shards) for domain in range(domains)), np.int32, domains)
    return Web(
        seed=seed,
        first_hosts=first_hosts.astype(np.int32),
        first_pages=np.concatenate(([0], np.cumsum(pages))).astype(np.int32),
        domains=hosts.astype(np.int32),
        addresses=addresses,
        shards=owners[hosts],
        doors=(_shares(seed, count, _WHERE) * shards).astype(np.int32),
    )


def name(domain: int) -> str:
    """What a domain is called, for whoever deals domains out by their names."""
    return f"d{domain}.com"


def _addresses(seed: int, hosts: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[Ids, int]:
    """The address of every host, and how many there are."""
    domains = int(hosts[-1]) + 1
    hosters = max(int(domains * HOSTED) // HOSTED_DOMAINS, 1)
    crowds = np.cumsum(np.arange(1, hosters + 1) ** -HOSTERS)
    hoster = np.searchsorted(crowds, _shares(seed, domains, _HOSTER) * crowds[-1])
    is_hosted = _shares(seed, domains, _IS_HOSTED) < HOSTED
    own = hosters + hosts * (MOST_HOSTS // HOSTS_TO_ADDRESS + 1) + places // HOSTS_TO_ADDRESS
    known, numbers = np.unique(np.where(is_hosted[hosts], hoster[hosts], own), return_inverse=True)
    return numbers.astype(np.int32), len(known)


def _shares(seed: int, count: int, what: int) -> NDArray[np.float64]:
    """Numbers from above 0 to 1."""
    return 1.0 - np.random.default_rng((seed, what)).random(count)


@inner
def links(web, host, page, hosts, pages):
    """Write down where the links of a page lead; returns how many there are."""
    first, size = web.first_pages[host], web.first_pages[host + 1] - web.first_pages[host]
    found = 0
    for place in range(min(MENU, size)):
        hosts[found], pages[found] = host, first + place
        found += 1
    for number in range(INSIDE):
        hosts[found], pages[found] = host, first + below(draw(web.seed + _OF_PAGE, page, number), size)
        found += 1
    domain = web.domains[host]
    doors = web.first_hosts[domain + 1] - web.first_hosts[domain]
    if doors > 1:
        for number in range(NEXT_DOOR):
            other = web.first_hosts[domain] + favoured(draw(web.seed + _OF_DOMAIN, page, 2 * number), doors)
            within = web.first_pages[other + 1] - web.first_pages[other]
            chance = draw(web.seed + _OF_DOMAIN, page, 2 * number + 1)
            hosts[found], pages[found] = other, web.first_pages[other] + below(chance, within)
            found += 1
    found = _out(web, web.seed + _OF_HOST, host, OUT_MENU, hosts, pages, found)
    return _out(web, web.seed + _OF_PAGE + _WHERE, page, OUT, hosts, pages, found)


@inner
def _out(web, seed, source, mean, hosts, pages, found):
    """Links to other domains; returns how many links there are then."""
    domains = len(web.first_hosts) - 1
    for number in range(min(scattered(draw(seed, source, 0), mean), MOST_OUT)):
        chance = draw(seed, source, 4 * number + 1)
        if share(draw(seed, source, 4 * number + 2)) < FAVOURED:
            domain = favoured(chance, domains)
        else:
            domain = below(chance, domains)
        doors = web.first_hosts[domain + 1] - web.first_hosts[domain]
        host = web.first_hosts[domain] + favoured(draw(seed, source, 4 * number + 3), doors)
        size = web.first_pages[host + 1] - web.first_pages[host]
        deep = share(draw(seed, source, 4 * number + 4))
        deep = 0.0 if deep < FRONT_PAGES else (deep - FRONT_PAGES) / (1.0 - FRONT_PAGES)
        hosts[found], pages[found] = host, web.first_pages[host] + np.int64(deep**3 * size)
        found += 1
    return found
