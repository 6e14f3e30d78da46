"""Engines by name, as people choose them: `local`, `ray`, `ray:HOST:PORT`, `ray:auto`."""

from __future__ import annotations

import re

from thresher.config import ConfigError
from thresher.engine.calls import Engine


def engine(name: str, processes: int = 0) -> Engine:
    """An engine; it is to be closed."""
    check(name)
    kind, _, address = name.partition(":")
    if kind == "local":
        from thresher.engine.processes import Processes

        return Processes(processes)
    from thresher.engine.cluster import Cluster

    return Cluster(address)


def check(name: str) -> None:
    """Say so if there can be no engine of that name; nothing is loaded, and nobody is asked, to tell."""
    kind, colon, address = name.partition(":")
    if kind not in ("local", "ray") or (kind == "local" and colon):
        raise ConfigError(f"there is no engine {name!r}; there are local, ray and ray:HOST:PORT")
    if "://" in address:
        raise ConfigError(
            f"engine {name!r}: shards and steps have to reach this machine, which Ray Client does not let them; "
            "run the command on a node of the cluster, with --engine ray:auto"
        )
    port = re.fullmatch(r"\S+:(\d{1,5})", address)
    if colon and address != "auto" and not (port and 0 < int(port[1]) < 65536):
        raise ConfigError(
            f"engine {name!r}: {address!r} is not HOST:PORT; try ray:10.0.0.1:6379, or ray:auto on a node of it"
        )
