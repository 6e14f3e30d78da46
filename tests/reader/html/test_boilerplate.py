"""Paragraphs of full sentences are text; menus, teasers, notices and footers are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.errors import UsageError
from thresher.reader.html.boilerplate import BoilerplateForest, BoilerplateModel, BoilerplateTrees, score
from thresher.reader.html.kernels.forest import best_cut
from thresher.reader.html.scan_page import scan

SENTENCES = {
    "cs": "Včera jsme šli s dětmi do lesa a našli jsme tam mnoho hub, které jsme pak doma uvařili k večeři. "
    "Cestou domů začalo pršet, ale nikomu to nevadilo, protože jsme měli dobré boty.",
    "tr": "Dün çocuklarla ormana gittik ve orada birçok mantar bulduk, sonra onları akşam evde pişirdik. "
    "Eve dönerken yağmur başladı, ama kimse buna aldırmadı, çünkü ayakkabılarımız iyiydi.",
    "el": "Χθες πήγαμε με τα παιδιά στο δάσος και βρήκαμε πολλά μανιτάρια, που μετά μαγειρέψαμε στο σπίτι. "
    "Στον δρόμο άρχισε να βρέχει, αλλά κανέναν δεν πείραξε, γιατί είχαμε καλά παπούτσια.",
    "zh": "昨天我们和孩子们一起去了森林,在那里找到了很多蘑菇,晚上回家以后把它们做成了晚饭。"
    "回家的路上开始下雨,但是谁也不在意,因为我们都穿着很好的鞋子,而且天气一点也不冷。",
    "ja": "昨日は子供たちと一緒に森へ行き、そこでたくさんのきのこを見つけて、夜に家で料理しました。"
    "帰り道で雨が降り始めましたが、みんな良い靴を履いていたので、誰も気にしませんでした。",
    "th": "เมื่อวานเราไปป่ากับเด็กๆ และพบเห็ดมากมาย แล้วเราก็นำกลับมาทำอาหารเย็นที่บ้าน "
    "ระหว่างทางกลับบ้านฝนเริ่มตก แต่ไม่มีใครสนใจเพราะพวกเราใส่รองเท้าที่ดี",
}
MENU = {
    "cs": ["Domů", "O nás", "Kontakt", "Ceník", "Galerie", "Aktuality"],
    "tr": ["Ana sayfa", "Hakkımızda", "İletişim", "Fiyatlar", "Galeri", "Haberler"],
    "el": ["Αρχική", "Σχετικά", "Επικοινωνία", "Τιμές", "Εικόνες", "Νέα"],
    "zh": ["首页", "关于我们", "联系方式", "价格", "图片", "新闻"],
    "ja": ["ホーム", "会社概要", "お問い合わせ", "料金", "写真", "お知らせ"],
    "th": ["หน้าแรก", "เกี่ยวกับเรา", "ติดต่อ", "ราคา", "รูปภาพ", "ข่าว"],
}


def page(language: str) -> str:
    menu = "".join(f'<li><a href="/{n}">{item}</a></li>' for n, item in enumerate(MENU[language]))
    text = "".join(f"<p>{SENTENCES[language]}</p>" for _ in range(4))
    return (
        f'<body><ul class="menu">{menu}</ul><div class="column"><h1>{MENU[language][5]}</h1>{text}</div>'
        f'<div id="footer"><a href="/c">{MENU[language][2]}</a> © 2021</div>'
    )


def scores(html: str) -> dict[str, float]:
    markup = scan(html.encode(), 1000)
    return dict(zip(markup.texts, score(markup), strict=True))


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_text_and_menus_are_not_in_any_script(language: str) -> None:
    found = scores(page(language))
    assert found[SENTENCES[language]] < 0.3
    assert all(found[item] > 0.7 for item in MENU[language][:5])
    assert found[f"{MENU[language][2]} © 2021"] > 0.8


def test_a_heading_before_good_text_is_text_and_the_same_words_in_a_sidebar_are_not() -> None:
    text = f"<p>{SENTENCES['cs']}</p>" * 4
    found = scores(
        f"<div><h2>Houby v lese</h2>{text}<h2>Cesta domů</h2>{text}</div>"
        '<div class="sidebar"><h3>Nejčtenější zprávy</h3>'
        "<ul><li><a href=1>Počasí</a><li><a href=2>Sport</a></ul></div>"
    )
    assert found["Houby v lese"] < 0.5
    assert found["Cesta domů"] < 0.5
    assert found["Nejčtenější zprávy"] > 0.5
    assert found["Sport"] > 0.5


def test_a_short_paragraph_between_good_ones_is_text() -> None:
    text = f"<p>{SENTENCES['cs']}</p>" * 3
    assert scores(f"<div>{text}<p>A bylo to tak.</p>{text}</div>")["A bylo to tak."] < 0.5


def test_a_cookie_notice_in_full_sentences_is_boilerplate() -> None:
    notice = "Tento web používá cookies. Používáním webu s tím souhlasíte."
    text = f"<p>{SENTENCES['cs']}</p>" * 5
    found = scores(f'<article>{text}</article><div class="cookie-consent"><p>{notice}</p></div>')
    assert found[notice] > 0.5


def test_a_page_about_cookies_has_text() -> None:
    text = f"<p>{SENTENCES['cs']}</p>" * 5
    assert (
        max(scores(f'<body class="cookie-bar-shown"><article class="cookies">{text}</article>').values())
        < 0.5
    )


def test_paragraphs_made_by_line_breaks_alone_are_text() -> None:
    found = scores(f"<table><tr><td>{SENTENCES['cs']}<br><br>{SENTENCES['cs'][:99]}<br><br>Konec.</table>")
    assert found[SENTENCES["cs"]] < 0.5


def test_a_page_of_links_alone_has_no_text() -> None:
    links = "".join(f'<li><a href="/{n}">Odkaz číslo {n}</a></li>' for n in range(60))
    assert min(scores(f"<nav><ul>{links}</ul></nav>").values()) > 0.5


def test_a_page_without_blocks_has_no_scores() -> None:
    assert len(score(scan(b"", 10))) == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["p", "div", "li", "h1", "nav", "td", "article", "pre"]),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
        ),
        max_size=30,
    )
)
def test_every_block_has_a_score_from_zero_to_one(parts: list[tuple[str, str]]) -> None:
    markup = scan("".join(f"<{tag}>{text}" for tag, text in parts).encode(), 1000)
    found = score(markup)
    assert len(found) == len(markup.texts)
    assert all(0.0 <= value <= 1.0 for value in found)


def test_a_model_of_other_measures_is_refused_with_the_fix() -> None:
    with pytest.raises(UsageError, match=r"of 3 and 2 measures.*train it again"):
        BoilerplateTrees(
            BoilerplateModel(
                3, 2, b"", BoilerplateForest(1, b"", b"", b""), b"", BoilerplateForest(1, b"", b"", b"")
            )
        )


def test_a_kernel_takes_only_the_types_it_was_compiled_for() -> None:
    assert best_cut(np.zeros((0, 1), np.int64), np.zeros(0), 1.0) == 0.0
    # Other types would be compiled silently, in every process.
    with pytest.raises(TypeError):
        best_cut(np.zeros((0, 1), np.int64), np.zeros(0, np.float32), 1.0)
