"""The step journal of one agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peer.common import Args, bucket_dir, fixed_time, load, op, sdd_dir


def step_journal_dir(args: Args) -> Path:
    """The folder of a step journal: of ``path``, or of an agent."""
    if "path" in args:
        return bucket_dir(args["path"])
    return load("core.persistence.journal").agent_journal_dir(sdd_dir(args), args["agent_id"])


@op("step_journal.append")
def step_journal_append(args: Args) -> Any:
    """Append ``steps`` (each the keyword arguments of the reference's append)."""
    module = load("core.persistence.journal")
    journal = module.Journal.open(step_journal_dir(args))
    try:
        with fixed_time(module, args.get("now")):
            rows = [journal.append(**step).to_dict() for step in args["steps"]]
        return {
            "rows": rows,
            "head_hash": journal.head_hash,
            "steps": journal.next_seq,
            "path": str(journal.bucket_path),
        }
    finally:
        journal.close()


@op("step_journal.verify")
def step_journal_verify(args: Args) -> Any:
    """Recompute a step journal's chain."""
    reader = load("core.persistence.journal").JournalReader(step_journal_dir(args))
    return reader.verify(args.get("expected_head"))


@op("step_journal.hash")
def step_journal_hash(args: Args) -> Any:
    """Preimage and hash of steps that are given, not stored."""
    module = load("core.persistence.journal")
    names = ("prev_hash", "input_hash", "model", "prompt", "tool_call", "tool_result", "effort")
    results = []
    for step in args["steps"]:
        fields = {name: step.get(name) for name in names}
        results.append(
            {
                "preimage": module.canonical_step_payload(**fields).decode(),
                "step_hash": module.compute_step_hash(**fields),
            }
        )
    return {"results": results}


@op("step_journal.rows")
def step_journal_rows(args: Args) -> Any:
    """The steps as the reference reads them."""
    reader = load("core.persistence.journal").JournalReader(step_journal_dir(args))
    return {"rows": [entry.to_dict() for entry in reader.entries()]}
