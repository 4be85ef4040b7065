#!/usr/bin/env python3
"""Receipts, audit logs, spines, event journals and snapshots in both directions.

A part of the suite, and a program of its own: ``receipts.py [--waybill PATH] [--count 30]``, run
with an interpreter that has the reference.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True  # leave nothing in the repository

from harness import Reference, Suite, Waybill, same  # noqa: E402
from runs import stalled  # noqa: E402

RUN = "run-7"
KEY = "56457cd05a289763297d55fc5681282e551ea32c49e6b0b0dbfa3891b008c147"
REASONS = [
    "manager_no_children",
    "watchdog_model_question",
    "respawn_budget_exhausted",
    "heartbeat_stale",
    "no_progress",
    "intent_drift",
    "unknown",
    "cohort_laggard",
    "artefact_no_progress",
    "repeated_command",
]
EVENTS = ["tool.called", "tool.failed", "a.error", "Auth.denied", "x", "build.errored", "beat"]
TEXTS = ["worker-1", "w é", "日本語", "a\u202eb", "😀", "w" * 90, "q\"\\/"]


def run(suite: Suite, waybill: Waybill, reference: Reference, seed: str, count: int) -> None:
    """Random receipts in both directions, and audit logs."""
    # The key is found at its usual place here; a variable of other parts would win over it.
    waybill = waybill.without("BERNSTEIN_AUDIT_KEY_PATH")
    key_file = Path(waybill.env["HOME"], ".local/state/bernstein/audit.key")
    key_file.parent.mkdir(parents=True, exist_ok=True)
    key_file.write_text(KEY)
    key_file.chmod(0o600)
    suite.case(
        "receipt of a supervised run",
        lambda folder: stalled(Project(folder, waybill, reference, suite), RUN, KEY),
    )
    for number in range(count):
        for name, play in (("ours", ours), ("theirs", theirs), ("audit", audit)):
            rng = random.Random(f"{name} {seed} {number}")
            suite.case(
                f"receipt {name} {number}",
                lambda folder, play=play, rng=rng: play(
                    rng, Project(folder, waybill, reference, suite)
                ),
            )


class Project:
    """A project folder that both programs work on, in turns."""

    def __init__(self, folder: Path, waybill: Waybill, reference: Reference, suite: Suite) -> None:
        self.folder = folder
        self.waybill = waybill
        self.reference = reference
        self.suite = suite
        self.repository = False

    def we(self, *argv: str, stdin: bytes = b"") -> Any:
        """Run our program on the project."""
        return self.waybill("--workdir", str(self.folder), *argv, stdin=stdin)

    def they(self, op: str, **args: Any) -> Any:
        """Run an operation of the reference on the project."""
        return self.reference(op, workdir=str(self.folder), **args)

    def init(self) -> None:
        """Make it a repository with a commit."""
        ident = ["-c", "user.name=t", "-c", "user.email=t@e"]
        for argv in (["init", "-q"], [*ident, "commit", "-q", "--allow-empty", "-m", "one"]):
            done = self.reference("git", cwd=str(self.folder), argv=argv)
            assert done.get("exit", done.get("code", 0)) in (0, None), done
        self.repository = True

    def events(self, rng: random.Random, count: int, profile: str | None) -> None:
        """Record events, by one of the two."""
        if count == 0:
            return
        made = [
            (rng.choice(EVENTS), {"n": n, "t": rng.choice(TEXTS), "f": rng.random()})
            for n in range(count)
        ]
        ours = rng.random() < 0.5
        self.suite.saw(f"events by {'us' if ours else 'the reference'}")
        if ours:
            lines = "".join(json.dumps({"event": event, **data}) + "\n" for event, data in made)
            more = ["--hash-profile", profile] if profile else []
            argv = ["journal", "record", RUN, "--stdin", "--durability", "os", *more]
            self.we(*argv, stdin=lines.encode()).expect(0)
        else:
            more = {"hash_profile": profile} if profile else {}
            self.they(
                "journal.append",
                run_id=RUN,
                events=[{"event": event, "data": data} for event, data in made],
                **more,
            )

    def journal(self) -> None:
        """Both say that the journal holds."""
        path = self.folder / ".sdd/runs" / RUN / "journal.jsonl"
        if not path.exists():
            return
        theirs = self.they("journal.verify", run_id=RUN)
        assert theirs["chain_consistent"] and theirs["coverage"] == "complete", theirs
        report = self.we("journal", "verify", RUN, "--json").expect(0).json()
        assert report["verdict"] in ("consistent", "empty"), report

    def snapshot(self, rng: random.Random, step: int) -> None:
        """Keep the working tree, by one of the two."""
        (self.folder / "file").write_text(str(rng.random()))
        if rng.random() < 0.5:
            self.suite.saw("snapshot by us")
            self.we("snapshot", RUN, "--step", str(step)).expect(0)
        else:
            self.suite.saw("snapshot by the reference")
            self.they("snapshot.take", run_id=RUN, step_index=step, record=True)

    def verified(self, receipt_id: str, verdict: str, warn: set[str] | None = None) -> Any:
        """We say that a receipt holds."""
        report = self.we("escalation", "verify", receipt_id, "--json").expect(0).json()
        same(report["verdict"], verdict, f"verdict ({report['summary']})")
        if warn is not None:
            warned = {check["id"] for check in report["checks"] if check["status"] == "warn"}
            same(sorted(warned), sorted(warn | {"receipt.signer"}), "warnings")
        return report


def journal_of(rng: random.Random, project: Project) -> tuple[str, int | None]:
    """A random journal: what a receipt on it is worth, and the step of a snapshot in it."""
    kind = rng.choice(["short", "long", "long", "long", "empty", "missing"])
    profile = rng.choice([None, "jcs-v2"])
    project.suite.saw(f"journal {kind}{' ' + profile if profile else ''}")
    if kind == "missing":
        return "degraded", None
    if kind == "empty":
        folder = project.folder / ".sdd/runs" / RUN
        folder.mkdir(parents=True)
        (folder / "journal.jsonl").write_bytes(b"")
        return "degraded", None
    project.events(rng, rng.randrange(1, 15) if kind == "short" else rng.randrange(16, 50), profile)
    step = None
    if rng.random() < 0.5:
        project.init()
        step = rng.randrange(0, 9)
        project.snapshot(rng, step)
        project.events(rng, rng.randrange(0, 20), None)
    project.journal()
    return "consistent", step


def extra_of(rng: random.Random) -> dict[str, Any] | None:
    """Something else to sign, or nothing."""
    if rng.random() < 0.5:
        return None
    return rng.choice(
        [{}, {"é": "日本", "n": [1, 2.5, None]}, {"big": 10**30, "x": {"y": {"z": "\u2028"}}}]
    )


def ours(rng: random.Random, project: Project) -> None:
    """We emit, they verify; then the run goes on, and we still verify."""
    verdict, step = journal_of(rng, project)
    project.we("keys", "init").expect(0)
    reason = rng.choice(REASONS)
    argv = ["--worker", rng.choice(TEXTS), "--session", rng.choice(TEXTS)]
    argv += ["--worktree", rng.choice(TEXTS), "--reason", reason]
    argv += ["--budget", str(rng.randrange(4)), "--timestamp", str(rng.randrange(2**33))]
    if step is not None:
        argv += ["--fork-step", str(step)]
    extra = extra_of(rng)
    if extra is not None:
        argv += ["--extra", json.dumps(extra)]
    for _ in range(rng.choice([1, 1, 2])):
        made = project.we("escalation", "emit", RUN, *argv, "--json").expect(0).json()
    receipt_id = made["receipt_id"]
    theirs = project.they("receipt.verify", receipt_id=receipt_id, key=KEY)
    assert theirs["ok"], theirs
    shown = project.they("receipt.show", receipt_id=receipt_id)
    mine = project.we("escalation", "show", receipt_id, "--json").expect(0).json()
    if mine["fork_snapshot_sha"] is None:
        mine["fork_snapshot_sha"] = ""
    same(mine, shown["projection"], "projection")
    assert project.they("spine.verify", run_id="escalations", key=KEY)["ok"]
    assert project.they("audit.verify", key=KEY)["ok"]
    project.verified(receipt_id, verdict, set())
    project.suite.saw(f"we recommend {mine['recommended_action']}")
    if verdict == "consistent":
        project.events(rng, rng.randrange(1, 30), None)
        project.verified(receipt_id, verdict, set())
    if step is not None:
        forked = project.they("fork", run_id=RUN, from_step=step)
        assert forked, forked
        forking = ["fork", "--run", RUN, "--from-step", str(step), "--json"]
        child = project.we(*forking).expect(0).json()
        events = project.they("journal.verify", run_id=child["run_id"])
        assert events["chain_consistent"], events


def theirs(rng: random.Random, project: Project) -> None:
    """They emit, we verify, also after the run has gone on."""
    verdict, step = journal_of(rng, project)
    fields: dict[str, Any] = {
        "worker_id": rng.choice(TEXTS),
        "session_id": rng.choice(TEXTS),
        "worktree_id": rng.choice(TEXTS),
        "stall_reason": rng.choice(REASONS),
        "respawn_budget_remaining": rng.randrange(4),
        "timestamp": rng.randrange(2**33),
    }
    if step is not None:
        fields["fork_step"] = step
    extra = extra_of(rng)
    if extra is not None:
        fields["extra_binding"] = extra
    made = project.they("receipt.emit", run_id=RUN, key=KEY, fields=fields)
    receipt_id = made["receipt_id"]
    assert project.they("receipt.verify", receipt_id=receipt_id, key=KEY)["ok"]
    report = project.verified(receipt_id, verdict, set())
    same(report["facts"]["stall_reason"], fields["stall_reason"], "stall reason")
    project.suite.saw(f"they recommend {report['facts']['recommended_action']}")
    if verdict == "consistent":
        project.events(rng, rng.randrange(1, 30), None)
        project.verified(receipt_id, verdict, set())
    # Ours and theirs on one spine, with their identity.
    project.we("escalation", "emit", RUN, "--worker", "w", "--reason", "unknown").expect(0)
    assert project.they("spine.verify", run_id="escalations", key=KEY)["ok"]
    listed = project.we("escalation", "list", "--json").expect(0).json()
    same(len(listed["receipts"]), 2, "receipts listed")
    for receipt in listed["receipts"]:
        assert receipt["verdict"] in ("consistent", "degraded"), receipt


def audit(rng: random.Random, project: Project) -> None:
    """One log that both append to and pack, over several days up to today."""
    project.we("keys", "init").expect(0)
    day = 86_400
    now = int(time.time()) - 6 * day
    count = 0
    for turn in range(rng.randrange(2, 5)):
        events = [
            {
                "event_type": rng.choice(["a.b", "tool.call"]),
                "actor": rng.choice(TEXTS),
                "resource_type": "thing",
                "resource_id": rng.choice(TEXTS),
                "details": {"n": n, "é": rng.choice(TEXTS), "f": rng.random()},
                "now": stamp(now + turn * day + n),
            }
            for n in range(rng.randrange(1, 6))
        ]
        project.they("audit.append", key=KEY, events=events)
        count += len(events)
    for worker in range(rng.randrange(1, 4)):
        emit = ["escalation", "emit", RUN, "--worker", f"w{worker}", "--reason", "unknown"]
        project.we(*emit).expect(0)
        count += 1
        check(project, count)
    if rng.random() < 0.5:
        project.suite.saw("packed by us")
        project.we("audit", "archive", "--older-than", str(rng.randrange(0, 6))).expect(0)
    else:
        project.suite.saw("packed by the reference")
        project.they("audit.archive", key=KEY, retention_days=rng.randrange(1, 6))
    check(project, count)
    project.they(
        "audit.append",
        key=KEY,
        events=[
            {
                "event_type": "x",
                "actor": "a",
                "resource_type": "t",
                "resource_id": "i",
                "details": {},
            }
        ],
    )
    project.we("escalation", "emit", RUN, "--worker", "last", "--reason", "unknown").expect(0)
    check(project, count + 2)


def check(project: Project, count: int) -> None:
    """Both say that the log holds, and read the same rows."""
    theirs = project.they("audit.verify", key=KEY)
    assert theirs["ok"], theirs
    report = project.we("audit", "verify", "--json").expect(0).json()
    said = (report["verdict"], report["facts"]["entries"])
    same(said, ("consistent", count), "our verdict on the log")
    rows = project.they("audit.rows", key=KEY)["rows"]
    mine = project.we("audit", "log", "--json").expect(0).lines()
    same(sorted(row["hmac"] for row in mine), sorted(row["hmac"] for row in rows), "rows")


def stamp(seconds: int) -> str:
    """A time as the driver takes it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def main() -> int:
    """Run this part alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR") or root / "target")
    parser.add_argument("--waybill", type=Path, default=target / "debug" / "waybill")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="waybill-interop-"))
    home = scratch / "home"
    home.mkdir(mode=0o700)
    reference = Reference()
    suite = Suite(scratch, options.keep, options.only)
    try:
        run(suite, Waybill(options.waybill, home), reference, options.seed, options.count)
    finally:
        reference.close()
        shutil.rmtree(scratch, ignore_errors=True)
    for what, times in sorted(suite.seen.items()):
        print(f"{times:6} {what}")
    print(f"{suite.passed} passed, {len(suite.failed)} failed")
    return 1 if suite.failed or not suite.passed else 0


if __name__ == "__main__":
    sys.exit(main())
