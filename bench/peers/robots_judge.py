"""Second opinion on robots.txt, by protego: which of the requested URLs are disallowed.

Standard input: a line of JSON for each host, {"robots": TEXT, "urls": [URL, …]}. Standard output: the disallowed
URLs.
"""

import json
import sys

from protego import Protego

AGENT = "Thresher"

for line in sys.stdin:
    host = json.loads(line)
    rules = Protego.parse(host["robots"])
    for url in host["urls"]:
        if not rules.can_fetch(url, AGENT):
            print(url)
