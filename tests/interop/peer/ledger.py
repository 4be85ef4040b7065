"""The work ledger on disk: append, verify, replay, compare, resume."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peer.command import cli
from peer.common import Args, b64, bucket_dir, fixed_time, load, op, plain, sdd_dir

HANDLES: dict[str, Any] = {}
HANDLE_NUMBERS = itertools.count(1)


def ledger_dir(args: Args) -> Path:
    """The ledger's folder: of ``path`` (folder or bucket file), or of a run."""
    if "path" in args:
        return bucket_dir(args["path"])
    return load("core.persistence.work_ledger").run_ledger_dir(sdd_dir(args), args["run_id"])


def ledger_lines(args: Args) -> Iterator[Any]:
    """The well-formed entries of a ledger, in order."""
    return load("core.persistence.work_ledger").LedgerReader(ledger_dir(args)).entries()


def append_transitions(ledger: Any, args: Args) -> dict[str, Any]:
    """Append ``transitions`` and say what was written."""
    module = load("core.persistence.work_ledger")
    rows = []
    with fixed_time(module, args.get("now")):
        for item in args.get("transitions", []):
            entry = ledger.append(
                kind=item["kind"],
                task_id=item.get("task_id", ""),
                payload=item.get("payload"),
            )
            rows.append(entry.to_dict())
    return {
        "rows": rows,
        "head_hash": ledger.head_hash,
        "entries": ledger.next_seq,
        "path": str(ledger.bucket_path),
    }


@op("ledger.create")
def ledger_create(args: Args) -> Any:
    """Open a run's ledger and keep it open; ``open_payload`` appends ``run.open``."""
    ledger = load("core.persistence.work_ledger").WorkLedger.open(ledger_dir(args))
    handle = f"ledger-{next(HANDLE_NUMBERS)}"
    HANDLES[handle] = ledger
    transitions = list(args.get("transitions", []))
    if args.get("open_payload") is not None:
        transitions.insert(0, {"kind": "run.open", "payload": args["open_payload"]})
    result = append_transitions(ledger, {**args, "transitions": transitions})
    return {"handle": handle, **result}


@op("ledger.append")
def ledger_append(args: Args) -> Any:
    """Append transitions, to an open ``handle`` or to a ledger opened for this."""
    if "handle" in args:
        return append_transitions(HANDLES[args["handle"]], args)
    ledger = load("core.persistence.work_ledger").WorkLedger.open(ledger_dir(args))
    try:
        return append_transitions(ledger, args)
    finally:
        ledger.close()


@op("ledger.close")
def ledger_close(args: Args) -> Any:
    """Close a handle (no row is written)."""
    ledger = HANDLES.pop(args["handle"])
    result = {"head_hash": ledger.head_hash, "entries": ledger.next_seq}
    ledger.close()
    return result


@op("ledger.verify")
def ledger_verify(args: Args) -> Any:
    """Recompute a ledger's chain."""
    reader = load("core.persistence.work_ledger").LedgerReader(ledger_dir(args))
    return {"exists": reader.exists(), **plain(reader.verify(args.get("expected_head")))}


@op("ledger.state")
def ledger_state(args: Args) -> Any:
    """The replayed state: as a document, as canonical text, and its frontier."""
    module = load("core.persistence.work_ledger")
    state = module.replay_state(ledger_lines(args), run_id=args.get("run_id", ""))
    return {
        "state": state.to_dict(),
        "canonical": state.to_canonical_json(),
        "frontier": state.resume_frontier(),
    }


@op("ledger.rows")
def ledger_rows(args: Args) -> Any:
    """The entries as the reference reads them, without judging the chain."""
    return {"rows": [entry.to_dict() for entry in ledger_lines(args)]}


@op("ledger.lines")
def ledger_canonical_lines(args: Args) -> Any:
    """The validated canonical lines (what an anchor would hold)."""
    module = load("core.persistence.work_ledger")
    lines, head = module.validated_canonical_lines(ledger_dir(args))
    return {"lines": lines, "head_hash": head}


@op("ledger.hash")
def ledger_hash(args: Args) -> Any:
    """Preimage and hash of entries that are given, not stored."""
    module = load("core.persistence.work_ledger")
    names = ("prev_hash", "kind", "task_id", "payload")
    results = []
    for entry in args["entries"]:
        fields = {name: entry[name] for name in names}
        results.append(
            {
                "preimage": module.canonical_entry_payload(**fields).decode(),
                "entry_hash": module.compute_entry_hash(**fields),
            }
        )
    return {"results": results}


@op("ledger.compare")
def ledger_compare(args: Args) -> Any:
    """How two ledger files relate (``local``, ``remote``: paths)."""
    module = load("core.persistence.work_ledger")
    local = ledger_lines({"path": args["local"]})
    remote = ledger_lines({"path": args["remote"]})
    return module.compare_chains(local, remote)


def read_signals(workdir: Path) -> list[dict[str, Any]]:
    """Every resume signal of a project, with its exact bytes."""
    signals = []
    for path in sorted((workdir / ".sdd" / "runtime" / "resume").glob("*")):
        data = path.read_bytes()
        signals.append(
            {"name": path.name, "mode": oct(path.stat().st_mode & 0o7777), "b64": b64(data)}
        )
    return signals


@op("ledger.resume")
def ledger_resume(args: Args) -> Any:
    """``bernstein ledger resume``: its exit code and JSON, and the signals there are."""
    argv = ["ledger", "resume", args["run_id"], "--workdir", args["workdir"], "--json"]
    if args.get("dry_run"):
        argv.append("--dry-run")
    result = cli({"argv": argv})
    return {**result, "signals": read_signals(Path(args["workdir"]))}
