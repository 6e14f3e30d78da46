"""Run one reader of the read benchmark on one file of pages: python readers.py NAME PAGES.

PAGES has a line of JSON for each page: {"key": …, "language": …, "html": …}; pages without a key are for warming
up. Standard output: {"version": …, "pages": {key: {"text": …, "cpu_s": …}}}.

All readers get the same decoded text and are timed alike, page by page, without imports. Thresher makes a reply
of it with the bytes in UTF-8, as a crawl would get it, and finds links, languages and fingerprints as well. It
runs in its own environment, the others in theirs.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path


def thresher(**settings):
    from thresher.config import ReadSettings
    from thresher.reader import read
    from thresher.records import Reply

    chosen = ReadSettings(**settings)
    headers = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"

    def text_of(page):
        reply = Reply("http://page.example/", 200, headers, page["html"].encode(), 0.0, 0.0, "")
        return read(reply, "", chosen).text

    return text_of


def trafilatura(**settings):
    from trafilatura import extract

    return lambda page: extract(page["html"], **settings) or ""


def readability():
    from lxml.html import fromstring
    from readability import Document
    from readability.readability import Unparseable

    def text_of(page):
        try:
            main = Document(page["html"]).summary(html_partial=True)
        except Unparseable:
            return ""
        return "\n".join(fromstring(main).itertext()) if main else ""

    return text_of


def justext():
    """Extract with the stop list of the page's language, or without one for languages that have none."""
    from justext import get_stoplist, get_stoplists, justext
    from lxml.etree import ParserError

    listed = get_stoplists()
    lists = {}

    def text_of(page):
        language = page["language"]
        if language not in lists:
            lists[language] = get_stoplist(language) if language in listed else frozenset()
        words = lists[language]
        bounds = {} if words else {"stopwords_low": 0, "stopwords_high": 0}
        try:
            found = justext(page["html"], words, **bounds)
        except ParserError:
            return ""
        return "\n".join(paragraph.text for paragraph in found if not paragraph.is_boilerplate)

    return text_of


def resiliparse():
    from resiliparse.extract.html2text import extract_plain_text

    chosen = {"main_content": True, "list_bullets": False, "links": False}
    return lambda page: extract_plain_text(page["html"], **chosen)


READERS = {  # name: package, function, settings; another mode of a reader is another row
    "thresher": ("thresher", thresher, {}),
    "thresher precision": ("thresher", thresher, {"mode": "precision"}),
    "thresher recall": ("thresher", thresher, {"mode": "recall"}),
    "trafilatura": ("trafilatura", trafilatura, {}),
    "trafilatura fast": ("trafilatura", trafilatura, {"fast": True}),
    "trafilatura precision": ("trafilatura", trafilatura, {"favor_precision": True}),
    "trafilatura recall": ("trafilatura", trafilatura, {"favor_recall": True}),
    "readability": ("readability-lxml", readability, {}),
    "jusText": ("justext", justext, {}),
    "resiliparse": ("resiliparse", resiliparse, {}),
}


def run(name, path):
    """Read all pages of a file with one reader."""
    package, make, settings = READERS[name]
    text_of = make(**settings)
    pages = {}
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            page = json.loads(line)
            started = time.process_time()
            text = text_of(page)
            spent = time.process_time() - started
            if page["key"]:
                pages[page["key"]] = {"text": text, "cpu_s": spent}
    return {"version": version(package), "pages": pages}


if __name__ == "__main__":
    json.dump(run(*sys.argv[1:3]), sys.stdout)
