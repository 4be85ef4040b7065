"""The verifier's JSON reader and encoders against CPython's ``json``, over generated texts.

CPython's ``json`` is the judge of what a text is and of three encodings; the reference's
own encoder is the judge of ``jcs-v2``. What CPython takes and we refuse on purpose
(``formats.md`` 1) is worked out here, and the kind of refusal must be the right one.
"""

from __future__ import annotations

import concurrent.futures
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import values
from harness import Reference, Suite, cut
from texts import FIXED, Text, generated

MAX_DEPTH = 128
BATCH = 4000
ENCODINGS = ("ascii", "ascii_spaced", "utf8", "jcs_v2")


def run(suite: Suite, reference: Reference, encode: Path, seed: str, count: int) -> None:
    """Compare over the fixed texts and ``count`` generated ones."""
    if suite.only and not suite.only.startswith("text"):
        return
    sources = [("fixed", iter(FIXED)), (f"seed {seed}", generated(seed, count))]
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
