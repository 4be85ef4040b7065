"""The audit log in both directions: each program verifies, extends, packs and queries the other's.

Waybill has no command that writes an event of any kind: ours are those that mirror anchors.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import hmac
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import values
from harness import GENESIS, Reference, Suite, Waybill, same
from ledgers import run_id

LAYOUT = "%Y-%m-%dT%H:%M:%S.%fZ"


def run(suite: Suite, waybill: Waybill, reference: Reference, seed: str, count: int) -> None:
    """The fixed cases, then the random logs."""
    for name, check in FIXED:
        suite.case(
            f"audit log {name}",
            lambda folder, check=check: check(
                random.Random(0), Log(folder, waybill, reference, suite)
            ),
        )
    for number in range(count):
        rng = random.Random(f"audit log {seed} {number}")
        suite.case(
            f"audit log {number}",
            lambda folder, rng=rng: play(rng, Log(folder, waybill, reference, suite)),
        )


class Log:
    """A project's audit log, and what has to stand in it."""

    def __init__(
        self, folder: Path, waybill: Waybill, reference: Reference, suite: Suite, run_id: str = "g"
    ) -> None:
        self.folder = folder
        self.waybill = waybill
        self.reference = reference
        self.suite = suite
        self.run = run_id
        self.audit = folder / ".sdd" / "audit"
        self.rows: list[dict[str, Any]] = []
        self.today = datetime.datetime.now(datetime.UTC)
        reference("git", cwd=str(folder), argv=["init", "-q"])

    # Writing -------------------------------------------------------------------

    def they_append(
        self, events: list[dict[str, Any]], now: datetime.datetime | None = None
    ) -> None:
        """The reference's append, today or on another day."""
        shown = now.strftime(LAYOUT) if now else None
        self.rows += self.reference(
            "audit.append", workdir=str(self.folder), events=events, now=shown
        )["rows"]
        self.suite.saw("reference appends")

    def transition(self) -> None:
        """Something new to anchor."""
        made = [{"kind": "task.started", "task_id": "t"}]
        self.reference(
            "ledger.append", workdir=str(self.folder), run_id=self.run, transitions=made
        )

    def we_append(self) -> None:
        """Our anchor, and its event."""
        self.transition()
        said = self.ours("ledger", "anchor", self.run).json()
        same(said["mirrored"], True, "that we mirrored")
        self.mirrored("ours")
        self.suite.saw("we append")

    def they_anchor(self) -> None:
        """The reference's anchor, and its event."""
        self.transition()
        argv = ["ledger", "anchor", self.run, "--json"]
        done = self.reference("cli", argv=argv, cwd=str(self.folder))
        same(done["exit"], 0, f"the reference's anchor ({done['stdout']})")
        self.mirrored("the reference's")
        self.suite.saw("reference mirrors")

    def mirrored(self, whose: str) -> None:
        """Take over the event of an anchor, which must be as the format says."""
        days = sorted(self.audit.glob("*.jsonl"))
        line = days[-1].read_bytes().splitlines()[-1]
        row = json.loads(line)
        head = self.rows[-1]["hmac"] if self.rows else GENESIS
        meta = self.reference("ledger.anchored", run_id=self.run, repo=str(self.folder))["meta"]
        ref = f"refs/bernstein/work-ledger/{self.run}"
        argv = ["rev-parse", ref + "^{tree}"]
        tree = self.reference("git", cwd=str(self.folder), argv=argv)["stdout"].strip()
        details = {name: meta[name] for name in ("head_hash", "entry_count", "chunk_count")}
        details |= {"run_id": self.run, "ref": ref, "tree_sha": tree, "prev_chain_digest": head}
        expect = {
            "actor": "work_ledger",
            "details": details,
            "event_type": "work_ledger.anchor",
            "hmac": row["hmac"],
            "prev_hmac": head,
            "resource_id": self.run,
            "resource_type": "work_ledger",
            "scheme": 2,
            "timestamp": row["timestamp"],
        }
        same(line.decode("ascii"), json.dumps(expect, sort_keys=True), f"{whose} event")
        same(days[-1].name, row["timestamp"][:10] + ".jsonl", f"file of {whose} event")
        self.rows.append(row)

    def v1(self, day: datetime.datetime, count: int) -> None:
        """Rows of scheme 1, which no writer writes any more: by hand."""
        key = Path(self.waybill.env["BERNSTEIN_AUDIT_KEY_PATH"]).read_bytes()
        self.audit.mkdir(parents=True, exist_ok=True)
        with (self.audit / f"{day:%Y-%m-%d}.jsonl").open("a") as file:
            for index in range(count):
                row = {**event(random.Random(index)), "timestamp": day.strftime(LAYOUT)}
                row["prev_hmac"] = self.rows[-1]["hmac"] if self.rows else GENESIS
                text = row["prev_hmac"] + json.dumps(row, sort_keys=True)
                row["hmac"] = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
                file.write(json.dumps(row, sort_keys=True) + "\n")
                self.rows.append(row)

    # Packing -------------------------------------------------------------------

    def days(self) -> dict[str, bytes]:
        """Each day's rows, packed or not."""
        found = {path.name: path.read_bytes() for path in self.audit.glob("*.jsonl")}
        for path in self.audit.glob("archive/*"):
            same(path.suffix, ".gz", f"name of {path}")
            assert path.stem not in found, f"{path.stem} is there twice"
            found[path.stem] = gzip.decompress(path.read_bytes())
        return found

    def pack(self, ours: bool, retention: int) -> list[str]:
        """Pack the days that are older; the rows stay what they are."""
        before, live = self.days(), {path.name for path in self.audit.glob("*.jsonl")}
        if ours:
            said = self.ours("audit", "archive", "--older-than", str(retention)).json()
            packed = [name.removesuffix(".gz") for name in said["packed"]]
        else:
            packed = self.reference(
                "audit.archive", workdir=str(self.folder), retention_days=retention
            )["archived"]
        oldest = (self.today - datetime.timedelta(days=retention)).strftime("%Y-%m-%d.jsonl")
        same(sorted(packed), sorted(name for name in live if name < oldest), "packed days")
        same(self.days(), before, "the days after packing")
        self.suite.seen["days we pack" if ours else "days the reference packs"] += len(packed)
        return packed

    # Checking ------------------------------------------------------------------

    def ours(self, *argv: str, code: int = 0) -> Any:
        """A command of ours here."""
        return self.waybill(*argv, "--workdir", str(self.folder), "--json").expect(code)

    def they_verify(self) -> Any:
        """The reference's verdict."""
        return self.reference("audit.verify", workdir=str(self.folder))

    def we_verify(self, code: int = 0, verdict: str = "consistent") -> Any:
        """Our report."""
        report = self.ours("audit", "verify", code=code).json()
        same(report["verdict"], verdict, f"our verdict ({report['summary']})")
        return report

    def check(self) -> None:
        """Both find it good, with and without the key as far as that goes, and the same in it."""
        theirs = self.they_verify()
        same((theirs["ok"], theirs["errors"]), (True, []), "the reference's verdict")
        argv = ["audit", "verify-hmac"]
        done = self.reference("cli", argv=argv, cwd=str(self.folder))
        same(done["exit"], 0, f"exit code of the reference's verify-hmac ({done['stdout']})")
        self.we_verify()
        report = self.ours("audit", "verify", "--require", "hmac").json()
        facts = report["facts"]
        old = sum("scheme" not in row for row in self.rows)
        same((facts["entries"], facts["entries_scheme_1"]), (len(self.rows), old), "our entries")
        same(facts["head_hmac"], self.rows[-1]["hmac"], "our head")
        same(facts["files"], len(self.days()), "our files")
        key = self.waybill.env.pop("BERNSTEIN_AUDIT_KEY_PATH")
        try:
            self.we_verify(verdict="incomplete")
            self.ours("audit", "verify", "--require", "hmac", code=2)
        finally:
            self.waybill.env["BERNSTEIN_AUDIT_KEY_PATH"] = key
        rows = self.reference("audit.rows", workdir=str(self.folder))["rows"]
        hashes = [sorted(row["hmac"] for row in some) for some in (rows, self.rows)]
        same(hashes[0], hashes[1], "rows by the reference")
        self.query({}, [])

    def query(self, filters: dict[str, str], argv: list[str]) -> None:
        """Both find the same events, we in their order."""
        theirs = self.reference("audit.rows", workdir=str(self.folder), filters=filters)["rows"]
        found = {row["hmac"]: values.canonical(row["details"]) for row in theirs}
        listed = self.ours("audit", "log", *argv).lines()
        got = {row["hmac"]: values.canonical(spelled(row["details"])) for row in listed}
        same(got, found, f"events for {filters}")
        order = [row["hmac"] for row in self.rows if row["hmac"] in found]
        same([row["hmac"] for row in listed], order, f"order of the events for {filters}")
        self.suite.seen["events queried"] += len(listed)


