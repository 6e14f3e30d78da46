"""A crawl and its simulation: the same URLs in the same order, as far as a record can say."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import thresher
from support.webs.memory_web import MemoryPage, settings, simulated_crawl
from support.webs.paper_web import recorded
from thresher.config import PolicySettings
from thresher.simulation.record import load
from thresher.simulation.simulate import SimulationTerms, simulate
from thresher.urls import host

SEEDS = [f"http://h{number}.cz/0" for number in range(3)]


def random_web(seed: int) -> dict[str, MemoryPage]:
    """Return a web of rich and poor hosts, with links at random and some redirects."""
    dice = Random(seed)
    urls = [f"http://h{number}.cz/{page}" for number in range(12) for page in range(10)]
    urls += [f"http://p{number}.poor.cz/{page}" for number in range(20) for page in range(2)]
    pages = {}
    for url in urls:
        is_poor = "poor" in url or host(url) in ("h4.cz", "h5.cz")
        redirect = dice.choice(urls) if url not in SEEDS and dice.random() < 0.08 else ""
        pages[url] = MemoryPage(
            bytes=60_000 if is_poor else dice.randrange(5_000, 40_000),
            sentences=0 if is_poor else dice.randrange(20, 200),
            links=[] if redirect else [dice.choice(urls) for _ in range(dice.randrange(2, 12))],
            redirect="" if redirect == url else redirect,
        )
    return pages


@pytest.mark.parametrize("web", [1, 2, 3])
@pytest.mark.parametrize("name", ["bfs", "spiderling", "host-yield", "heidix"])
def test_a_crawl_and_its_simulation_fetch_the_same_urls_in_the_same_order(
    tmp_path: Path, name: str, web: int
) -> None:
    table = {"name": name, "widen": False}
    crawl = simulated_crawl(tmp_path, settings(policy=table), random_web(web), SEEDS)
    assert crawl.ending.reason == "done"
    outcomes = thresher.open(tmp_path).outcomes(["url", "time"]).to_pylist()
    fetched = [row["url"] for row in outcomes]
    record = load(tmp_path)
    policy = PolicySettings(name=name, widen=False)  # type: ignore[arg-type]
    terms = SimulationTerms(delay=5.0, connections=1, latency=0.0, seed=1)
    harvest = simulate(record, policy, record.find(SEEDS), terms)
    assert [record.urls[number] for number in harvest.visited] == fetched
    assert len(fetched) > 60
    moments = [
        row["time"].timestamp() - crawl.started
        for row in thresher.open(tmp_path).outcomes(["time"]).to_pylist()
    ]
    assert harvest.seconds.tolist() == pytest.approx(moments)


def test_a_crawl_and_its_simulation_close_the_hosts_of_a_poor_domain_at_the_same_page(tmp_path: Path) -> None:
    urls = [f"http://h{number}.poor.cz/" for number in range(60)]
    pages = {url: MemoryPage(bytes=70_000, sentences=0) for url in urls}
    crawl = simulated_crawl(tmp_path, settings(policy={"name": "spiderling"}), pages, urls)
    requested = [url for url, _ in crawl.web.requests if not url.endswith("/robots.txt")]
    record = load(tmp_path)
    # URLs that were never fetched have no record, so the simulation gets the record of all.
    whole = recorded([(url, 70_000, 0) for url in urls], {}, {})
    terms = SimulationTerms(delay=5.0, latency=0.0)
    visited = simulate(whole, PolicySettings(name="spiderling"), range(60), terms).visited.tolist()
    assert [urls[number] for number in visited] == requested == record.urls
    assert len(requested) == 11
