"""The contenders of the crawl benchmarks: Thresher, and Scrapy with trafilatura."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit

import thresher as product
from bench.measure import ROOT, Usage, peers_python, run
from bench.webs import Web
from thresher.urls import canonical

SPENT = 3  # exit code of a crawl that was stopped by its budget
NO_PAGES = ("sitemap", "feed", "not html")  # kinds that are fetched and read, but are no pages
STEADY_FROM = 300  # pages after which the start is over

Figures = dict[str, Any]


def thresher(
    directory: Path,
    web: Web,
    language: str,
    seeds: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    *,
    python: str | Path = sys.executable,
    options: Sequence[object] = (),
) -> Figures:
    """Run a whole crawl by the command line, with a corpus.toml written before.

    `python` may be that of another version of Thresher; `options` are further words of the command.
    """
    write_settings(directory, web, language, settings)
    early: Figures = {}

    def look() -> None:
        status = _status(directory)
        if not early and status and status["pages"]["fetched"] >= STEADY_FROM:
            early.update(status)

    command: list[object] = [python, "-m", "thresher.cli", "crawl", directory, "--json"]
    listed = directory / "listed.txt"
    listed.write_text("\n".join(seeds))
    command += ["--connect-to", web.connect_to, "--seeds", listed, *options]
    usage = run(command, accept=(0, SPENT), look=look)
    status = json.loads(usage.output)
    requests, pages = status["pages"]["fetched"], _html_pages(status)
    figures = {
        "name": "thresher",
        "web": web.name,
        "ending": status["ending"],
        **_figures(usage, pages),
        "main_cpu_s": usage.main_cpu_s,
        "readers_cpu_s": usage.children_cpu_s,
        "requests": requests,
        "kept": status["pages"]["kept"],
        "rejected": status["pages"]["rejected"],
        "failed": status["pages"]["failed"],
        "disallowed": status["pages"]["disallowed"],
        "hosts": status["hosts"]["seen"],
        "bytes": status["bytes"]["downloaded"],
        "text_bytes": status["bytes"]["text"],
        "disk_bytes": sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()),
    }
    if early and pages > _html_pages(early):
        spent = status["time"]["cpu_s"] - early["time"]["cpu_s"]
        figures["steady_pages_per_cpu_s"] = (pages - _html_pages(early)) / spent
    return figures


def write_settings(
    directory: Path, web: Web, language: str, settings: Mapping[str, Mapping[str, Any]]
) -> None:
    always: dict[str, dict[str, Any]] = {
        "polite": {"delay": 0.0, "contact": "bench@example.org"},
        "store": {"keep_raw": "all"},
        "scope": {"hosts": tuple(web.hosts)},
    }
    tables = {name: {**always.get(name, {}), **settings.get(name, {})} for name in {*always, *settings}}
    directory.mkdir(parents=True)
    (directory / "corpus.toml").write_text(tomlkit.dumps({"language": language, **tables}), "utf-8")


def _status(directory: Path) -> Figures | None:
    try:
        found: Figures = json.loads((directory / "status.json").read_bytes())
    except FileNotFoundError:
        return None
    return found


def _html_pages(status: Figures) -> int:
    pages = status["pages"]
    rejected = sum(count for reason, count in pages["rejected"].items() if reason not in NO_PAGES)
    return int(pages["kept"] + rejected)


def scrapy(directory: Path, web: Web, seeds: Sequence[str], pages: int, *, follow: bool = True) -> Figures:
    """Run a whole crawl by Scrapy with trafilatura into a JSONL file."""
    directory.mkdir(parents=True)
    lists = {"seeds": directory / "seeds.txt", "hosts": directory / "hosts.txt"}
    lists["seeds"].write_text("\n".join(seeds))
    lists["hosts"].write_text("\n".join(web.hosts))
    totals, output = directory / "totals.json", directory / "pages.jsonl"
    arguments = {**lists, "pages": pages, "totals": totals, "follow": int(follow)}
    command = [peers_python(), "-m", "scrapy", "runspider", ROOT / "bench" / "peers" / "scrapy_spider.py"]
    command += ["-O", f"{output}:jsonlines"]
    for name, value in arguments.items():
        command += ["-a", f"{name}={value}"]
    usage = run(command, environment={"http_proxy": f"http://{web.connect_to}"})
    counted = json.loads(totals.read_text())
    with output.open(encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]
    return {
        "name": "scrapy+trafilatura",
        "web": web.name,
        "ending": counted["ending"],
        **_figures(usage, len(texts)),
        "requests": counted["requests"],
        "bytes": counted["bytes"],  # headers included
        "text_bytes": sum(len(text["text"].encode()) for text in texts),
        "html_bytes_per_page": sum(text["html_bytes"] for text in texts) // max(1, len(texts)),
        "disk_bytes": output.stat().st_size,
    }


def html_urls(corpus: Path) -> set[str]:
    """Return the URLs of the pages that Thresher read."""
    rows = product.open(corpus).outcomes(["url", "outcome", "reason"]).to_pylist()
    return {
        row["url"] for row in rows if row["outcome"] in ("kept", "rejected") and row["reason"] not in NO_PAGES
    }


def spider_urls(directory: Path) -> set[str]:
    """Return the URLs of the pages that Scrapy read."""
    with (directory / "pages.jsonl").open(encoding="utf-8") as lines:
        return {json.loads(line)["url"] for line in lines}


def without_scheme(urls: Iterable[str]) -> set[str]:
    """Return URLs without their schemes: one crawler may ask for https where the other asks for http."""
    return {(canonical(url) or url).partition("//")[2] for url in urls}


def _figures(usage: Usage, pages: int) -> Figures:
    return {
        "pages": pages,  # answered with 200 and read as HTML
        "wall_s": usage.wall_s,
        "cpu_s": usage.cpu_s,
        "pages_per_cpu_s": pages / usage.cpu_s,
        "pages_per_s": pages / usage.wall_s,
        "rss_mb": usage.rss_mb,
    }
