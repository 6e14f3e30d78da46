"""Explanation of a prediction: the evidence behind each kind of feature, and the prediction without it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.crawler.policy.learned import feature_layout as at
from thresher.crawler.policy.learned.learned_policy import LearnedPolicy
from thresher.crawler.policy.learned.predictor import COST, OURS, PAGES, TEXT
from thresher.records import Candidate


class FeatureReason(NamedTuple):
    """One kind of feature: the results of pages that share it, and the predicted yield without it."""

    name: str
    pages: float
    rate: float | None
    ours: float | None
    without: float


def _url_signals(*signals: int) -> tuple[int, ...]:
    return tuple(at.HINTS + signal for signal in signals)


# Kinds of features: a name, the key with the most evidence, all keys, and the signals.
KINDS: tuple[tuple[str, int | None, tuple[int, ...], tuple[int, ...]], ...] = (
    ("its host", at.HOST, (at.DOMAIN, at.HOST, at.HOST_CODE), ()),
    ("its folder", at.THIRD_FOLDER, (at.FIRST_FOLDER, at.SECOND_FOLDER, at.THIRD_FOLDER), ()),
    ("URLs of its form", at.PATTERN, (at.PATTERN, at.NAME_LENGTH, at.GLOBAL_PATTERN), ()),
    ("the language that its URL names", at.CODE, (at.CODE,), _url_signals(at.URL_OURS, at.URL_OTHER)),
    ("its top-level domain", at.NEW_HOST_TLD, (at.NEW_HOST_TLD,), _url_signals(at.AT_HOME, at.ABROAD)),
    ("first pages of hosts like its own", at.NEW_HOST_KEY, (at.NEW_HOST_KEY,), ()),
    ("words of its URL", None, tuple(range(at.WORDS, at.KEYS)), ()),
    (
        "links that stand like it",
        at.HOST_SETTING,
        (at.SETTING, at.HOST_SETTING),
        (at.BOILERPLATE, at.IN_TEXT, at.LISTED),
    ),
    ("pages like the one that links to it", at.HOST_PARENT, (at.HOST_PARENT,), (at.KEPT, at.OURS, at.YIELD)),
    ("words of the link", at.HOST_ANCHOR, (at.HOST_ANCHOR,), (at.ANCHOR_OURS, at.ANCHOR_OTHER, at.ANCHOR)),
)


def explain_features(policy: LearnedPolicy, candidate: Candidate) -> tuple[float, list[FeatureReason]]:
    """Return the text per byte found behind pages like this one, and the evidence of each kind of feature."""
    keys, signals = policy.features.of([candidate.url], [candidate.hints])
    without = np.repeat(keys, len(KINDS) + 1, axis=0)
    neutral = np.repeat(signals, len(KINDS) + 1, axis=0)
    for row, (_, _, known_keys, known_signals) in enumerate(KINDS, 1):
        without[row, list(known_keys)] = 0
        neutral[row, list(known_signals)] = 0.0
    outlook = policy.outlook(without, neutral, np.arange(len(without)))
    found = []
    for row, (name, main, _, _) in enumerate(KINDS, 1):
        pages, rate, ours = _remembered(policy, keys[:, main]) if main is not None else (0.0, None, None)
        found.append(FeatureReason(name, pages, rate, ours, float(outlook.expected[row])))
    return float(outlook.behind[0]), found


def _remembered(policy: LearnedPolicy, key: at.Keys) -> tuple[float, float | None, float | None]:
    """Return pages, yield and share of pages in the language of the corpus, as remembered under a key."""
    row = policy.feature_memory.recall(key)[0]
    if row[PAGES] <= 0:
        return 0.0, None, None
    return float(row[PAGES]), float(row[TEXT] / row[COST]), float(row[OURS] / row[PAGES])
