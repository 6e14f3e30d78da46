"""Typed tables of a TOML file: sections of settings, sizes and durations, and messages that name the fix.

A section is a frozen struct. The annotation of each field holds its type, its range, its unit and its description,
and the field its default, so that each of them is written once. Sizes and durations may be written as numbers or
as strings ("20GB", "2h").
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, inspect

from thresher.errors import UsageError

BYTES, SECONDS = "bytes", "seconds"
Size = Annotated[int, Meta(ge=0, extra={"unit": BYTES})]
LONGEST_SECONDS = 31_536_000.0  # a year: a longer time is a slip, and may overflow a timer
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_SECONDS, extra={"unit": SECONDS})]
Count = Annotated[int, Meta(ge=0)]


def about(description: str, **bounds: Any) -> Meta:
    """Return the annotation of a field: its description, and its range as gt, ge, lt or le."""
    return Meta(description=description, **bounds)


_BYTES_PER_UNIT = {
    **{"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    **{"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40},
}
_SECONDS_PER_UNIT = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
# Units that sizes and durations are written with, the first that gives at most one decimal place.
_SIZE_UNITS = ("TB", "GB", "MB", "kB", "TiB", "GiB", "MiB", "KiB")
_DURATION_UNITS = ("d", "h", "m")


MOST = 10**18  # sums and products with positions still fit into 64 bits
SHOWN_VALUE = 200  # characters of a value that cannot be used
MAX_TOML_BYTES = 1 << 20
# The time that tomllib takes for a key is quadratic in the number of its parts.
_MANY_PARTS = re.compile(
    r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')(?:[ \t]*+\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')){100}"""
)


