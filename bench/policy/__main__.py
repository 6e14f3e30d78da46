"""Comparison of all policies on a recorded real web and on the papers' toy web, by simulation.

python -m bench.policy [--webs real,toy] [--policies bfs,learned] [--langs cs,tr] [--seeds 5] [--parts …] [--live]
                       [--plots DIR] [--quick]

Webs. real: a recorded web is crawled as a whole once, in all languages, and kept in bench/.cache; each language is
then harvested from its three seeds with the portal, and from the portal alone. toy: `ToyWeb.papers`, 5,000 hosts
with half a million pages, from the seeds of its target language; its record is planned once and kept, too.

Figures, one line of JSON each, then tables:

policy: the area under the harvest as a share of the ideal's, taken up to three times what the ideal downloads (mean
    and range over the random seeds); downloads for 90 % of the text that can be reached, as a share of the
    downloads of bfs (never, where it is more than a quarter); the yield after as many bytes as the ideal needs,
    beside that of bfs; and the time per page.
polite: the area with a second between requests to a host and 50 requests under way, for the learned policy and for
    the best other one.
sites: the crawl of NCL-Crawl on the toy web, 50 good seeds and no links to other hosts. Its paper counts documents
    with text in the language among all fetched documents; the share of kept pages in all requests is stricter.
links: F1 of predicting from a link, when it is first found, whether its target is kept: by its chance, by the
    expected yield, and by the rules of HeidiX. Thresholds named "best" are chosen afterwards, for each crawl; the
    predictions of all crawls are counted together.
live (only with --live, minutes): a crawl over HTTP of a toy web of 2,000 hosts against the same crawl simulated,
    with a second between requests to a host and 50 connections. Response times of the first are the latency of the
    second, averaged over five simulations; the distance of each of these from the mean is given beside it.

At the end comes a table of the demands and the measured values. --quick has fewer languages, a small toy web and
one random seed: it shows that everything runs, and its figures mean little.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import get_args

from bench import webs
from bench.measure import emit, say, table
from bench.policy.bars import OURS, bars, best_other, mean_area, most_of_bfs, picked, pooled
from bench.policy.links import predictions
from bench.policy.live import HOSTS as LIVE_HOSTS
from bench.policy.live import compared
from bench.policy.runs import NCL_PAGES, ORACLE, Figures, among_good_sites, measured, polite, warm
from bench.policy.webs import Case, real_cases, toy_case
from thresher.config import PolicyName
from thresher.report.harvest_plot import harvest_plot
from thresher.simulation.simulate import Harvest, ideal

WEBS = "real,toy"
POLICIES = ",".join([*get_args(PolicyName), ORACLE])
LANGUAGES = "cs,tr,id,ja,ca,ko"
TOY_HOSTS = 5_000
PARTS = "policy,polite,sites,links"
QUICK = {"langs": "cs,ko", "seeds": 1, "toy_hosts": 500, "live_hosts": 200, "pages": 2_000}
LINK_COLUMNS = ("web", "scope", "rule", "chosen", "links", "precision", "recall", "f1")
SITE_COLUMNS = ("policy", "pages", "documents", "in_language", "kept", "kept_at_best")
LIVE_COLUMNS = (
    "hosts",
    "pages",
    "live_text",
    "paper_text",
    "largest_distance",
    "distance_by_chance",
    "mean_distance",
    "latency_s",
)


def main() -> None:
    asked = _asked()
    rows: list[Figures] = []
    for figures in _measured(asked):
        emit(figures)
        rows.append(figures)
    _tables(rows)
    verdicts = bars(rows)
    for verdict in verdicts:
        emit(verdict)
    table(verdicts, ("demand", "bar", "value", "met"))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.policy", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--webs", default=WEBS)
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--langs", default=LANGUAGES, help="of the real web")
    parser.add_argument("--seeds", type=int, default=5, help="of chance, for policies that have a use for it")
    parser.add_argument("--parts", default=PARTS, help=f"some of {PARTS}")
    parser.add_argument("--live", action="store_true", help="a crawl over HTTP, too")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="pictures of the harvests")
    parser.add_argument("--quick", action="store_true", help="little of everything")
    parser.set_defaults(toy_hosts=TOY_HOSTS, live_hosts=LIVE_HOSTS, pages=NCL_PAGES)
    asked = parser.parse_args()
    if asked.seeds < 1:
        parser.error(f"--seeds {asked.seeds}: at least 1")
    if asked.quick:
        vars(asked).update(QUICK)
    choices = {"webs": WEBS, "policies": POLICIES, "parts": PARTS, "langs": None}
    for name, known in choices.items():
        given = [part for part in getattr(asked, name).split(",") if part]
        setattr(asked, name, given)
        for part in given:
            if known and part not in known.split(","):
                parser.error(f"--{name} {part}: choose from {known}")
    return asked


def _measured(asked: argparse.Namespace) -> Iterator[Figures]:
    """Measure all requested parts, web by web: a toy web's record is large and freed before the next part."""
    if "real" in asked.webs:
        try:
            for number, case in enumerate(real_cases(asked.langs)):
                if not number:
                    warm(case, asked.policies)
                yield from _harvests(case, asked)
                if "links" in asked.parts:
                    yield from predictions(case)
        except webs.Missing as reason:
            say(f"SKIPPED: the real web. {reason}")
            yield {"name": "skipped", "web": "real", "reason": str(reason)}
    if "toy" in asked.webs:
        yield from _toy(asked)
    if asked.live:
        comparison = compared(asked.live_hosts)
        both = [("live", comparison.live), ("on paper", comparison.paper)]
        _plot(asked.plots, "live", both, comparison.best)
        yield comparison.figures


