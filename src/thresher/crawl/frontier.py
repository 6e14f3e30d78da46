"""Which URL comes next: queues for each host, the best first, hosts taking turns, the far end of queues on disk.

What a URL promises changes while it waits, with every page that is read. So the URLs of a host wait in lanes, each
of URLs that are alike: a lane keeps its order, and as more is learnt of its kind it moves as a whole. How many
lanes there are, and what the first URL of each promises, the policy's guide tells.

A URL's life here: `add` puts it into its lane; `take` hands it out when its host's turn has come, and the host
rests; `free` tells when the host may have its next turn; `finish` strikes the URL off, or `put_back` returns it;
`reweigh` asks what its host promises now. A URL that was taken but not finished when the crawl stopped is still
queued when it goes on.

No network here and no clock but the one given, so a crawl can be simulated.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from thresher.config import Policy
from thresher.crawl.guide import Front, Guide, Plain, Standing, by_depth
from thresher.crawl.priority import Priorities
from thresher.crawl.state import State
from thresher.crawl.turns import Turning, Turns
from thresher.page import Candidate
from thresher.url import host as host_of

QUEUE = b"q"  # q host-number lane rank sequence -> Candidate
HOSTS = b"f"  # f host-name -> host number, URLs queued, bits of the lanes they wait in
NEXT = b"m/frontier"  # next host number and sequence

HEAD, LEAST_HEAD = 64, 4  # candidates of a lane in memory: fewer where there are many lanes, …
IN_MEMORY = 400_000  # … so that there are about so many in all
MOST_LANES = 256  # of a host, …
AT_ONCE = 8  # … and how many of them are weighed with each of its pages
LAST_RANK = 255
NOWHERE = Standing(0.0, 0.0, 0.0)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Candidate).decode
_decode_next = msgspec.msgpack.Decoder(tuple[int, int]).decode
decode_host = msgspec.msgpack.Decoder(tuple[int, int, int]).decode


class _Lane:
    """URLs of a host that are alike: the best in memory, in order; the rest of them are on disk, from `low` on."""

    __slots__ = ("front", "head", "low", "number", "standing", "tail")

    def __init__(self, number: int, low: bytes | None) -> None:
        self.number = number
        self.head: list[tuple[bytes, Candidate]] = []
        self.low = low  # key from which there is more than the head; None: nothing
        self.tail: list[tuple[bytes, Candidate]] = []  # of that, what no commit has brought to disk yet
        self.front: Front = None  # what the guide keeps of the first candidate …
        self.standing = NOWHERE  # … and what it says of it


class _Host:
    """A host's lanes, and what of them was handed out."""

    __slots__ = (
        "closed",
        "curiosity",
        "lanes",
        "name",
        "number",
        "queued",
        "rest",
        "taken",
        "turn",
        "visiting",
        "weight",
    )

    def __init__(self, name: str, number: int, queued: int, rest: float) -> None:
        self.name = name
        self.number = number
        self.queued = queued  # all that is not finished: in lanes and taken
        self.lanes: dict[int, _Lane] = {}
        self.taken: dict[str, tuple[bytes, Candidate]] = {}  # by URL, what was handed out
        self.rest = rest  # not to be visited before
        self.visiting = False
        self.closed = ""
        self.turn = 0  # of its lanes, the one to be weighed next
        self.weight = self.curiosity = 0.0  # of its best lanes

    def settle(self) -> None:
        """Where some lanes stand has changed: so does where the host stands."""
        lanes = self.lanes.values()
        self.weight = max([lane.standing.weight for lane in lanes], default=0.0)
        self.curiosity = max([lane.standing.curiosity for lane in lanes], default=0.0)

    def fresh_lanes(self) -> list[_Lane]:
        """Lanes whose first URL was not weighed yet."""
        return [lane for lane in self.lanes.values() if lane.head and lane.front is None]

    def some_lanes(self) -> list[_Lane]:
        """Lanes to be weighed when more is known of the host: all, or the best, fresh ones and some in turn."""
        lanes = [lane for lane in self.lanes.values() if lane.head]
        if len(lanes) <= AT_ONCE:
            return lanes
        best = max(lanes, key=attrgetter("standing.weight"))
        self.turn = (self.turn + AT_ONCE) % len(lanes)
        in_turn = (lanes + lanes)[self.turn : self.turn + AT_ONCE]
        return list(dict.fromkeys([best, *self.fresh_lanes(), *in_turn]))


