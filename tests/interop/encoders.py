"""The verifier's JSON reader and encoders against CPython's ``json``, over generated texts.

CPython's ``json`` is the judge of what a text is and of three encodings; the reference's
own encoder is the judge of ``jcs-v2``. What CPython takes and we refuse on purpose
(``formats.md`` 1) is worked out here, and the kind of refusal must be the right one.
"""

from __future__ import annotations

import concurrent.futures
import json
import random
import subprocess
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import values
from harness import Reference, Suite, cut
from values import Members, Speller, Token

MAX_DEPTH = 128
BATCH = 4000
ENCODINGS = ("ascii", "ascii_spaced", "utf8", "jcs_v2")

# A text, or bytes that may not be one.
Text = str | bytes


def run(suite: Suite, reference: Reference, encode: Path, seed: str, count: int) -> None:
    """Compare over the fixed texts and ``count`` generated ones."""
    if suite.only and not suite.only.startswith("text"):
        return
    sources = [("fixed", iter(FIXED)), (f"seed {seed}", generated(seed, count))]
    # A worker each, so that both work while the next texts are made.
    # A worker each, so that both work while the next texts are made.
    ours = concurrent.futures.ThreadPoolExecutor(1)
    theirs = concurrent.futures.ThreadPoolExecutor(1)
    with ours, theirs:
        for name, source in sources:
            pending = None
            for start, batch in batches(source):
                said = ours.submit(verifier_says, encode, batch)
                expect = theirs.submit(python_says, reference, batch)
                if pending:
                    compare(suite, name, *pending)
                pending = (start, batch, said, expect)
            if pending:
                compare(suite, name, *pending)


def batches(texts: Iterator[Text]) -> Iterator[tuple[int, list[Text]]]:
    """Texts in handfuls, with the number of the first."""
    batch: list[Text] = []
    start = 0
    for text in texts:
        # Halves of a pair that came together are, in bytes, the one character.
        batch.append(
            values.joined(text) if isinstance(text, str) and values.has_surrogate(text) else text
        )
        if len(batch) == BATCH:
            yield start, batch
            start += len(batch)
            batch = []
    if batch:
        yield start, batch


def verifier_says(encode: Path, batch: list[Text]) -> list[dict[str, Any]]:
    """The verifier's answers."""
    lines = [json.dumps({"hex": text.hex()} if isinstance(text, bytes) else text) for text in batch]
    done = subprocess.run(
        [encode],
        input=("\n".join(lines) + "\n").encode("ascii"),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{encode} ended with {done.returncode}: {done.stderr[-2000:]!r}"
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(batch), f"{len(answers)} answers to {len(batch)} texts"
    return answers


def python_says(reference: Reference, batch: list[Text]) -> list[dict[str, Any]]:
    """CPython's answers, and the reference's for ``jcs-v2``."""
    judged: list[dict[str, Any]] = [{} for _ in batch]
    asked: list[tuple[int, str]] = []
    for index, text in enumerate(batch):
        refusal = refused_early(text)
        if refusal or isinstance(text, bytes):
            judged[index] = {"refused": refusal}
        else:
            asked.append((index, text))
    results = reference("json.encode", texts=[text for _, text in asked])["results"]
    for (index, text), result in zip(asked, results, strict=True):
        judged[index] = expected(text, result)
    return judged


def refused_early(text: Text) -> str | None:
    """What the verifier must say of a text that the driver need not see."""
    if isinstance(text, bytes):
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            return "not_json"
        raise ValueError("bytes are for what is not UTF-8")
    if values.has_surrogate(text):  # raw, not escaped: its bytes are not UTF-8
        return "not_json"
    if text.count("[") + text.count("{") > MAX_DEPTH and nesting(text)[0] > MAX_DEPTH:
        return judge_deep(text)
    return None


def nesting(text: str) -> tuple[int, bool]:
    """How deep brackets nest outside of strings, valid text or not; and whether all are closed."""
    depth = deepest = 0
    inside = escaped = False
    for char in text:
        if inside:
            inside = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest, depth == 0


def judge_deep(text: str) -> str:
    """A text that nests too deep: whether it is complete. Its duplicates may go unseen."""
    try:
        judge(text)
    except RecursionError:  # too deep for CPython, too; such texts are all brackets
        return "limit" if nesting(text)[1] else "not_json"
    except ValueError:
        return "not_json"
    return "limit"


def judge(text: str) -> set[str]:
    """Reads a text without CPython's limit on digits; what about it is to be refused."""
    flags: set[str] = set()

    def pairs(items: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in items}) != len(items):
            flags.add("duplicate_key")

    def whole(token: str) -> int:
        if len(token.lstrip("-")) > values.MAX_INT_DIGITS:
            flags.add("limit")
        return 0

    json.loads(
        text, object_pairs_hook=pairs, parse_int=whole, parse_constant=lambda _: flags.add("limit")
    )
    return flags


def expected(text: str, result: dict[str, Any]) -> dict[str, Any]:
    """What the verifier must answer, given what CPython answered."""
    if result.get("refused") == "JSONDecodeError":
        return {"refused": "not_json"}
    if "refused" in result:  # too many digits: CPython stopped there, so read it again
        try:
            flags = judge(text)
        except ValueError:
            return {"refused": "not_json"}
        assert "limit" in flags, result
        return {"refused": "duplicate_key" if "duplicate_key" in flags else "limit"}
    if result["flags"]:
        return {"refused": "duplicate_key" if "duplicate_key" in result["flags"] else "limit"}
    return {name: result.get(name) for name in ENCODINGS}


def compare(
    suite: Suite,
    source: str,
    start: int,
    batch: list[Text],
    ours: concurrent.futures.Future[list[dict[str, Any]]],
    theirs: concurrent.futures.Future[list[dict[str, Any]]],
) -> None:
    """Count agreement, text by text."""
    for index, (text, said, expect) in enumerate(
        zip(batch, ours.result(), theirs.result(), strict=True)
    ):
        # An encoding that refuses the value is `None` on both sides.
        got = (
            {"refused": said["refused"]}
            if "refused" in said
            else {name: said.get(name) for name in ENCODINGS}
        )
        suite.saw(got.get("refused") or "accepted")
        if got == expect:
            suite.passed += 1
        else:
            wrong = [name for name in {*got, *expect} if got.get(name) != expect.get(name)]
            shown = ", ".join(
                f"{name}: got {cut(got.get(name))}, expected {cut(expect.get(name))}"
                for name in wrong
            )
            suite.fail(
                f"text {start + index} ({source})", AssertionError(f"{cut(text)}\n     {shown}")
            )
            if len(suite.failed) > 50:
                raise SystemExit("too many differences")


# Generated texts ------------------------------------------------------------


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
