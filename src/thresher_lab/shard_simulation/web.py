"""A virtual web of any size: tables of domains, hosts and addresses; pages and links are computed from hashes.

Its shape follows measured webs. The hyperlink graph of Common Crawl of 2012 (Web Data Commons) has
3.56 billion pages with 36 links each, 101 million hosts and 43 million registered domains: 2.4 hosts to a domain,
35 pages to a host. Links are as on a recorded web of 103 hosts (`python -m bench.costs`), which has 35 to a page.
The distributions of sizes, popularity and shared addresses are assumptions; each is a named constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.jit import NUMBER, inner
from thresher.store.shard_layout import owner
from thresher_lab.shard_simulation.random_draws import below, draw, geometric, share, zipf

# Numbers of links of a page that a crawl may follow.
MENU_LINKS = 18  # to pages of the host, the same on each of its pages
INSIDE_LINKS = 7  # other links inside the host
DOMAIN_LINKS = 2  # links to other hosts of the domain
MEAN_OUT_MENU_LINKS = 3.5  # links to other domains on each page of a host; mean over hosts
MEAN_OUT_LINKS = 2.6  # other links to other domains; mean over pages
FRONT_PAGES = 0.14  # share of links to other domains that go to front pages
POPULAR = 0.7  # share of links that prefer popular domains; the others go anywhere
MAX_OUT_LINKS = 96  # links to other domains, of either kind
MAX_LINKS = MENU_LINKS + INSIDE_LINKS + DOMAIN_LINKS + 2 * MAX_OUT_LINKS

BIGGEST = 1_000_000  # pages of the first domain
SIZE_POWER = 0.8  # the n-th domain has as many pages divided by n to this power
HOSTS_POWER = 1.5  # a domain has n hosts or more with a probability of n to minus this power: 2.6 in the mean
MAX_HOSTS = 10_000
HOSTED = 0.4  # share of domains that share an address with others, at a hosting company or behind a proxy
HOSTED_DOMAINS = 50  # mean number of domains at a shared address
HOSTER_POWER = 0.8  # the n-th shared address has as many domains as the first divided by n to this power
HOSTS_PER_ADDRESS = 8  # of a domain with addresses of its own

# Streams of random draws, for domains and for links.
_HOST_COUNTS, _IS_HOSTED, _HOSTER = 1, 2, 3
_OF_PAGE, _OF_HOST, _WHERE, _OF_DOMAIN = 11, 12, 13, 14

Ids = NDArray[np.int32]


class Web(NamedTuple):
    """Tables of domains, hosts and addresses. The pages of a host are numbered from its front page on."""

    seed: int
    first_hosts: Ids  # by domain, and the end of the last
    first_pages: Ids  # by host, and the end of the last
    domains: Ids  # by host
    addresses: Ids  # by host
    shards: Ids  # by host
    address_owners: Ids  # by address: the shard that grants requests to it

    @property
    def pages(self) -> int:
        """The number of pages."""
        return int(self.first_pages[-1])


_IDS = types.Array(types.int32, 1, "C")
WEB = types.NamedTuple((NUMBER, _IDS, _IDS, _IDS, _IDS, _IDS, _IDS), Web)


def plan(domains: int, shards: int, *, biggest: int = BIGGEST, seed: int = 1) -> Web:
    """Return a web of a number of registered domains, distributed to a number of shards."""
    ranks = np.arange(1, domains + 1)
    sizes = np.maximum(biggest * ranks**-SIZE_POWER, 1.0).astype(np.int64)
    counts = np.minimum(_shares(seed, domains, _HOST_COUNTS) ** (-1 / HOSTS_POWER), MAX_HOSTS).astype(
        np.int64
    )
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
        address_owners=(_shares(seed, count, _WHERE) * shards).astype(np.int32),
    )


def name(domain: int) -> str:
    """Return the name of a domain, by which its shard is chosen."""
    return f"d{domain}.com"


def _addresses(seed: int, hosts: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[Ids, int]:
    """Return the address of every host, and the number of addresses."""
    domains = int(hosts[-1]) + 1
    hosters = max(int(domains * HOSTED) // HOSTED_DOMAINS, 1)
    sizes = np.cumsum(np.arange(1, hosters + 1) ** -HOSTER_POWER)
    hoster = np.searchsorted(sizes, _shares(seed, domains, _HOSTER) * sizes[-1])
    is_hosted = _shares(seed, domains, _IS_HOSTED) < HOSTED
    own = hosters + hosts * (MAX_HOSTS // HOSTS_PER_ADDRESS + 1) + places // HOSTS_PER_ADDRESS
    known, numbers = np.unique(np.where(is_hosted[hosts], hoster[hosts], own), return_inverse=True)
    return numbers.astype(np.int32), len(known)


def _shares(seed: int, count: int, stream: int) -> NDArray[np.float64]:
    """Return random numbers from above 0 to 1."""
    return 1.0 - np.random.default_rng((seed, stream)).random(count)


@inner
def links(web, host, page, hosts, pages):
    """Write the targets of the links of a page; return their number."""
    first, size = web.first_pages[host], web.first_pages[host + 1] - web.first_pages[host]
    count = 0
    for place in range(min(MENU_LINKS, size)):
        hosts[count], pages[count] = host, first + place
        count += 1
    for number in range(INSIDE_LINKS):
        hosts[count], pages[count] = host, first + below(draw(web.seed + _OF_PAGE, page, number), size)
        count += 1
    domain = web.domains[host]
    host_count = web.first_hosts[domain + 1] - web.first_hosts[domain]
    if host_count > 1:
        for number in range(DOMAIN_LINKS):
            other = web.first_hosts[domain] + zipf(draw(web.seed + _OF_DOMAIN, page, 2 * number), host_count)
            within = web.first_pages[other + 1] - web.first_pages[other]
            chance = draw(web.seed + _OF_DOMAIN, page, 2 * number + 1)
            hosts[count], pages[count] = other, web.first_pages[other] + below(chance, within)
            count += 1
    count = _out(web, web.seed + _OF_HOST, host, MEAN_OUT_MENU_LINKS, hosts, pages, count)
    return _out(web, web.seed + _OF_PAGE + _WHERE, page, MEAN_OUT_LINKS, hosts, pages, count)


@inner
def _out(web, seed, source, mean, hosts, pages, found):
    """Links to other domains; return the number of links there are then."""
    domains = len(web.first_hosts) - 1
    for number in range(min(geometric(draw(seed, source, 0), mean), MAX_OUT_LINKS)):
        chance = draw(seed, source, 4 * number + 1)
        if share(draw(seed, source, 4 * number + 2)) < POPULAR:
            domain = zipf(chance, domains)
        else:
            domain = below(chance, domains)
        host_count = web.first_hosts[domain + 1] - web.first_hosts[domain]
        host = web.first_hosts[domain] + zipf(draw(seed, source, 4 * number + 3), host_count)
        size = web.first_pages[host + 1] - web.first_pages[host]
        deep = share(draw(seed, source, 4 * number + 4))
        deep = 0.0 if deep < FRONT_PAGES else (deep - FRONT_PAGES) / (1.0 - FRONT_PAGES)
        hosts[found], pages[found] = host, web.first_pages[host] + np.int64(deep**3 * size)
        found += 1
    return found
