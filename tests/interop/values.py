"""Random JSON values, and random spellings of them.

Values are what ``json.loads`` makes of a text, with two additions: a float may carry
the token that it was read from, and an object may be a list of members (``Members``), so
that it can name a key twice. ``spell`` writes a value as an odd but valid text.
"""

from __future__ import annotations

import json
import math
import random
import struct
from decimal import Decimal, getcontext
from typing import Any

getcontext().prec = 1100  # exact for any double, and for the middle of any two

MAX_INT_DIGITS = 4300


class Token(float):
    """A float that remembers how it was spelled."""

    text: str

    def __new__(cls, text: str) -> Token:
        assert any(mark in text for mark in ".eE"), text
        made = super().__new__(cls, text)
        made.text = text
        return made


class Members(list[tuple[str, Any]]):
    """The members of an object, in the order in which they are to be written."""


# Code points where classes of characters begin and end, and what sorts differently by UTF-16.
EDGES = [
    0x00, 0x01, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x1F, 0x20, 0x22, 0x26, 0x27, 0x2F,
    0x3C, 0x5B, 0x5C, 0x5D, 0x7B, 0x7D, 0x7E, 0x7F, 0x80, 0x9F, 0xA0, 0xAD, 0xE9, 0xFF, 0x100,
    0x301, 0x7FF, 0x800, 0x0FFF, 0x1000, 0x200B, 0x200D, 0x2028, 0x2029, 0x202E, 0x2603, 0xCFFF,
    0xD000, 0xD7FF, 0xE000, 0xFB33, 0xFDD0, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x1D11E,
    0x1F600, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFF,
]  # fmt: skip
SURROGATES = [0xD800, 0xD801, 0xD83D, 0xDBFF, 0xDC00, 0xDE00, 0xDFFF]
# Short words, some of which are prefixes of others.
WORDS = [
    "",
    "a",
    "b",
    "aa",
    "ab",
    "A",
    "_",
    "0",
    "1",
    "10",
    "2",
    "id",
    "kind",
    "payload",
    "é",
    "e\u0301",
    "名",
    "ﬀ",
]


def character(rng: random.Random, surrogates: bool) -> str:
    """A character, mostly of an edge."""
    dice = rng.random()
    if dice < 0.45:
        return chr(rng.randrange(0x20, 0x7F))
    if dice < 0.85:
        return chr(rng.choice(EDGES))
    if dice < 0.92 and surrogates:
        return chr(rng.choice(SURROGATES))
    point = rng.randrange(0x110000)
    return chr(point) if not 0xD800 <= point <= 0xDFFF else "\ufffd"


def text(rng: random.Random, surrogates: bool = True) -> str:
    """A string; halves of a pair that came together by chance count as the pair."""
    if rng.random() < 0.4:
        return rng.choice(WORDS)
    length = (
        rng.choice([0, 1, 1, 2, 3, 5, 8, 13]) if rng.random() < 0.99 else rng.randrange(100, 400)
    )
    return joined("".join(character(rng, surrogates) for _ in range(length)))


def joined(string: str) -> str:
    """The string with surrogate pairs as the one character they mean, as JSON readers see them."""
    return string.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def has_surrogate(string: str) -> bool:
    """Whether a string has no UTF-8 form."""
    return any("\ud800" <= char <= "\udfff" for char in string)


def digits(rng: random.Random, count: int) -> str:
    """Decimal digits without a leading zero."""
    first = rng.choice("123456789")
    return first + "".join(rng.choices("0123456789", k=count - 1)) if count else ""


