"""robots.txt: rules are understood in all common spellings, in bounded time."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thresher.crawler.manners.robots import ALLOW_ALL, DISALLOW_ALL, MAX_ROBOTS_BYTES, MAX_SITEMAPS, parse

SITE = "http://a.cz"


def rules(*lines: str) -> bytes:
    return "\n".join(["user-agent: *", *lines]).encode()


def allows(body: bytes, path: str) -> bool:
    return parse(body).allows(SITE + path)


def test_answers_agree_with_the_recorded_answers_of_googles_parser(suites):
    cases = [json.loads(line) for line in (suites / "robots" / "google_cases.jsonl").read_text().splitlines()]
    wrong = []
    for case in cases:
        robots, agent, url = (case[field].encode("latin-1") for field in ("robots", "agent", "url"))
        if parse(robots, agent.decode()).allows(url.decode()) != case["allow"]:
            wrong.append(case)
    assert (len(cases), wrong) == (145, [])


def matches(pattern: str, path: str) -> bool:
    """Match slowly and obviously, by the positions that each character of the pattern can lead to."""
    anchored = pattern.endswith("$")
    reached = {0}
    for char in pattern.removesuffix("$"):
        if char == "*":
            reached = {end for end in range(len(path) + 1) if end >= min(reached)}
        else:
            reached = {at + 1 for at in reached if path[at : at + 1] == char}
        if not reached:
            return False
    return not anchored or len(path) in reached


def obviously_allowed(lines: list[tuple[str, str]], path: str) -> bool:
    longest = {"allow": 0, "disallow": 0}
    for kind, pattern in lines:
        if matches(pattern, path):
            longest[kind] = max(longest[kind], len(pattern))
    return longest["allow"] >= longest["disallow"]


PATTERNS = st.text(alphabet="ab/*$?", max_size=8).map(lambda text: "/" + text)
LINES = st.lists(st.tuples(st.sampled_from(["allow", "disallow"]), PATTERNS), max_size=8)
# Pieces so long that a file which has them is matched by sets of positions.
HOSTILE = [f"{kind}: /*{'z' * 16_000}{n}*z" for kind in ("allow", "disallow") for n in range(14)]


@given(LINES, st.text(alphabet="ab/?$", max_size=12), st.booleans())
@example([("disallow", "/*a*a$")], "a", False)
@example([("disallow", "/a****"), ("allow", "/aaa")], "aaab", False)
def test_the_matcher_agrees_with_an_obvious_one(lines, rest, hostile):
    path = f"/{rest}{'y' * (40 if hostile else 0)}"
    body = rules(*(f"{kind}: {pattern}" for kind, pattern in lines), *(HOSTILE if hostile else []))
    assert allows(body, path) == obviously_allowed(lines, path)


@given(st.binary(max_size=300), st.text(max_size=20), st.text(max_size=60))
def test_any_bytes_are_a_robots_txt_for_any_agent_and_any_url(body, agent, url):
    robots = parse(b"user-agent: *\nallow:" + body + b"\ndisallow:" + body + b"\ncrawl-delay:" + body, agent)
    assert isinstance(robots.allows(url), bool)
    assert robots.allows("http://a.cz/robots.txt")


@given(
    st.lists(
        st.sampled_from(["user-agent: *", "disallow", ":", "/", "\n", "\r", "#", " ", "%", "é", "\0", "*"])
    )
)
def test_any_lines_are_parsed(pieces):
    assert isinstance(parse("".join(pieces).encode()).allows("http://a.cz/é"), bool)


def test_without_rules_everything_is_allowed():
    assert parse(b"") == ALLOW_ALL
    assert ALLOW_ALL.allows("http://a.cz/x")
    assert not DISALLOW_ALL.allows("http://a.cz/")
    assert not DISALLOW_ALL.allows("http://a.cz/robots.txt?x")


def test_robots_txt_itself_is_always_allowed():
    assert DISALLOW_ALL.allows("http://a.cz/robots.txt")


@pytest.mark.parametrize(
    "line",
    [
        "Disallow: /x",
        "DISALLOW:/x",
        "  disallow :  /x  # why",
        "disallow /x",
        "disallow\t/x # why",
        "dissallow: /x",
        "dissalow: /x",
        "disalow: /x",
        "diasllow: /x",
        "disallaw: /x",
        "disallowed: /x",
    ],
)
def test_a_rule_is_understood_in_every_common_spelling(line):
    assert not allows(rules(line), "/x")
    assert allows(rules(line), "/y")


@pytest.mark.parametrize(
    "line", ["disallow /x y", "# disallow: /x", "dis allow: /x", "no-disallow: /x", "disallow"]
)
def test_invalid_lines_forbid_nothing(line):
    assert allows(rules(line), "/x")


@pytest.mark.parametrize("name", ["User-agent", "useragent", "user agent", "USER-AGENT", "user-agents"])
def test_an_agent_is_understood_in_every_common_spelling(name):
    assert not allows(f"{name}: thresher/1.0 (and more)\ndisallow: /".encode(), "/x")


@pytest.mark.parametrize("agent", ["threshers", "thresh", "my-thresher", "*bot"])
def test_a_group_for_another_agent_is_not_for_us(agent):
    assert allows(f"user-agent: {agent}\ndisallow: /".encode(), "/x")


def test_a_group_for_us_by_name_silences_the_group_for_everyone():
    body = b"user-agent: *\ndisallow: /\n\nuser-agent: thresher\ndisallow: /x"
    assert allows(body, "/y")
    assert not allows(body, "/x")
    assert allows(b"user-agent: *\ndisallow: /\n\nuser-agent: thresher", "/y")


def test_a_group_may_be_for_several_agents():
    body = b"user-agent: *\nuser-agent: thresher\nuser-agent: b\ndisallow: /"
    assert [parse(body, agent).allows("http://a.cz/") for agent in ("Thresher", "b", "c")] == [False] * 3


def test_groups_for_one_agent_are_merged_wherever_they_stand():
    body = (
        b"user-agent: thresher\ndisallow: /x\nuser-agent: b\ndisallow: /z\nuser-agent: Thresher\ndisallow: /y"
    )
    assert [allows(body, path) for path in ("/x", "/y", "/z")] == [False, False, True]


def test_rules_before_any_agent_are_ignored():
    assert allows(b"disallow: /\nuser-agent: *\ndisallow: /x", "/y")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_line_ends_and_byte_order_marks_of_all_systems_are_read(end, mark):
    assert not allows(mark + rules("disallow: /x", "").replace(b"\n", end.encode()), "/x")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_with_and_without_its_mark(encoding):
    assert not allows("user-agent: *\ndisallow: /x".encode(encoding), "/x")


def test_html_in_place_of_a_robots_txt_forbids_nothing():
    assert parse(b"<!DOCTYPE html><html><body>Disallow: / User-agent: *</body></html>") == ALLOW_ALL


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/%c4%8d", "/%C4%8D"),
        ("/%C4%8D", "/%c4%8d"),
        ("/č", "/%C4%8D"),
        ("/%7euser", "/~user"),
        ("/~user", "/%7Euser"),
        ("/%62%61%7A", "/baz"),
        ("/a%2fb", "/a%2Fb"),
        ("/č", "/č"),
    ],
)
def test_a_disallow_matches_in_either_percent_encoding(pattern, path):
    assert not allows(rules(f"disallow: {pattern}"), path)


@pytest.mark.parametrize(
    ("pattern", "path"), [("/a%2fb", "/a/b"), ("/a%2a", "/ab"), ("/a%24", "/a"), ("/%zz", "/z")]
)
def test_a_percent_encoding_that_has_a_meaning_of_its_own_is_kept(pattern, path):
    assert allows(rules(f"disallow: {pattern}"), path)


def test_an_allowed_index_page_allows_its_directory_and_nothing_else():
    body = rules("disallow: /", "allow: /a/index.html")
    assert [allows(body, path) for path in ("/a/", "/a/index.html", "/a/b")] == [True, True, False]


def test_the_query_belongs_to_the_path_and_the_fragment_does_not():
    body = rules("disallow: /*?s=", "disallow: /x#y$", "disallow: /z$")
    assert not allows(body, "/a/b?s=1")
    assert not allows(body, "?s=1")
    assert not allows(body, "/z#top")
    assert not allows(body, "/x/y")


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("5", 5.0),
        ("0.5 # half", 0.5),
        ("0", 0.0),
        ("86400", 86_400.0),
        ("-1", None),
        ("nan", None),
        ("fast", None),
        ("", None),
        ("10s", None),
        ("inf", 1e9),
        ("1e309", 1e9),
        ("9" * 5_000, 1e9),
    ],
)
def test_a_crawl_delay_is_a_number_of_seconds_or_absent(value, delay):
    assert parse(rules(f"crawl-delay: {value}")).crawl_delay == delay


def test_the_crawl_delay_is_that_of_our_group_and_the_longest_of_several():
    ours = b"user-agent: thresher\ncrawl-delay: 2\ncrawl-delay: 3\ncrawl-delay: x"
    body = b"user-agent: *\ncrawl-delay: 9\ndisallow:\n" + ours
    assert parse(body).crawl_delay == 3
    assert parse(body, "another").crawl_delay == 9
    assert parse(b"user-agent: slow\ncrawl-delay: 9\n\nuser-agent: *\ndisallow: /x").crawl_delay is None


def test_sitemaps_are_absolute_distinct_and_of_no_group():
    body = b"""sitemap: http://a.cz/1.xml
    user-agent: other
    disallow: /
    Site-map: HTTPS://A.cz/2.xml
    sitemap: http://a.cz/1.xml
    sitemap: /3.xml
    sitemap: ftp://a.cz/4.xml
    sitemap: \xff"""
    assert parse(body).sitemaps == ("http://a.cz/1.xml", "https://a.cz/2.xml")


def test_the_number_of_sitemaps_is_limited():
    body = b"".join(b"sitemap: http://a.cz/%d\n" % n for n in range(MAX_SITEMAPS + 10))
    assert len(parse(body).sitemaps) == MAX_SITEMAPS


@pytest.mark.parametrize(
    ("line", "opt_outs"),
    [
        ("Content-Signal: search=yes, ai-train=no", ("content-signal: ai-train=no",)),
        (
            "content-signal: AI-Input=No,ai-train=no",
            ("content-signal: ai-input=no", "content-signal: ai-train=no"),
        ),
        ("content-signal: ai-train=yes,search=no", ()),
        ("Content-Usage: train-ai=n", ("content-usage: train-ai=n",)),
        ("Content-Usage: /Art/ train-ai=n, search=y", ("content-usage: /Art/ train-ai=n",)),
        ("Content-Usage: bots=n", ("content-usage: bots=n",)),
        ("Content-Signal:", ()),
        ("Content-Signal: " + "ai-" * 5_000, ()),
    ],
)
def test_uses_that_are_forbidden_to_models_are_on_record(line, opt_outs):
    assert parse(rules(line)).opt_outs == opt_outs
    assert parse(f"{line}\nuser-agent: x\ndisallow: /".encode()).opt_outs == opt_outs
    assert parse(f"user-agent: x\n{line}\ndisallow: /".encode()).opt_outs == ()


def test_bytes_beyond_the_limit_and_a_line_cut_by_it_are_ignored():
    body = rules("#".ljust(MAX_ROBOTS_BYTES - 40, "x"), "allow: /abc", "disallow: /y")
    cut = body[: body.index(b"/abc") + 2]
    filler = MAX_ROBOTS_BYTES - len(cut)
    body = body.replace(b"#", b"#" + b"x" * filler, 1)
    assert body[:MAX_ROBOTS_BYTES].endswith(b"allow: /a")
    robots = parse(body)
    assert robots.allows("http://a.cz/y")
    assert robots == ALLOW_ALL


HOSTILE_FILES = {
    "many stars": "".join(f"disallow: /{'*a' * 240}{n}$\n" for n in range(1_000)),
    "many rules": "".join(f"disallow: /{n}\n" for n in range(60_000)),
    "many wildcards": "".join(f"disallow: /*{n}*b\n" for n in range(60_000)),
    "pieces that nearly match": "".join(f"disallow: /*{'a' * 24}b{'a' * 25}{n}*c\n" for n in range(60_000)),
    "escapes": "disallow: /%7e%c4é\n" * 40_000,
    "empty lines": "\n" * 600_000,
    "agents": "user-agent: a\n" * 60_000,
    "one line": "disallow: /" + "*" * 600_000,
    "spaces": " " * 600_000,
    "no colons": "disallow " * 60_000,
}


@pytest.mark.timeout(30)  # a matcher that goes back and forth would take ages
@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_a_file_designed_to_be_slow_is_parsed_and_matched_in_time(name):
    robots = parse(rules(HOSTILE_FILES[name]))
    urls = [f"http://a.cz/{'a' * 24}b{'a' * 24}c{'a' * 1_900}{n}z" for n in range(20)]
    assert all(robots.allows(url) for url in urls)  # no rule fits; a line beyond all limits is none
