"""Declared character encodings, by the order of evidence of the HTML and Encoding standards."""

from __future__ import annotations

import re

PRESCAN_BYTES = 1024  # the HTML standard's limit for finding <meta charset>
LATE_META_BYTES = 16_384  # a parser meets later declarations too, and then starts again; so do we
FALLBACK = "windows-1252"  # the standard's, for bytes that say nothing

# WHATWG name -> Python codec and the labels that mean it, beside the name itself.
_ENCODINGS = {
    "utf-8": ("utf-8", "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8"),
    "ibm866": ("cp866", "866 cp866 csibm866"),
    "iso-8859-2": (
        "iso8859_2",
        "csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    ),
    "iso-8859-3": (
        "iso8859_3",
        "csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    ),
    "iso-8859-4": (
        "iso8859_4",
        "csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    ),
    "iso-8859-5": (
        "iso8859_5",
        "csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    ),
    "iso-8859-6": (
        "iso8859_6",
        "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i "
        "iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    ),
    "iso-8859-7": (
        "iso8859_7",
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
        "iso_8859-7:1987 sun_eu_greek",
    ),
    "iso-8859-8": (
        "iso8859_8",
        "csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
        "iso_8859-8:1988 visual",
    ),
    "iso-8859-8-i": ("iso8859_8", "csiso88598i logical"),
    "iso-8859-10": ("iso8859_10", "csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6"),
    "iso-8859-13": ("iso8859_13", "iso8859-13 iso885913"),
    "iso-8859-14": ("iso8859_14", "iso8859-14 iso885914"),
    "iso-8859-15": ("iso8859_15", "csisolatin9 iso8859-15 iso885915 iso_8859-15 l9"),
    "iso-8859-16": ("iso8859_16", ""),
    "koi8-r": ("koi8_r", "cskoi8r koi koi8 koi8_r"),
    "koi8-u": ("koi8_u", "koi8-ru"),
    "macintosh": ("mac_roman", "csmacintosh mac x-mac-roman"),
    "windows-874": ("cp874", "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620"),
    "windows-1250": ("cp1250", "cp1250 x-cp1250"),
    "windows-1251": ("cp1251", "cp1251 x-cp1251"),
    "windows-1252": (
        "cp1252",
        "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
        "iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252",
    ),
    "windows-1253": ("cp1253", "cp1253 x-cp1253"),
    "windows-1254": (
        "cp1254",
        "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 "
        "l5 latin5 x-cp1254",
    ),
    "windows-1255": ("cp1255", "cp1255 x-cp1255"),
    "windows-1256": ("cp1256", "cp1256 x-cp1256"),
    "windows-1257": ("cp1257", "cp1257 x-cp1257"),
    "windows-1258": ("cp1258", "cp1258 x-cp1258"),
    "x-mac-cyrillic": ("mac_cyrillic", "x-mac-ukrainian"),
    "gbk": (
        "gb18030",
        "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk",
    ),
    "gb18030": ("gb18030", ""),
    "big5": ("big5hkscs", "big5-hkscs cn-big5 csbig5 x-x-big5"),
    "euc-jp": ("euc_jis_2004", "cseucpkdfmtjapanese x-euc-jp"),  # the plain codec lacks ① and its row
    "iso-2022-jp": ("iso2022_jp_ext", "csiso2022jp"),
    "shift_jis": ("cp932", "csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis"),
    "euc-kr": (
        "cp949",
        "cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949",
    ),
    "utf-16be": ("utf-16-be", "unicodefffe"),
    "utf-16le": ("utf-16-le", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16"),
    # Encodings by which scripts were once smuggled past filters: browsers show one U+FFFD, and so we do.
    "replacement": ("", "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr"),
    "x-user-defined": ("cp1252", ""),
}
CODECS = {name: codec for name, (codec, _) in _ENCODINGS.items()}
MULTIBYTE = frozenset({"gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr"})
# Characters for which Python's tables have others than the standard's.
_STANDARD = {
    "koi8-u": str.maketrans("╝╬", "ўЎ"),  # the letter that Belarusian needs
    "euc-jp": str.maketrans("〜−‖¢£¬", "～－∥￠￡￢"),
}
_NAMES = {label: name for name, (_, labels) in _ENCODINGS.items() for label in [name, *labels.split()]}

_MARKUP = re.compile(rb"<(?:(!--)|(meta(?=[\t\n\f\r /]))|(/?[a-z])[^\t\n\f\r >]*|[!/?])", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /]*+ (?: > | ([^\t\n\f\r />][^\t\n\f\r />=]*+)
         (?: [\t\n\f\r ]*+=[\t\n\f\r ]*+
             (?: "([^"]*)" | '([^']*)' | ([^"'\t\n\f\r >][^\t\n\f\r >]*+)(?=[\t\n\f\r >]) | (?=>) )
           | (?=[\t\n\f\r />]) ) )""",
    re.VERBOSE,
)
_CHARSET_IN_TEXT = re.compile(
    r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^"'\s;][^\s;]*))""", re.IGNORECASE | re.ASCII
)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*(?:"([^">]*)"|'([^'>]*)')[^>]*>""")


def named(label: str) -> str | None:
    """Return the encoding that a label stands for, by the Encoding standard's table.

    >>> named(" Latin1 ")
    'windows-1252'
    """
    return _NAMES.get(label.strip("\t\n\f\r ").lower())


def label_in(content_type: str) -> str:
    """Return the charset label inside a Content-Type, as written, or "".

    >>> label_in('text/html; charset="UTF-8"')
    'UTF-8'
    """
    found = _CHARSET_IN_TEXT.search(content_type)
    return next((group for group in found.groups() if group), "").strip() if found else ""


def of_byte_order_mark(body: bytes) -> str | None:
    """Return the encoding of a byte order mark, or None."""
    if body.startswith(b"\xef\xbb\xbf"):
        return "utf-8"
    if body.startswith(b"\xff\xfe"):
        return "utf-16le"
    return "utf-16be" if body.startswith(b"\xfe\xff") else None


def declared_inside(body: bytes) -> str:
    """Return the label with which the page itself declares its encoding, or ""."""
    head = body[:PRESCAN_BYTES]
    if head.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if head.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    label = _prescan(head) or _xml_encoding(head)
    if not label and len(body) > PRESCAN_BYTES:
        label = _prescan(body[:LATE_META_BYTES])
    return label


def meant_inside(label: str) -> str | None:
    """Return the encoding of a label found inside a page; the page was readable as ASCII."""
    name = named(label)
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def decoded(body: bytes, name: str) -> str:
    """Decode bytes as the Encoding standard does; invalid sequences become U+FFFD."""
    text = body.decode(CODECS[name], "replace")
    return text.translate(_STANDARD[name]) if name in _STANDARD else text


def _prescan(head: bytes) -> str:
    """Return the label of the first <meta> that declares a known encoding, or ""; stop at an unfinished tag."""
    position = 0
    while found := _MARKUP.search(head, position):
        comment, meta, tag = found.groups()
        position = found.end()
        if comment:
            end = head.find(b"-->", found.start() + 2)
            position = end + 3 if end >= 0 else len(head)
        elif meta or tag:
            attributes, position = _attributes(head, position)
            label = _label_of(attributes) if meta else ""
            if label:
                return label
        else:
            position = (head.find(b">", position) + 1) or len(head)
    return ""


def _attributes(head: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes from a place inside a tag, and the end of the tag; none if it is unfinished."""
    attributes: dict[bytes, bytes] = {}
    while found := _ATTRIBUTE.match(head, position):
        position = found.end()
        name, *values = found.groups()
        if name is None:
            return attributes, position
        attributes.setdefault(name.lower(), next((v for v in values if v), b""))
    return {}, len(head)


def _label_of(attributes: dict[bytes, bytes]) -> str:
    """Return the label of a known encoding that a <meta> with these attributes declares, or ""."""
    if b"charset" in attributes:
        label = attributes[b"charset"].decode("latin-1")
    elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
        label = label_in(attributes.get(b"content", b"").decode("latin-1"))
    else:
        return ""
    return label.strip() if named(label) else ""


def _xml_encoding(head: bytes) -> str:
    found = _XML_ENCODING.match(head)
    label = (found[1] or found[2] or b"").decode("latin-1") if found else ""
    return label if named(label) else ""