def spelled(value: Any) -> Any:
    """As the driver shows it: lone surrogates as six characters."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [spelled(item) for item in value]
    if isinstance(value, dict):
        return {spelled(name): spelled(item) for name, item in value.items()}
    return value


def event(rng: random.Random) -> dict[str, Any]:
    """Any event."""
    return {
        "event_type": rng.choice(["task.done", "a", "x.y"]),
        "actor": rng.choice(["alice", "bob", "é\"\\"]),
        "resource_type": rng.choice(["task", ""]),
        "resource_id": values.text(rng),
        "details": values.plain(values.payload(rng)),
    }


def play(rng: random.Random, log: Log) -> None:
    """Days that the reference wrote, packed by either, then appends by turns today."""
    log.run = run_id(rng)
    ages = sorted(rng.sample(range(1, 40), k=rng.choice([0, 1, 3, 6])), reverse=True)
    if ages and rng.random() < 0.5:
        log.v1(log.today - datetime.timedelta(days=ages[0] + 1), rng.choice([1, 4]))
    for age in ages:
        day = log.today - datetime.timedelta(days=age)
        log.they_append([event(rng) for _ in range(rng.choice([1, 2, 5]))], day)
    if ages:
        log.check()
    turns: list[Callable[[], Any]] = [
        log.we_append,
        log.they_anchor,
        lambda: log.they_append([event(rng) for _ in range(rng.choice([1, 3]))]),
        lambda: log.pack(True, rng.choice([0, 1, 5, 20])),
        lambda: log.pack(False, rng.choice([1, 5, 20])),
    ]
    log.we_append()
    for _ in range(rng.choice([3, 5])):
        rng.choice(turns)()
    log.check()
    kind, actor = rng.choice(log.rows)["event_type"], rng.choice(log.rows)["actor"]
    log.query({"event_type": kind}, ["--type", kind])
    log.query({"actor": actor, "event_type": kind}, ["--actor", actor, "--type", kind])
    some = rng.choice(log.rows)["timestamp"]
    log.query({"since": some}, ["--since", some])
    rng.choice(HARMS)(rng, log)


# Edits -----------------------------------------------------------------------


def harm(rng: random.Random, log: Log, change: Callable[[list[bytes], int], None]) -> None:
    """A change of a line is found by both at the same line of the same day."""
    days = [path for path in sorted(log.audit.glob("*.jsonl")) if path.stat().st_size]
    path = rng.choice(days)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    index = rng.randrange(len(lines))
    change(lines, index)
    path.write_bytes(b"".join(lines))
    theirs = log.they_verify()
    if theirs["ok"]:  # the last rows of all were cut
        same(path, days[-1], "the day of what verifies")
        log.we_verify()
        return
    match = re.match(r"([0-9-]+\.jsonl):(\d+): ([\w -]+?)(?: \(|$)", theirs["errors"][0])
    assert match, theirs["errors"][0]
    fault = log.we_verify(code=2, verdict="failed")["facts"]["faults"][0]
    place = Path(fault["file"]).name, fault["line"]
    same(place, (match[1], int(match[2])), f"our place, given {theirs['errors'][0]!r}")
    names = {
        "HMAC mismatch": "hmac_mismatch",
        "prev_hmac mismatch": "prev_hmac_mismatch",
        "non-canonical line bytes": "not_canonical",
    }
    same(fault["fault"], names.get(match[3]), f"our fault, given {theirs['errors'][0]!r}")
    before = path.read_bytes()
    log.transition()
    log.waybill("ledger", "anchor", log.run, "--workdir", str(log.folder))
    same(path.read_bytes()[: len(before)], before, "the damaged day after an anchor")
    path.write_bytes(data)
    log.suite.saw("edits")


def edited(rng: random.Random, log: Log) -> None:
    """A field of a row."""

    def change(lines: list[bytes], index: int) -> None:
        row = json.loads(lines[index])
        form = rng.randrange(4)
        if form == 0:
            row["details"] = {"edited": rng.random()}
        elif form == 1:
            row[rng.choice(["actor", "resource_id", "event_type"])] = "edited"
        elif form == 2:
            row["hmac"] = f"{rng.getrandbits(256):064x}"
        else:
            row["timestamp"] = "2026-01-01T00:00:00.000000Z"
        if "prev_chain_digest" in row["details"] and form == 0:
            row["details"]["prev_chain_digest"] = row["prev_hmac"]
        lines[index] = json.dumps(row, sort_keys=True).encode() + b"\n"

    harm(rng, log, change)


def dropped(rng: random.Random, log: Log) -> None:
    """A row less."""

    def change(lines: list[bytes], index: int) -> None:
        del lines[index]

    harm(rng, log, change)


def doubled(rng: random.Random, log: Log) -> None:
    """A row twice."""

    def change(lines: list[bytes], index: int) -> None:
        lines.insert(index, lines[index])

    harm(rng, log, change)


def respelled(rng: random.Random, log: Log) -> None:
    """A row in another spelling, which an audit log doesn't take."""

    def change(lines: list[bytes], index: int) -> None:
        row = json.loads(lines[index])
        lines[index] = json.dumps(row, sort_keys=True, separators=(",", ": ")).encode() + b"\n"

    harm(rng, log, change)


