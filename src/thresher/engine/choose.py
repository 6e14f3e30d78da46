"""Engines by name, as people choose them: `local`, `ray`, `ray:ADDRESS`."""

from __future__ import annotations

from thresher.config import ConfigError
from thresher.engine.calls import Engine


def engine(name: str, processes: int = 0) -> Engine:
    """An engine; it is to be closed."""
    kind, _, address = name.partition(":")
    if kind == "local" and not address:
        from thresher.engine.processes import Processes

        return Processes(processes)
    if kind == "ray":
        from thresher.engine.cluster import Cluster

        return Cluster(address)
    raise ConfigError(f"there is no engine {name!r}; there are local, ray and ray:ADDRESS")
