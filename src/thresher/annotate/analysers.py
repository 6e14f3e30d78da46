"""Annotators: for each library of lemmas and parts of speech, a function that makes an annotator for a language.

Tokens and sentences come from this package wherever a library allows it, so that they are the same for all
annotators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path
from typing import Any

from thresher.annotate.characters import HAN, clean
from thresher.annotate.segmenters import JAPANESE, fugashi_tagger, imported_from_jieba, jieba_tokenizer
from thresher.annotate.sentences import cut, ends
from thresher.annotate.tokenizer import splitter, tokeniser

Token = tuple[str, ...]
Sentence = list[Token]
Annotate = Callable[[str], list[Sentence]]
Readings = list[tuple[int, str, str]]  # offset of a word, its lemma and its part of speech

CACHED_WORDS = 1 << 17  # word forms whose annotation is remembered; some 40 MB
LONGEST_WORD = 50  # characters; longer words are not looked up, since some libraries take quadratic time
LONGEST_PORTION = 10_000  # characters of a paragraph that a model gets at a time, which bounds its memory
NORWEGIAN = {"no": "nb"}
# Codes of simplemma for languages that have another code here.
SIMPLEMMA_CODES = {**NORWEGIAN, "fil": "tl"} | dict.fromkeys(("bs", "cnr", "hr", "sh", "sr"), "hbs")
_CONTRACTED = re.compile(r"(\w+?)(n['’]t|['’](?:s|re|ve|ll|d|m))", re.IGNORECASE)
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
_NO_WORD = re.compile("[./@]")  # signs of addresses and abbreviations, which are their own lemmas
MODELS_OF_HANTA = {"de": "morphmodel_ger.pgz", "en": "morphmodel_en.pgz", "nl": "morphmodel_dutch.pgz"}


def in_sentences(tokens: Sequence[Token], language: str) -> list[Sentence]:
    """Split tokens into sentences."""
    return cut(tokens, ends([token[0] for token in tokens], language))


def plain(language: str) -> Annotate:
    """Split into words, without annotation."""
    split = tokeniser(language)
    return lambda paragraph: in_sentences([(word,) for word in split(paragraph)], language)


def word_by_word(language: str, look_up: Callable[[str], Token]) -> Annotate:
    """Return an annotator that looks up word forms without their context, each once while it is remembered."""
    split = tokeniser(language)

    def token(word: str) -> Token:
        return word, *look_up(word)

    cached = lru_cache(CACHED_WORDS)(token)

    def annotate(paragraph: str) -> list[Sentence]:
        words = split(paragraph)
        # Very long words must not fill the cache.
        are_short = max(map(len, words), default=0) <= LONGEST_WORD
        return in_sentences(list(map(cached if are_short else token, words)), language)

    return annotate


def simplemma(language: str) -> Annotate:
    """Annotate with lemmas from word lists and rules, in some fifty languages."""
    from simplemma import Lemmatizer

    lemmatize, code = Lemmatizer(cache_max_size=0).lemmatize, SIMPLEMMA_CODES.get(language, language)

    def lemma(word: str) -> Token:
        return (_one_line(lemmatize(word, code), word) if len(word) <= LONGEST_WORD else word,)

    return word_by_word(language, lemma)


def pymorphy3(language: str) -> Annotate:
    """Annotate Russian or Ukrainian with the likeliest lemma and part of speech of each word form."""
    from pymorphy3 import MorphAnalyzer

    parse = MorphAnalyzer(lang=language).parse

    def reading(word: str) -> Token:
        try:
            likeliest = parse(word.replace("’", "'"))[0]  # the dictionaries have straight apostrophes
        except ValueError:
            # pymorphy3 asks for the names of letters, and some scripts, such as Tangut, have none.
            return word, "UNKN"
        return _one_line(likeliest.normal_form, word), re.split("[ ,]", str(likeliest.tag))[0]

    return word_by_word(language, reading)


def hanta(language: str) -> Annotate:
    """Annotate German, English or Dutch with lemmas and parts of speech, by word morphology and context."""
    from HanTa.HanoverTagger import HanoverTagger

    tagger = HanoverTagger(MODELS_OF_HANTA[language])
    # Both are pure functions of a word, and a text repeats most of its words.
    tagger.analyze_forward = lru_cache(CACHED_WORDS)(tagger.analyze_forward)
    tagger.analyze_viterbi = lru_cache(CACHED_WORDS)(tagger.analyze_viterbi)
    words_only = plain(language)

    def tagged(sentence: Sentence) -> Sentence:
        parts = [_contracted(word, language) for (word,) in sentence]
        tags = iter(tagger.tag_sent([part[:LONGEST_WORD] for word in parts for part in word]))
        readings = [[next(tags)[1:] for _ in word] for word in parts]
        return [
            (
                word,
                _one_line(reading[0][0], word) if _may_change(word) else word,
                "+".join([pos for _, pos in reading]),
            )
            for (word,), reading in zip(sentence, readings, strict=True)
        ]

    return lambda paragraph: list(map(tagged, words_only(paragraph)))


def _contracted(word: str, language: str) -> Sequence[str]:
    """Return the parts of a word like don't, which HanTa knows separately."""
    parts = _CONTRACTED.fullmatch(word) if language == "en" else None
    return [part.replace("’", "'") for part in parts.groups()] if parts else [word]


