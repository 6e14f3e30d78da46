"""Runs in an environment of its own: pages as lines of JSON come in, their texts as lines of JSON go out."""

import json
import sys

import trafilatura

for line in sys.stdin:
    text = trafilatura.extract(json.loads(line)["html"], include_comments=False)
    print(json.dumps(text or ""), flush=True)
