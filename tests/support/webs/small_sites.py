"""Small webs that are written by hand, served on loopback, and crawled."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import thresher

SENTENCE = (
    "Byl jednou jeden král a ten měl tři dcery, které se na něj každý den dívaly a ptaly se, co je za den. "
)
SETTINGS: dict[str, dict[str, Any]] = {
    "polite": {"delay": 0.0, "backoff": 0.01},
    "read": {"processes": 1},
    "judge": {"max_badness": 0.0, "min_html_bytes": 0},  # one sentence over and over is no language
}

# a small web


def text(name: str, *links: str) -> str:
    """Return a page that is kept."""
    return f"<h1>{name}</h1>" + f"<p>{name} {SENTENCE * 8}</p>" * 2 + listing(*links)


def listing(*links: str) -> str:
    """Return a page of links that is not kept."""
    return "".join(f'<a href="{url}">{number}</a> ' for number, url in enumerate(links))


def sitemap(*urls: str) -> str:
    return "<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>"


Web = Mapping[str, str]  # body by URL; anything else is not found

SEEDS = ["http://a.cz/blog/2020/one.html", "http://c.cz/links.html"]
HIDDEN: Web = {
    "http://a.cz/blog/2020/one.html": text("one", "two.html?from=one", "http://b.cz/good.html"),
    "http://a.cz/blog/2020/two.html?from=one": text("two"),
    "http://a.cz/blog/2020/two.html": text("the second without its query"),
    "http://a.cz/blog/2020/": listing("forbidden.html"),
    "http://a.cz/blog/2020/forbidden.html": text("forbidden"),
    "http://a.cz/blog/": listing("2019/three.html", "http://away.de/", "http://a.cz/private/page.html"),
    "http://a.cz/blog/2019/three.html": text("three"),
    "http://a.cz/private/page.html": text("private"),
    "http://a.cz/robots.txt": "User-agent: *\nDisallow: /blog/2020/$\n",
    "http://b.cz/good.html": text("good"),
    "http://b.cz/sitemap.xml": sitemap("http://b.cz/a-deep-one/in/the/sitemap.html"),
    "http://b.cz/a-deep-one/in/the/sitemap.html": text("sitemap"),
    "http://c.cz/links.html": listing("http://a.cz/blog/2020/one.html", "http://d.cz/linked.html"),
    "http://c.cz/": listing("http://c.cz/texts/first.html"),
    "http://c.cz/texts/first.html": text("on the front page"),
    "http://c.cz/texts/": listing("http://c.cz/texts/second.html"),
    "http://c.cz/texts/second.html": text("beside it"),
    "http://d.cz/linked.html": text("linked"),
    "http://d.cz/robots.txt": "Sitemap: http://d.cz/other.xml\n",
    "http://d.cz/": listing("http://d.cz/front.html"),
    "http://d.cz/front.html": text("front"),
    "http://away.de/": text("away"),
}
LINKED = {
    "http://a.cz/blog/2020/one.html",
    "http://a.cz/blog/2020/two.html?from=one",
    "http://b.cz/good.html",
    "http://d.cz/linked.html",
}
UNLINKED = {
    "http://a.cz/blog/2019/three.html",  # behind a folder
    "http://a.cz/blog/2020/two.html",  # without its query
    "http://b.cz/a-deep-one/in/the/sitemap.html",
    "http://c.cz/texts/first.html",  # behind the front page of a host that linked to good pages
    "http://c.cz/texts/second.html",  # in the same folder, which another round finds
    "http://d.cz/front.html",  # behind the front page of a good host
}
SCOPE = {"tlds": ["cz"], "exclude": ["/private/"]}


class Site:
    """A web on loopback that records its requests."""

    def __init__(self, web: Web) -> None:
        self.requests: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # head and body in one packet

            def do_GET(self) -> None:
                url = f"http://{self.headers['Host']}{self.path}"
                site.requests.append(url)
                found = web.get(url)
                kind = "xml" if url.endswith(".xml") else "plain" if url.endswith(".txt") else "html"
                body = (found or "no").encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.connect_to = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def serving(web: Web) -> Iterator[Site]:
    site = Site(web)
    try:
        yield site
    finally:
        site.close()


def merged(**sections: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {**SETTINGS.get(name, {}), **sections.get(name, {})} for name in {**SETTINGS, **sections}}


def kept(directory: Path) -> set[str]:
    return set(thresher.open(directory).documents(["url"])["url"].to_pylist())


def order(directory: Path) -> list[str]:
    return thresher.open(directory).outcomes(["url"])["url"].to_pylist()


def widening(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = thresher.open(directory).stats()["widening"]
    return found
