"""Read pages as lines of JSON and print the lists of texts found in them, in an environment of its own."""

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
