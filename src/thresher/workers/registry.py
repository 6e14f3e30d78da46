"""Engines by name: `local`, `ray`, `ray:HOST:PORT`, `ray:auto`."""

from __future__ import annotations

import re

from thresher.errors import UsageError
from thresher.workers.protocol import Engine


def engine(name: str, processes: int = 0) -> Engine:
    """Return the engine of that name; the caller closes it. Raise UsageError for an unknown name."""
    check(name)
    kind, _, address = name.partition(":")
    if kind == "local":
        from thresher.workers.local_engine import LocalEngine

        return LocalEngine(processes)
    from thresher.workers.ray_engine import RayEngine

    return RayEngine(address)


def check(name: str) -> None:
    """Raise UsageError unless an engine can have that name. Nothing is loaded or connected for the check."""
    kind, colon, address = name.partition(":")
    if kind not in ("local", "ray") or (kind == "local" and colon):
        raise UsageError(f"unknown engine {name!r}; choose one of local, ray, ray:HOST:PORT")
    if "://" in address:
        raise UsageError(
            f"engine {name!r}: shards and steps must reach this machine, which Ray Client does not allow; "
            "run the command on a node of the cluster, with --engine ray:auto"
        )
    port = re.fullmatch(r"\S+:(\d{1,5})", address)
    if colon and address != "auto" and not (port and 0 < int(port[1]) < 65536):
        raise UsageError(
            f"engine {name!r}: {address!r} is not HOST:PORT; try ray:10.0.0.1:6379, or ray:auto on one of its nodes"
        )