HARMS = [edited, edited, dropped, doubled, respelled]


# Fixed cases -----------------------------------------------------------------


def turns(_: random.Random, log: Log) -> None:
    """Ours, then theirs, then ours, and so on, all of one chain."""
    rng = random.Random(1)
    for _ in range(3):
        log.we_append()
        log.check()
        log.they_append([event(rng)])
        log.they_anchor()
        log.check()
    for before, row in zip(log.rows, log.rows[1:], strict=False):
        same(row["prev_hmac"], before["hmac"], "the link")


def again(_: random.Random, log: Log) -> None:
    """What the reference has mirrored, we need not; what nobody has, we do."""
    log.they_anchor()
    same(log.ours("ledger", "anchor", log.run).json()["mirrored"], False, "that we mirror")
    log.check()
    log.transition()
    log.reference("ledger.anchor", workdir=str(log.folder), run_id=log.run)
    said = log.ours("ledger", "anchor", log.run).json()
    same((said["moved"], said["mirrored"]), (False, True), "what we did for the library's anchor")
    log.mirrored("ours")
    log.check()


def packed(rng: random.Random, log: Log) -> None:
    """Days of scheme 1 and 2, packed by one and then the other, and extended by both."""
    for age in (60, 50):
        log.v1(log.today - datetime.timedelta(days=age), 3)
    for age in (40, 30, 20, 10, 1):
        log.they_append(
            [event(rng) for _ in range(3)], log.today - datetime.timedelta(days=age)
        )
    log.check()
    for ours, retention, count in ((True, 45, 2), (False, 25, 2), (True, 15, 1), (False, 5, 1)):
        same(len(log.pack(ours, retention)), count, f"days packed for {retention}")
        log.check()
        same(log.pack(not ours, retention), [], "days packed again, by the other")
    log.we_append()
    log.they_append([event(rng)])
    same(len(log.pack(True, 0)), 1, "days packed for 0")
    log.check()
    log.they_anchor()
    log.we_append()
    log.check()
    since = (log.today - datetime.timedelta(days=25)).strftime(LAYOUT)
    until = (log.today - datetime.timedelta(days=5)).strftime(LAYOUT)
    log.query({"since": since, "until": until}, ["--since", since, "--until", until])


