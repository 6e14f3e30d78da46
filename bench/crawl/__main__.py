"""The whole job against Scrapy with trafilatura: fetch, robots.txt, read, judge, store.

python -m bench.crawl [--pages 3000] [--peer-pages 1000] [--webs toy,real,same,listed] [--hosts 60]

toy: pages alike. real: a recorded web, where two crawlers that stop early have read other pages. same: some of
its hosts alone, with pages of 30 to 80 KB; both are handed all their pages as seeds and crawl on from there to the
end, so that they read the same pages. listed: the same list, and no link is followed.

Processor time is that of all processes of a contender from birth to death; the web servers are not
counted. A longer run of Thresher alone: --pages 20000 --peer-pages 0 --webs toy
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import webs
from bench.contenders import Figures, html_urls, scrapy, spider_urls, thresher, without_scheme
from bench.crawl.stages import milliseconds
from bench.measure import emit, say, table

LANGUAGE = "cs"
SETTINGS: dict[str, dict[str, Any]] = {"policy": {"name": "bfs"}}
COLUMNS = (
    *("web", "name", "pages", "requests", "wall_s", "cpu_s", "pages_per_cpu_s", "steady_pages_per_cpu_s"),
    *("startup_cpu_s", "rss_mb", "html_bytes_per_page", "html_mb_per_cpu_s"),
)
SAME_PAGES = 3_500  # HTML files of the hosts in the list that both get
ENDLESS = 10**9
COMPARED = ("pages_per_cpu_s", "html_mb_per_cpu_s", "rss_mb")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.crawl", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--pages", type=int, default=3_000, help="requests that Thresher may make on each web"
    )
    parser.add_argument("--peer-pages", type=int, default=1_000, help="pages that the peer reads; 0: no peer")
    parser.add_argument("--webs", default="toy,real,same,listed")
    parser.add_argument("--hosts", type=int, default=60, help="of the toy web")
    parser.add_argument("--sample", type=int, default=400, help="pages to take the stages' times of")
    asked = parser.parse_args()
    choice: dict[str, AbstractContextManager[webs.Web]] = {
        "toy": webs.toy(asked.hosts),
        "real": webs.real(),
        "same": webs.real("same", SAME_PAGES),
        "listed": webs.real("listed", SAME_PAGES),
    }
    rows: list[Figures] = []
    ratios: dict[str, dict[str, float]] = {}
    for name in asked.webs.split(","):
        try:
            with choice[name] as web:
                found = _contest(web, asked)
        except webs.Missing as reason:
            say(f"SKIPPED: the {name} web. {reason}")
            emit({"name": "skipped", "web": name, "reason": str(reason)})
            continue
        rows += found
        if len(found) == 2:
            ratios[name] = {field: found[0][field] / found[1][field] for field in COMPARED}
    table(rows, COLUMNS)
    emit({"name": "ratios", **ratios})


def _contest(web: webs.Web, asked: argparse.Namespace) -> list[Figures]:
    with tempfile.TemporaryDirectory(prefix="thresher-bench-") as scratch:
        place = Path(scratch)
        whole, follow = web.name in ("same", "listed"), web.name != "listed"
        if whole:
            say(f"{web.name} web: finding all its pages")
            thresher(place / "scout", web, LANGUAGE, web.seeds, _settings(0))
            web = replace(web, seeds=sorted(html_urls(place / "scout")))
        pages, peer_pages = (0, ENDLESS) if whole else (asked.pages, asked.peer_pages)
        say(f"{web.name} web: thresher, one page, then {'all' if whole else f'{pages:,} requests'}")
        first = thresher(place / "one", web, LANGUAGE, web.seeds[:1], _settings(1))
        ours = thresher(place / "ours", web, LANGUAGE, web.seeds, _settings(pages, follow=follow))
        ours["startup_cpu_s"] = first["cpu_s"]
        say(f"{web.name} web: stages, of some {asked.sample:,} pages")
        every = max(1, ours["pages"] // asked.sample)
        stages = milliseconds(place / "ours", web.connect_to, place / "stages", every)
        ours["html_bytes_per_page"] = round(1e3 * stages["html_kb"])
        ours["html_mb_per_cpu_s"] = stages["html_kb"] * ours["pages_per_cpu_s"] / 1e3
        ours["ms_per_page"] = _with_the_rest(stages, ours, first)
        emit(ours)
        _tell(ours)
        if not asked.peer_pages:
            return [ours]
        say(f"{web.name} web: scrapy, one page, then {'all' if whole else f'{peer_pages:,}'}")
        first = scrapy(place / "one-peer", web, web.seeds[:1], 1)
        peer = scrapy(place / "peer", web, web.seeds, peer_pages, follow=follow)
        peer["startup_cpu_s"] = first["cpu_s"]
        peer["html_mb_per_cpu_s"] = peer["html_bytes_per_page"] * peer["pages_per_cpu_s"] / 1e6
        ours_read = without_scheme(html_urls(place / "ours"))
        peer_read = without_scheme(spider_urls(place / "peer"))
        peer["pages_both_read"] = len(ours_read & peer_read)
        peer["pages_either_read"] = len(ours_read | peer_read)
        emit(peer)
        return [ours, peer]


def _settings(pages: int, *, follow: bool = True) -> dict[str, dict[str, Any]]:
    return {**SETTINGS, "budget": {"max_pages": pages}, "scope": {"internal": follow, "external": follow}}


def _with_the_rest(stages: dict[str, Any], whole: Figures, start: Figures) -> dict[str, Any]:
    """Return the stages together with the whole time of each kind of process for a page, without the start.

    The rest is everything that the replay leaves out: event loop, pipes, robots.txt, sitemaps and requests that
    gave no page. It is the difference of two measurements and has the error of both.
    """
    for part, field in (("reader", "readers_cpu_s"), ("main", "main_cpu_s")):
        used = 1e3 * (whole[field] - start[field]) / max(1, whole["pages"] - start["pages"])
        named = sum(spent for stage, spent in stages[part].items() if not stage.startswith("of "))
        stages[f"{part} process"] = used
        stages[part]["the rest"] = used - named
    return stages


def _tell(ours: Figures) -> None:
    stages = ours["ms_per_page"]
    for part in ("reader", "main"):
        say(f"  {part} process: {stages[f'{part} process']:.2f} ms per page")
        for stage, spent in sorted(stages[part].items(), key=lambda item: -item[1]):
            say(f"    {spent:7.3f}  {stage}")


if __name__ == "__main__":
    main()
