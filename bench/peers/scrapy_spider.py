r"""Peer of the crawl benchmark: a corpus spider with Scrapy's broad-crawl settings and trafilatura.

Runs in an environment of its own, through http_proxy:
scrapy runspider scrapy_spider.py -O pages.jsonl:jsonlines \
    -a seeds=FILE -a hosts=FILE -a pages=N -a totals=FILE -a follow=1
"""

import json
from pathlib import Path
from typing import ClassVar

import trafilatura
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor


def _plain(url):
    """Return the URL with the scheme http, the only one that the proxy serves."""
    return url.replace("https://", "http://", 1)


class CorpusSpider(Spider):
    """Spider that reads every HTML page, writes its main text and follows its links, breadth first."""

    name = "corpus"
    custom_settings: ClassVar = {
        "ROBOTSTXT_OBEY": True,
        "USER_AGENT": "corpus-spider/1.0 (+mailto:bench@example.org)",
        "CONCURRENT_REQUESTS": 200,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "DOWNLOAD_TIMEOUT": 30,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
    }

    def __init__(self, seeds, hosts, pages, totals, follow="1", **arguments):
        super().__init__(**arguments)
        self.seeds = Path(seeds).read_text().split()
        self.allowed_domains = Path(hosts).read_text().split()  # empty: all
        self.wanted = int(pages)
        self.totals = Path(totals)
        self.follow = follow == "1"
        self.read = 0
        self.links = LinkExtractor()

    async def start(self):
        for url in self.seeds:
            yield Request(_plain(url))

    def parse(self, response):
        if not isinstance(response, HtmlResponse):
            return
        self.read += 1
        text = trafilatura.extract(response.text, url=response.url)
        yield {"url": response.url, "html_bytes": len(response.body), "text": text or ""}
        if self.read >= self.wanted:
            raise CloseSpider("enough pages")
        links = self.links.extract_links(response)  # a corpus has its links, followed or not
        if self.follow:
            for link in links:
                yield Request(_plain(link.url))

    def closed(self, reason):
        stats = self.crawler.stats.get_stats()
        totals = {
            "ending": reason,
            "pages": self.read,
            "requests": stats.get("downloader/request_count", 0),
            "bytes": stats.get("downloader/response_bytes", 0),
        }
        self.totals.write_text(json.dumps(totals))
