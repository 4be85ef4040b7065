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
from typing import Any

import values
from harness import GENESIS, Reference, Refused, Suite, Waybill, same
from values import Speller

RUN_KINDS = ["run.open", "run.resumed", "run.closed"]
TASK_KINDS = [
    "task.scheduled", "task.started", "task.completed", "task.failed", "task.abandoned",
    "task.suspended", "task.resumed",
]  # fmt: skip
OTHER_KINDS = ["mission.defined", "mission.phase_entered", "note", "a", "x.y-z_0", "k" * 64]
# What the reference's writer refuses and its reader takes.
OURS_ONLY = ["run.paused", "task.foo", "task.", "run.x.y"]
# A transition: kind, task id, payload.
Transition = tuple[str, str, dict[str, Any]]


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


class Ledger:
    """One run's ledger, and what has to stand in it."""

    def __init__(
        self, folder: Path, waybill: Waybill, reference: Reference, suite: Suite, run_id: str
    ) -> None:
        self.folder = folder
        self.waybill = waybill
        self.reference = reference
        self.suite = suite
        self.run = run_id
        self.told: list[Transition] = []
        self.hashes: list[str] = []
        self.file = folder / ".sdd" / "runtime" / "ledger" / run_id / "000000.jsonl"

    # Recording ---------------------------------------------------------------

    def ours(self, *argv: str, stdin: bytes = b"", code: int = 0) -> Any:
        """Run ``waybill ledger VERB RUN …``."""
        verb, *rest = argv
        full = ["ledger", verb, self.run, *rest, "--workdir", str(self.folder), "--json"]
        return self.waybill(*full, stdin=stdin).expect(code)

    def acknowledged(self, transitions: list[Transition], acknowledgements: list[Any]) -> None:
        """Note what was recorded, by what its writer said of it."""
        for transition, said in zip(transitions, acknowledgements, strict=True):
            same(said.get("seq"), len(self.told), f"acknowledged seq ({said})")
            self.told.append(transition)
            self.hashes.append(said["entry_hash"])

    def we_open(self, payload: dict[str, Any]) -> None:
        """``ledger open``, with a payload."""
        done = self.ours("open", "--durability", "os", "--payload", json.dumps(payload))
        self.acknowledged([("run.open", "", {**payload, "run_id": self.run})], done.lines())

    def we_append(self, transition: Transition, spell: Speller, how: str = "argument") -> None:
        """``ledger append`` of one transition."""
        kind, task, payload = transition
        text = spell(payload)
        stdin = b""
        if how == "stdin":
            argument, stdin = "-", text.encode()
        elif how == "file" or len(text.encode()) > 100_000:  # an argument's length is limited
            given = self.folder / "payload.json"
            given.write_text(text, encoding="utf-8", newline="")
            argument = f"@{given}"
        else:
            argument = text
        argv = ["--kind", kind, f"--payload={argument}", "--durability", "os"]
        if task:
            argv += [f"--task={task}"]
        self.acknowledged([transition], self.ours("append", *argv, stdin=stdin).lines())
        self.suite.saw(f"we append ({how})")

    def we_append_all(self, transitions: list[Transition], spell: Speller, durability: str) -> None:
        """``ledger append --stdin``."""
        lines = []
        for kind, task, payload in transitions:
            given: dict[str, Any] = {"kind": kind, "task_id": task, "payload": payload}
            if not task:
                del given["task_id"]
            if not payload:
                del given["payload"]
            lines.append(spell(given))
        text = "".join(line + "\n" for line in lines)
        done = self.ours("append", "--stdin", "--durability", durability, stdin=text.encode())
        self.acknowledged(transitions, done.lines())
        self.suite.saw(f"we append (stream, {durability})")

    def they_append(self, transitions: list[Transition]) -> None:
        """The reference's append."""
        given = [
            {"kind": kind, "task_id": task, "payload": payload}
            for kind, task, payload in transitions
        ]
        result = self.reference(
            "ledger.append", workdir=str(self.folder), run_id=self.run, transitions=given
        )
        self.acknowledged(transitions, result["rows"])
        same(result["head_hash"], self.hashes[-1], "the reference's head after its append")
        self.suite.saw("reference appends")

    # Checking ----------------------------------------------------------------

    def head(self) -> str:
        """The last entry's hash."""
        return self.hashes[-1] if self.hashes else GENESIS

    def check(self) -> None:
        """Both programs find the ledger good, and find the same in it."""
        verdict = self.they_verify()
        good = {"exists": True, "ok": True, "head_hash": self.head(), "errors": []}
        same(verdict, {**good, "entries": len(self.told)}, "the reference's verdict")
        self.we_verify()
        self.states()
        self.content()

    def they_verify(self, head: str | None = None) -> Any:
        """The reference's verdict."""
        return self.reference(
            "ledger.verify", workdir=str(self.folder), run_id=self.run, expected_head=head
        )

    def we_verify(self, *argv: str, code: int = 0, verdict: str = "consistent") -> Any:
        """Our report; of a ledger that holds, its head and entries must be right."""
        report = self.ours("verify", *argv, code=code).json()
        same(report["verdict"], verdict, f"our verdict ({report['summary']})")
        if code == 0:
            same(report["facts"]["head_hash"], self.head(), "our head")
            same(report["facts"]["entries"], len(self.told), "our entries")
        return report

    def states(self) -> None:
        """Both replay to the same state document."""
        theirs = self.reference("ledger.state", workdir=str(self.folder), run_id=self.run)
        same(self.ours("state").json(), theirs["state"], "state document")

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the file, by CPython."""
        return [json.loads(line) for line in self.file.read_bytes().splitlines()]

    def content(self) -> None:
        """The rows are canonical and hold what was asked for, but for what was scrubbed."""
        data = self.file.read_bytes()
        lines = data.decode("ascii").split("\n")
        same(lines.pop(), "", "what stands behind the last newline")
        same(len(lines), len(self.told), "lines")
        for index, (line, (kind, task, payload)) in enumerate(zip(lines, self.told, strict=True)):
            row = json.loads(line)
            same(values.canonical(row), line, f"canonical form of row {index}")
            same(
                (row["kind"], row["task_id"], row["entry_hash"]),
                (kind, task, self.hashes[index]),
                f"row {index}",
            )
            written = values.canonical(row["payload"])
            if row["redactions"] or "***REDACTED***" in written:
                self.suite.saw("scrubbed payloads")
            else:
                same(written, values.canonical(payload), f"payload of row {index}")

    def chained(self) -> None:
        """What an anchor would hold is what the file holds."""
        theirs = self.reference("ledger.lines", workdir=str(self.folder), run_id=self.run)
        text = "".join(line + "\n" for line in theirs["lines"])
        same(text, self.file.read_text(encoding="ascii"), "the reference's canonical lines")

    def heads(self, rng: random.Random) -> None:
        """Expected heads, right and wrong, are judged alike."""
        head, other = self.head(), f"{rng.getrandbits(256):064x}"
        same(self.they_verify(head)["ok"], True, "the reference given the head")
        report = self.we_verify("--expected-head", head, verdict="verified")
        same(report["exit_code"], 0, "exit code given the head")
        same(self.they_verify(other)["ok"], False, "the reference given another head")
        self.we_verify("--expected-head", other, code=2, verdict="failed")
        some = rng.choice(self.hashes)
        self.we_verify("--contains", some, verdict="verified")
        if some != head:
            same(self.they_verify(some)["ok"], False, "the reference given an earlier head")
            self.we_verify("--expected-head", some, code=2, verdict="failed")
        self.suite.saw("expected heads")


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


# Fixed cases -----------------------------------------------------------------------


def fixed_payloads() -> list[dict[str, Any]]:
    """Every class of value, one a payload."""
    floats = [*values.LANDMARKS, *(-value for value in values.LANDMARKS)]
    floats += [float(f"1e{exponent}") for exponent in range(-323, 309, 7)]
    most = int("9" * values.MAX_INT_DIGITS)
    nested: list[Any] = []
    objects: dict[str, Any] = {}
    for _ in range(124):
        nested, objects = [nested], {"": objects}
    return [
        {},
        {"": ""},
        {"a": [], "b": {}, "c": None, "d": "", "e": [[], {}, None, ""]},
        {"floats": floats},
        {"ints": [0, -1, 2**53, 2**63, 2**64, -(2**64), most, -most]},
        {"edges": "".join(map(chr, values.EDGES))},
        {chr(point): chr(point) for point in [*values.EDGES, *values.SURROGATES]},
        {"lone": ["\ud800", "\udfff", "\udc00\ud800", "a\ud83d", "\ude00b"]},
        {"deep": nested},
        {"deep": objects},
        {"true": True, "false": False, "state": "gone", "run_id": 5},
    ]


def every_value(ledger: Ledger) -> None:
    """Every payload, by both, in one ledger."""
    spell = Speller(random.Random(0), breaks=False)
    ledger.we_open({})
    made: list[Transition] = [("task.started", "t", payload) for payload in fixed_payloads()]
    ledger.we_append_all(made, spell, "group")
    ledger.they_append(made)
    ledger.check()
    same(ledger.file.stat().st_mode & 0o7777, 0o600, "mode of the file")
    same(ledger.file.parent.stat().st_mode & 0o7777, 0o700, "mode of its folder")
    for how in ("argument", "file", "stdin"):
        for transition in made:
            ledger.we_append(transition, spell, how)
    ledger.check()


def every_kind(ledger: Ledger) -> None:
    """Every pair of task transitions, so that each state is left by each."""
    made: list[Transition] = [
        (kind, f"t{first}{second}", {})
        for first, one in enumerate(TASK_KINDS)
        for second, two in enumerate(TASK_KINDS)
        for kind in (one, two)
    ]
    ledger.they_append([("run.open", "", {"run_id": ledger.run}), *made])
    ledger.check()
    ledger.we_append_all(
        [*made, ("run.resumed", "", {}), ("run.closed", "", {})],
        Speller(random.Random(0), False),
        "os",
    )
    ledger.check()
    ledger.they_append([("run.resumed", "", {}), ("task.started", "z", {})])
    ledger.check()


def deepest(ledger: Ledger) -> None:
    """A payload of 127 levels makes a row of 128, the most that is read; one more is refused."""
    ledger.we_open({})
    payload: Any = "x"
    for _ in range(127):
        payload = {"a": payload}
    ledger.we_append(("note", "", payload), Speller(random.Random(0)))
    ledger.check()
    too_deep = json.dumps({"a": payload})
    ledger.ours("append", "--kind", "note", f"--payload={too_deep}", code=64)
    ledger.check()


def many(ledger: Ledger) -> None:
    """Three thousand entries, more than an anchor's chunk, by turns."""
    spell = Speller(random.Random(0), breaks=False)
    ledger.we_open({})
    for _ in range(3):
        rows: list[Transition] = [
            ("task.started", f"t{index % 50}", {"n": index}) for index in range(500)
        ]
        ledger.we_append_all(rows, spell, "group")
        ledger.they_append(rows)
    ledger.check()
    ledger.chained()


