"""Ledgers that are worth never missing, those of past differences among them."""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Callable
from typing import Any

import values
from harness import Refused, same
from ledger import TASK_KINDS, Ledger, Transition
from values import Speller


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
