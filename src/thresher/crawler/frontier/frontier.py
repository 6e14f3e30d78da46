"""The frontier: a queue per host, the best URLs first, with hosts in turn and most of each queue on disk.

The weight of a URL changes while it waits, with every page that is read. So the URLs of a host wait in lanes of
similar URLs: a lane keeps its order, and moves as a whole when more is learnt about its URLs. The policy chooses
the lane of a URL and weighs the first URL of each lane.

The life of a URL: `add` puts it into its lane; `take` hands it out in the turn of its host, which is busy then;
`free` says when the host may have its next turn; `finish` removes the URL, or `put_back` returns it; `reweigh`
updates the weights of its host. A URL that was taken and not finished when the crawl stopped is still queued when
it continues.

There is no network here, and the clock is given, so that crawls can be simulated.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from thresher.config import PolicySettings
from thresher.crawler.frontier import stored_queue
from thresher.crawler.frontier.host_scheduler import HostScheduler, RoundRobinScheduler
from thresher.crawler.frontier.stored_queue import (
    MAX_LANES,
    StoredHost,
    candidate_key,
    decode_candidate,
    encode_candidate,
    lane_end,
    lane_start,
)
from thresher.crawler.policy.policy import CrawlPolicy, Front, LaneStanding, PlainPolicy, by_depth
from thresher.crawler.policy.prioritisers import Priorities
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.urls import host as host_of

MAX_HEAD, MIN_HEAD = 64, 4  # candidates of a lane in memory
MAX_IN_MEMORY = 400_000  # candidates of all lanes, about; heads are shorter where there are many lanes
MAX_REWEIGHED_LANES = 8  # lanes of a host that are weighed with each of its pages
LAST_RANK = 255
UNWEIGHED = LaneStanding(0.0, 0.0, 0.0)

_WEIGHT, _CURIOSITY = attrgetter("standing.weight"), attrgetter("standing.curiosity")


class _Lane:
    """Similar URLs of a host: the first ones in memory, in order, the others on disk, from key `low` on."""

    __slots__ = ("front", "head", "low", "number", "standing", "tail")

    def __init__(self, number: int, low: bytes | None) -> None:
        self.number = number
        self.head: list[tuple[bytes, Candidate]] = []
        self.low = low  # first key that is not in the head; None if the head is complete
        self.tail: list[tuple[bytes, Candidate]] = []  # entries from `low` on that are not committed yet
        self.front: Front = None  # the policy's features of the first candidate
        self.standing = UNWEIGHED  # the policy's weights of the first candidate


class _Host:
    """A host with its lanes and the candidates that were handed out."""

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
        self.queued = queued  # candidates that are not finished, in lanes and taken
        self.lanes: dict[int, _Lane] = {}
        self.taken: dict[str, tuple[bytes, Candidate]] = {}  # handed out, by URL
        self.rest = rest  # time before which it must not be visited
        self.visiting = False
        self.closed = ""
        self.turn = 0  # number of the lane that is weighed next
        self.weight = self.curiosity = 0.0  # the highest of its lanes

    def update_standing(self) -> None:
        """Take the weights of the host from its lanes."""
        if len(self.lanes) == 1:  # always so under plain policies
            (lane,) = self.lanes.values()
            self.weight, self.curiosity, _ = lane.standing
            return
        standings = [lane.standing for lane in self.lanes.values()]
        self.weight = max([standing.weight for standing in standings], default=0.0)
        self.curiosity = max([standing.curiosity for standing in standings], default=0.0)

    def best_lane(self, measure: Callable[[_Lane], float]) -> _Lane:
        """Return the lane with the highest measure."""
        if len(self.lanes) == 1:
            (lane,) = self.lanes.values()
            return lane
        return max(self.lanes.values(), key=measure)

    def unweighed_lanes(self) -> list[_Lane]:
        """Return the lanes with a first URL that was not weighed yet."""
        return [lane for lane in self.lanes.values() if lane.head and lane.front is None]

    def lanes_to_reweigh(self) -> list[_Lane]:
        """Return the lanes to weigh after a page of the host: all, or the best, the unweighed and some in turn."""
        lanes = [lane for lane in self.lanes.values() if lane.head]
        if len(lanes) <= MAX_REWEIGHED_LANES:
            return lanes
        best = max(lanes, key=_WEIGHT)
        self.turn = (self.turn + MAX_REWEIGHED_LANES) % len(lanes)
        in_turn = (lanes + lanes)[self.turn : self.turn + MAX_REWEIGHED_LANES]
        return list(dict.fromkeys([best, *self.unweighed_lanes(), *in_turn]))


class RestingHosts(NamedTuple):
    """Open hosts that may not be visited yet."""

    hosts: int
    seconds: float  # until the first of them may be
    sample: list[str]  # some that may be visited first


class Frontier:
    """Hosts that take turns, each with lanes of candidates in the order of their ranks."""

    def __init__(
        self,
        state: KeyValueState,
        clock: Callable[[], float],
        policy: CrawlPolicy | None = None,
        scheduler: HostScheduler | None = None,
        first_turn: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        """Open the queues of a state, breadth first without a policy.

        `first_turn` returns the seconds that a host must rest after the opening.
        """
        self._state = state
        self._clock = clock
        self._policy: CrawlPolicy = policy or PlainPolicy(Priorities(PolicySettings(name="bfs")), by_depth)
        self._scheduler: HostScheduler = scheduler or RoundRobinScheduler()
        self._hosts: dict[str, _Host] = {}
        self._lanes = 0
        self._head = MAX_HEAD
        self._deleted: set[bytes] = set()  # keys that are on disk until the next commit
        self._changed_hosts: set[_Host] = set()  # hosts whose record joins the next commit
        self._long_lanes: set[_Lane] = set()  # lanes whose head or tail the next commit shortens
        self._round: deque[_Host] = deque()  # hosts in the order in which they are weighed again
        self._due = 0  # lanes of these hosts that may be weighed now
        self._next_host, self._next_sequence = stored_queue.read_next_numbers(state)
        self.queued = 0  # URLs of open hosts
        self.queued_closed = 0  # URLs of closed hosts
        self.closed_hosts = 0
        self._opened = clock()
        self._first_turn = first_turn
        for name, stored in stored_queue.read_hosts(state):
            host = self._new_host(name, stored.number, stored.queued)
            for number in stored.lane_numbers():
                lane = self._new_lane(host, number, lane_start(host.number, number))
                lane.standing = self._policy.default_standing(name)
            host.update_standing()
            self.queued += stored.queued
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
        """Return the number of URLs that are queued with open hosts."""
        return self.queued

    @property
    def hosts(self) -> int:
        """Number of hosts that were ever queued."""
        return len(self._hosts)

    def names(self) -> list[str]:
        """Return the names of all hosts that were ever queued."""
        return list(self._hosts)

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Queue URLs that were never queued before, as `SeenUrls` says."""
        hosts = list(dict.fromkeys(self._push(candidate) for candidate in candidates))
        self._weigh([(host, lane) for host in hosts for lane in host.unweighed_lanes()])
        for host in hosts:
            if host.name not in self._scheduler and not host.visiting:
                self._schedule(host)

    def _push(self, candidate: Candidate) -> _Host:
        name = host_of(candidate.url)
        host = self._hosts.get(name)
        if host is None:
            host = self._new_host(name, self._next_host, 0)
            self._next_host += 1
        key = self._key(host, candidate)
        self._state.put(key, encode_candidate(candidate))
        self._change_count(host, 1)
        lane = host.lanes.get(candidate.lane) or self._new_lane(host, candidate.lane, None)
        if lane.low is None or (lane.head and key < lane.head[-1][0]):
            if not lane.head or key < lane.head[0][0]:
                self._forget_front(lane)
            insort(lane.head, (key, candidate))
        else:
            lane.tail.append((key, candidate))
            lane.low = min(lane.low, key)
        if lane.tail or len(lane.head) > self._head:
            self._long_lanes.add(lane)
        return host

    def _key(self, host: _Host, candidate: Candidate) -> bytes:
        rank = min(max(self._policy.rank(candidate), 0), LAST_RANK)
        sequence = self._next_sequence
        self._next_sequence += 1
        return candidate_key(host.number, candidate.lane, rank, sequence)

    def _change_count(self, host: _Host, change: int) -> None:
        host.queued += change
        self._changed_hosts.add(host)
        if host.closed:
            self.queued_closed += change
        else:
            self.queued += change

    def _schedule(self, host: _Host) -> None:
        if host.closed or not host.lanes:
            self._scheduler.remove(host.name)
        else:
            self._scheduler.put(host.name, max(host.rest, self._clock()), host.weight, host.curiosity)

    # weights

    def _forget_front(self, lane: _Lane) -> None:
        self._policy.release(lane.front)
        lane.front = None

    def _weigh(self, lanes: Sequence[tuple[_Host, _Lane]]) -> None:
        """Weigh lanes with first URLs in memory."""
        if not lanes:
            return
        new = [lane for _, lane in lanes if lane.front is None]
        fronts = self._policy.prepare_fronts([lane.head[0][1] for lane in new])
        for lane, front in zip(new, fronts, strict=True):
            lane.front = front
        standings = self._policy.standings([(host.name, lane.front) for host, lane in lanes])
        for (_, lane), standing in zip(lanes, standings, strict=True):
            lane.standing = standing
        hosts = [host for host, _ in lanes] if len(lanes) == 1 else dict.fromkeys([host for host, _ in lanes])
        for host in hosts:
            host.update_standing()
            if host.name in self._scheduler:
                self._scheduler.rerank(host.name, host.weight, host.curiosity)

    def reweigh(self, name: str) -> None:
        """Weigh the lanes of a host after a visit, and a few lanes of other hosts in turn."""
        host = self._hosts[name]
        lanes = [(host, lane) for lane in host.lanes_to_reweigh()]
        self._due = min(self._due + self._policy.SWEEP, MAX_LANES)
        for _ in range(min(len(self._round), self._policy.SWEEP)):
            if self._due < len(self._round[0].lanes):
                break
            other = self._round.popleft()
            self._round.append(other)
            if other is not host and not other.closed:
                lanes.extend((other, lane) for lane in other.lanes.values() if lane.head)
                self._due -= len(other.lanes)
        self._weigh(lanes)

    def take(self) -> Candidate | None:
        """Return the next URL of a host in its turn, or None; the host is busy until it is freed."""
        curious = self._policy.wants_exploration()
        name = self._scheduler.take(self._clock(), curious=curious)
        if name is None:
            return None
        host = self._hosts[name]
        host.visiting = True
        for lane in host.lanes.values():
            if lane.front is None:
                self._open(host)
                break
        by_curiosity = curious and host.curiosity > 0
        lane = host.best_lane(_CURIOSITY if by_curiosity else _WEIGHT)
        key, candidate = lane.head.pop(0)
        host.taken[candidate.url] = key, candidate
        expected = lane.standing.expected
        self._policy.on_taken(candidate, lane.front, curious=by_curiosity)
        self._forget_front(lane)  # the next URL is weighed when the outcome of this one is known
        if not lane.head:
            self._refill(host, lane)
        return replace(candidate, weight=expected)

    @property
    def waiting_for(self) -> float:
        """The weight of a host that others have to wait for just now; 0 if there is none."""
        return self._scheduler.waiting_for

    def next_turn(self) -> float | None:
        """Return the time of the next turn of a host; None if no host waits."""
        return self._scheduler.next_time()

    def resting(self, count: int) -> RestingHosts:
        """Return how many hosts rest, seconds until the first may be visited, and up to `count` of the first."""
        hosts, sample = self._scheduler.resting(count)
        turns = [self._hosts[name].rest for name in sample]
        return RestingHosts(hosts, max(0.0, min(turns, default=0.0) - self._clock()), sample)

    def _open(self, host: _Host) -> None:
        """Load and weigh the first URLs of all lanes of a host."""
        for lane in list(host.lanes.values()):
            if not lane.head:
                self._refill(host, lane)
        self._weigh([(host, lane) for lane in host.lanes.values()])

    def _refill(self, host: _Host, lane: _Lane) -> None:
        """Load the next candidates into an empty head, or drop the lane if there are none."""
        taken = {key for key, _ in host.taken.values()}
        low, lane.low = lane.low, None
        if low is not None:
            for key, value in self._state.committed(low, lane_end(host.number, lane.number)):
                if key in self._deleted or key in taken:
                    continue
                if len(lane.head) >= self._head:
                    lane.low = key
                    break
                lane.head.append((key, decode_candidate(value)))
        tail, lane.tail = lane.tail, []
        for entry in tail:
            if lane.low is None or entry[0] < lane.low:
                insort(lane.head, entry)
            else:
                lane.tail.append(entry)
        if not lane.head:
            del host.lanes[lane.number]
            host.update_standing()
            self._lanes -= 1

    # after a URL was taken

    def free(self, name: str, rest: float) -> None:
        """End the turn of a host, which may have its next turn at the time `rest`."""
        host = self._hosts[name]
        host.visiting = False
        host.rest = rest
        if not host.taken:
            self._weigh([(host, lane) for lane in host.unweighed_lanes()])
        self._schedule(host)

    def under_way(self, name: str) -> int:
        """Return how many URLs of a host are taken and not finished."""
        return len(self._hosts[name].taken)

    def finish(self, candidate: Candidate) -> None:
        """Remove a taken URL that has its outcome."""
        host = self._hosts[host_of(candidate.url)]
        key, _ = host.taken.pop(candidate.url)
        self._state.delete(key)
        self._deleted.add(key)
        self._change_count(host, -1)

    def put_back(self, candidate: Candidate) -> None:
        """Return a taken URL to the head of its lane, as if it had not been taken."""
        host = self._hosts[host_of(candidate.url)]
        key, queued = host.taken.pop(candidate.url)
        lane = host.lanes.get(queued.lane) or self._new_lane(host, queued.lane, None)
        self._forget_front(lane)
        insort(lane.head, (key, queued))
        self._weigh([(host, lane)])
        if host.name not in self._scheduler and not host.visiting:
            self._schedule(host)

    def requeue(self, taken: Candidate, again: Candidate) -> None:
        """Replace a taken URL by another candidate of the same URL, at the end of its rank."""
        _, queued = self._hosts[host_of(taken.url)].taken[taken.url]
        self.finish(taken)
        self.add([replace(again, weight=queued.weight)])

    def close(self, name: str, reason: str) -> bool:
        """Hand out nothing more of a host; its queue stays on disk. Return False if it was closed already."""
        host = self._hosts[name]
        if host.closed:
            return False
        host.closed = reason
        self._scheduler.remove(name)
        self.queued -= host.queued
        self.queued_closed += host.queued
        self.closed_hosts += 1
        return True

    def flush(self) -> None:
        """Put the records of changed hosts into the state's next commit."""
        for host in self._changed_hosts:
            lanes = sum(1 << lane for lane in {*host.lanes, *(one.lane for _, one in host.taken.values())})
            stored_queue.write_host(self._state, host.name, StoredHost(host.number, host.queued, lanes))
        self._changed_hosts.clear()
        stored_queue.write_next_numbers(self._state, self._next_host, self._next_sequence)

    def committed(self) -> None:
        """Shorten heads and tails, with all entries on disk now; call it after each commit."""
        self._deleted.clear()
        head = min(MAX_HEAD, max(MIN_HEAD, MAX_IN_MEMORY // (self._lanes + 1)))
        if 4 * head <= 3 * self._head:
            self._long_lanes.update(lane for host in self._hosts.values() for lane in host.lanes.values())
            self._head = head
        for lane in self._long_lanes:
            if len(lane.head) > self._head:
                low = lane.head[self._head][0]
                lane.low = low if lane.low is None else min(low, lane.low)
                del lane.head[self._head :]
            lane.tail.clear()
        self._long_lanes.clear()
