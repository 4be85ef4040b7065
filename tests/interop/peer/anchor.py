"""Anchors: a ledger under a git ref."""

from __future__ import annotations

from typing import Any

from peer.common import Args, git, load, op, plain, repository
from peer.ledger import ledger_dir


@op("ledger.anchor")
def ledger_anchor(args: Args) -> Any:
    """Anchor a run's chain (no audit event: for that, use ``cli``)."""
    return load("core.persistence.ledger_git").anchor_ledger(
        repository(args),
        ledger_dir(args),
        run_id=args["run_id"],
        chunk_lines=args.get("chunk_lines", 1000),
    )


@op("ledger.fetch")
def ledger_fetch(args: Args) -> Any:
    """Fetch a run's ref; with ``materialize`` (the default) also write its ledger."""
    module = load("core.persistence.ledger_git")
    repo = repository(args)
    commit = module.fetch_ledger_ref(repo, args["run_id"], remote=args.get("remote", "origin"))
    result = {"commit_sha": commit}
    if args.get("materialize", True):
        result |= plain(module.materialize_ledger(repo, args["run_id"], ledger_dir(args)))
    return result


@op("ledger.materialize")
def ledger_materialize(args: Args) -> Any:
    """Verify the local anchor and write its chain to the run's ledger folder."""
    repo = repository(args)
    return load("core.persistence.ledger_git").materialize_ledger(
        repo, args["run_id"], ledger_dir(args)
    )


@op("ledger.anchored")
def ledger_anchored(args: Args) -> Any:
    """Rows and ``LEDGER.json`` of an anchor, and what the chain check says of the rows."""
    repo = repository(args)
    rows, meta = load("core.persistence.ledger_git").read_anchored_rows(repo, args["run_id"])
    verdict = load("core.persistence.work_ledger").verify_entry_rows(rows)
    result = {"meta": meta, "count": len(rows), "verification": verdict}
    if args.get("rows", False):
        result["rows"] = rows
    return result


@op("ledger.gc")
def ledger_gc(args: Args) -> Any:
    """Squash an anchor's history."""
    repo = repository(args)
    return load("core.persistence.ledger_git").gc_ledger_ref(repo, args["run_id"])


@op("ledger.runs")
def ledger_runs(args: Args) -> Any:
    """Run ids with an anchor in a repository."""
    repo = repository(args)
    return {"runs": load("core.persistence.ledger_git").list_ledger_runs(repo)}


@op("ledger.push")
def ledger_push(args: Args) -> Any:
    """Push an anchor's ref with plain git (the reference has no push)."""
    ref = load("core.persistence.ledger_git").ledger_ref(args["run_id"])
    spec = ("+" if args.get("force") else "") + f"{ref}:{ref}"
    repo = repository(args)
    return git(repo, "push", args.get("remote", "origin"), spec, check=False)
