"""Texts for the differential test: valid ones in odd spellings, broken ones, and fixed ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import values
from values import Members, Speller, Token

# A text, or bytes that are none.
Text = str | bytes


def generated(seed: str, count: int) -> Iterator[Text]:
    """Texts of every kind, in random order."""
    rng = random.Random(f"texts {seed}")
    makers: list[Callable[[random.Random], Text]] = []
    weights = []
    for maker, weight in MAKERS:
        makers.append(maker)
        weights.append(weight)
    for maker in rng.choices(makers, weights, k=count):
        yield maker(rng)


def numbers(rng: random.Random) -> str:
    """A list of numbers, mostly a short one."""
    return "[" + ",".join(number_token(rng) for _ in range(rng.randrange(1, 6))) + "]"


def number_token(rng: random.Random) -> str:
    """A number token, sometimes one too large."""
    made = values.number(rng)
    token = made.text if isinstance(made, Token) else json.dumps(made)
    return token if rng.random() < 0.995 else rng.choice(TOO_LARGE)


def strings(rng: random.Random) -> str:
    """A list of strings."""
    return Speller(rng)([values.text(rng) for _ in range(rng.randrange(1, 5))])


def mixed(rng: random.Random) -> str:
    """Any value."""
    return Speller(rng)(values.value(rng))


def objects(rng: random.Random) -> str:
    """An object of keys that are easily put in the wrong order, or named twice."""
    size = rng.randrange(2, 8) if rng.random() < 0.98 else rng.randrange(60, 200)
    members = [(values.text(rng), values.scalar(rng)) for _ in range(size)]
    if rng.random() < 0.85:
        members = list(dict(members).items())
    inner: Any = Members(members)
    if rng.random() < 0.3:
        inner = [{"a": inner}, {"a": 1}]
    return Speller(rng)(inner)


def nested(rng: random.Random) -> str:
    """Containers around the limit of nesting."""
    levels = rng.choice([2, 100, 126, 127, 128, 128, 129, 130, 200, 600])
    return Speller(rng)(values.deep(rng, levels))


def mutated(rng: random.Random) -> Text:
    """A text with a few random edits; they mostly break it."""
    made = rng.choice([numbers, strings, mixed, objects])(rng)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        made = edit(rng, made)
    if rng.random() < 0.05:
        return wrong_bytes(rng, made)
    return made


SYNTAX = '{}[]",:\\utfn0123456789.eE+-/ \t\n\r'
ODD = "\0\x01\x0b\x0c\x1f\x7f\x85\xa0\u2028\u200b\ufeff'#aNI\ud800\udc00😀"


def edit(rng: random.Random, made: str) -> str:
    """One random edit."""
    at = rng.randrange(len(made) + 1)
    until = min(len(made), at + rng.choice([1, 1, 2, 5]))
    char = rng.choice(SYNTAX if rng.random() < 0.85 else ODD)
    form = rng.randrange(6)
    if form == 0:
        return made[:at] + char + made[until:]
    if form == 1:
        return made[:at] + char + made[at:]
    if form == 2:
        return made[:at] + made[until:]
    if form == 3:
        return made[:until] + made[at:]
    if form == 4:
        return made[:at] if rng.random() < 0.5 else made[at:]
    return made[:at] + rng.choice(TOKENS) + made[until:]


def wrong_bytes(rng: random.Random, made: str) -> Text:
    """The text with bytes in it that are not UTF-8."""
    data = made.encode("utf-8", "surrogatepass")
    at = rng.randrange(len(data) + 1)
    data = data[:at] + rng.choice(WRONG_BYTES) + data[at:]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


TOKENS = [
    "{", "}", "[", "]", ",", ":", '"', '"a"', '"a":1', "null", "true", "false", "nul", "True",
    "None", "NaN", "Infinity", "-Infinity", "-NaN", "+Infinity", "inf", "nan", "0", "-0", "-",
    "--1", "+1", "01", "-01", "00", "1.", ".5", "-.5", "1.e5", "1e", "1e+", "1E-", "0x10", "1_000",
    "1e1.5", "1.5.5", "0e5", "-0e-5", "1e400", "-1e999", "1e-400", '"\\u"', '"\\u12"', '"\\u12g4"',
    '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00\\ud83d"', '"\\x41"', '"\\\'"', '"\\/"', '"\t"',
    '"\\', "'a'", "/**/", "//", "#", "\ufeff", "\xa0", "\x0b", "\x0c", "\0", "\x1e", "\u2028", " ",
    "\n", "\r\n", '{"a":1,"a":2}', '{"a":1,}', "[1,]", "[,1]", "{,}", "{1:2}", '{"a" 1}',
    '"\\u0061"', "١", "1١", "１", '"\\u００４１"',
]  # fmt: skip
TOO_LARGE = [
    "1e309",
    "-1.7976931348623159e308",
    "1e99999999999999999999",
    "1" * 4301,
    "-" + "9" * 4301,
    "NaN",
]
WRONG_BYTES = [
    b"\x80", b"\xff", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xed\xb0\x80",
    b"\xc3", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82",
    b"\xfe", b"\xef\xbb",
]  # fmt: skip


def garbage(rng: random.Random) -> str:
    """Tokens in any order."""
    return "".join(rng.choices(TOKENS, k=rng.randrange(1, 7)))


MAKERS: list[tuple[Callable[[random.Random], Text], float]] = [
    (numbers, 30),
    (strings, 12),
    (mixed, 18),
    (objects, 12),
    (nested, 0.7),
    (mutated, 22),
    (garbage, 6),
]


# Fixed texts ----------------------------------------------------------------


def fixed_texts() -> list[Text]:
    """Cases that are worth never missing, those of past differences among them."""
    texts: list[Text] = [*TOKENS, *TOO_LARGE]
    texts += ["[" + token + "]" for token in TOKENS] + ["[" + token + "]" for token in TOO_LARGE]
    texts += [b'"' + wrong + b'"' for wrong in WRONG_BYTES]
    texts += [
        "",
        " ",
        "\ufeff1",
        " \ufeff1",
        "1 2",
        "1\x00",
        "[1]\x00",
        "\xa01",
        '"\ud800"',
        '["\ud83d\ude00"]',
    ]
    # Nesting: the last level that is read, the first that is not, and what must not overflow.
    for levels in (127, 128, 129, 130, 5000, 100_000):
        texts += ["[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels]
        texts.append("[" * levels + "]" * (levels - 1))
    texts.append("[" * 129 + "1," + "]" * 129)
    # Digits.
    for digits in (4299, 4300, 4301):
        texts += [
            "9" * digits,
            "-" + "9" * digits,
            "9" * digits + ".0",
            "[" + "1" * digits + "e-4000]",
        ]
    texts += [
        "1" * 4301 + "x",
        "[" + "1" * 4301 + ',{"a":1,"a":2}]',
        "0." + "1" * 5000,
        "1e-" + "0" * 5000 + "1",
    ]
    # Keys: by code point, by UTF-16, twice, twice in two spellings.
    keys = [
        "\\ud800",
        "\ufb33",
        "😀",
        "\\udfff",
        "\uffff",
        "\ue000",
        "\U0010ffff",
        "",
        "\x7f",
        "é",
        "\\u0000",
    ]
    texts += ["{" + ",".join(f'"{key}":{index}' for index, key in enumerate(keys)) + "}"]
    texts += ["{" + ",".join(f'"{key}":{index}' for index, key in enumerate(reversed(keys))) + "}"]
    texts += [
        '{"a":1,"\\u0061":2}',
        '{"😀":1,"\\ud83d\\ude00":2}',
        '{"\\ud800":1,"\\uD800":2}',
        '{"é":1,"e\u0301":2}',
    ]
    texts += [
        '{"a":NaN,"a":1}',
        '{"a":1e999,"b":{"c":1,"c":1}}',
        '[{"a":1,"a":2}',
        '{"a":1,"a":2}x',
    ]
    for size in (63, 64, 65, 66, 500):
        backwards = [f'"{index:04}":0' for index in range(size, 0, -1)]
        texts += ["{" + ",".join(backwards) + "}", "{" + ",".join([*backwards, '"0001":1']) + "}"]
        texts.append("{" + ",".join(['"0001":1', *backwards]) + "}")
    # Floats: each landmark and its neighbours, both signs, and each power of ten.
    floats = [*values.LANDMARKS, *(float(f"1e{exponent}") for exponent in range(-323, 309))]
    texts += [f"[{value!r},-{value!r},{value:.17g},{value:.25e}]" for value in floats]
    texts += [
        f"[{digits}e{exponent}]"
        for digits in ("1", "12", "1.5", "123456789012345678")
        for exponent in range(-30, 30)
    ]
    # Half of the least double, and the middle between the greatest and infinity, exactly.
    least, most = (
        Decimal(5e-324) / 2,
        Decimal(1.7976931348623157e308) + Decimal(2) ** 970,
    )
    for middle in (least, most):
        token = f"{middle:e}"
        texts += [
            token,
            token.replace("e", "0001e"),
            token.replace("e", "0" * 400 + "1e"),
            f"{middle - least / 2**60:e}",
        ]
    return texts


FIXED = fixed_texts()