def many(rng: random.Random, log: Log) -> None:
    """A thousand events of any content."""
    log.they_append([event(rng) for _ in range(1000)])
    log.check()
    log.we_append()
    log.check()


def other_key(rng: random.Random, log: Log) -> None:
    """Under another key both fail at the first row."""
    log.we_append()
    log.they_append([event(rng)])
    log.check()
    other = log.folder / "other.key"
    other.touch(mode=0o600)
    other.write_text("a5" * 32)
    env = {"BERNSTEIN_AUDIT_KEY_PATH": str(other)}
    theirs = log.reference("audit.verify", env=env, workdir=str(log.folder))
    same(theirs["ok"], False, "the reference's verdict under another key")
    same(len(theirs["errors"]), 2, f"its errors ({theirs['errors']})")
    before = log.waybill.env
    log.waybill.env = {**before, **env}
    try:
        facts = log.we_verify(code=2, verdict="failed")["facts"]
    finally:
        log.waybill.env = before
    same([fault["line"] for fault in facts["faults"]], [1, 2], "lines of our faults")
    same({fault["fault"] for fault in facts["faults"]}, {"hmac_mismatch"}, "our faults")


def torn(rng: random.Random, log: Log) -> None:
    """A torn last line: both fail; our next append sets it aside, and then both find it good."""
    log.they_append([event(rng) for _ in range(3)])
    (path,) = log.audit.glob("*.jsonl")
    data = path.read_bytes()
    for size in (1, 20, 150):
        row = path.read_bytes().splitlines()[-1]
        with path.open("ab") as file:
            file.write(row[:size])
        same(log.they_verify()["ok"], False, "the reference's verdict")
        fault = log.we_verify(code=2, verdict="failed")["facts"]["faults"][0]
        same(fault["fault"], "torn_tail", "our fault")
        log.we_append()
        same(path.read_bytes()[: len(data)], data, "the rows before it")
        log.check()
        log.they_anchor()
        log.check()