def not_a_row(ledger: Ledger) -> None:
    """Complete JSON that is no row is refused by both, and is no torn tail."""
    ledger.they_append([("run.open", "", {"run_id": ledger.run}), ("note", "", {})])
    data = ledger.file.read_bytes()
    for text in (b"{}", b"[]", b"null", b'"x"', b"0"):
        ledger.file.write_bytes(data + text + b"\n")
        same(ledger.they_verify()["ok"], False, f"the reference's verdict on {text!r}")
        report = ledger.we_verify(code=2, verdict="failed")
        same(report["facts"]["faults"][0]["fault"], "malformed_row", f"our fault on {text!r}")
        ledger.ours("append", "--kind", "note", code=2)
        same(ledger.file.read_bytes(), data + text + b"\n", "the file after a refused append")


def escaped_names(ledger: Ledger) -> None:
    """A ledger in which every name is spelled in escapes is told for one, and holds."""
    ledger.they_append([("run.open", "", {"run_id": ledger.run}), ("note", "", {"a": "b"})])
    data = re.sub(
        rb'"(\w)(\w*)":',
        lambda name: b'"\\u%04x%s":' % (name[1][0], name[2]),
        ledger.file.read_bytes(),
    )
    ledger.file.write_bytes(data)
    same(ledger.they_verify()["ok"], True, "the reference's verdict")
    ledger.we_verify()
    report = ledger.waybill("verify", str(ledger.file), "--json").expect(0).json()
    same(report["subject"]["kind"], "ledger", "what we take it for")