def integer(rng: random.Random) -> int:
    """An integer: small, at a power of two or ten, or of many digits."""
    dice = rng.random()
    if dice < 0.4:
        value = rng.randrange(-20, 1000)
    elif dice < 0.7:
        value = 2 ** rng.choice(
            [7, 8, 15, 16, 31, 32, 52, 53, 54, 62, 63, 64, 65, 127, 128, 1024]
        ) + rng.randrange(-2, 3)
    elif dice < 0.85:
        value = 10 ** rng.choice([15, 16, 17, 18, 19, 20, 21, 22, 23, 308, 309]) + rng.randrange(
            -2, 3
        )
    elif dice < 0.992:
        value = int(digits(rng, rng.randrange(1, 60)))
    else:
        value = int(digits(rng, rng.choice([MAX_INT_DIGITS - 1, MAX_INT_DIGITS])))
    return -value if rng.random() < 0.3 else value


def bits(rng: random.Random) -> float:
    """A finite double of random bits."""
    while True:
        value: float = struct.unpack("<d", rng.randbytes(8))[0]
        if math.isfinite(value):
            return value


def near(rng: random.Random, value: float, reach: int = 3) -> float:
    """A double at most ``reach`` steps from another."""
    for _ in range(rng.randrange(reach + 1)):
        value = math.nextafter(value, rng.choice([math.inf, -math.inf]))
    return value


# Where printed forms change, where exactness ends, and numbers that readers are known to get wrong.
LANDMARKS = [
    0.0, 5e-324, 1e-323, 2.2250738585072009e-308, 2.2250738585072011e-308, 2.2250738585072014e-308,
    1.7976931348623157e308, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.1, 0.3, 1.0, 1e15, 1e16, 1e17, 1e20,
    1e21, 1e22, 1e23, 2.0**53, 2.0**53 + 2, 2.0**63, 2.0**64, 2.0**1023, 9.5367431640625e-07,
    123456789012345680.0, 9007199254740993.0, 6.9294956446009195e15, 5.764607523034235e17, 8.41e21,
    2e-44, 4.35, 1.0e10, 6.631236846766476e-316,
    3.2378839133029012895883524125015321748630094446495e-319, 7.2057594037927933e16,
]  # fmt: skip


def finite_float(rng: random.Random) -> float:
    """A finite double of any class."""
    dice = rng.random()
    if dice < 0.3:
        value = bits(rng)
    elif dice < 0.5:
        value = near(rng, rng.choice(LANDMARKS))
    elif dice < 0.6:
        value = near(rng, float(f"1e{rng.randrange(-323, 309)}"))
    elif dice < 0.7:
        value = near(rng, 2.0 ** rng.randrange(-1074, 1024))
    elif dice < 0.78:
        value = rng.randrange(1, 1 << rng.randrange(1, 52)) * 5e-324
    elif dice < 0.9:
        value = rng.randrange(-(10**6), 10**6) / 10 ** rng.randrange(7)
    else:
        value = float(rng.randrange(10 ** rng.randrange(1, 23)))
    if not math.isfinite(value):
        value = 1.7976931348623157e308
    return -value if rng.random() < 0.25 else value


def halfway(rng: random.Random) -> str:
    """The exact decimal between two neighbouring doubles, or a hair beside it."""
    low = abs(finite_float(rng))
    if rng.random() < 0.5:  # mostly of an exponent that keeps the text short
        low = near(rng, rng.choice([1.0, 0.1, 123.456, 2.0**53, 2.0**60, 1e22, 1e-5, 1e16]))
    high = math.nextafter(low, math.inf)
    if math.isinf(high):
        middle = Decimal(low) + Decimal(2) ** 970  # from here on a double is infinite
    else:
        middle = (Decimal(low) + Decimal(high)) / 2
    number = f"{middle:f}" if rng.random() < 0.5 else f"{middle:e}"
    mantissa, mark, exponent = number.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    dice = rng.random()
    if dice < 0.3:
        mantissa += "0" * rng.randrange(40) + "1"
    elif dice < 0.5:
        mantissa = mantissa.rstrip("0")
        if mantissa[-1] == ".":
            mantissa += "0"
        else:
            mantissa = mantissa[:-1] + chr(ord(mantissa[-1]) - 1) + "9" * rng.randrange(1, 30)
    elif dice < 0.6:
        cut = rng.randrange(2, 22)  # digits that stop short of deciding
        if "." in mantissa[:cut] and mantissa[:cut][-1] != ".":
            mantissa = mantissa[:cut]
    return mantissa + mark + exponent


