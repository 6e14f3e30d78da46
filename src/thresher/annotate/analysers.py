"""Libraries that tell lemmas and parts of speech: for each, a function that makes an annotator for a language.

Tokens and sentences are ours wherever a library lets us, so that they are the same whatever is said of them.
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
from thresher.annotate.tokens import splitter, tokeniser

Token = tuple[str, ...]
Sentence = list[Token]
Annotate = Callable[[str], list[Sentence]]
Said = list[tuple[int, str, str]]  # where a word begins, its lemma and its part of speech

REMEMBERED = 1 << 17  # word forms that are looked up once; some 40 MB
LONGEST_WORD = 50  # characters that are looked up: some libraries take the square of a word's length in time
LONGEST_PORTION = 10_000  # characters of a paragraph that a model gets at once: memory grows with them
NORWEGIAN = {"no": "nb"}
OF_SIMPLEMMA = {**NORWEGIAN, "fil": "tl"} | dict.fromkeys(("bs", "cnr", "hr", "sh", "sr"), "hbs")
_CONTRACTED = re.compile(r"(\w+?)(n['’]t|['’](?:s|re|ve|ll|d|m))", re.IGNORECASE)
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
_UNCHANGING = re.compile("[./@]")
MODELS_OF_HANTA = {"de": "morphmodel_ger.pgz", "en": "morphmodel_en.pgz", "nl": "morphmodel_dutch.pgz"}


def in_sentences(tokens: Sequence[Token], language: str) -> list[Sentence]:
    """Tokens, cut where the sentences of their words end."""
    return cut(tokens, ends([token[0] for token in tokens], language))


def plain(language: str) -> Annotate:
    """Words alone."""
    split = tokeniser(language)
    return lambda paragraph: in_sentences([(word,) for word in split(paragraph)], language)


def word_by_word(language: str, look_up: Callable[[str], Token]) -> Annotate:
    """What is said of a word form whatever stands around it; each is looked up once, but for very long ones."""
    split = tokeniser(language)

    def token(word: str) -> Token:
        return word, *look_up(word)

    remembered = lru_cache(REMEMBERED)(token)

    def annotate(paragraph: str) -> list[Sentence]:
        words = split(paragraph)
        are_short = max(map(len, words), default=0) <= LONGEST_WORD
        return in_sentences(list(map(remembered if are_short else token, words)), language)

    return annotate


def simplemma(language: str) -> Annotate:
    """Lemmas of some fifty languages, from word lists and rules."""
    from simplemma import Lemmatizer

    lemmatize, code = Lemmatizer(cache_max_size=0).lemmatize, OF_SIMPLEMMA.get(language, language)

    def lemma(word: str) -> Token:
        return (_told(lemmatize(word, code), word) if len(word) <= LONGEST_WORD else word,)

    return word_by_word(language, lemma)


def pymorphy3(language: str) -> Annotate:
    """Russian and Ukrainian lemmas and parts of speech, the likeliest of each word form."""
    from pymorphy3 import MorphAnalyzer

    parse = MorphAnalyzer(lang=language).parse

    def reading(word: str) -> Token:
        likeliest = parse(word.replace("’", "'"))[0]  # the dictionaries have straight apostrophes
        return _told(likeliest.normal_form, word), re.split("[ ,]", str(likeliest.tag))[0]

    return word_by_word(language, reading)


def hanta(language: str) -> Annotate:
    """German, English and Dutch, by the morphology of words and what stands before them."""
    from HanTa.HanoverTagger import HanoverTagger

    tagger = HanoverTagger(MODELS_OF_HANTA[language])
    # Both tell the same of a word each time, and most of a text is the same words.
    tagger.analyze_forward = lru_cache(REMEMBERED)(tagger.analyze_forward)
    tagger.analyze_viterbi = lru_cache(REMEMBERED)(tagger.analyze_viterbi)
    words_only = plain(language)

    def tagged(sentence: Sentence) -> Sentence:
        parts = [_contracted(word, language) for (word,) in sentence]
        said = iter(tagger.tag_sent([part[:LONGEST_WORD] for word in parts for part in word]))
        readings = [[next(said)[1:] for _ in word] for word in parts]
        return [
            (
                word,
                _told(reading[0][0], word) if _may_change(word) else word,
                "+".join([pos for _, pos in reading]),
            )
            for (word,), reading in zip(sentence, readings, strict=True)
        ]

    return lambda paragraph: list(map(tagged, words_only(paragraph)))


def _contracted(word: str, language: str) -> Sequence[str]:
    """The parts of a word like don't, which HanTa knows one by one."""
    parts = _CONTRACTED.fullmatch(word) if language == "en" else None
    return [part.replace("’", "'") for part in parts.groups()] if parts else [word]


def _may_change(word: str) -> bool:
    """Whether a word may have a lemma that is not the word: no number, sign, address or abbreviation."""
    return len(word) <= LONGEST_WORD and word[0].isalpha() and not _UNCHANGING.search(word)


def jieba(language: str) -> Annotate:
    """Chinese words and their parts of speech, with the tags of ICTCLAS."""
    tokenizer, module = jieba_tokenizer(), imported_from_jieba("jieba.posseg")
    tagger = module.POSTokenizer(tokenizer)

    @lru_cache(REMEMBERED)
    def tag(word: str) -> str:
        if word in tagger.word_tag_tab:
            return str(tagger.word_tag_tab[word])
        # jieba guesses the others; where it has no figures of a character, it tries all tags beside all, at length.
        can_be_guessed = 1 < len(word) <= LONGEST_WORD and all(
            char in module.char_state_tab_P for char in word
        )
        return str(tagger.lcut(word)[-1].flag) if can_be_guessed else "x"

    def run(characters: str) -> list[Token]:
        return [(word, tag(word)) for word in tokenizer.lcut(characters)]

    return run_by_run(language, HAN, run, _sign_in_chinese)


