"""The difference between hosts that fail and a network that is missing."""

from __future__ import annotations

from thresher.records import Failure, Reply


class NetworkStatus:
    """The state of the network, as far as replies and failures of the whole crawl show it.

    Until the first reply, failures may come from a missing network rather than from hosts.
    """

    def __init__(self, *, online: bool = False) -> None:
        self.online = online  # whether any host has replied to any shard
        self.failures = 0  # before the first reply, that may come from a missing network

    @property
    def is_unreachable(self) -> bool:
        """True if hosts were tried and none has replied."""
        return self.failures > 0 and not self.online

    def is_offline(self, answer: Reply | Failure) -> bool:
        """Note an answer; return whether it is a failure that may come from a missing network.

        A missing name counts, too: some resolvers answer so without a network.
        """
        if isinstance(answer, Reply):
            self.online = True
        if self.online or isinstance(answer, Reply):
            return False
        offline = answer.transient or answer.reason == "dns"
        self.failures += offline
        return offline
