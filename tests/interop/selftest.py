#!/usr/bin/env python3
"""Run each operation of driver.py at least once, in a temporary folder.

    /path/to/venv/bin/python tests/interop/selftest.py [-v]

The interpreter must have the reference installed. Prints one line an
operation and a closing line ``N passed, N failed``; the exit code is 1 where
anything failed.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEY = "k" * 64
DRIVER = Path(__file__).with_name("driver.py")
ENTRY = {
    "artifact_path": "a/b",
    "content": "x",
    "actor": "me",
    "step_id": "s",
    "model": "m",
    "timestamp": 5,
}
EVENT = {"event_type": "t", "actor": "a", "resource_type": "r", "resource_id": "i"}


class Driver:
    """One running driver."""

    def __init__(self, verbose: bool) -> None:
        self.count = 0
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if verbose else subprocess.DEVNULL,
        )

    def raw(self, line: bytes) -> dict[str, Any]:
        """Send a line as it is; the answer."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def request(self, op: str, args: dict[str, Any], env: dict[str, Any]) -> dict[str, Any]:
        """Send a request; the whole answer."""
        self.count += 1
        request = {"id": self.count, "op": op, "args": args, "env": env}
        answer = self.raw(json.dumps(request).encode())
        assert answer["id"] == self.count, answer
        return answer

    def __call__(self, op: str, /, env: dict[str, Any] | None = None, **args: Any) -> Any:
        """Send a request; its result, or an AssertionError."""
        answer = self.request(op, args, env or {})
        assert answer["ok"], answer["error"]
        return answer["result"]

    def close(self) -> int:
        """End the driver; its exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(timeout=30)


class Suite:
    """The checks. Each is named after the operation it is about."""

    def __init__(self, driver: Driver, root: Path) -> None:
        self.d = driver
        self.root = root
        self.work = root / "work"
        self.work.mkdir()
        self.w = str(self.work)
        self.key_file = root / "audit.key"
        self.key_file.write_text(KEY + "\n")
        self.key_file.chmod(0o600)
        self.git("init", "-q", "-b", "main", ".")
        (self.work / "file.txt").write_text("hello\n")
        self.git("add", "file.txt")
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first")
        self.git("init", "-q", "--bare", "-b", "main", str(root / "remote.git"))
        self.git("remote", "add", "origin", str(root / "remote.git"))
        self.git("push", "-q", "origin", "main")

    def git(self, *argv: str, cwd: str | None = None) -> str:
        result = self.d("git", cwd=cwd or self.w, argv=list(argv))
        assert result["exit"] == 0, result
        return result["stdout"]

    def fails(self, op: str, kind: str, /, **args: Any) -> None:
        """The operation answers with an error of this type."""
        answer = self.d.request(op, args, {})
        assert not answer["ok"] and answer["error"].startswith(kind), answer

    # -- the driver ---------------------------------------------------------

    def check_ping(self) -> None:
        assert "ledger.verify" in self.d("ping")["ops"]
        assert self.d.raw(b"not json")["id"] is None
        assert not self.d.raw(b'\xff{"id":1}')["ok"]
        assert not self.d.raw(b"[1]")["ok"]
        assert self.d.raw(b'{"id":"x","op":"nope"}')["error"].startswith("ValueError")

    def check_env_set(self) -> None:
        self.d("env.set", vars={"BERNSTEIN_AUDIT_KEY_PATH": str(self.key_file)})
        assert self.d("audit.key")["key"] == KEY
        self.d("env.set", vars={"BERNSTEIN_AUDIT_KEY_PATH": None})

    def check_git(self) -> None:
        assert self.git("rev-parse", "--is-bare-repository") == "false\n"

    def check_cli(self) -> None:
        argv = ["ledger", "verify", "nope", "--workdir", self.w]
        assert self.d("cli", argv=argv)["exit"] == 1
        assert self.d("cli", argv=["ledger", "runs", "--json"], cwd=self.w)["json"]["runs"] == []

    # -- 1 ------------------------------------------------------------------

    def check_json_encode(self) -> None:
        texts = ['{"b":1e5,"a":"\\ud800"}', '"é\\u007f"', "1e400", '{"a":1,"a":2}', "[NaN]", "[1"]
        raw = [base64.b64encode(b"\xff").decode()]
        rows = self.d("json.encode", texts=texts, texts_b64=raw)["results"]
        assert rows[0]["ascii"] == '{"a":"\\ud800","b":100000.0}'
        assert rows[0]["ascii_spaced"] == '{"a": "\\ud800", "b": 100000.0}'
        assert rows[0]["utf8_refused"] == rows[0]["jcs_v2_refused"] == "UnicodeEncodeError"
        assert rows[1]["ascii"] == '"\\u00e9\\u007f"' and rows[1]["utf8"] == '"é\x7f"'
        assert [row.get("flags") for row in rows[2:5]] == [
            ["overflow"],
            ["duplicate_key"],
            ["constant"],
        ]
        assert rows[5]["refused"] == "JSONDecodeError"
        assert rows[6]["refused"] == "UnicodeDecodeError"

    def check_redact(self) -> None:
        row = self.d("redact", texts=["password=hunter2"])["results"][0]
        assert row == {"text": "password=***REDACTED***", "count": 1}

    # -- 2 ------------------------------------------------------------------

    def check_ledger_create(self) -> None:
        made = self.d("ledger.create", workdir=self.w, run_id="r", open_payload={"run_id": "r"})
        self.handle = made["handle"]
        assert made["entries"] == 1 and made["rows"][0]["kind"] == "run.open"

    def check_ledger_append(self) -> None:
        rows = [{"kind": "task.scheduled", "task_id": "a", "payload": {"n": 1}}]
        made = self.d("ledger.append", handle=self.handle, transitions=rows, now=1700000000.5)
        assert made["rows"][0]["ts"] == 1700000000.5
        rows = [{"kind": "task.started", "task_id": "a"}]
        made = self.d("ledger.append", workdir=self.w, run_id="r", transitions=rows)
        assert made["entries"] == 3
        bad = [{"kind": "run.nope"}]
        self.fails("ledger.append", "LedgerError", workdir=self.w, run_id="r", transitions=bad)

    def check_ledger_close(self) -> None:
        assert self.d("ledger.close", handle=self.handle)["entries"] == 2
        self.fails("ledger.close", "KeyError", handle=self.handle)

    def check_ledger_verify(self) -> None:
        seen = self.d("ledger.verify", workdir=self.w, run_id="r")
        assert seen["ok"] and seen["exists"] and seen["entries"] == 3
        wrong = self.d("ledger.verify", workdir=self.w, run_id="r", expected_head="0" * 64)
        assert not wrong["ok"] and "head mismatch" in wrong["errors"][0]

    def check_ledger_state(self) -> None:
        seen = self.d("ledger.state", workdir=self.w, run_id="r")
        assert seen["frontier"] == ["a"] and json.loads(seen["canonical"])["entries"] == 3

    def check_ledger_rows(self) -> None:
        rows = self.d("ledger.rows", workdir=self.w, run_id="r")["rows"]
        assert [row["seq"] for row in rows] == [0, 1, 2]

    def check_ledger_lines(self) -> None:
        path = self.work / ".sdd/runtime/ledger/r/000000.jsonl"
        seen = self.d("ledger.lines", path=str(path))
        assert "\n".join(seen["lines"]) + "\n" == path.read_text()

    def check_ledger_hash(self) -> None:
        row = self.d("ledger.rows", workdir=self.w, run_id="r")["rows"][1]
        seen = self.d("ledger.hash", entries=[row])["results"][0]
        assert seen["entry_hash"] == row["entry_hash"] and '"kind"' in seen["preimage"]

    def check_ledger_compare(self) -> None:
        path = str(self.work / ".sdd/runtime/ledger/r")
        assert self.d("ledger.compare", local=path, remote=path)["relation"] == "identical"

    def check_ledger_resume(self) -> None:
        plan = self.d("ledger.resume", workdir=self.w, run_id="r", dry_run=True)
        assert plan["exit"] == 0 and plan["json"]["resume_frontier"] == ["a"]
        done = self.d("ledger.resume", workdir=self.w, run_id="r")
        assert done["exit"] == 0 and [s["name"] for s in done["signals"]] == ["a.signal"]
        signal = json.loads(base64.b64decode(done["signals"][0]["b64"]))
        assert signal["run_id"] == "r" and signal["resume_count"] == 0

    # -- 3 ------------------------------------------------------------------

    def check_ledger_anchor(self) -> None:
        first = self.d("ledger.anchor", workdir=self.w, run_id="r")
        assert first["entry_count"] == 4 and first["chunk_count"] == 1
        rows = [{"kind": "task.completed", "task_id": "a"}]
        self.d("ledger.append", workdir=self.w, run_id="r", transitions=rows)
        second = self.d("ledger.anchor", workdir=self.w, run_id="r", chunk_lines=2)
        assert second["chunk_count"] == 3
        assert self.git("rev-parse", second["ref"] + "^").strip() == first["commit_sha"]

    def check_ledger_runs(self) -> None:
        assert self.d("ledger.runs", workdir=self.w)["runs"] == ["r"]

    def check_ledger_anchored(self) -> None:
        seen = self.d("ledger.anchored", repo=self.w, run_id="r", rows=True)
        assert seen["verification"]["ok"] and seen["meta"]["entry_count"] == len(seen["rows"]) == 5

    def check_ledger_push(self) -> None:
        assert self.d("ledger.push", workdir=self.w, run_id="r")["exit"] == 0

    def check_ledger_fetch(self) -> None:
        self.git("clone", "-q", str(self.root / "remote.git"), str(self.root / "clone"))
        clone = str(self.root / "clone")
        seen = self.d("ledger.fetch", workdir=clone, run_id="r")
        assert seen["action"] == "created" and seen["entry_count"] == 5
        self.fails("ledger.fetch", "LedgerGitError", workdir=clone, run_id="nope")

    def check_ledger_materialize(self) -> None:
        seen = self.d("ledger.materialize", workdir=str(self.root / "clone"), run_id="r")
        assert seen["action"] == "unchanged"

    def check_ledger_gc(self) -> None:
        assert self.d("ledger.gc", workdir=self.w, run_id="r")["dropped_commits"] == 1

    # -- 4 ------------------------------------------------------------------

    def check_step_journal_append(self) -> None:
        steps = [{"input_hash": "a", "model": "m", "effort": "low"}, {"input_hash": "b"}]
        made = self.d("step_journal.append", workdir=self.w, agent_id="ag", steps=steps, now=1.5)
        assert made["steps"] == 2 and made["rows"][0]["ts"] == 1.5

    def check_step_journal_verify(self) -> None:
        seen = self.d("step_journal.verify", workdir=self.w, agent_id="ag")
        assert seen["ok"] and seen["steps"] == 2

    def check_step_journal_rows(self) -> None:
        rows = self.d("step_journal.rows", workdir=self.w, agent_id="ag")["rows"]
        assert [row["input_hash"] for row in rows] == ["a", "b"]

    def check_step_journal_hash(self) -> None:
        rows = self.d("step_journal.rows", workdir=self.w, agent_id="ag")["rows"]
        seen = self.d("step_journal.hash", steps=rows)["results"]
        assert [s["step_hash"] for s in seen] == [row["step_hash"] for row in rows]

    # -- 5 ------------------------------------------------------------------

    def check_journal_append(self) -> None:
        events = [{"event": "a", "data": {"x": 1.0}}, {"event": "b"}]
        for run, profile in (("py", "py-json-v1"), ("jcs", "jcs-v2")):
            made = self.d(
                "journal.append",
                workdir=self.w,
                run_id=run,
                events=events,
                hash_profile=profile,
                now=1.5,
            )
            assert made["count"] == 2
            made = self.d("journal.append", workdir=self.w, run_id=run, events=events)
            assert made["count"] == 4

    def check_journal_verify(self) -> None:
        for run in ("py", "jcs"):
            seen = self.d("journal.verify", workdir=self.w, run_id=run)
            assert seen["chain_consistent"] and seen["coverage"] == "complete"
        seal = {"head": seen["head"], "event_count": 4}
        seen = self.d("journal.verify", workdir=self.w, run_id="jcs", seal=seal)
        assert seen["identity"] == "verified"

    def check_journal_rows(self) -> None:
        seen = self.d("journal.rows", workdir=self.w, run_id="jcs", strict=True)
        assert seen["events"][3]["hash_profile"] == "jcs-v2"

    def check_journal_hash(self) -> None:
        row = self.d("journal.rows", workdir=self.w, run_id="py")["events"][1]
        fields = {name: row[name] for name in ("prev_hash", "payload_hash", "index")}
        seen = self.d("journal.hash", events=[{**fields, "event_type": row["event"]}])
        assert seen["hashes"] == [row["event_hash"]]

    def check_journal_repair(self) -> None:
        self.d("journal.append", workdir=self.w, run_id="torn", events=[{"event": "a"}])
        path = self.work / ".sdd/runs/torn/journal.jsonl"
        with path.open("a") as file:
            file.write('{"torn')
        events = [{"event": "b"}]
        self.fails("journal.append", "ValueError", workdir=self.w, run_id="torn", events=events)
        assert self.d("journal.repair", path=str(path))["repaired"]

    def check_journal_rebuild(self) -> None:
        seen = self.d("journal.rebuild", workdir=self.w, run_id="py", from_step=2)
        assert seen["step_count"] == 2 and seen["events"] == ["a", "b"]

    def check_journal_seal(self) -> None:
        seen = self.d("journal.seal", workdir=self.w, run_id="py", key=KEY)
        assert seen["entry_hash"].startswith("sha256:")

    # -- 6 ------------------------------------------------------------------

    def check_spine_append(self) -> None:
        entries = [ENTRY, {**ENTRY, "traceparent": "tp"}]
        made = self.d("spine.append", workdir=self.w, run_id="s", key=KEY, entries=entries)
        assert made["rows"][1]["v"] == 2 and made["rows"][1]["traceparent"] == "tp"

    def check_spine_append_v1(self) -> None:
        made = self.d("spine.append_v1", workdir=self.w, run_id="s", key=KEY, entries=[ENTRY])
        assert made["rows"][0]["v"] == 1

    def check_spine_verify(self) -> None:
        seen = self.d("spine.verify", workdir=self.w, run_id="s", key_file=str(self.key_file))
        assert seen["ok"] and seen["count"] == 3
        assert not self.d("spine.verify", workdir=self.w, run_id="s", key="other")["ok"]

    def check_spine_rows(self) -> None:
        seen = self.d("spine.rows", workdir=self.w, run_id="s", key_hex=KEY.encode().hex())
        assert [row["v"] for row in seen["rows"]] == [2, 2, 1]

    # -- 7 ------------------------------------------------------------------

    def check_audit_append(self) -> None:
        events = [
            {**EVENT, "details": {"é": 1}, "now": "2026-01-01T10:00:00Z"},
            {**EVENT, "now": "2026-01-02T10:00:00Z"},
        ]
        rows = self.d("audit.append", workdir=self.w, key=KEY, events=events)["rows"]
        assert rows[1]["timestamp"] == "2026-01-02T10:00:00.000000Z"
        assert rows[1]["prev_hmac"] == rows[0]["hmac"]

    def check_audit_append_chained(self) -> None:
        events = [{**EVENT, "details": {}}]
        made = self.d(
            "audit.append_chained",
            workdir=self.w,
            key=KEY,
            events=events,
            now="2026-01-03T00:00:00Z",
        )
        row = made["rows"][0]
        assert row["details"]["prev_chain_digest"] == row["prev_hmac"]

    def check_audit_mirror_anchor(self) -> None:
        fields = {
            "run_id": "r",
            "head_hash": "0" * 64,
            "entry_count": 1,
            "chunk_count": 1,
            "ref": "refs/x",
            "tree_sha": "1" * 40,
        }
        made = self.d("audit.mirror_anchor", workdir=self.w, key=KEY, fields=fields)
        assert made["row"]["event_type"] == "work_ledger.anchor"

    def check_audit_mirror_receipt(self) -> None:
        fields = {
            "run_id": "r",
            "worker_id": "w",
            "stall_reason": "unknown",
            "recommended_action": "inspect",
            "journal_head_at_stall": "",
            "window_size": 0,
            "fork_snapshot_sha": "",
            "journal_entry_hash": "sha256:" + "0" * 64,
        }
        made = self.d("audit.mirror_receipt", workdir=self.w, key=KEY, fields=fields)
        assert made["row"]["event_type"] == "escalation.receipt"

    def check_audit_archive(self) -> None:
        made = self.d(
            "audit.archive", workdir=self.w, key=KEY, retention_days=1, now="2026-01-03T12:00:00Z"
        )
        assert made["archived"] == ["2026-01-01.jsonl"]

    def check_audit_verify(self) -> None:
        seen = self.d("audit.verify", workdir=self.w, key=KEY)
        assert seen["ok"], seen
        assert not self.d("audit.verify", workdir=self.w, key="other")["ok"]

    def check_audit_rows(self) -> None:
        assert len(self.d("audit.rows", workdir=self.w, key=KEY)["rows"]) == 5
        filters = {"event_type": "t", "include_archived": False}
        assert len(self.d("audit.rows", workdir=self.w, key=KEY, filters=filters)["rows"]) == 2

    def check_audit_key(self) -> None:
        path = str(self.root / "new" / "audit.key")
        self.fails("audit.key", "AuditKeyMissingError", key_path=path)
        made = self.d("audit.key", key_path=path, create=True)["key"]
        assert len(made) == 64 and self.d("audit.key", key_path=path)["key"] == made

    # -- 8 ------------------------------------------------------------------

    def check_identity_load(self) -> None:
        made = self.d("identity.load", workdir=self.w)
        assert made["files"] == ["escalation-identity-key.pem", "escalation-identity-public.pem"]
        assert self.d("identity.load", workdir=self.w) == made

    def check_snapshot_take(self) -> None:
        made = self.d("snapshot.take", workdir=self.w, run_id="snap", step_index=0, record=True)
        assert made["ref"] == "refs/bernstein/snapshots/snap/0" and made["count"] == 1
        self.snapshot = made["snapshot_sha"]

    def check_snapshot_resume(self) -> None:
        dest = str(self.root / "dest")
        seen = self.d("snapshot.resume", repo=self.w, snapshot_sha=self.snapshot, dest=dest)
        assert "file.txt" in seen["files"]

    def check_fork(self) -> None:
        made = self.d("fork", workdir=self.w, run_id="snap", from_step=0, key=KEY)
        assert made["snapshot_sha"] == self.snapshot and made["parent_run_id"] == "snap"
        self.fails("fork", "ForkError", workdir=self.w, run_id="snap", from_step=9)

    def check_receipt_emit(self) -> None:
        fields = {"fork_step": 0, "extra_binding": {"z": 1}}
        made = self.d("receipt.emit", workdir=self.w, key=KEY, run_id="snap", fields=fields)
        assert made["receipt"]["fork_ref"]["snapshot_sha"] == self.snapshot
        assert base64.b64decode(made["file_b64"]) == Path(made["path"]).read_bytes()
        self.receipt = made["receipt_id"]

    def check_receipt_verify(self) -> None:
        seen = self.d("receipt.verify", workdir=self.w, key=KEY, receipt_id=self.receipt)
        assert seen["ok"] and seen["reason"] == ""
        seen = self.d("receipt.verify", workdir=self.w, key="other", receipt_id=self.receipt)
        assert not seen["ok"]

    def check_receipt_show(self) -> None:
        seen = self.d("receipt.show", workdir=self.w, receipt_id=self.receipt)
        assert seen["projection"]["window_size"] == 1
        assert self.d("receipt.show", workdir=self.w, receipt_id="f" * 32) is None

    def check_receipt_action(self) -> None:
        cases = [
            {"stall_reason": "heartbeat_stale", "respawn_budget_remaining": 1},
            {"stall_reason": "intent_drift", "entries": [{"event_type": "auth.denied"}]},
        ]
        assert self.d("receipt.action", cases=cases)["actions"] == ["respawn", "escalate"]


def main(argv: list[str]) -> int:
    """Run the suite; 0 where all passed."""
    passed = failed = 0
    driver = Driver(verbose="-v" in argv)
    with tempfile.TemporaryDirectory(prefix="waybill-selftest-") as folder:
        suite = Suite(driver, Path(folder))
        known = set(driver("ping")["ops"])
        checks: list[tuple[str, Callable[[], None]]] = []
        for name in vars(Suite):
            if name.startswith("check_"):
                checks.append((op_name(name.removeprefix("check_"), known), getattr(suite, name)))
        missing = known - {name for name, _ in checks}
        for name, check in checks:
            try:
                check()
            except Exception as error:
                failed += 1
                print(f"FAIL {name}: {type(error).__name__}: {str(error)[:500]}", flush=True)
            else:
                passed += 1
                print(f"PASS {name}", flush=True)
        for name in sorted(missing):
            failed += 1
            print(f"FAIL {name}: not tested")
        if driver.close() != 0:
            failed += 1
            print("FAIL end of input: the driver did not end with 0")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def op_name(suffix: str, known: set[str]) -> str:
    """The operation a check's name stands for (``_`` may be ``.`` or ``_`` there)."""
    for name in known:
        if name.replace(".", "_") == suffix:
            return name
    return suffix


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
