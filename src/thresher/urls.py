"""URLs: the canonical form, the host, the registered domain, and signs of crawler traps."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

import ada_url
import xxhash
from publicsuffixlist import PublicSuffixList

MAX_URL_LENGTH = 2048  # characters that all servers and browsers accept; longer URLs are generated
MAX_DEPTH = 12  # path segments
MAX_REPEATS = 3  # of a path segment: /a/b/a/b/a/b comes from relative links that lead ever deeper
MAX_PARAMETERS = 8
MAX_SAME_PARAMETER = 2  # ?page=2&page=3&page=4 comes from links that add to the query of their page

# Parameters that identify the visitor or the campaign, never the page.
_TRACKING = re.compile(
    r"&(?:(?:utm_[a-z_]+|mtm_[a-z_]+|pk_[a-z_]+|fbclid|gclid|gclsrc|dclid|yclid|msclkid|mc_[ce]id|igshid|"
    r"_ga|_gl|phpsessid|jsessionid|aspsessionid[a-z]*|sessionid|session_id|cfid|cftoken|zenid|oscsid)"
    r"(?:=[^&]*)?)?(?=&|\Z)",
    re.IGNORECASE,
)
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/;]*", re.IGNORECASE)
# The form of most links: it has nothing that the URL standard would change, no segment that could be `.` or `..`,
# and no host that could be an address or needs IDNA. Groups: origin, path, query; then a fragment.
_PLAIN = re.compile(
    r"(https?://(?:(?!xn--)[a-z0-9-]++\.)++[a-z]{2,}+(?=[/?#]|\Z))?"
    r"(/?(?:(?!\.|%2[eE])[A-Za-z0-9_~!$&()*+,=@.%-]++/?)*+)"
    r"(?:\?([A-Za-z0-9_~!$&()*+,=@.%:/;?-]*+))?"
    r"(?:#.*)?",
    re.DOTALL,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LABEL = re.compile(r"[a-z0-9-]+")
_END_OF_HOST = re.compile(r"[/?#\\]")
_NO_HOST = re.compile(r"[/?#\\@]")
_suffixes = PublicSuffixList(accept_unknown=True)


def canonical(url: str, base: str | None = None) -> str | None:
    """Return the canonical form of a URL, None if it is not a URL of the web.

    It is parsed by the WHATWG standard and loses user, default port, fragment, the trailing dot of the host, and
    tracking and session parameters.

    >>> canonical("../b?utm_source=x&p=2#top", "HTTP://Example.CZ:80/a/c")
    'http://example.cz/b?p=2'
    """
    # A URL that is too long before it is joined is not parsed, to save time.
    if len(url) > 4 * MAX_URL_LENGTH:
        return None
    if base and len(base) > 4 * MAX_URL_LENGTH:
        base = None
    href = _plain(url, base) or _parsed(url, base)
    return href if href and len(href) <= MAX_URL_LENGTH else None


def absolute(url: str, base: str | None = None) -> str | None:
    """Return a URL of any scheme as the WHATWG standard parses it, None if it cannot be parsed."""
    try:
        href: str = ada_url.normalize_url(url) if base is None else ada_url.join_url(base, url)
    except ValueError:
        well_formed = _SURROGATE.sub("\ufffd", url)  # as browsers do with strings that are not Unicode
        return None if well_formed == url else absolute(well_formed, base)
    return href


def _plain(url: str, base: str | None) -> str | None:
    """Return the canonical form of a URL that needs no parser, None for others; a shortcut."""
    plain = _PLAIN.fullmatch(url)
    if not plain:
        return None
    origin, path, query = plain.groups()
    if origin:
        path = path or "/"
    else:
        before = roots(base) if base and path else None
        if not before:
            return None
        origin = before[path[0] != "/"]
    return f"{origin}{path}{_cleaned(query)}" if query else origin + path


@lru_cache(maxsize=256)  # all links of a page have one base
def roots(base: str) -> tuple[str, str] | None:
    """Return the prefixes of paths with and without a leading slash, None for a base that is not on the web."""
    href = _parsed(base, None) if len(base) <= 4 * MAX_URL_LENGTH else None
    if not href:
        return None
    folder = href.partition("?")[0].rpartition("/")[0]
    scheme, _, host, *_ = folder.split("/", 3)
    return f"{scheme}//{host}", folder + "/"


def _parsed(url: str, base: str | None) -> str | None:
    href = absolute(url, base or None)
    if not href or not href.startswith(("http://", "https://")):
        return None
    scheme, _, rest = href.partition("#")[0].partition("://")
    authority, _, rest = rest.partition("/")
    authority = authority.rpartition("@")[2]
    if authority.endswith(".") or ".:" in authority:
        name, colon, port = authority.partition(":")
        name = name.rstrip(".")
        # Parsed again, since `1..` is a name and `1` is an address.
        return _parsed(f"{scheme}://{name}{colon}{port}/{rest}", None) if name else None
    path, _, query = rest.partition("?")
    if ";" in path:
        shorter = _SESSION_IN_PATH.sub("", path)
        if shorter != path:  # parsed again, since `/.;sid=1/a` leaves a dot
            return _parsed(f"{scheme}://{authority}/{shorter}?{query}", None)
    return f"{scheme}://{authority}/{path}{_cleaned(query)}"


def _cleaned(query: str) -> str:
    """Return `?` and the parameters that identify the page, "" if there are none."""
    kept = _TRACKING.sub("", "&" + query)
    return "?" + kept[1:] if kept else ""


def key(url: str) -> bytes:
    """Return a key of 16 bytes for a canonical URL; http and https of one address are one URL."""
    return xxhash.xxh3_128_digest(url.partition("://")[2].encode("utf-8", "surrogatepass"))


def host(url: str) -> str:
    """Return the host name, with a port that is not the default, of a canonical URL: `www.a.cz`, `a.cz:8080`."""
    return url.split("/", 3)[2]


def host_in(text: str) -> str:
    """Return the canonical host of any URL of the web, also of one that is too long to be crawled; "" for others.

    >>> host_in("HTTP://Blog.Example.CZ.?p=12"), host_in("letter 7")
    ('blog.example.cz', '')
    """
    known = canonical(text)
    if known:
        return host(known)
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        return ""
    return host_named(_END_OF_HOST.split(rest, maxsplit=1)[0].rpartition("@")[2])


def host_named(text: str) -> str:
    """Return a host name in the form of canonical URLs; a text that cannot be a host, in lower case.

    >>> host_named("Žluťoučký.CZ."), host_named("*.CZ")
    ('xn--luouk-uva4it5a4g.cz', '*.cz')
    """
    known = None if _NO_HOST.search(text) else canonical(f"http://{text}/")
    return host(known) if known else text.lower()


def host_of_metadata(text: str) -> str:
    """Return the canonical host from metadata of others, which may hold a host name or a URL."""
    return host_in(text) or host_named(text)


@lru_cache(maxsize=200_000)
def domain(host: str) -> str:
    """Return the registered domain of a host, or the host itself if it has none (an IP address, a suffix)."""
    name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    return registrable(name) or name


def registrable(name: str) -> str | None:
    """Return the registered domain by the public suffix list, None if the name has none."""
    if name.startswith("[") or name.replace(".", "").isdigit():
        return None
    registered: str | None = _suffixes.privatesuffix(name.lower())
    return registered


def tld(host: str) -> str:
    """Return the last label of a host name, such as `cz`; "" for an address."""
    name = host.partition(":")[0]
    label = name.rpartition(".")[2]
    return "" if host.startswith("[") or label.isdigit() else label


def top_level(text: str) -> str | None:
    """Return a top-level domain in the form of `tld`; None if no host can be under it.

    >>> top_level(".РФ"), top_level("co.uk")
    ('xn--p1ai', None)
    """
    name = host_named(f"a.{text.strip().removeprefix('.')}")
    label = tld(name)
    return label if ":" not in text and _LABEL.fullmatch(label) and name == f"a.{label}" else None


def trap(url: str) -> str:
    """Return the sign of a crawler trap in a URL, "" if there is none.

    >>> trap("http://a.cz/x/y/x/y/x/y/x/y")
    'repeated segments'
    """
    path, _, query = url.partition("?")
    slashes = path.count("/") - 2  # without the two of `http://`
    if slashes > MAX_REPEATS:
        segments = [segment for segment in path.split("/")[3:] if segment]
        if len(segments) > MAX_DEPTH:
            return "too deep"
        if _repeated(segments, MAX_REPEATS):
            return "repeated segments"
    if "&" in query:
        parameters = query.split("&")
        if len(parameters) > MAX_PARAMETERS:
            return "too many parameters"
        if len(parameters) > MAX_SAME_PARAMETER:
            names = [parameter.partition("=")[0] for parameter in parameters]
            if _repeated(names, MAX_SAME_PARAMETER):
                return "repeated parameter"
    return ""


def _repeated(names: list[str], times: int) -> bool:
    """Return whether a name occurs more than `times` times."""
    if len(names) - len(set(names)) < times:
        return False
    return max(Counter(names).values()) > times
