"""The toy web: a whole web on loopback, the same for everyone who asks with the same parameters.

Every answer is a pure function of parameters, seed and URL, so a toy web of millions of pages costs no
memory, and an oracle can tell of every URL what a perfect reader would find there.

>>> web = ToyWeb(hosts=12, seed=7)
>>> truth(web, seeds(web)["cs"][0]).kind
'front'
"""

from thresher.lab.toyweb.answers import Answer, answer
from thresher.lab.toyweb.oracle import Truth, reachable, seeds, truth
from thresher.lab.toyweb.server import Server, serve, serve_forever
from thresher.lab.toyweb.web import ToyWeb

__all__ = [
    "Answer",
    "Server",
    "ToyWeb",
    "Truth",
    "answer",
    "reachable",
    "seeds",
    "serve",
    "serve_forever",
    "truth",
]
