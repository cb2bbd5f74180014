"""Read `read:` of a table: how its source writes values, if it differs from the usual way.

Privacy: the curator declares this in the public policy. Nothing of it is guessed from the data, and
it changes each value by itself.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Literal, cast

from discreet.policy.document import Node, Reader

_KEYS = ("encoding", "decimal", "trim", "fold", "timezone")
# Python's names of them. The other codecs turn bytes into bytes, or keep a state across lines.
ENCODINGS = (
    *(
        "utf-8",
        "utf-16",
        "utf-16-le",
        "utf-16-be",
        "utf-32",
        "iso8859-1",
        "iso8859-2",
        "iso8859-5",
        "iso8859-7",
    ),
    *(
        "iso8859-9",
        "iso8859-15",
        "cp437",
        "cp850",
        "cp1250",
        "cp1251",
        "cp1252",
        "cp1253",
        "cp1254",
        "cp1255",
    ),
    *(
        "cp1256",
        "cp1257",
        "koi8-r",
        "mac-roman",
        "shift_jis",
        "cp932",
        "euc_jp",
        "euc_kr",
        "big5",
        "gbk",
        "gb18030",
    ),
)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,60}")
_DIRECTIVES = frozenset("dmYybBHIpMSfj")
_PARTS = {"a year": "Yy", "a month": "mbB", "a day": "d"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the values of one table are written.

    encoding   the encoding of its CSV files
    decimal    `comma`: numbers are written 1.234,5; `point`: 1,234.5; None: 1234.5
    trim       remove the blanks around texts; a text of blanks alone is missing
    fold       `case`: match listed values in upper or lower case
    timezone   the zone in which days and moments are kept; a moment without a zone stays unchanged
    """

    encoding: str | None = None
    decimal: Literal["comma", "point"] | None = None
    trim: bool = False
    fold: Literal["case"] | None = None
    timezone: str | None = None

    @property
    def meaning(self) -> dict[str, object]:
        """Return the fields that differ from their defaults, for the policy's digest."""
        return {name: getattr(self, name) for name in _KEYS if getattr(self, name)}


AS_IT_IS = Reading()


def reading(reader: Reader, table: str, node: Node | None) -> Reading:
    """Read `read:` of a table."""
    what = f"{table}.read"
    fields = reader.fields(node, what, ("tables", table, "read"), _KEYS)
    zone = reader.string(fields.get("timezone"), f"{what}.timezone", "a zone such as Europe/Berlin")
    if zone is not None and not _ZONE.fullmatch(zone):
        reader.wrong(fields["timezone"], f"{what}.timezone", "a zone such as Europe/Berlin")
        zone = None
    decimal = reader.word(fields.get("decimal"), f"{what}.decimal", ("comma", "point"))
    fold = reader.word(fields.get("fold"), f"{what}.fold", ("case",))
    return Reading(
        encoding=_encoding(reader, f"{what}.encoding", fields.get("encoding")),
        decimal=cast('Literal["comma", "point"] | None', decimal),
        trim=reader.flag(fields.get("trim"), f"{what}.trim") or False,
        fold=cast('Literal["case"] | None', fold),
        timezone=zone,
    )


def _encoding(reader: Reader, what: str, node: Node | None) -> str | None:
    expected = "the name of an encoding, such as latin-1, cp1252 or utf-16"
    name = reader.string(node, what, expected)
    if name is None or node is None:
        return None
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        found = ""
    if found not in ENCODINGS:
        reader.wrong(node, what, expected)
        return None
    return None if found == "utf-8" else found


def date_format(reader: Reader, what: str, kind: str, node: Node) -> str | None:
    """Read how the days or moments of a column are written: %d.%m.%Y."""
    expected = "written with %d, %m, %Y and the like, as in '%d.%m.%Y'"
    text = reader.string(node, f"{what}.format", expected)
    if text is None:
        return None
    if kind not in ("date", "timestamp"):
        reader.problem(node, f"{what}: only date and timestamp have a format. Remove it.")
        return None
    directives = re.findall(r"%-?(.?)", text)
    missing = []
    for part, letters in _PARTS.items():
        if not any(directive in letters for directive in directives):
            missing.append(part)
    if "j" in directives:  # %j, the day of the year, gives the month and the day
        missing = [part for part in missing if part == "a year"]
    if len(text) > 60 or not text.isprintable() or not _DIRECTIVES.issuperset(directives):
        reader.wrong(node, f"{what}.format", expected)
        return None
    if missing:
        reader.problem(
            node, f"{what}.format names no {missing[0].split()[-1]}: it must be {expected}."
        )
        return None
    return text
