"""Runs in an environment of its own: pages as lines of JSON come in, lists of the texts found in them go out."""

import json
import sys

import readers

TEACHERS = (
    readers.trafilatura(include_comments=False),
    readers.trafilatura(),
    readers.readability(),
    readers.resiliparse(),
)

for line in sys.stdin:
    page = json.loads(line)
    print(json.dumps([text_of(page) for text_of in TEACHERS]), flush=True)