def decimal(rng: random.Random) -> str:
    """A random token with a point or an exponent, of any size."""
    whole = digits(rng, rng.choice([0, 1, 1, 2, 5, 17, 25])) or "0"
    fraction = "".join(rng.choices("0123456789", k=rng.choice([0, 1, 2, 5, 16, 17, 18, 40])))
    scale = ""
    if not fraction or rng.random() < 0.6:
        reach = rng.choice([3, 25, 340, 340, 10**6, 10**25])
        scale = rng.choice("eE") + rng.choice(["", "+", "-"])
        scale += "0" * rng.choice([0, 0, 0, 1, 5]) + str(rng.randrange(reach))
    if rng.random() < 0.05:
        whole, fraction = "0", "0" * len(fraction)
    return whole + ("." + fraction if fraction else "") + scale


def float_token(rng: random.Random, value: float) -> str:
    """One of many spellings of a finite double."""
    form = rng.randrange(8)
    if form == 0:
        token = f"{value:.17g}"
    elif form == 1:
        token = f"{value:.{rng.choice([16, 17, 20, 40])}e}"
    elif form == 2:
        token = f"{Decimal(value):f}"  # exact, up to 1,075 characters
        token = token if len(token) < 400 or rng.random() < 0.05 else repr(value)
    elif form == 3:
        token = f"{Decimal(value):e}"
        token = token if len(token) < 400 or rng.random() < 0.05 else repr(value)
    elif form == 4:
        token = shifted(rng, repr(value))
    else:
        token = repr(value)
    if not any(mark in token for mark in ".eE"):
        token += rng.choice([".0", "e0", "E+00", ".000", "e-0"])
    if rng.random() < 0.3:
        token = token.replace("e", "E")
    return token


def shifted(rng: random.Random, token: str) -> str:
    """The same number with its point moved and its exponent set right, and zeros added."""
    sign, exponent_digits = Decimal(token).as_tuple()[0], Decimal(token).as_tuple()
    number = "".join(map(str, exponent_digits.digits)) + "0" * rng.randrange(4)
    exponent = int(exponent_digits.exponent) - (len(number) - len(exponent_digits.digits))
    at = rng.randrange(1, len(number) + 1)
    exponent += len(number) - at
    whole, fraction = number[:at], number[at:]
    if number[0] == "0":
        whole, fraction = "0", number[1:]
    mark = rng.choice(["e", "E"]) + ("-" if exponent < 0 else rng.choice(["", "+"]))
    mark += "0" * rng.randrange(3) + str(abs(exponent))
    return ("-" if sign else "") + whole + ("." + fraction if fraction else "") + mark


def number(rng: random.Random) -> Any:
    """An integer, a float, or a float with its token; finite."""
    dice = rng.random()
    if dice < 0.3:
        return integer(rng)
    if dice < 0.65:
        value = finite_float(rng)
        return Token(float_token(rng, value))
    token = halfway(rng) if dice < 0.8 else decimal(rng)
    if rng.random() < 0.2:
        token = "-" + token
    made = Token(token)
    return made if math.isfinite(made) else finite_float(rng)


def scalar(rng: random.Random, surrogates: bool = True) -> Any:
    """A value that holds no other."""
    dice = rng.random()
    if dice < 0.4:
        return number(rng)
    if dice < 0.8:
        return text(rng, surrogates)
    return rng.choice([None, True, False, {}, [], "", 0, -0.0])


def value(rng: random.Random, depth: int = 3, surrogates: bool = True) -> Any:
    """Any value, a few levels deep."""
    dice = rng.random()
    if depth == 0 or dice < 0.4:
        return scalar(rng, surrogates)
    size = rng.choice([0, 1, 1, 2, 3, 4])
    if dice < 0.6:
        return [value(rng, depth - 1, surrogates) for _ in range(size)]
    return {text(rng, surrogates): value(rng, depth - 1, surrogates) for _ in range(size)}