def _toy(asked: argparse.Namespace) -> Iterator[Figures]:
    case = toy_case(asked.toy_hosts)
    warm(case, asked.policies)
    yield from _harvests(case, asked)
    if "sites" in asked.parts:
        for policy in (OURS, "bfs"):
            say(f"toy web: among good sites, {policy}")
            yield among_good_sites(case, policy, asked.pages)
    if "links" in asked.parts:
        say("toy web: links")
        yield from predictions(case)


def _harvests(case: Case, asked: argparse.Namespace) -> Iterator[Figures]:
    """Run the policies on a case, and the best of them politely."""
    if "policy" not in asked.parts:
        return
    rows: list[Figures] = []
    harvests: list[tuple[str, Harvest]] = []
    for figures, harvest in measured(case, asked.policies, asked.seeds):
        say(f"{case}: {figures['policy']} {figures['area']:.3f}")
        rows.append(figures)
        harvests.append((figures["policy"], harvest))
        yield figures
    name = f"{case.web}-{case.language}-{case.start.replace(' ', '-')}"
    _plot(asked.plots, name, harvests, ideal(case.record))
    if "polite" in asked.parts:
        for policy in (OURS, best_other(rows)):
            if policy and policy in asked.policies:
                say(f"{case}: {policy}, politely")
                yield polite(case, policy)


def _plot(directory: Path | None, name: str, harvests: Sequence[tuple[str, Harvest]], best: Harvest) -> None:
    if directory:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.svg").write_text(harvest_plot(harvests, best), "utf-8")


def _tables(rows: Sequence[Figures]) -> None:
    """Print the figures: areas by language, then all the rest."""
    found = picked(rows, name="policy")
    for web, start in dict.fromkeys((row["web"], row["start"]) for row in found):
        here = picked(found, web=web, start=start)
        languages = list(dict.fromkeys(row["language"] for row in here))
        say(f"area, {web} web, from {start}")
        table(
            [
                _summary(here, policy, picked(rows, name="polite", web=web, start=start, policy=policy))
                for policy in dict.fromkeys(row["policy"] for row in here)
            ],
            (
                *("policy", *languages, "mean", "spread", "polite"),
                *("90 %, of bfs's", "yield, of bfs's", "pages/s", "ms/page"),
            ),
        )
    if links := picked(rows, name="links"):
        say("telling where links lead")
        table(_over_languages(links), LINK_COLUMNS)
    if sites := picked(rows, name="among good sites"):
        say("among good sites")
        table(sites, SITE_COLUMNS)
    if live := picked(rows, name="live"):
        say("live and on paper")
        table(live, LIVE_COLUMNS)


def _summary(rows: Sequence[Figures], policy: str, polite_rows: Sequence[Figures]) -> Figures:
    """Return one policy over the languages; the spread is over random seeds."""
    own = picked(rows, policy=policy)
    most = most_of_bfs(own, policy)
    return {
        "policy": policy,
        **{row["language"]: row["area"] for row in own},
        "mean": mean_area(own, policy),
        "spread": max(row["area_max"] - row["area_min"] for row in own),
        "polite": fmean(row["area"] for row in polite_rows) if polite_rows else None,
        "90 %, of bfs's": "never" if most == inf else most,
        "yield, of bfs's": fmean(row["yield_of_bfs"] for row in own),
        "pages/s": round(fmean(row["pages_per_s"] for row in own)),
        "ms/page": fmean(row["cpu_ms_per_page"] for row in own),
    }


def _over_languages(rows: Sequence[Figures]) -> list[Figures]:
    """Return each rule for links over all languages of a web together."""
    kinds = dict.fromkeys((row["web"], row["scope"], row["rule"], row["chosen"]) for row in rows)
    return [
        {
            **{"web": web, "scope": scope, "rule": rule, "chosen": chosen},
            **pooled(picked(rows, web=web, scope=scope, rule=rule, chosen=chosen)),
        }
        for web, scope, rule, chosen in kinds
    ]


if __name__ == "__main__":
    main()
