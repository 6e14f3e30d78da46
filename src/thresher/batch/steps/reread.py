"""Raw pages read again, with today's reader, and judged again."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from thresher.batch.code import digest_of_room
from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Plan, Work

RUN = "thresher.batch.rereading:run"  # a module of its own: reader and engine take a while to load


def plan(work: Work) -> Plan:
    """Read the raw pages of documents again, with today's reader and judge; what has no raw page stays as it is."""
    config = work.corpus.config
    told = {
        "language": config.language,
        "reading": msgspec.to_builtins(replace(config.read, processes=1)),
        "judging": msgspec.to_builtins(config.judge),
    }
    code = (digest_of_room("read"), digest_of_room("judge.py"))
    where = {"directory": str(work.corpus.directory.resolve())}
    return (yield [Task(RUN, (shard,), told, code, where) for shard in work.shards])
