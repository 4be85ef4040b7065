"""The event journal of a run, in both hash profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peer.common import Args, fixed_time, key_of, load, op, sdd_dir


def event_journal_path(args: Args) -> Path:
    """The journal file: ``path``, or that of a run."""
    if "path" in args:
        return Path(args["path"])
    return load("core.replay.journal").run_journal_path(sdd_dir(args), args["run_id"])


def open_event_journal(args: Args) -> Any:
    """A journal for appending: continued from its tail, or ``fresh``."""
    module = load("core.replay.journal")
    if args.get("fresh"):
        profile = args.get("hash_profile", module.HASH_PROFILE_LEGACY)
        return module.EventJournal(args["run_id"], sdd_dir(args), hash_profile=profile)
    if "hash_profile" in args and not event_journal_path(args).exists():
        return open_event_journal({**args, "fresh": True})
    return module.EventJournal.resume(args["run_id"], sdd_dir(args))


@op("journal.append")
def journal_append(args: Args) -> Any:
    """Record ``events`` (each ``{"event", "data"}``) in a run's journal."""
    module = load("core.replay.journal")
    with fixed_time(module, args.get("now")):
        journal = open_event_journal(args)
        for item in args["events"]:
            journal.record(item["event"], **item.get("data", {}))
    return {"head": journal.head(), "count": journal.event_count(), "path": str(journal.path)}


@op("journal.verify")
def journal_verify(args: Args) -> Any:
    """Verify a journal file; ``seal`` ``{"head", "event_count"}`` is optional."""
    module = load("core.replay.journal")
    seal = module.JournalSeal(**args["seal"]) if args.get("seal") else None
    return module.verify_journal(event_journal_path(args), seal=seal)


@op("journal.rows")
def journal_rows(args: Args) -> Any:
    """The rows the reference reads, and the lines it skips (or, ``strict``, refuses)."""
    module = load("core.replay.journal")
    return module.load_events(event_journal_path(args), strict=args.get("strict", False))


@op("journal.hash")
def journal_hash(args: Args) -> Any:
    """Event hashes for given prev_hash, event_type, payload_hash and index."""
    module = load("core.replay.journal")
    return {"hashes": [module.compute_event_hash(**item) for item in args["events"]]}


@op("journal.repair")
def journal_repair(args: Args) -> Any:
    """Cut a torn tail off a journal, as the reference does."""
    return load("core.replay.journal").repair_journal_tail(event_journal_path(args))


@op("journal.rebuild")
def journal_rebuild(args: Args) -> Any:
    """The state projection of the first ``from_step`` events."""
    module = load("core.replay.journal")
    return module.rebuild_state(event_journal_path(args), from_step=args["from_step"])


@op("journal.seal")
def journal_seal(args: Args) -> Any:
    """Seal a journal's head into the run's lineage spine."""
    journal = load("core.replay.journal").EventJournal.resume(args["run_id"], sdd_dir(args))
    entry_hash = load("core.replay.journal").seal_journal_into_spine(
        journal,
        lineage_root=sdd_dir(args) / "lineage",
        hmac_key=key_of(args),
        actor=args.get("actor", "interop"),
        model=args.get("model", ""),
    )
    return {"entry_hash": entry_hash, "head": journal.head()}
