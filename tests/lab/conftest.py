"""A walk through the default toy web, which several test files look at."""

from __future__ import annotations

import pytest

from support.webs.toy_webs import WEB, Walk, all_seeds
from thresher_lab.toyweb import reachable


@pytest.fixture(scope="session")
def walked() -> Walk:
    return dict(reachable(WEB, all_seeds(WEB), host_pages=130))
