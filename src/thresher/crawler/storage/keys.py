"""Every key of a crawl's state (RocksDB in `DIR/state`), each with its format.

A key is a prefix and, for tables with many entries, a name or number behind it. Numbers in keys are big-endian, so
that entries are sorted by number. Values are MessagePack unless noted otherwise. Prefixes must not begin with one
another: `f` is taken, so no other prefix may start with `f`. The module named with a key is the only one that knows
the format of its values.

The keys are a format on disk. States of earlier versions stay readable, so no prefix is used for anything else.
"""

from __future__ import annotations

# crawler/frontier/stored_queue.py
QUEUE = b"q"  # + host number (4 bytes), lane (1), rank (1), sequence (8) -> Candidate
HOSTS = b"f"  # + host name -> host number, URLs that are queued, bit set of their lanes
NEXT_NUMBERS = b"m/frontier"  # next host number, next sequence

# crawler/frontier/seen.py
SEEN = b"s"  # + hash of the URL (16 bytes) -> empty

# crawler/frontier/backlog.py
BACKLOG = b"w"  # + sequence (8) -> Candidate
BACKLOG_COUNTS = b"m/stash"  # BacklogCounts

# crawler/frontier/cycles.py
CYCLES = b"c/"  # + number (4) -> CycleReport
CYCLE_PROGRESS = b"m/cycles"  # CycleProgress
GOOD_LINKS = b"g"  # + hash of the URL (16) -> empty; links in good places, of the present phase

# crawler/frontier/expansion.py
EXPANSION = b"m/widening"  # ExpansionProgress

# crawler/storage/crawl_writer.py
FILES = b"m/files"  # file name -> committed length, null for a file that never changes again
STATS = b"m/figures"  # CrawlStats
RAW_HASHES = b"r"  # + hash of a body (16) -> number of the first outcome that had it
TEXT_HASHES = b"t"  # + hash of a text (16) -> number of the first outcome that had it
TEXT_CLAIMS = b"k"  # + hash of a text (16) -> URL of the page in another shard with the text, not MessagePack

# crawler/storage/near_duplicates.py
SHINGLES = b"n"  # + number of the page (8) -> hashes of its unseen shingles, 8 bytes each, not MessagePack

# crawler/shards/outbox.py
OUTBOX = b"o"  # + shard (2), number of the batch (8) -> list of Candidate
OUTBOX_COUNTS = b"m/letters"  # OutboxCounts

# crawler/manners/politeness.py
HOST_MANNERS = b"p/"  # + host name -> HostManners

# crawler/policy/yield_stats.py
HOST_YIELDS = b"yh/"  # + host name -> YieldTally
DOMAIN_YIELDS = b"yd/"  # + registered domain -> YieldTally
ALL_YIELDS = b"ya/"  # one entry with an empty name -> YieldTally
RECENT_YIELD = b"m/lately"  # RecentYield
CLOSING_RELAXATIONS = b"m/eased"  # how often the threshold of closing was lowered

# crawler/policy/learned/feature_memory.py
FEATURES = b"x"  # + number of the slot (4) -> its row of the memory, an array of numpy, not MessagePack
FEATURES_OVERALL = b"m/learned"  # totals over all features


def after(prefix: bytes) -> bytes:
    """Return the first key behind all keys that start with a prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