class Section(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table of settings: unknown names are refused, defaults are not written."""


S = TypeVar("S", bound=Section)


class Setting(Struct, frozen=True):
    """One setting, as messages and the reference describe it."""

    name: str
    default: Any
    kind: inspect.Type
    unit: str  # bytes, seconds or ""
    description: str

    @property
    def section(self) -> type[Section] | None:
        """The section that is the value; None of a setting proper."""
        kind = self.kind
        if isinstance(kind, inspect.StructType) and issubclass(kind.cls, Section):
            return kind.cls
        return None

    @property
    def values(self) -> str:
        """The values that the setting takes, for example "a number of at least 0"."""
        return _values(self.kind, self.unit)


@cache
def settings_of(section: type[Section]) -> dict[str, Setting]:
    """Return the settings of a section by name, in the order of the fields."""
    found = inspect.type_info(section)
    assert isinstance(found, inspect.StructType)
    return {field.name: _setting(field) for field in found.fields}


def _setting(field: inspect.Field) -> Setting:
    kind, unit, description = field.type, "", ""
    if isinstance(kind, inspect.Metadata):
        unit = (kind.extra or {}).get("unit", "")
        description = (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return Setting(field.name, default, kind, unit, description)


def _values(kind: inspect.Type, unit: str = "") -> str:
    match kind:
        case inspect.Metadata():
            return _values(kind.type, (kind.extra or {}).get("unit", ""))
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return "one of " + ", ".join(map(toml, kind.values))
        case inspect.VarTupleType() | inspect.ListType():
            items = {inspect.StrType: "strings", inspect.IntType: "whole numbers"}
            return f"a list of {items.get(type(kind.item_type), 'tables')}"
        case inspect.StructType():
            return "a table"
        case inspect.DictType():
            return "a table of names and numbers"
        case inspect.IntType() | inspect.FloatType():
            noun = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
            if unit:
                noun = "a size in bytes" if unit == BYTES else "a duration in seconds"
            return noun + _range(kind, unit)
        case _:
            return "a string"


def _range(kind: inspect.IntType | inspect.FloatType, unit: str) -> str:
    most = None if kind.le is None else readable(kind.le, unit) if unit else f"{kind.le:g}"
    if kind.ge is not None and most is not None:
        return f" from {kind.ge:g} to {most}"
    if kind.gt is not None:
        return f" above {kind.gt:g}" + (f" and at most {most}" if most is not None else "")
    return f" of at least {kind.ge:g}" if kind.ge is not None else ""


def tables(text: str, where: str) -> dict[str, Any]:
    """Return the tables of a TOML file; raise UsageError with its name if the text is not TOML."""
    if _MANY_PARTS.search(text):
        raise UsageError(f"{where} has a key of more than 100 parts; settings have two: repair the file")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as fault:  # ValueError: also a number of more than 4,300 digits
        raise UsageError(f"{where} is not TOML: {fault}") from None


def convert(table: Mapping[str, Any], section: type[S], where: str) -> S:
    """Return a table as a section; raise UsageError, which names the setting, its value and the fix."""
    plain = _with_plain_numbers(table, section, where, "")
    try:
        return msgspec.convert(plain, section)
    except msgspec.ValidationError as fault:
        raise UsageError(_explanation(fault, table, section, where)) from None


def _with_plain_numbers(
    table: Mapping[str, Any], section: type[Section], where: str, prefix: str
) -> dict[str, Any]:
    """Return the table with sizes and durations as numbers; raise UsageError for unknown names."""
    settings, plain = settings_of(section), dict(table)
    for name, value in table.items():
        setting = settings.get(name)
        if setting is None:
            import difflib

            near = difflib.get_close_matches(name, settings, n=1, cutoff=0.5)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"choose one of {', '.join(settings)}"
            raise UsageError(f"{where}: {prefix}{name} is not a setting; {hint}")
        if setting.section and isinstance(value, Mapping):
            plain[name] = _with_plain_numbers(value, setting.section, where, f"{name}.")
        elif setting.unit and isinstance(value, str):
            try:
                plain[name] = size(value) if setting.unit == BYTES else duration(value)
            except UsageError:
                raise UsageError(f"{where}: {refusal(prefix + name, setting, value)}") from None
        elif isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{where}: {refusal(prefix + name, setting, value)}")
        check_number(plain[name], f"{where}: {prefix}{name}")
    return plain


def check_number(value: Any, name: str) -> None:
    """Raise UsageError for a whole number that is too large for any setting or option."""
    if isinstance(value, int) and abs(value) > MOST:
        raise UsageError(f"{name} is too large: a whole number may have at most 18 digits")
    if isinstance(value, (list, tuple)):
        for each in value:
            check_number(each, name)


def _explanation(
    fault: msgspec.ValidationError, table: Mapping[str, Any], section: type[Section], where: str
) -> str:
    """Return the message for an error of msgspec, which names the path of the value that it refused."""
    message, _, path = str(fault).partition(" - at `$.")
    names = path.rstrip("`").split("[")[0].split(".") if path else []
    setting: Setting | None = None
    value: Any = table
    for name in names:
        setting = settings_of(section).get(name)
        value = value.get(name) if isinstance(value, Mapping) else None
        if setting is None or setting.section is None:
            break
        section = setting.section
    if setting is None:
        return f"{where}: {message}"
    return f"{where}: {refusal('.'.join(names[:2]), setting, value)}"


def refusal(key: str, setting: Setting, value: Any) -> str:
    """Return the message for a value that a setting does not take.

    >>> from thresher.config import PoliteSettings
    >>> refusal("polite.delay", settings_of(PoliteSettings)["delay"], "fast")
    'polite.delay must be a duration in seconds from 0 to 365d, got "fast"; for example delay = 5'
    """
    if setting.section:
        example = f"write [{setting.name}] and its settings below it"
    elif setting.name == "process":
        example = 'write [[process]] with step = "NAME" below it, once for each step'
    else:
        example = f"for example {setting.name} = {toml(readable(setting.default, setting.unit))}"
    shown = toml(value)
    if len(shown) > SHOWN_VALUE:
        shown = f"{shown[:SHOWN_VALUE]}…"
    return f"{key} must be {setting.values}, got {shown}; {example}"


def flat(section: Section, prefix: str = "") -> Iterator[tuple[str, Setting, Any]]:
    """Yield the key, the description and the value of each setting in a section and the sections in it."""
    for name, setting in settings_of(type(section)).items():
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, setting, value


def toml(value: Any) -> str:
    """Return a value as TOML: as in JSON, except for tables and one character that JSON does not escape."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_name(name)} = {toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    try:
        return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
    except ValueError:  # Python does not write whole numbers of more than 4,300 digits
        return "a number of thousands of digits"


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def size(text: str) -> int:
    """Return the bytes of a size.

    >>> size("500"), size("20k"), size("1.5GB"), size("8MiB")
    (500, 20000, 1500000000, 8388608)
    """
    found = re.fullmatch(r"([\d.]+)\s*(?:([kmgt]i?)?b?)", text.strip(), re.IGNORECASE | re.ASCII)
    try:
        if found:
            return round(float(found[1]) * _BYTES_PER_UNIT[(found[2] or "").lower()])
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"{text!r} is not a size; try 500, 20k, 1.5GB")


def duration(text: str) -> float:
    """Return the seconds of a duration.

    >>> duration("90"), duration("15m"), duration("2h"), duration("1.5d")
    (90.0, 900.0, 7200.0, 129600.0)
    """
    found = re.fullmatch(r"([\d.]+)\s*([smhd]?)", text.strip(), re.IGNORECASE | re.ASCII)
    try:
        if found and math.isfinite(time := float(found[1]) * _SECONDS_PER_UNIT[found[2].lower()]):
            return time
    except ValueError:
        pass
    raise UsageError(f"{text!r} is not a time; try 90, 15m, 2h, 1.5d")


def readable(value: Any, unit: str) -> Any:
    """Return a round size or duration as a string, a number without decimals as an integer, all others as they are.

    >>> readable(1 << 30, "bytes"), readable(3600.0, "seconds"), readable(5.0, "seconds"), readable(3, "")
    ('1GiB', '1h', 5, 3)
    """
    if unit == BYTES:
        for name in _SIZE_UNITS:
            per_unit = _BYTES_PER_UNIT[name[:-1].lower()]
            if value >= per_unit and 10 * value % per_unit == 0:
                return f"{value / per_unit:g}{name}" if value / per_unit < 1e5 else value
    if unit == SECONDS:
        for name in _DURATION_UNITS:
            if value and value % _SECONDS_PER_UNIT[name] == 0:
                return f"{value / _SECONDS_PER_UNIT[name]:.0f}{name}"
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