def _may_change(word: str) -> bool:
    """Return whether a word may differ from its lemma: it is no number, sign, address or abbreviation."""
    return len(word) <= LONGEST_WORD and word[0].isalpha() and not _NO_WORD.search(word)


def jieba(language: str) -> Annotate:
    """Annotate Chinese with words and their parts of speech, in the tags of ICTCLAS."""
    tokenizer, module = jieba_tokenizer(), imported_from_jieba("jieba.posseg")
    tagger = module.POSTokenizer(tokenizer)

    @lru_cache(CACHED_WORDS)
    def tag(word: str) -> str:
        if word in tagger.word_tag_tab:
            return str(tagger.word_tag_tab[word])
        # jieba guesses other words. For a character without statistics it tries all pairs of tags, which is slow.
        can_be_guessed = 1 < len(word) <= LONGEST_WORD and all(
            char in module.char_state_tab_P for char in word
        )
        return str(tagger.lcut(word)[-1].flag) if can_be_guessed else "x"

    def run(characters: str) -> list[Token]:
        return [(word, tag(word)) for word in tokenizer.lcut(characters)]

    return run_by_run(language, HAN, run, _sign_in_chinese)


def _sign_in_chinese(token: str) -> Token:
    """Return a token with jieba's tag for numbers, words in other scripts, and signs."""
    return token, "m" if token[0].isdecimal() else "eng" if token[0].isalpha() else "x"


def fugashi(language: str) -> Annotate:
    """Annotate Japanese with words, lemmas and parts of speech of UniDic."""
    tagger = fugashi_tagger()

    def run(characters: str) -> list[Token]:
        return [(node.surface, lemma(node), pos(node)) for node in tagger(characters)]

    def lemma(node: Any) -> str:
        # UniDic lists names under their reading, and appends the origin of foreign words: タワー-tower.
        is_name = node.feature.pos2 == "固有名詞"
        listed = node.feature.orthBase if is_name else (node.feature.lemma or "").partition("-")[0]
        return _one_line(listed or "", node.surface)

    def pos(node: Any) -> str:
        return "-".join([part for part in (node.feature.pos1, node.feature.pos2) if part != "*"])

    def sign(word: str) -> Token:
        return word, word, pos(tagger(word[:LONGEST_WORD])[0])

    return run_by_run(language, JAPANESE, run, sign)


def run_by_run(
    language: str, characters: str, run: Callable[[str], Iterable[Token]], sign: Callable[[str], Token]
) -> Annotate:
    """Return an annotator that gives runs of some characters to a library, and `sign` all other tokens."""
    split, is_run = splitter(language, characters), re.compile(f"[{characters}]+").fullmatch

    def annotate(paragraph: str) -> list[Sentence]:
        tokens: list[Token] = []
        for token in split(paragraph):
            if is_run(token):
                tokens += run(token)
            else:
                tokens.append(sign(token))
        return in_sentences(tokens, language)

    return annotate


