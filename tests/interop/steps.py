"""Step journals that the reference writes, verified by us."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import values
from harness import GENESIS, Reference, Refused, Suite, Waybill, same
from values import Speller


def run(suite: Suite, waybill: Waybill, reference: Reference, seed: str, count: int) -> None:
    """The fixed case, then random journals."""

    def escaped(folder: Path) -> None:
        rng = random.Random(0)
        journal = Journal(folder, waybill, reference, suite)
        journal.append([step(rng), step(rng)])
        escaped_names(rng, journal)

    suite.case("step journal of escaped names", escaped)
    for number in range(count):
        rng = random.Random(f"step journal {seed} {number}")
        suite.case(
            f"step journal {number}",
            lambda folder, rng=rng: play(rng, Journal(folder, waybill, reference, suite)),
        )


class Journal:
    """One agent's step journal."""

    def __init__(self, folder: Path, waybill: Waybill, reference: Reference, suite: Suite) -> None:
        self.folder = folder
        self.waybill = waybill
        self.reference = reference
        self.suite = suite
        self.file = folder / "000000.jsonl"

    def append(self, steps: list[dict[str, Any]]) -> Any:
        """The reference's append."""
        return self.reference("step_journal.append", path=str(self.folder), steps=steps)

    def they_verify(self, head: str | None = None) -> Any:
        """The reference's verdict."""
        return self.reference("step_journal.verify", path=str(self.folder), expected_head=head)

    def we_verify(self, code: int, verdict: str) -> Any:
        """Our report."""
        report = self.waybill("verify", str(self.file), "--json").expect(code).json()
        same(report["subject"]["kind"], "step-journal", "what we take it for")
        same(report["verdict"], verdict, f"our verdict ({report['summary']})")
        return report

    def check(self) -> None:
        """Both find it good, with the same head."""
        theirs = self.they_verify()
        same((theirs["ok"], theirs["errors"]), (True, []), "the reference's verdict")
        report = self.we_verify(0, "consistent")
        same(report["facts"]["head_hash"], theirs["head_hash"], "head")
        same(report["facts"]["entries"], theirs["steps"], "steps")


def play(rng: random.Random, journal: Journal) -> None:
    """A journal, then one thing done to it."""
    for _ in range(rng.choice([1, 2, 3])):
        journal.append([step(rng) for _ in range(rng.choice([1, 2, 5]))])
        journal.check()
    data = journal.file.read_bytes()
    for row in map(json.loads, data.splitlines()):
        journal.suite.saw("with effort" if "effort" in row else "without effort")
    harm = rng.choice(HARMS)
    harm(rng, journal)
    journal.suite.saw(harm.__name__)


def step(rng: random.Random) -> dict[str, Any]:
    """The arguments of one append."""
    made: dict[str, Any] = {"input_hash": f"{rng.getrandbits(256):064x}"}
    for name in ("model", "prompt"):
        if rng.random() < 0.8:
            made[name] = values.text(rng)
    for name in ("tool_call", "tool_result"):
        if rng.random() < 0.7:
            made[name] = values.plain(
                rng.choice([values.payload(rng), {"deep": values.deep(rng, rng.choice([1, 125]))}])
            )
    if rng.random() < 0.3:
        made["blob_refs"] = [f"{rng.getrandbits(256):064x}" for _ in range(rng.randrange(3))]
    if rng.random() < 0.4:
        made["effort"] = rng.choice(["", "high", "low", None, "\ud800"])
    return made


def edited(rng: random.Random, journal: Journal) -> None:
    """A changed field or a moved row is found by both at the same line."""
    lines = journal.file.read_bytes().splitlines()
    index = rng.randrange(len(lines))
    row = json.loads(lines[index])
    form = rng.randrange(5)
    if form == 0:
        row[rng.choice(["prompt", "model"])] = "edited"
    elif form == 1:
        row[rng.choice(["tool_call", "tool_result"])] = {"edited": rng.random()}
    elif form == 2:
        row["effort"] = "edited"
    elif form == 3:
        row["step_hash"] = f"{rng.getrandbits(256):064x}"
    lines[index] = values.canonical(row).encode()
    if form == 4:
        lines.insert(index, lines[index])
        index += 1
    journal.file.write_bytes(b"\n".join(lines) + b"\n")
    theirs = journal.they_verify()
    same(theirs["ok"], False, "the reference's verdict")
    match = re.match(r"line (\d+): (\w+) mismatch", theirs["errors"][0])
    assert match, theirs["errors"][0]
    fault = journal.we_verify(2, "failed")["facts"]["faults"][0]
    same(
        (fault["line"], fault["entry"]),
        (int(match[1]), index),
        f"our place, given {theirs['errors'][0]!r}",
    )
    same(fault["fault"], match[2] + "_mismatch", f"our fault, given {theirs['errors'][0]!r}")


def torn(rng: random.Random, journal: Journal) -> None:
    """Both stop before a torn tail."""
    data = journal.file.read_bytes()
    row = data.splitlines()[-1]
    journal.file.write_bytes(data + row[: rng.randrange(1, len(row))])
    same(journal.they_verify()["ok"], False, "the reference's verdict")
    fault = journal.we_verify(2, "failed")["facts"]["faults"][0]
    same((fault["fault"], fault["entry"]), ("torn_tail", len(data.splitlines())), "our fault")


def escaped_names(_: random.Random, journal: Journal) -> None:
    """A journal in which every name is spelled in escapes is told for one, and holds."""
    data = re.sub(
        rb'"(\w)(\w*)":',
        lambda name: b'"\\u%04x%s":' % (name[1][0], name[2]),
        journal.file.read_bytes(),
    )
    journal.file.write_bytes(data)
    journal.check()


def unended(_: random.Random, journal: Journal) -> None:
    """A whole last row without its newline holds."""
    journal.file.write_bytes(journal.file.read_bytes()[:-1])
    journal.check()


def respelled(rng: random.Random, journal: Journal) -> None:
    """Rows in another spelling hold."""
    rows = [json.loads(line) for line in journal.file.read_bytes().splitlines()]
    spell = Speller(rng, breaks=False)
    text = "".join(spell(row) + "\n" for row in rows)
    while '"step_hash"' not in text:  # a case of its own
        text = "".join(Speller(rng, breaks=False)(row) + "\n" for row in rows)
    journal.file.write_bytes(text.encode())
    journal.check()


def cut(rng: random.Random, journal: Journal) -> None:
    """A journal whose end is gone holds: only an expected head shows it."""
    lines = journal.file.read_bytes().splitlines(keepends=True)
    head = json.loads(lines[-1])["step_hash"]
    same(journal.they_verify(head)["ok"], True, "the reference given the head")
    journal.file.write_bytes(b"".join(lines[: rng.randrange(len(lines))]))
    if journal.file.stat().st_size:
        same(journal.they_verify(head)["ok"], False, "the reference given the head of what was cut")
        journal.check()
    else:
        try:
            same(journal.they_verify()["head_hash"], GENESIS, "the reference's head of nothing")
        except Refused as error:
            raise AssertionError(f"the reference on an empty journal: {error}") from error


HARMS: list[Callable[[random.Random, Journal], None]] = [
    edited,
    edited,
    torn,
    unended,
    respelled,
    cut,
]