def refused_both(ledger: Ledger) -> None:
    """What neither writer takes leaves the ledger as it was."""
    ledger.we_open({})
    data = ledger.file.read_bytes()
    for kind in ("", "Task.started", "1a", "a b", "a" * 65, "é", "_a"):
        ledger.ours("append", f"--kind={kind}", code=64)
        with contextlib.suppress(Refused):
            ledger.they_append([(kind, "", {})])
            raise AssertionError(f"the reference takes the kind {kind!r}")
    for task in ("a b", "a/b", "é", "x" * 65):
        ledger.ours("append", "--kind", "note", f"--task={task}", code=64)
        with contextlib.suppress(Refused):
            ledger.they_append([("note", task, {})])
            raise AssertionError(f"the reference takes the task {task!r}")
    same(ledger.file.read_bytes(), data, "the file after refused appends")
    ledger.check()


def resumed(ledger: Ledger) -> None:
    """The reference's resume of our run: its row and nonce hold, and we go on from it."""
    spell = Speller(random.Random(0), breaks=False)
    ledger.we_open({})
    ledger.we_append_all(
        [
            ("task.scheduled", "b", {}),
            ("task.scheduled", "a", {}),
            ("task.started", "c", {}),
            ("task.suspended", "d", {}),
        ],
        spell,
        "os",
    )
    ledger.check()
    before = ledger.head()
    done = ledger.reference("ledger.resume", workdir=str(ledger.folder), run_id=ledger.run)
    same(done["exit"], 0, f"the reference's resume ({done['stderr']})")
    ours = ledger.ours("state").json()
    row = ledger.rows()[-1]
    same((row["kind"], row["payload"]["from_head"]), ("run.resumed", before), "the resume's row")
    ledger.acknowledged([("run.resumed", "", row["payload"])], [row])
    same(
        sorted(signal["name"] for signal in done["signals"]),
        ["a.signal", "b.signal", "c.signal"],
        "signals",
    )
    same(
        ours["resume_count"] if "resume_count" in ours else ours["resumes"],
        1,
        "resumes in our state",
    )
    ledger.check()
    ledger.we_append(("task.completed", "c", {}), spell)
    ledger.check()


FIXED: list[tuple[str, Callable[[Ledger], None]]] = [
    ("of every value", every_value),
    ("of every kind", every_kind),
    ("of the deepest payload", deepest),
    ("of three thousand entries", many),
    ("with what is no row", not_a_row),
    ("of escaped names", escaped_names),
    ("with refused transitions", refused_both),
    ("resumed by the reference", resumed),
]
