"""Queries of all kinds to a corpus of English documentation, by name."""

from __future__ import annotations

QUERIES = {
    "frequent word": '"the"',
    "rare word": '"hyphenation"',
    "word in any case": '"linux" %c',
    "lemma": '[lemma="configure"]',
    "part of speech": '[pos="VVG"]',
    "prefix": '"inter.*"',
    "infix": '".*transact.*"',
    "suffix": '[word=".*ly" & pos="AV0"]',
    "long words": '".{20,}"',
    "frequent pair": '"of" "the"',
    "adjective and noun": '[pos="AJ0"] [pos="NN1"]',
    "passive": '[lemma="be"] [pos="VVN"] "by"',
    "noun phrase": '[pos="AT0"] [pos="AJ0"]{1,3} [pos="NN.*"]',
    "three nouns": '[pos="NN."]{3}',
    "gap": '"either" []{1,8} "or" within s',
    "long gap": '[lemma="take"] []* "account" within s',
    "alternatives": '("due" "to" | "because" "of" | "on" "account" "of") [pos="AT0"]? [pos="NN."]',
    "start of sentence": '<s> [pos="AT0"] [pos="NN1"]',
    "end of sentence": '[pos="NN2"] "\\?" </s>',
    "sentence with a word": '<s> []* "deadlock" []* </s>',
    "same word twice": 'a:[word="[A-Za-z]+"] [word=a.word]',
    "coordination": 'a:[pos="NN1"] "and" b:[pos="NN1"] :: a.lemma != b.lemma',
    "metadata": '[lemma="function"] :: match.doc_site = "python.*"',
    "numbers of documents": '[lemma="error"] :: int(match.doc_quality) >= 90',
    "longest noun phrases": '(?longest) [pos="AT0"]? [pos="AJ0"]* [pos="NN1"]+',
    "without": '[lemma="open"] [lemma!="file"]{1,3} [lemma="close"]',
}
