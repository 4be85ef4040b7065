"""One run's ledger, which the two programs write and check in turns."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import values
from harness import GENESIS, Reference, Suite, Waybill, same
from values import Speller

TASK_KINDS = [
    "task.scheduled", "task.started", "task.completed", "task.failed", "task.abandoned",
    "task.suspended", "task.resumed",
]  # fmt: skip

# A transition: kind, task id, payload.
Transition = tuple[str, str, dict[str, Any]]


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
