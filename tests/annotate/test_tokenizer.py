"""Tokens match the expectations of corpus linguists in every script, and no text is lost."""

from __future__ import annotations

import unicodedata
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thresher.annotate import tokenizer as module
from thresher.annotate.characters import clean
from thresher.annotate.segmenters import SEGMENTERS, Segmenter
from thresher.annotate.tokenizer import tokeniser, tokens

LAYOUT = "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
SAMPLES = {
    "zh": "我来到北京清华大学",
    "zh-Hant": "我們來到臺灣大學",
    "ja": "東京タワーへ行きました",
    "th": "ภาษาไทยเป็นภาษา",
    "lo": "ພາສາລາວເປັນພາສາ",
    "km": "ភាសាខ្មែរគឺជាភាសា",
    "my": "စကားသည်မြန်မာနိုင်ငံ",
}
LANGUAGES = ["", "cs", "en", "es", "fr", "he", "it", "nl", "sv", *SEGMENTERS]
PIECES = """
don't l'été 's well-known e.g. U.S.A. Dr. J. 3.14 1,000.50 12:30 1.5.2024 http://a.b/c_(d). www.x.cz/?q=1, a.b@c.org
@name #tag ... ?! -- 👩‍💻 🇨🇿 👍🏽 ❤️ 1️⃣ می‌روم किताब Ինչպե՞ս צה"ל ภาษาไทย ພາສາ ភាសាខ្មែរ မြန်မာ བོད་ཡིག་
北京大学 東京タワー らーめん 한국어 ሰላም፡፡ \u0301 \u200d \u200c \ufe0f \u00ad \u200b \x00 \x85 \u2028 \u3000
\U000e0041 \U0001f1e8 ( ) ' ’ " . , : / - @ # _ *
"""
pieces = st.sampled_from(PIECES.split(" ")) | st.text(max_size=4) | st.just(" ")
texts = st.lists(pieces, max_size=20).map("".join)

EXPECTED = [
    ("en", "I don't know a well-known e-mail.", "I|don't|know|a|well-known|e-mail|."),
    ("en", "It cost 1,000.50, or 3.14 at 12:30.", "It|cost|1,000.50|,|or|3.14|at|12:30|."),
    ("en", "On 2024-05-01 or 1/5/2024.", "On|2024-05-01|or|1/5/2024|."),
    ("en", "Wait... what?! No -- never", "Wait|...|what|?!|No|--|never"),
    (
        "en",
        "See (https://a.org/wiki/A_(b)?x=1), www.a.org.",
        "See|(|https://a.org/wiki/A_(b)?x=1|)|,|www.a.org|.",
    ),
    ("en", "Write to J.Smith+x@mail.a.co.uk!", "Write|to|J.Smith+x@mail.a.co.uk|!"),
    ("en", "@someone likes #this :-)", "@someone|likes|#this|:-)"),
    ("en", "👩‍💻👨‍👩‍👧🇨🇿🇩🇪👍🏽❤️1️⃣#️⃣", "👩‍💻|👨‍👩‍👧|🇨🇿|🇩🇪|👍🏽|❤️|1️⃣|#️⃣"),
    ("en", "cafe\u0301s", "cafe\u0301s"),
    ("en", "inter\u00adnational", "international"),
    ("fr", "L’été, j'ai dit qu'aujourd'hui", "L’|été|,|j'|ai|dit|qu'|aujourd'hui"),
    ("it", "dell'arte, un po' d'aria", "dell'|arte|,|un|po'|d'|aria"),
    ("ca", "l'escola i el col·legi", "l'|escola|i|el|col·legi"),
    ("nl", "'s avonds auto's", "'s|avonds|auto's"),
    ("cs", "3.května, tzv. Dr. Novák", "3|.|května|,|tzv.|Dr.|Novák"),
    ("de", "z. B. bzw. u.a. Straße", "z.|B.|bzw.|u.a.|Straße"),
    ("es", "EE.UU. y Vd. también", "EE.UU.|y|Vd.|también"),
    ("pl", "m.in. ul. Długa", "m.in.|ul.|Długa"),
    ("sv", "EU:s t.ex. så", "EU:s|t.ex.|så"),
    ("uk", "м'ята й м’ята", "м'ята|й|м’ята"),
    ("uz", "O‘zbekiston oʻzi", "O‘zbekiston|oʻzi"),
    ("el", "Τι κάνεις; Καλά.", "Τι|κάνεις|;|Καλά|."),
    ("hy", "Ինչպե՞ս եք։", "Ինչպե՞ս|եք|։"),
    ("ka", "გამარჯობა, მსოფლიო!", "გამარჯობა|,|მსოფლიო|!"),
    ("he", 'צה"ל וצה״ל אמרו "שלום".', 'צה"ל|וצה״ל|אמרו|"|שלום|"|.'),
    ("ar", "كيف حالك؟ د. محمد", "كيف|حالك|؟|د.|محمد"),
    ("fa", "می‌روم، خانه‌ها.", "می‌روم|،|خانه‌ها|."),
    ("ur", "یہ ایک کتاب ہے۔", "یہ|ایک|کتاب|ہے|۔"),
    ("hi", "डॉ. शर्मा की किताबें।", "डॉ.|शर्मा|की|किताबें|।"),
    ("ta", "தமிழ் மொழி", "தமிழ்|மொழி"),
    ("am", "ሰላም፡ዓለም፡፡ እንዴት ነህ፧", "ሰላም|፡|ዓለም|፡፡|እንዴት|ነህ|፧"),
    ("ko", "한국어를 배웁니다.", "한국어를|배웁니다|."),
    ("zh", "我来到北京清华大学2024年iPhone手机。", "我|来到|北京|清华大学|2024|年|iPhone|手机|。"),
    ("zh-Hant", "我們來到臺灣大學。", "我們|來到|臺灣大學|。"),
    ("ja", "東京タワーへ行きました！", "東京|タワー|へ|行き|まし|た|！"),
    ("th", "ภาษาไทยเป็นภาษาที่มีคนพูด 60 ล้านคน", "ภาษา|ไทย|เป็น|ภาษา|ที่|มี|คน|พูด|60|ล้าน|คน"),
    ("lo", "ພາສາລາວເປັນພາສາ", "ພາສາ|ລາວ|ເປັນ|ພາສາ"),
    ("km", "ភាសាខ្មែរគឺជាភាសា។", "ភាសាខ្មែរ|គឺជា|ភាសា|។"),
    ("my", "စကားသည်မြန်မာနိုင်ငံ၏", "စကား|သည်|မြန်မာနိုင်ငံ|၏"),
    ("", "北京大学", "北|京|大|学"),
    ("", "東京タワーへ", "東|京|タワー|へ"),
    ("", "ភាសាខ្មែរ", "ភា|សា|ខ្មែ|រ"),
    ("", "မြန်မာစကားသည်", "မြန်|မာ|စ|ကား|သည်"),
    ("", "བོད་ཡིག་གི།", "བོད་|ཡིག་|གི|།"),
    ("", "ꦱꦧꦼꦤ꧀ꦲꦸꦩꦠ꧀ꦩꦤꦸꦁꦱ", "ꦱ|ꦧꦼ|ꦤ꧀ꦲꦸ|ꦩ|ꦠ꧀ꦩ|ꦤꦸꦁ|ꦱ"),
    ("", "ꉻꏑꇩ", "ꉻ|ꏑ|ꇩ"),
]