def acknowledged(rng: random.Random, log: Log) -> None:
    """A tear that the reference seals and an operator acknowledges there.

    It then accepts whatever stands in the torn line's place; we accept no line that is no row,
    and leave the log as it is. Without that line both find it good and go on.
    """
    log.they_append([event(rng) for _ in range(3)])
    (path,) = log.audit.glob("*.jsonl")
    rows = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"actor": "x", "det')
    log.they_append([event(rng)])
    (tear,) = log.they_verify()["tears"]
    same((tear["sealed"], tear["acknowledged"]), (True, False), f"the tear ({tear})")
    same(tear["verified_prefix_offset"], len(rows), "where the tear begins")
    same(log.they_verify()["ok"], False, "the reference's verdict before the acknowledgement")
    argv = ["audit", "ack-tear", "--segment", path.name, "--offset", str(tear["byte_offset"])]
    argv += ["--reason", "looked at", "--actor", "operator"]
    done = log.reference("cli", argv=argv, cwd=str(log.folder))
    same(done["exit"], 0, f"exit code of the acknowledgement ({done})")
    same(log.they_verify()["ok"], True, "the reference's verdict behind it")
    mended = path.read_bytes()
    lines = mended.splitlines(keepends=True)
    other = b"".join([*lines[:3], b"anything else, and more of it\n", *lines[4:]])
    for data in (mended, other):
        path.write_bytes(data)
        same(log.they_verify()["ok"], True, "the reference's verdict, whatever the torn line is")
        (fault,) = log.we_verify(code=2, verdict="failed")["facts"]["faults"]
        found = fault["fault"], fault["line"], fault["byte"]
        same(found, ("interior_corruption", 4, len(rows)), "our fault")
        log.transition()
        log.waybill("ledger", "anchor", log.run, "--workdir", str(log.folder)).expect(2)
        same(path.read_bytes(), data, "the log after our anchor")
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    log.rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    log.check()
    log.we_append()
    log.check()


FIXED: list[tuple[str, Callable[[random.Random, Log], None]]] = [
    ("by turns", turns),
    ("of an anchor again", again),
    ("of several days, packed", packed),
    ("of a thousand events", many),
    ("under another key", other_key),
    ("with a torn tail", torn),
    ("with a tear that the reference acknowledged", acknowledged),
]