def deep(rng: random.Random, levels: int) -> Any:
    """Containers in one another, exactly so many levels of them."""
    if levels == 0:
        return text(rng)
    made: Any = [number(rng)] if rng.random() < 0.7 else rng.choice([[], {}])
    for _ in range(levels - 1):
        made = [made] if rng.random() < 0.5 else {rng.choice(WORDS): made}
    return made


def payload(rng: random.Random) -> dict[str, Any]:
    """A payload: an object of any shape that both programs take."""
    dice = rng.random()
    if dice < 0.1:
        return {}
    if dice < 0.16:
        return {
            "deep": deep(rng, rng.choice([1, 10, 100, 124, 125]))
        }  # 126 with the payload itself
    if dice < 0.2:
        return {text(rng): scalar(rng) for _ in range(rng.randrange(60, 200))}
    return {text(rng): value(rng) for _ in range(rng.randrange(1, 5))}


def plain(made: Any) -> Any:
    """The value without tokens: what a reader sees."""
    if isinstance(made, Token):
        return float(made)
    if isinstance(made, list):
        return [plain(item) for item in made]
    if isinstance(made, dict):
        return {key: plain(item) for key, item in made.items()}
    return made


# White space ---------------------------------------------------------------

SPACES = ["", "", "", "", "", " ", "  ", "\t", " \t "]
BREAKS = [*SPACES, "\n", "\r\n", "\r"]
SHORT = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", '"': '"', "\\": "\\", "/": "/"}


class Speller:
    """Writes values as odd but valid texts, in which raw surrogates never stand."""

    def __init__(self, rng: random.Random, breaks: bool = True) -> None:
        self.rng = rng
        tidy = rng.random() < 0.3
        self.spaces = [""] if tidy else BREAKS if breaks else SPACES
        self.escapes = rng.choice([0.0, 0.05, 0.5])
        self.shuffle = rng.random() < 0.7

    def __call__(self, made: Any) -> str:
        return self.space() + self.value(made) + self.space()

    def space(self) -> str:
        return self.rng.choice(self.spaces)

    def value(self, made: Any) -> str:
        if isinstance(made, Token):
            return made.text
        if isinstance(made, str):
            return self.string(made)
        if isinstance(made, dict | Members):
            members = list(made.items()) if isinstance(made, dict) else list(made)
            if self.shuffle:
                self.rng.shuffle(members)
            parts = [
                f"{self.space()}{self.string(key)}{self.space()}:{self.space()}{self.value(item)}{self.space()}"
                for key, item in members
            ]
            return "{" + (",".join(parts) or self.space()) + "}"
        if isinstance(made, list):
            items = [self.space() + self.value(item) + self.space() for item in made]
            return "[" + (",".join(items) or self.space()) + "]"
        if isinstance(made, float):
            return float_token(self.rng, made)
        if made == 0 and made is not False and made is not None and self.rng.random() < 0.3:
            return "-0"
        return json.dumps(made)

    def string(self, string: str) -> str:
        if self.escapes == 0.0 and string.isascii() and string.isprintable():
            return '"' + string.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return '"' + "".join(map(self.char, string)) + '"'

    def char(self, char: str) -> str:
        must = char < " " or char in '"\\' or "\ud800" <= char <= "\udfff"
        if not must and self.rng.random() >= self.escapes:
            return char
        if char in SHORT and self.rng.random() < 0.5:
            return "\\" + SHORT[char]
        units = char.encode("utf-16-be", "surrogatepass")
        form = "\\u%04x" if self.rng.random() < 0.5 else "\\u%04X"
        return "".join(
            form % int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)
        )


def canonical(made: Any) -> str:
    """CPython's ``ascii`` text of a value."""
    return json.dumps(plain(made), sort_keys=True, separators=(",", ":"))
