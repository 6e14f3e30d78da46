"""Run one detector of the encodings benchmark on one file of pages: python charsets.py NAME PAGES.

PAGES has a line of JSON for each page: {"body": base64}. Standard output: {"version": …, "cpu_s": …,
"encodings": [label or "", …]}, in the order of the pages.
"""

import base64
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path


def charset_normalizer():
    from charset_normalizer import from_bytes

    def label(body):
        best = from_bytes(body).best()
        return best.encoding if best else ""

    return label


def resiliparse():
    from resiliparse.parse.encoding import detect_encoding

    return lambda body: detect_encoding(body) or ""


DETECTORS = {"charset-normalizer": charset_normalizer, "resiliparse": resiliparse}


def main(name, path):
    label = DETECTORS[name]()
    bodies = [base64.b64decode(json.loads(line)["body"]) for line in Path(path).read_text().splitlines()]
    label(bodies[0])
    started = time.process_time()
    found = [label(body) for body in bodies]
    print(json.dumps({"version": version(name), "cpu_s": time.process_time() - started, "encodings": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