def _sign_in_chinese(token: str) -> Token:
    """What jieba says of numbers, of words in other scripts, and of all else."""
    return token, "m" if token[0].isdecimal() else "eng" if token[0].isalpha() else "x"


def fugashi(language: str) -> Annotate:
    """Japanese words with lemmas and parts of speech of UniDic."""
    tagger = fugashi_tagger()

    def run(characters: str) -> list[Token]:
        return [(node.surface, lemma(node), pos(node)) for node in tagger(characters)]

    def lemma(node: Any) -> str:
        # UniDic lists names under their reading, and says what foreign words come from: タワー-tower.
        is_name = node.feature.pos2 == "固有名詞"
        listed = node.feature.orthBase if is_name else (node.feature.lemma or "").partition("-")[0]
        return _told(listed or "", node.surface)

    def pos(node: Any) -> str:
        return "-".join([part for part in (node.feature.pos1, node.feature.pos2) if part != "*"])

    def sign(word: str) -> Token:
        return word, word, pos(tagger(word[:LONGEST_WORD])[0])

    return run_by_run(language, JAPANESE, run, sign)


def run_by_run(
    language: str, characters: str, run: Callable[[str], Iterable[Token]], sign: Callable[[str], Token]
) -> Annotate:
    """Runs of some characters are cut by a library; all other tokens are ours."""
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
    """Korean words cut into morphemes; those that are written in one syllable stay together, as VV+EP."""
    from kiwipiepy import Kiwi

    tokenize = Kiwi(num_workers=1).tokenize

    def said_of(text: str) -> Said:
        said, end = [], 0
        for morpheme in tokenize(text, compatible_jamo=True):
            if morpheme.start >= end:
                said.append((morpheme.start, morpheme.lemma, morpheme.tag))
            else:
                start, lemma, tags = said[-1]
                said[-1] = start, lemma, f"{tags}+{morpheme.tag}"
            end = max(end, morpheme.end)
        return said

    return by_places(language, said_of, "SW", splitter(language, HAN), _HANGUL.search)


def spacy(language: str) -> Annotate:
    """Whatever the installed model of spaCy says."""
    import spacy

    model = spacy.load(models_of_spacy(language)[0], exclude=["ner", "parser"])

    def said_of(text: str) -> Said:
        return [(token.idx, token.lemma_, token.pos_) for token in model(text)]

    return by_places(language, said_of, "X")


def stanza(language: str) -> Annotate:
    """Whatever the downloaded model of Stanza says; of words that are two in one, as French du, both are told."""
    from stanza import Pipeline

    code = NORWEGIAN.get(language, language)
    pipeline = Pipeline(code, processors="tokenize,pos,lemma", download_method=None, verbose=False)

    def said_of(text: str) -> Said:
        tokens = [token for sentence in pipeline(text).sentences for token in sentence.tokens]
        return [
            (
                token.start_char,
                "+".join([word.lemma or word.text for word in token.words]),
                "+".join([word.upos or "X" for word in token.words]),
            )
            for token in tokens
        ]

    return by_places(language, said_of, "X")


def by_places(
    language: str,
    said_of: Callable[[str], Said],
    unknown: str,
    chunks: Callable[[str], list[str]] = str.split,
    is_cut: Callable[[str], object] = bool,
) -> Annotate:
    """Chunks of a text are cut where a library says that words begin, so that nothing of the text is lost."""

    def annotate(paragraph: str) -> list[Sentence]:
        tokens: list[Token] = []
        for portion in _portions(clean(paragraph)):
            said = {place: (lemma, pos) for place, lemma, pos in said_of(portion)}
            end = 0
            for chunk in chunks(portion):
                start = portion.index(chunk, end)
                end = start + len(chunk)
                if not is_cut(chunk):
                    tokens.append((chunk, chunk, said.get(start, ("", unknown))[1]))
                    continue
                inside = [place for place in range(start + 1, end) if place in said]
                for begin, stop in pairwise([start, *inside, end]):
                    word, (lemma, pos) = portion[begin:stop], said.get(begin, ("", ""))
                    tokens.append((word, _told(lemma, word), pos or unknown))
        return in_sentences(tokens, language)

    return annotate


def _portions(text: str) -> Iterator[str]:
    """A text in portions that a library can take at once, cut at spaces where there are some."""
    start = 0
    while start < len(text):
        end = start + LONGEST_PORTION
        if end < len(text):
            end = text.rfind(" ", start, end) + 1 or end
        yield text[start:end]
        start = end


def models_of_spacy(language: str) -> list[str]:
    """Models that are installed for a language, large ones first."""
    beginning, sizes = NORWEGIAN.get(language, language) + "_", ("lg", "md", "sm")
    names = {model.name for model in entry_points(group="spacy_models") if model.name.startswith(beginning)}
    return sorted(names, key=lambda name: (*(not name.endswith(size) for size in sizes), name))


def has_model_of_stanza(language: str) -> bool:
    """Whether a model was downloaded for a language."""
    from stanza.resources.common import DEFAULT_MODEL_DIR

    return (Path(DEFAULT_MODEL_DIR) / NORWEGIAN.get(language, language)).is_dir()


def _told(value: str, otherwise: str) -> str:
    """A value on one line, or another where a library has none."""
    return " ".join(value.split()) or otherwise
