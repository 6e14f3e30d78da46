"""Claims of texts across shards: granted, taken, undecided or not needed."""

from __future__ import annotations

import asyncio
from typing import Any

from support.clocks import SimulatedClock
from thresher.crawler.shards.protocol import ClaimText
from thresher.crawler.shards.reservations import CLAIM_TIMEOUT_S, SharedTexts, decider
from thresher.judge import CLAIM_GRANTED, CLAIM_NOT_NEEDED, CLAIM_UNDECIDED, TextClaim
from thresher.store.shard_layout import Shard

TEXTS = [bytes([number]) * 16 for number in range(20)]
OWN, FOREIGN = (next(text for text in TEXTS if decider(text, 2) == number) for number in range(2))


class OtherShard:
    """Connections to one other shard, which answers every claim in the same way, or never."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer

    async def request(self, number: int, about: ClaimText) -> str:
        if self.answer is None:
            await asyncio.Event().wait()
        return self.answer or ""


def claim(answer: str | None, text: bytes = FOREIGN) -> tuple[TextClaim, float]:
    """Claim a text, and return the result with the simulated seconds that it took."""

    async def run() -> tuple[TextClaim, float]:
        clock = SimulatedClock()
        exchange: Any = OtherShard(answer)
        texts = SharedTexts(Shard(0, 2), None, exchange, clock)  # type: ignore[arg-type]
        started, claiming = clock.now(), asyncio.create_task(texts.claim(text, "http://a.cz/"))
        done = asyncio.Event()
        claiming.add_done_callback(lambda _: done.set())
        await clock.wait(done, started + 10 * CLAIM_TIMEOUT_S)
        return await claiming, clock.now() - started

    return asyncio.run(run())


def test_a_claim_is_granted_or_taken_by_the_page_that_is_named() -> None:
    assert claim("") == (CLAIM_GRANTED, 0.0)
    assert claim("http://b.cz/") == (TextClaim("taken", "http://b.cz/"), 0.0)


def test_a_claim_without_an_answer_in_time_is_undecided() -> None:
    assert claim(None) == (CLAIM_UNDECIDED, CLAIM_TIMEOUT_S)


def test_a_shard_that_decides_itself_needs_no_claim() -> None:
    assert claim(None, OWN) == (CLAIM_NOT_NEEDED, 0.0)
