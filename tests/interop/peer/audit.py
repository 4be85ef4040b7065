"""The audit log: append, verify, archive, and the master key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peer.common import Args, fixed_datetime, key_of, load, op, sdd_dir


def audit_dir(args: Args) -> Path:
    """The audit folder: ``dir``, or ``.sdd/audit`` of ``workdir``."""
    return Path(args["dir"]) if "dir" in args else sdd_dir(args) / "audit"


def open_audit(args: Args) -> Any:
    """An audit log with a given key, or with the key its environment names."""
    return load("core.security.audit").AuditLog(audit_dir(args), key_of(args, required=False))


@op("audit.append")
def audit_append(args: Args) -> Any:
    """Append ``events``; each may carry its own ``now``."""
    module = load("core.security.audit")
    log = open_audit(args)
    rows = []
    for item in args["events"]:
        fields = dict(item)
        now = fields.pop("now", args.get("now"))
        with fixed_datetime(module, now):
            rows.append(log.log(**fields))
    return {"rows": rows}


@op("audit.append_chained")
def audit_append_chained(args: Args) -> Any:
    """Append ``events`` with ``prev_chain_digest`` in their details."""
    module = load("core.security.audit")
    chain = load("core.security.audit_chain").AuditChainStore(
        audit_dir(args), key=key_of(args, required=False)
    )
    with fixed_datetime(module, args.get("now")):
        return {"rows": [chain.log_with_prev_digest(**item) for item in args["events"]]}


def mirror(args: Args, function: str) -> dict[str, Any]:
    """Append one of the two events that mirror what happened elsewhere."""
    module = load("core.security.audit_chain")
    chain = module.AuditChainStore(audit_dir(args), key=key_of(args, required=False))
    with fixed_datetime(load("core.security.audit"), args.get("now")):
        return {"row": getattr(module, function)(chain=chain, **args["fields"])}


@op("audit.mirror_anchor")
def audit_mirror_anchor(args: Args) -> Any:
    """Append a ``work_ledger.anchor`` event with ``fields``."""
    return mirror(args, "record_work_ledger_anchor")


@op("audit.mirror_receipt")
def audit_mirror_receipt(args: Args) -> Any:
    """Append an ``escalation.receipt`` event with ``fields``."""
    return mirror(args, "record_escalation_receipt")


@op("audit.verify")
def audit_verify(args: Args) -> Any:
    """Verify archived and live days: verdict, errors, and the tears it tells apart."""
    log = open_audit(args)
    ok, errors = log.verify()
    report = log.verify_detailed()
    return {
        "ok": ok,
        "errors": errors,
        "hard_errors": report.hard_errors,
        "tears": report.tears,
    }


@op("audit.rows")
def audit_rows(args: Args) -> Any:
    """Events in the log; ``filters`` are the reference's query arguments."""
    filters = {"include_archived": True, **args.get("filters", {})}
    return {"rows": open_audit(args).query(**filters)}


@op("audit.archive")
def audit_archive(args: Args) -> Any:
    """Gzip days older than ``retention_days``, as of ``now``."""
    module = load("core.security.audit")
    policy = module.RetentionPolicy(retention_days=args.get("retention_days", 90))
    with fixed_datetime(module, args.get("now")):
        return open_audit(args).archive(policy)


@op("audit.key")
def audit_key(args: Args) -> Any:
    """Load the master key (``create``: make it if absent) from ``key_path`` or the environment."""
    module = load("core.security.audit")
    load_key = module.load_or_create_audit_key if args.get("create") else module.load_audit_key
    path = Path(args["key_path"]) if "key_path" in args else None
    return {"key": load_key(path).decode("latin-1")}
