"""Names that other programs rely on stay: in JSON of the commands, in exports, in tables, and exit codes.

Names may be added, none may vanish. The types of dates may change, since older versions wrote dates as strings.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.contract import missing, observe

pytestmark = pytest.mark.slow

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "contract" / "names.json").read_text(encoding="utf-8")
)
DATES = {"published", "modified"}


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the names that this version shows."""
    return observe(tmp_path_factory.mktemp("contract"))


@pytest.mark.parametrize("part", sorted(RECORDED))
def test_a_name_of_the_contract_never_vanishes(observed: dict[str, Any], part: str) -> None:
    faults = missing(RECORDED[part], observed[part])
    assert [fault for fault in faults if fault.partition(":")[0] not in DATES] == []


def test_a_vanished_name_is_reported() -> None:
    recorded = {"pages": {"kept": "number"}, "codes": [{"name": "string"}], "names": ["word", "lc"]}
    observed = {
        "pages": {"taken": "number"},
        "codes": [{"name": "number"}],
        "names": ["word"],
        "more": "string",
    }
    assert missing(recorded, observed) == [
        "pages.kept: missing",
        "codes[0].name: string became number",
        "names.lc: missing",
    ]