def kiwipiepy(language: str) -> Annotate:
    """Annotate Korean with morphemes; morphemes that share a syllable stay together, as VV+EP."""
    from kiwipiepy import Kiwi

    tokenize = Kiwi(num_workers=1).tokenize

    def readings_of(text: str) -> Readings:
        readings, end = [], 0
        for morpheme in tokenize(text, compatible_jamo=True):
            if morpheme.start >= end:
                readings.append((morpheme.start, morpheme.lemma, morpheme.tag))
            else:
                start, lemma, tags = readings[-1]
                readings[-1] = start, lemma, f"{tags}+{morpheme.tag}"
            end = max(end, morpheme.end)
        return readings

    return by_offsets(language, readings_of, "SW", splitter(language, HAN), _HANGUL.search)


def spacy(language: str) -> Annotate:
    """Annotate with the lemmas and parts of speech of an installed model of spaCy."""
    import spacy

    model = spacy.load(models_of_spacy(language)[0], exclude=["ner", "parser"])

    def readings_of(text: str) -> Readings:
        return [(token.idx, token.lemma_, token.pos_) for token in model(text)]

    return by_offsets(language, readings_of, "X")


def stanza(language: str) -> Annotate:
    """Annotate with a downloaded model of Stanza; contracted words, as French du, have both parts, as ADP+DET."""
    from stanza import Pipeline

    code = NORWEGIAN.get(language, language)
    pipeline = Pipeline(code, processors="tokenize,pos,lemma", download_method=None, verbose=False)

    def readings_of(text: str) -> Readings:
        tokens = [token for sentence in pipeline(text).sentences for token in sentence.tokens]
        return [
            (
                token.start_char,
                "+".join([word.lemma or word.text for word in token.words]),
                "+".join([word.upos or "X" for word in token.words]),
            )
            for token in tokens
        ]

    return by_offsets(language, readings_of, "X")


def by_offsets(
    language: str,
    readings_of: Callable[[str], Readings],
    unknown: str,
    chunks: Callable[[str], list[str]] = str.split,
    is_cut: Callable[[str], object] = bool,
) -> Annotate:
    """Return an annotator that splits chunks of a text at the offsets of a library, so that no text is lost."""

    def annotate(paragraph: str) -> list[Sentence]:
        tokens: list[Token] = []
        for portion in _portions(clean(paragraph)):
            readings = {place: (lemma, pos) for place, lemma, pos in readings_of(portion)}
            end = 0
            for chunk in chunks(portion):
                start = portion.index(chunk, end)
                end = start + len(chunk)
                if not is_cut(chunk):
                    tokens.append((chunk, chunk, readings.get(start, ("", unknown))[1]))
                    continue
                inside = [place for place in range(start + 1, end) if place in readings]
                for begin, stop in pairwise([start, *inside, end]):
                    word, (lemma, pos) = portion[begin:stop], readings.get(begin, ("", ""))
                    tokens.append((word, _one_line(lemma, word), pos or unknown))
        return in_sentences(tokens, language)

    return annotate


def _portions(text: str) -> Iterator[str]:
    """Yield a text in portions of bounded length, split at spaces where there are any."""
    start = 0
    while start < len(text):
        end = start + LONGEST_PORTION
        if end < len(text):
            end = text.rfind(" ", start, end) + 1 or end
        yield text[start:end]
        start = end


def models_of_spacy(language: str) -> list[str]:
    """Return the models that are installed for a language, large ones first."""
    beginning, sizes = NORWEGIAN.get(language, language) + "_", ("lg", "md", "sm")
    names = {model.name for model in entry_points(group="spacy_models") if model.name.startswith(beginning)}
    return sorted(names, key=lambda name: (*(not name.endswith(size) for size in sizes), name))


def has_model_of_stanza(language: str) -> bool:
    """Return whether a model was downloaded for a language."""
    from stanza.resources.common import DEFAULT_MODEL_DIR

    return (Path(DEFAULT_MODEL_DIR) / NORWEGIAN.get(language, language)).is_dir()


def _one_line(value: str, otherwise: str) -> str:
    """Return a value on one line, or another value if it is empty."""
    return " ".join(value.split()) or otherwise