class Frontier:
    """Lanes of candidates, each in the order of ranks, and hosts that take turns."""

    def __init__(
        self,
        state: State,
        clock: Callable[[], float],
        guide: Guide | None = None,
        turns: Turning | None = None,
        first_turn: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        """Breadth first without a guide. `first_turn`: seconds a host has to rest when the crawl goes on."""
        self._state = state
        self._clock = clock
        self._guide: Guide = guide or Plain(Priorities(Policy(name="bfs")), by_depth)
        self._turns: Turning = turns or Turns()
        self._hosts: dict[str, _Host] = {}
        self._lanes = 0
        self._head = HEAD
        self._struck: set[bytes] = set()  # finished or moved, but on disk until the next commit
        self._counted: set[_Host] = set()  # whose record the next commit has to tell
        self._changed: set[_Lane] = set()  # with a head or a tail that the next commit makes shorter
        self._round: deque[_Host] = deque()  # hosts in the order in which they are weighed again, …
        self._due = 0  # … and how many of their lanes should have been
        self._next_host, self._next_sequence = _decode_next(state.get(NEXT) or _encode((0, 0)))
        self.queued = 0  # URLs of hosts that are open …
        self.queued_closed = 0  # … and of those that are closed
        self.closed_hosts = 0
        self._opened = clock()
        self._first_turn = first_turn
        for key, record in state.scan(HOSTS):
            number, queued, lanes = decode_host(record)
            host = self._new_host(key[len(HOSTS) :].decode(), number, queued)
            for lane in range(lanes.bit_length()):
                if lanes >> lane & 1:
                    self._new_lane(host, lane, _prefix(number, lane)).standing = self._guide.unopened(
                        host.name
                    )
            host.settle()
            self.queued += queued
            self._schedule(host)

    def _new_host(self, name: str, number: int, queued: int) -> _Host:
        host = self._hosts[name] = _Host(name, number, queued, self._opened + self._first_turn(name))
        self._round.append(host)
        return host

    def _new_lane(self, host: _Host, number: int, low: bytes | None) -> _Lane:
        lane = host.lanes[number] = _Lane(number, low)
        self._lanes += 1
        return lane

    def __len__(self) -> int:
        """URLs queued with hosts that are open."""
        return self.queued

    @property
    def hosts(self) -> int:
        return len(self._hosts)

    def names(self) -> list[str]:
        """Every host that was ever queued."""
        return list(self._hosts)

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Queue URLs that were never queued before (that is for `Seen` to say)."""
        hosts = list(dict.fromkeys(self._push(candidate) for candidate in candidates))
        self._weigh([(host, lane) for host in hosts for lane in host.fresh_lanes()])
        for host in hosts:
            if host.name not in self._turns and not host.visiting:
                self._schedule(host)

    def _push(self, candidate: Candidate) -> _Host:
        name = host_of(candidate.url)
        host = self._hosts.get(name)
        if host is None:
            host = self._new_host(name, self._next_host, 0)
            self._next_host += 1
        key = self._key(host, candidate)
        self._state.put(key, _encode(candidate))
        self._count(host, 1)
        lane = host.lanes.get(candidate.lane) or self._new_lane(host, candidate.lane, None)
        if lane.low is None or (lane.head and key < lane.head[-1][0]):
            if not lane.head or key < lane.head[0][0]:
                self._forget_front(lane)
            insort(lane.head, (key, candidate))
        else:
            lane.tail.append((key, candidate))
            lane.low = min(lane.low, key)
        if lane.tail or len(lane.head) > self._head:
            self._changed.add(lane)
        return host

    def _key(self, host: _Host, candidate: Candidate) -> bytes:
        rank = min(max(self._guide.rank(candidate), 0), LAST_RANK)
        sequence = self._next_sequence
        self._next_sequence += 1
        return _prefix(host.number, candidate.lane) + rank.to_bytes(1, "big") + sequence.to_bytes(8, "big")

    def _count(self, host: _Host, change: int) -> None:
        host.queued += change
        self._counted.add(host)
        if host.closed:
            self.queued_closed += change
        else:
            self.queued += change

    def _schedule(self, host: _Host) -> None:
        if host.closed or not host.lanes:
            self._turns.remove(host.name)  # nobody need wait for it
        else:
            self._turns.put(host.name, max(host.rest, self._clock()), host.weight, host.curiosity)

    # what waits, and what it is worth

    def _forget_front(self, lane: _Lane) -> None:
        self._guide.forget(lane.front)
        lane.front = None

    def _weigh(self, lanes: Sequence[tuple[_Host, _Lane]]) -> None:
        """Ask anew what some lanes promise whose first URLs are in memory."""
        if not lanes:
            return
        fresh = [lane for _, lane in lanes if lane.front is None]
        for lane, front in zip(fresh, self._guide.fronts([lane.head[0][1] for lane in fresh]), strict=True):
            lane.front = front
        standings = self._guide.standings([(host.name, lane.front) for host, lane in lanes])
        for (_, lane), standing in zip(lanes, standings, strict=True):
            lane.standing = standing
        for host in dict.fromkeys([host for host, _ in lanes]):
            host.settle()
            if host.name in self._turns:
                self._turns.rerank(host.name, host.weight, host.curiosity)

    def reweigh(self, name: str) -> None:
        """The record of a host has changed: ask anew what it promises, and what a few others do, in turn."""
        host = self._hosts[name]
        lanes = [(host, lane) for lane in host.some_lanes()]
        self._due = min(self._due + self._guide.SWEEP, MOST_LANES)
        for _ in range(min(len(self._round), self._guide.SWEEP)):
            if self._due < len(self._round[0].lanes):
                break
            other = self._round.popleft()
            self._round.append(other)
            if other is not host and not other.closed:
                lanes.extend((other, lane) for lane in other.lanes.values() if lane.head)
                self._due -= len(other.lanes)
        self._weigh(lanes)

    def take(self) -> Candidate | None:
        """The next URL of a host whose turn has come, with its present weight; the host rests until it is freed."""
        curious = self._guide.curious()
        name = self._turns.take(self._clock(), curious=curious)
        if name is None:
            return None
        host = self._hosts[name]
        host.visiting = True
        if any(lane.front is None for lane in host.lanes.values()):
            self._open(host)
        by_curiosity = curious and host.curiosity > 0
        measure = attrgetter("standing.curiosity" if by_curiosity else "standing.weight")
        lane = max(host.lanes.values(), key=measure)
        key, candidate = lane.head.pop(0)
        host.taken[candidate.url] = key, candidate
        expected = lane.standing.expected
        self._guide.taken(candidate, lane.front, curious=by_curiosity)
        self._forget_front(lane)  # the next one is weighed when it is known what became of this one
        if not lane.head:
            self._refill(host, lane)
        return replace(candidate, weight=expected)

    @property
    def waiting_for(self) -> float:
        """The weight of a host that others have to wait for just now; 0 if there is none."""
        return self._turns.waiting_for

    def next_turn(self) -> float | None:
        """When a host's turn comes next; None if nothing waits."""
        return self._turns.next_time()

    def _open(self, host: _Host) -> None:
        """Have the first URLs of all lanes of a host in memory, and know what they promise."""
        for lane in list(host.lanes.values()):
            if not lane.head:
                self._refill(host, lane)
        self._weigh([(host, lane) for lane in host.lanes.values()])

    def _refill(self, host: _Host, lane: _Lane) -> None:
        """Fetch the next candidates from disk; only called when the head is empty. An empty lane is given up."""
        taken = {key for key, _ in host.taken.values()}
        low, lane.low = lane.low, None
        if low is not None:
            for key, value in self._state.committed(low, _after(host.number, lane.number)):
                if key in self._struck or key in taken:
                    continue
                if len(lane.head) >= self._head:
                    lane.low = key
                    break
                lane.head.append((key, _decode(value)))
        tail, lane.tail = lane.tail, []
        for entry in tail:
            if lane.low is None or entry[0] < lane.low:
                insort(lane.head, entry)
            else:
                lane.tail.append(entry)
        if not lane.head:
            del host.lanes[lane.number]
            host.settle()
            self._lanes -= 1

    # what becomes of it

    def free(self, name: str, rest: float) -> None:
        """The visit is over; the host may be visited again from then on."""
        host = self._hosts[name]
        host.visiting = False
        host.rest = rest
        if not host.taken:
            self._weigh([(host, lane) for lane in host.fresh_lanes()])
        self._schedule(host)

    def under_way(self, name: str) -> int:
        """How many URLs of the host are taken and have no outcome yet."""
        return len(self._hosts[name].taken)

    def finish(self, candidate: Candidate) -> None:
        """Strike a taken URL off: it has an outcome."""
        host = self._hosts[host_of(candidate.url)]
        key, _ = host.taken.pop(candidate.url)
        self._state.delete(key)
        self._struck.add(key)
        self._count(host, -1)

    def put_back(self, candidate: Candidate) -> None:
        """Return a taken URL to the head of its lane, as if it had not been taken."""
        host = self._hosts[host_of(candidate.url)]
        key, queued = host.taken.pop(candidate.url)
        lane = host.lanes.get(queued.lane) or self._new_lane(host, queued.lane, None)
        self._forget_front(lane)
        insort(lane.head, (key, queued))
        self._weigh([(host, lane)])
        if host.name not in self._turns and not host.visiting:
            self._schedule(host)

    def requeue(self, taken: Candidate, again: Candidate) -> None:
        """Replace a taken URL by another try of it, at the end of its rank."""
        _, queued = self._hosts[host_of(taken.url)].taken[taken.url]
        self.finish(taken)
        self.add([replace(again, weight=queued.weight)])

    def close(self, name: str, reason: str) -> None:
        """Hand out nothing more of this host; its queue stays on disk."""
        host = self._hosts[name]
        if not host.closed:
            host.closed = reason
            self._turns.remove(name)
            self.queued -= host.queued
            self.queued_closed += host.queued
            self.closed_hosts += 1

    def flush(self) -> None:
        """Hand the records of hosts to the state's next commit."""
        for host in self._counted:
            lanes = sum(1 << lane for lane in {*host.lanes, *(one.lane for _, one in host.taken.values())})
            self._state.put(HOSTS + host.name.encode(), _encode((host.number, host.queued, lanes)))
        self._counted.clear()
        self._state.put(NEXT, _encode((self._next_host, self._next_sequence)))

    def committed(self) -> None:
        """To be called after each commit: what is safe on disk need not stay in memory."""
        self._struck.clear()
        head = min(HEAD, max(LEAST_HEAD, IN_MEMORY // (self._lanes + 1)))
        if 4 * head <= 3 * self._head:
            self._changed.update(lane for host in self._hosts.values() for lane in host.lanes.values())
            self._head = head
        for lane in self._changed:
            if len(lane.head) > self._head:
                low = lane.head[self._head][0]
                lane.low = low if lane.low is None else min(low, lane.low)
                del lane.head[self._head :]
            lane.tail.clear()
        self._changed.clear()


def waiting(state: State, host: int) -> Iterator[Candidate]:
    """All URLs that wait for a host, by its number, lane by lane, as of the last commit."""
    for _, value in state.committed(_prefix(host, 0), _prefix(host + 1, 0)):
        yield _decode(value)


def _prefix(host: int, lane: int) -> bytes:
    return QUEUE + host.to_bytes(4, "big") + lane.to_bytes(1, "big")


def _after(host: int, lane: int) -> bytes:
    """The first key behind those of a lane."""
    return QUEUE + ((host << 8) + lane + 1).to_bytes(5, "big")
