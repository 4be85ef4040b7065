"""A supervised run of ours that stalls, as the reference sees it while it hangs.

The reference takes everything behind a receipt's window for part of it, so it is asked before the
run goes on; afterwards only we can still say that the receipt holds.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harness import same

if TYPE_CHECKING:
    from receipts import Project

PATIENCE = 30
SCRIPT = """
"$0" record --kind task.started --task t -q
"$0" record --event tool.called --data '{"n":1}' --worker w1 -q
"$0" record --heartbeat --worker w1 -q
exec sleep 100
"""


def stalled(project: Project, run: str, key: str) -> None:
    """A worker hangs; both say what is recorded of it."""
    project.we("keys", "init").expect(0)
    data = ["--data-dir", str(project.folder / "data")]
    options = ["--detach", "--id", run, "--stall-after", "300ms", "--grace", "1s"]
    binary = str(project.waybill.binary)
    project.we(*data, "run", *options, "--", "sh", "-c", SCRIPT, binary).expect(0)
    try:
        receipt_id = wait_for_receipt(project)
        theirs = project.they("receipt.verify", receipt_id=receipt_id, key=key)
        assert theirs["ok"], theirs
        events = project.they("journal.verify", run_id=run)
        assert events["chain_consistent"], events
    finally:
        project.we(*data, "jobs", "stop", run).expect(0)
    report = project.we("escalation", "verify", receipt_id, "--json").expect(0).json()
    same(report["verdict"], "consistent", "verdict behind the end")
    same(report["facts"]["stall_reason"], "heartbeat_stale", "stall reason")
    ledger = project.they("ledger.verify", run_id=run)
    assert ledger["ok"], ledger


def wait_for_receipt(project: Project) -> str:
    """Give the only receipt's id, once it is listed."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        listed = project.we("escalation", "list", "--json").expect(0).json()["receipts"]
        if listed:
            return str(listed[0].get("receipt_id") or listed[0]["id"])
        time.sleep(0.1)
    raise AssertionError("the stall left no receipt")
