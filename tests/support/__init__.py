"""Helpers for tests: corpora, webs, and slow reference implementations."""

from __future__ import annotations

from pathlib import Path

# Scripts that tests start as processes import the tests' modules from here.
TESTS = Path(__file__).parent.parent

# The root of the repository.
ROOT = TESTS.parent
