"""Receipts, the signing identity, snapshots and forks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peer.audit import audit_dir
from peer.common import Args, b64, key_of, load, op, repository, sdd_dir
from peer.event_journal import open_event_journal


@op("identity.load")
def identity_load(args: Args) -> Any:
    """Load, or make, the signing identity in ``dir`` (default ``.sdd/identity``)."""
    folder = Path(args["dir"]) if "dir" in args else sdd_dir(args) / "identity"
    private, public = load("core.orchestration.escalation").load_or_create_escalation_identity(
        folder
    )
    return {
        "private_key_pem": private,
        "public_key_pem": public,
        "files": sorted(path.name for path in folder.iterdir()),
    }


RECEIPT_DEFAULTS = {
    "worker_id": "worker-1",
    "session_id": "session-1",
    "worktree_id": "worktree-1",
    "stall_reason": "heartbeat_stale",
    "timestamp": 1_700_000_000,
}


@op("receipt.emit")
def receipt_emit(args: Args) -> Any:
    """Assemble, sign, anchor and store a receipt for a run.

    ``fields`` are the reference's own arguments (``stall_reason``,
    ``respawn_budget_remaining``, ``fork_step``, ``window``, ``install_rev``,
    ``timestamp``, ``extra_binding``, ...). The identity is that of
    ``.sdd/identity``, made if absent.
    """
    module = load("core.orchestration.escalation")
    sdd = sdd_dir(args)
    private, public = module.load_or_create_escalation_identity(sdd / "identity")
    receipt = module.assemble_escalation_receipt(
        sdd_dir=sdd,
        lineage_root=sdd / "lineage",
        hmac_key=key_of(args),
        private_key_pem=private,
        public_key_pem=public,
        run_id=args["run_id"],
        **{**RECEIPT_DEFAULTS, **args.get("fields", {})},
    )
    path = module.receipt_path(sdd, receipt.receipt_id)
    return {
        "receipt_id": receipt.receipt_id,
        "receipt": receipt.to_dict(),
        "binding_b64": b64(receipt.to_canonical_bytes()),
        "path": str(path),
        "file_b64": b64(path.read_bytes()) if path.exists() else None,
    }


@op("receipt.verify")
def receipt_verify(args: Args) -> Any:
    """Verify a stored receipt with the given master key."""
    sdd = sdd_dir(args)
    return load("core.orchestration.escalation").verify_escalation_receipt(
        sdd_dir=sdd,
        lineage_root=sdd / "lineage",
        hmac_key=key_of(args),
        receipt_id=args["receipt_id"],
    )


@op("receipt.show")
def receipt_show(args: Args) -> Any:
    """A stored receipt's projection and fields; ``null`` where there is none."""
    module = load("core.orchestration.escalation")
    receipt = module.read_escalation_receipt(sdd_dir(args), args["receipt_id"])
    if receipt is None:
        return None
    return {
        "receipt_id": receipt.receipt_id,
        "projection": module.project_escalation_receipt(receipt),
        "receipt": receipt.to_dict(),
    }


@op("receipt.action")
def receipt_action(args: Args) -> Any:
    """Recommended actions for ``cases`` of reason, entries and respawn budget."""
    module = load("core.orchestration.supervisor_receipt")
    return {
        "actions": [
            module.recommend_action(
                case["stall_reason"],
                case.get("entries", []),
                respawn_budget_remaining=case.get("respawn_budget_remaining", 0),
            )
            for case in args["cases"]
        ]
    }


@op("snapshot.take")
def snapshot_take(args: Args) -> Any:
    """Commit a work tree to its snapshot ref; ``record`` also writes the journal event."""
    module = load("core.sandbox.snapshot")
    repo = repository(args)
    worktree = Path(args.get("worktree", args["workdir"]))
    run_id, step = args["run_id"], args["step_index"]
    sha = module.commit_worktree_snapshot(repo, worktree, run_id=run_id, step_index=step)
    result = {"snapshot_sha": sha, "ref": module.snapshot_ref_name(run_id, step)}
    if args.get("record", False):
        journal = open_event_journal(args)
        load("core.replay.fork").record_snapshot_event(journal, snapshot_sha=sha, step_index=step)
        result |= {"head": journal.head(), "count": journal.event_count()}
    return result


@op("snapshot.resume")
def snapshot_resume(args: Args) -> Any:
    """Check a snapshot out into a new work tree ``dest``."""
    repo = repository(args)
    load("core.sandbox.snapshot").resume_worktree_snapshot(
        repo, args["snapshot_sha"], Path(args["dest"])
    )
    return {"files": sorted(path.name for path in Path(args["dest"]).iterdir())}


@op("fork")
def fork(args: Args) -> Any:
    """Fork a run at a step; with a key, the fork is also an audit event."""
    chain = None
    key = key_of(args, required=False)
    if key is not None:
        chain = load("core.security.audit_chain").AuditChainStore(audit_dir(args), key=key)
    return load("core.replay.fork").fork_run(
        sdd_dir(args),
        args["run_id"],
        from_step=args["from_step"],
        repo_root=repository(args),
        chain=chain,
    )
