"""Work ledgers in both directions: each program verifies, replays and extends the other's.

The two take turns; they are never both live. After every turn both verify the file and
replay it, and what stands in it is compared with what was asked for.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import values
from fixed_ledgers import FIXED
from harness import Reference, Refused, Suite, Waybill, same
from ledger import TASK_KINDS, Ledger, Transition
from values import Speller

RUN_KINDS = ["run.open", "run.resumed", "run.closed"]
OTHER_KINDS = ["mission.defined", "mission.phase_entered", "note", "a", "x.y-z_0", "k" * 64]
# What the reference's writer refuses and its reader takes.
OURS_ONLY = ["run.paused", "task.foo", "task.", "run.x.y"]


def run(suite: Suite, waybill: Waybill, reference: Reference, seed: str, count: int) -> None:
    """The fixed cases, then the random ledgers."""
    for name, check in FIXED:
        suite.case(
            f"ledger {name}",
            lambda folder, check=check: check(Ledger(folder, waybill, reference, suite, "f")),
        )
    for number in range(count):
        rng = random.Random(f"ledger {seed} {number}")
        suite.case(
            f"ledger {number}", lambda folder, rng=rng: play(rng, folder, waybill, reference, suite)
        )


# Random ledgers ---------------------------------------------------------------


def play(
    rng: random.Random, folder: Path, waybill: Waybill, reference: Reference, suite: Suite
) -> None:
    """A ledger that the two programs write in turns."""
    ledger = Ledger(folder, waybill, reference, suite, run_id(rng))
    tasks = [task_id(rng) for _ in range(rng.randrange(1, 6))]
    ours = rng.random() < 0.5
    opening = values.plain(
        {key: made for key, made in values.payload(rng).items() if key != "run_id"}
    )
    if ours:
        ledger.we_open(opening)
    else:
        first = transitions(rng, tasks, ours=False)
        if rng.random() < 0.8:
            first.insert(0, ("run.open", "", {**opening, "run_id": ledger.run}))
        ledger.they_append(first)
    suite.saw(f"begun by {'us' if ours else 'the reference'}")
    ledger.check()
    for _ in range(rng.choice([2, 2, 3, 4])):
        ours = not ours if rng.random() < 0.85 else ours
        turn(rng, ledger, tasks, ours)
        ledger.check()
        if rng.random() < 0.3:
            rng.choice(CRASHES)(rng, ledger)
            ledger.check()
    if rng.random() < 0.3:
        closing(rng, ledger)
        turn(rng, ledger, tasks, not ours)
        ledger.check()
    if rng.random() < 0.3:
        ledger.heads(rng)
    if rng.random() < 0.3:
        ledger.chained()
    tampered(rng, ledger)


def turn(rng: random.Random, ledger: Ledger, tasks: list[str], ours: bool) -> None:
    """One of the two appends a few transitions."""
    made = transitions(rng, tasks, ours)
    if not ours:
        ledger.they_append(made)
        return
    spell = Speller(rng, breaks=False)
    if rng.random() < 0.4:
        ledger.we_append(made[0], Speller(rng), rng.choice(["argument", "file", "stdin"]))
    else:
        ledger.we_append_all(made, spell, rng.choice(["os", "os", "group", "group", "entry"]))


def closing(rng: random.Random, ledger: Ledger) -> None:
    """``ledger close``, which says nothing where the run is closed already."""
    reason = values.text(rng, surrogates=False).replace("\0", "") or "done"
    done = ledger.ours("close", f"--reason={reason}", "--durability", "os")
    closed = any(kind == "run.closed" for kind, _, _ in ledger.told)
    ledger.acknowledged([] if closed else [("run.closed", "", {"reason": reason})], done.lines())
    ledger.suite.saw("we close")


def run_id(rng: random.Random) -> str:
    """A run id that both take."""
    while True:
        body = "".join(rng.choices("abcXYZ019_-.", k=rng.choice([0, 1, 3, 10, 63])))
        made = rng.choice("aZ0_") + body
        if ".." not in made and not made.endswith(".") and not made.endswith(".lock"):
            return made


def task_id(rng: random.Random) -> str:
    """A task id; the empty one is the run itself."""
    if rng.random() < 0.1:
        return rng.choice(["", ".", "..", "-", "a.lock", "x" * 64])
    return "".join(rng.choices("abcXYZ019_-.", k=rng.choice([1, 2, 5])))


def transitions(rng: random.Random, tasks: list[str], ours: bool) -> list[Transition]:
    """A few transitions of any kind, in any order: neither program demands a sensible one."""
    made: list[Transition] = []
    for _ in range(rng.choice([1, 1, 2, 3, 5])):
        dice = rng.random()
        payload = values.plain(values.payload(rng)) if not ours else values.payload(rng)
        if dice < 0.75:
            made.append((rng.choice(TASK_KINDS), rng.choice(tasks), payload))
        elif dice < 0.8:
            payload = {
                key: item for key, item in payload.items() if key not in ("state", "error_kind")
            }
            made.append((rng.choice(RUN_KINDS[1:]), rng.choice(["", *tasks]), payload))
        elif dice < 0.9 or not ours:
            made.append((rng.choice(OTHER_KINDS), rng.choice(["", *tasks]), payload))
        else:
            if rng.random() < 0.3:
                payload = {**payload, "state": rng.choice(["gone", None, 1.5])}
            made.append(
                (rng.choice([*OURS_ONLY, "run.resumed"]), rng.choice(["", *tasks]), payload)
            )
    return made


# Crashes ------------------------------------------------------------------------


def torn(rng: random.Random, ledger: Ledger) -> None:
    """A write that a crash cut: both stop before it, and our next append sets it aside."""
    *rest, row = ledger.file.read_bytes().splitlines()
    fragment = row[: rng.randrange(1, len(row))]
    dice = rng.random()
    if rest and rng.random() < 0.3:  # the last row itself is cut
        ledger.file.write_bytes(b"".join(line + b"\n" for line in rest))
        ledger.told.pop()
        ledger.hashes.pop()
    elif dice < 0.15:
        fragment = b"\0" * rng.choice([1, 100, 4096])
    elif dice < 0.25:
        fragment = bytes(rng.choices(range(1, 128), k=20)).replace(b"\n", b" ") + b"{"
    elif dice < 0.35:
        fragment += b"\xff\xc3"
    fragment += rng.choice([b"", b"", b"\n", b"\r\n"])
    with ledger.file.open("ab") as file:
        file.write(fragment)
    entries = len(ledger.told)
    report = ledger.we_verify(code=2, verdict="failed")
    same(report["facts"]["faults"][0]["fault"], "torn_tail", "our fault")
    same(report["facts"]["faults"][0]["entry"], entries, "our entry of the torn tail")
    same(report["facts"]["entries"], entries, "our entries before the torn tail")
    try:
        verdict = ledger.they_verify()
    except Refused as error:
        same("UnicodeDecodeError" in str(error), True, f"the reference's error: {error}")
    else:
        same(
            (verdict["ok"], verdict["entries"]),
            (False, entries),
            "the reference's verdict on the torn tail",
        )
        ledger.states()
    ledger.we_append(("task.started", "t", {"after": "crash"}), Speller(rng))
    aside = list(ledger.file.parent.glob("*.torn-*")) + list(ledger.file.parent.glob(".*torn-*"))
    kept = [path.read_bytes() for path in aside]
    same(
        fragment in kept or fragment.rstrip(b"\r\n") in kept,
        True,
        f"the fragment among {sorted(map(str, aside))}",
    )
    ledger.suite.saw("torn tails")


def unended(rng: random.Random, ledger: Ledger) -> None:
    """The last newline was lost: the row is whole, and our next append ends its line."""
    data = ledger.file.read_bytes()
    ledger.file.write_bytes(data[:-1])
    same(
        ledger.they_verify()["entries"],
        len(ledger.told),
        "the reference's entries without the last newline",
    )
    ledger.we_verify()
    ledger.we_append_all(
        [("task.started", "t", {"after": "crash"})], Speller(rng, breaks=False), "os"
    )
    ledger.suite.saw("lost newlines")


def respelled(rng: random.Random, ledger: Ledger) -> None:
    """A row in another spelling holds for both, and is warned of by us."""
    data = ledger.file.read_bytes()
    lines = data.splitlines()
    index = rng.randrange(len(lines))
    row = json.loads(lines[index])
    text = lines[index]
    while text.strip() == lines[index]:
        text = Speller(rng, breaks=False)(row).encode()
    lines[index] = text
    ledger.file.write_bytes(b"\n".join(lines) + b"\n")
    verdict = ledger.they_verify()
    same(
        (verdict["ok"], verdict["head_hash"]),
        (True, ledger.head()),
        "the reference's verdict on a respelled row",
    )
    report = ledger.we_verify()
    same(report["facts"]["rows_not_canonical"], 1, "rows that are not canonical")
    ledger.states()
    ledger.file.write_bytes(data)
    ledger.suite.saw("respelled rows")


CRASHES: list[Callable[[random.Random, Ledger], None]] = [torn, torn, unended, respelled]


# Edits --------------------------------------------------------------------------


def tampered(rng: random.Random, ledger: Ledger) -> None:
    """An edit is found by both at the same entry and line, and neither goes on from it."""
    data = ledger.file.read_bytes()
    lines = data.splitlines()
    if len(lines) < 3:
        return
    index = rng.randrange(len(lines) - 1)
    row = json.loads(lines[index])
    form = rng.randrange(8)
    if form == 0:
        row["payload"]["edited"] = rng.random()
    elif form == 1:
        row["kind"] = "task.failed" if row["kind"] != "task.failed" else "task.completed"
    elif form == 2:
        row["task_id"] += "x" if len(row["task_id"]) < 64 else ""
        row["entry_hash"] = f"{rng.getrandbits(256):064x}"
    elif form == 3:
        row["entry_hash"] = f"{rng.getrandbits(256):064x}"
    elif form == 4:
        row["seq"] += 1
    if form < 5:
        lines[index] = values.canonical(row).encode()
    elif form == 5:
        del lines[index]
    elif form == 6:
        lines[index], lines[index + 1] = lines[index + 1], lines[index]
    else:
        lines.insert(index, lines[index])
        index += 1
    ledger.file.write_bytes(b"\n".join(lines) + b"\n")
    verdict = ledger.they_verify()
    same(verdict["ok"], False, "the reference's verdict on an edit")
    match = re.match(r"entry (\d+) \(line (\d+)\): (\w+) mismatch", verdict["errors"][0])
    assert match, verdict["errors"][0]
    report = ledger.we_verify(code=2, verdict="failed")
    fault = report["facts"]["faults"][0]
    same(fault["fault"], match[3] + "_mismatch", f"our fault, given {verdict['errors'][0]!r}")
    # For a wrong `seq` the reference counts as the row does; we count rows.
    entry = int(match[1]) if match[3] != "seq" else len(lines[: int(match[2]) - 1])
    same(
        (fault["entry"], fault["line"]),
        (entry, int(match[2])),
        f"our place, given {verdict['errors'][0]!r}",
    )
    ledger.ours("append", "--kind", "note", code=2)
    with contextlib.suppress(Refused):
        ledger.they_append([("note", "", {})])
        raise AssertionError("the reference goes on from an edited ledger")
    ledger.suite.saw("edits")