@pytest.mark.parametrize(("language", "text", "expected"), EXPECTED)
def test_tokens_follow_the_conventions_of_the_language(language: str, text: str, expected: str) -> None:
    assert "|".join(tokens(text, language)) == expected


def test_abbreviations_and_initials_keep_their_dots_and_words_do_not() -> None:
    found = tokens("Dr. Jones of the U.S.A., e.g. J. R. Smith, Ph.D., and so do I. No.", "en")
    assert {"Dr.", "U.S.A.", "e.g.", "J.", "R.", "Ph.D."} <= set(found)
    assert found[-5:] == ["do", "I", ".", "No", "."]


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=texts)
def test_the_tokens_joined_are_the_text_without_its_spaces(language: str, text: str) -> None:
    found = tokens(text, language)
    assert "".join(found) == "".join(clean(text).split())
    assert all(found)


@given(texts)
@example("a\u200cb \u200dc\u200d")
def test_a_clean_text_has_lost_spaces_controls_layout_and_stray_joiners(text: str) -> None:
    def seen(text: str) -> list[str]:
        return [
            char
            for char in text
            if not char.isspace()
            and unicodedata.category(char) != "Cc"
            and char not in LAYOUT + "\u200c\u200d"
        ]

    assert seen(clean(text)) == seen(text)
    assert not set(clean(text)) & set(LAYOUT)
    assert clean("می\u200cروم 👩\u200d💻") == "می\u200cروم 👩\u200d💻"


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=texts)
@example(text="葛\U000e0100城 か\u3099 กั\u0301 l'\u0301a e.g.\u0301 ...\u0301 #\u0301a")
def test_no_mark_is_parted_from_its_base(language: str, text: str) -> None:
    text, place = clean(text), 0
    for token in tokens(text, language):
        place = text.index(token, place)
        if unicodedata.category(token[0])[0] == "M" and ord(token[0]) < 0x10000:
            assert place == 0 or text[place - 1].isspace()
        place += len(token)


UNITS = "a a. a- a' a@ a.b@ 1, http:// http://( (a . ! \" \u0301 👩\u200d 我 ก"


@pytest.mark.parametrize(
    ("language", "unit"),
    [*product(("en", "it"), UNITS.split()), ("ja", "あ"), ("th", "ก"), ("zh", "我")],
)
def test_time_is_linear_in_any_text(language: str, unit: str) -> None:
    # Were it to grow with the square of the length, the test would take too long and be stopped.
    text = "http://a" + unit * (200_000 // len(unit)) + " " * 200_000
    assert "".join(tokens(text, language)) == clean(text).strip()


@pytest.mark.parametrize("language", SEGMENTERS)
def test_without_a_library_there_is_a_rule(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "segmenter", lambda _: None)
    without = tokeniser.__wrapped__(language)
    assert without("北京") == ["北", "京"]
    assert without("ภาษาไทย") == ["ภา", "ษา", "ไท", "ย"]
    assert without("ພາສາ") == ["ພາ", "ສາ"]


@pytest.mark.parametrize(("language", "rows"), SEGMENTERS.items())
def test_every_segmenter_finds_words_of_more_than_one_character(
    language: str, rows: tuple[Segmenter, ...]
) -> None:
    sample = SAMPLES[language]
    for row in rows:
        cut = list(row.make()(sample))
        assert "".join(cut) == sample
        assert 1 < len(cut) < len(sample)
