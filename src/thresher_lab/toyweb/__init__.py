"""The toy web: a web of invented hosts on loopback, with an oracle; equal parameters give equal webs.

Every answer is a pure function of parameters, seed and URL, so a toy web of millions of pages takes no memory,
and the oracle knows the perfect reading of every URL.

>>> web = ToyWeb(hosts=12, seed=7)
>>> truth(web, seeds(web)["cs"][0]).kind
'front'
"""

from thresher_lab.toyweb.answers import ToyAnswer, answer
from thresher_lab.toyweb.oracle import Truth, reachable, seeds, truth
from thresher_lab.toyweb.server import Server, serve, serve_forever
from thresher_lab.toyweb.web import ToyWeb

__all__ = [
    "Server",
    "ToyAnswer",
    "ToyWeb",
    "Truth",
    "answer",
    "reachable",
    "seeds",
    "serve",
    "serve_forever",
    "truth",
]
