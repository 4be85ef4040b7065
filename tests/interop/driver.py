#!/usr/bin/env python3
"""Drive the reference implementation (PyPI ``bernstein`` 3.23.0) from tests.

The reference's own command takes seconds to start, so the interop tests keep
one process of this driver and speak JSON lines with it::

    -> {"id": 1, "op": "ledger.verify", "args": {"workdir": "/tmp/p", "run_id": "r"}}
    <- {"id": 1, "ok": true, "result": {"ok": true, "entries": 3, ...}}
    <- {"id": 2, "ok": false, "error": "LedgerError: corrupt ledger ..."}

Run it with an interpreter that has the package::

    /path/to/venv/bin/python tests/interop/driver.py [--inherit-env]

What a caller may rely on:

* stdout carries answers and nothing else. File descriptor 1 is pointed at
  stderr before anything is imported, so a stray print of the package, or of a
  ``git`` it starts, can't break the protocol. Descriptor 0 is ``/dev/null``.
* One answer for each non-blank line, in order. No exception ends the process:
  an operation that raises answers ``"ok": false``, and so does a line that is
  not JSON (``"id": null``). End of input ends the process, with code 0.
* Answers are ASCII JSON, so lone surrogates survive (as ``\\udXXX``).
* The package is imported by the first operation that needs it.
* Unless ``--inherit-env`` is given, ``HOME``, the XDG folders and git's
  configuration point into a scratch folder that is removed at the end: the
  driver never reads or makes keys in the caller's home. Any request may carry
  ``"env": {"NAME": "value" | null}``, which holds for that request alone.

Argument conventions: ``workdir`` is a project folder (its ``.sdd`` is the
state folder). A key is ``key`` (text, used as its UTF-8 bytes), ``key_hex`` or
``key_file`` (read, stripped). ``now`` (seconds since the epoch, or an ISO date
and time for the audit log) fixes the clock of the writer that is called.
Anything that is bytes in a result is ``*_b64``.

Only the public surface of the package is used: its modules are imported and
called. Nothing here is derived from its source text.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import dataclasses
import datetime as datetime_module
import enum
import hmac
import importlib
import io
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Args = dict[str, Any]
Op = Callable[[Args], Any]

OPS: dict[str, Op] = {}


def op(name: str) -> Callable[[Op], Op]:
    """Register the decorated function as the operation ``name``."""

    def register(function: Op) -> Op:
        OPS[name] = function
        return function

    return register


# --------------------------------------------------------------------------
# Helpers
# --------------------------------------------------------------------------


def load(module: str) -> Any:
    """Import a module of the reference by its name under ``bernstein.``."""
    return importlib.import_module("bernstein." + module)


def plain(value: Any) -> Any:
    """Turn a result object of the reference into plain JSON values."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return {"b64": b64(value)}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=repr)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names}
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return repr(value)


def b64(data: bytes) -> str:
    """Standard base64 text of ``data``."""
    return base64.b64encode(data).decode("ascii")


def sdd_dir(args: Args) -> Path:
    """The state folder: ``sdd`` if given, else ``.sdd`` in ``workdir``."""
    if "sdd" in args:
        return Path(args["sdd"])
    return Path(args["workdir"]) / ".sdd"


def key_of(args: Args, *, required: bool = True) -> bytes | None:
    """The HMAC master key named by ``key``, ``key_hex`` or ``key_file``."""
    if "key" in args:
        return args["key"].encode()
    if "key_hex" in args:
        return bytes.fromhex(args["key_hex"])
    if "key_file" in args:
        return Path(args["key_file"]).read_bytes().strip()
    if required:
        raise ValueError("give the master key as key, key_hex or key_file")
    return None


@contextlib.contextmanager
def environment(changes: dict[str, str | None]) -> Iterator[None]:
    """Hold ``changes`` in the environment; ``None`` removes a variable."""
    before = {name: os.environ.get(name) for name in changes}
    set_environment(changes)
    try:
        yield
    finally:
        set_environment(before)


def set_environment(changes: dict[str, str | None]) -> None:
    """Apply ``changes`` to the environment; ``None`` removes a variable."""
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def working_directory(path: str | None) -> Iterator[None]:
    """Work in ``path`` and come back."""
    if path is None:
        yield
        return
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def fixed_time(module: Any, now: float | None) -> Iterator[None]:
    """Let ``module`` see ``now`` where it calls ``time.time()``."""
    if now is None:
        yield
        return
    real = module.time
    shim = types.SimpleNamespace(**vars(real))
    shim.time = lambda: now
    shim.time_ns = lambda: int(now * 1e9)
    module.time = shim
    try:
        yield
    finally:
        module.time = real


@contextlib.contextmanager
def fixed_datetime(module: Any, now: str | None) -> Iterator[None]:
    """Let ``module`` see the ISO time ``now`` where it calls ``datetime.now()``."""
    if now is None:
        yield
        return
    moment = datetime_module.datetime.fromisoformat(now.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime_module.UTC)
    real = module.datetime

    class Fixed(real):  # type: ignore[misc, valid-type]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moment.astimezone(tz)

    module.datetime = Fixed
    try:
        yield
    finally:
        module.datetime = real


def git(folder: str | Path, *argv: str, check: bool = True) -> dict[str, Any]:
    """Run plain ``git`` in ``folder``; its output as text."""
    done = subprocess.run(
        ["git", *argv], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    out = done.stdout.decode("utf-8", "replace")
    err = done.stderr.decode("utf-8", "replace")
    if check and done.returncode != 0:
        raise RuntimeError(f"git {argv[0]} ended with {done.returncode}: {err.strip()}")
    return {"exit": done.returncode, "stdout": out, "stderr": err}


def canonical_utf8(value: Any) -> bytes:
    """``value`` in the ``utf8`` encoding: sorted, compact, raw."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def hmac_hex(key: bytes, data: bytes) -> str:
    """HMAC-SHA256 in hex."""
    return hmac.new(key, data, "sha256").hexdigest()


# --------------------------------------------------------------------------
# The driver itself, and the reference's command line
# --------------------------------------------------------------------------


@op("ping")
def ping(args: Args) -> Any:
    """Versions and the operations there are. Imports nothing."""
    from importlib.metadata import version

    return {
        "python": sys.version.split()[0],
        "bernstein": version("bernstein"),
        "ops": sorted(OPS),
    }


@op("env.set")
def env_set(args: Args) -> Any:
    """Change the environment for all later requests."""
    set_environment(args["vars"])
    return {"set": sorted(args["vars"])}


# Where each group of the command line lives: importing one is several times
# cheaper than importing the whole command.
CLI_GROUPS = {
    "ledger": ("cli.commands.ledger_cmd", "ledger_group"),
    "escalation": ("cli.commands.escalation_cmd", "escalation_group"),
    "fork": ("cli.commands.fork_cmd", "fork_cmd"),
    "audit": ("cli.commands.audit_cmd", "audit_group"),
}


def run_cli(argv: list[str], cwd: str | None = None, stdin: str | None = None) -> dict[str, Any]:
    """Run the reference's command line in this process, as its users would."""
    from click.testing import CliRunner

    place = CLI_GROUPS.get(argv[0]) if argv else None
    if place is not None:
        command, rest = getattr(load(place[0]), place[1]), argv[1:]
    else:
        command, rest = load("cli.main").cli, argv
    with working_directory(cwd):
        result = CliRunner().invoke(command, rest, input=stdin, prog_name="bernstein")
    error = result.exception
    crash = None
    if error is not None and not isinstance(error, SystemExit):
        crash = f"{type(error).__name__}: {error}"
    return {
        "exit": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "exception": crash,
    }


@op("cli")
def cli(args: Args) -> Any:
    """Any command of the reference: exit code, stdout and stderr."""
    result = run_cli(list(args["argv"]), args.get("cwd"), args.get("stdin"))
    with contextlib.suppress(ValueError):
        result["json"] = json.loads(result["stdout"])
    return result


# --------------------------------------------------------------------------
# 1. Canonical JSON
# --------------------------------------------------------------------------


def encode_text(text: str, jcs: Callable[[Any], bytes] | None) -> dict[str, Any]:
    """All encodings of one JSON text, or why CPython refuses it."""
    flags: set[str] = set()

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            flags.add("duplicate_key")
        return made

    def number(token: str) -> float:
        value = float(token)
        if math.isinf(value):
            flags.add("overflow")
        return value

    def constant(token: str) -> float:
        flags.add("constant")
        return float(token)

    try:
        value = json.loads(
            text, object_pairs_hook=pairs, parse_float=number, parse_constant=constant
        )
    except (ValueError, RecursionError) as error:
        return {"refused": type(error).__name__, "message": str(error)}

    result: dict[str, Any] = {"flags": sorted(flags)}
    compact = (",", ":")
    encoders: dict[str, Callable[[], str]] = {
        "ascii": lambda: json.dumps(value, sort_keys=True, separators=compact),
        "ascii_spaced": lambda: json.dumps(value, sort_keys=True),
        "utf8": lambda: json.dumps(
            value, sort_keys=True, separators=compact, ensure_ascii=False
        )
        .encode()
        .decode(),
    }
    if jcs is not None:
        encoders["jcs_v2"] = lambda: jcs(value).decode()
    for name, encode in encoders.items():
        try:
            result[name] = encode()
        except (ValueError, TypeError, RecursionError) as error:
            result[name + "_refused"] = type(error).__name__
    return result


@op("json.encode")
def json_encode(args: Args) -> Any:
    """Encode JSON texts (``texts``, or ``texts_b64`` for raw bytes)."""
    jcs = None
    if args.get("jcs", True):
        jcs = load("core.security.agent_card_signer").canonicalize_jcs
    results: list[dict[str, Any]] = [encode_text(text, jcs) for text in args.get("texts", [])]
    for coded in args.get("texts_b64", []):
        try:
            text = base64.b64decode(coded, validate=True).decode("utf-8")
        except UnicodeDecodeError as error:
            results.append({"refused": type(error).__name__, "message": str(error)})
        else:
            results.append(encode_text(text, jcs))
    return {"results": results}


# --------------------------------------------------------------------------
# 2. Work ledger
# --------------------------------------------------------------------------

HANDLES: dict[str, Any] = {}


def ledger_dir(args: Args) -> Path:
    """The ledger's folder: of ``path`` (folder or bucket file), or of a run."""
    if "path" in args:
        path = Path(args["path"])
        return path.parent if path.name.endswith(".jsonl") else path
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
        "rows": plain(rows),
        "head_hash": ledger.head_hash,
        "entries": ledger.next_seq,
        "path": str(ledger.bucket_path),
    }


@op("ledger.create")
def ledger_create(args: Args) -> Any:
    """Open a run's ledger and keep it open; ``open_payload`` appends ``run.open``."""
    ledger = load("core.persistence.work_ledger").WorkLedger.open(ledger_dir(args))
    handle = f"ledger-{len(HANDLES) + 1}"
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
        "state": plain(state.to_dict()),
        "canonical": state.to_canonical_json(),
        "frontier": plain(state.resume_frontier()),
    }


@op("ledger.rows")
def ledger_rows(args: Args) -> Any:
    """The entries as the reference reads them, without judging the chain."""
    return {"rows": [plain(entry.to_dict()) for entry in ledger_lines(args)]}


@op("ledger.lines")
def ledger_canonical_lines(args: Args) -> Any:
    """The validated canonical lines (what an anchor would hold)."""
    module = load("core.persistence.work_ledger")
    lines, head = module.validated_canonical_lines(ledger_dir(args))
    return {"lines": plain(lines), "head_hash": head}


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
    return plain(module.compare_chains(local, remote))


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


# --------------------------------------------------------------------------
# 3. Anchors
# --------------------------------------------------------------------------


@op("ledger.anchor")
def ledger_anchor(args: Args) -> Any:
    """Anchor a run's chain (no audit event: for that, use ``cli``)."""
    return plain(
        load("core.persistence.ledger_git").anchor_ledger(
            Path(args.get("repo", args.get("workdir", "."))),
            ledger_dir(args),
            run_id=args["run_id"],
            chunk_lines=args.get("chunk_lines", 1000),
        )
    )


@op("ledger.fetch")
def ledger_fetch(args: Args) -> Any:
    """Fetch a run's ref; with ``materialize`` (the default) also write its ledger."""
    module = load("core.persistence.ledger_git")
    repo = Path(args.get("repo", args.get("workdir", ".")))
    commit = module.fetch_ledger_ref(repo, args["run_id"], remote=args.get("remote", "origin"))
    result = {"commit_sha": commit}
    if args.get("materialize", True):
        result |= plain(module.materialize_ledger(repo, args["run_id"], ledger_dir(args)))
    return result


@op("ledger.materialize")
def ledger_materialize(args: Args) -> Any:
    """Verify the local anchor and write its chain to the run's ledger folder."""
    repo = Path(args.get("repo", args.get("workdir", ".")))
    return plain(
        load("core.persistence.ledger_git").materialize_ledger(
            repo, args["run_id"], ledger_dir(args)
        )
    )


@op("ledger.anchored")
def ledger_anchored(args: Args) -> Any:
    """Rows and ``LEDGER.json`` of an anchor, and what the chain check says of the rows."""
    repo = Path(args.get("repo", args.get("workdir", ".")))
    rows, meta = load("core.persistence.ledger_git").read_anchored_rows(repo, args["run_id"])
    verdict = load("core.persistence.work_ledger").verify_entry_rows(rows)
    result = {"meta": plain(meta), "count": len(rows), "verification": plain(verdict)}
    if args.get("rows", False):
        result["rows"] = plain(rows)
    return result


@op("ledger.gc")
def ledger_gc(args: Args) -> Any:
    """Squash an anchor's history."""
    repo = Path(args.get("repo", args.get("workdir", ".")))
    return plain(load("core.persistence.ledger_git").gc_ledger_ref(repo, args["run_id"]))


@op("ledger.runs")
def ledger_runs(args: Args) -> Any:
    """Run ids with an anchor in a repository."""
    repo = Path(args.get("repo", args.get("workdir", ".")))
    return {"runs": plain(load("core.persistence.ledger_git").list_ledger_runs(repo))}


@op("ledger.push")
def ledger_push(args: Args) -> Any:
    """Push an anchor's ref with plain git (the reference has no push)."""
    ref = load("core.persistence.ledger_git").ledger_ref(args["run_id"])
    spec = ("+" if args.get("force") else "") + f"{ref}:{ref}"
    repo = args.get("repo", args.get("workdir", "."))
    return git(repo, "push", args.get("remote", "origin"), spec, check=False)


@op("git")
def git_op(args: Args) -> Any:
    """Plain git in a folder, in the driver's environment."""
    return git(args["cwd"], *args["argv"], check=False)


# --------------------------------------------------------------------------
# 4. Step journal
# --------------------------------------------------------------------------


def step_journal_dir(args: Args) -> Path:
    """The folder of a step journal: of ``path``, or of an agent."""
    if "path" in args:
        path = Path(args["path"])
        return path.parent if path.name.endswith(".jsonl") else path
    return load("core.persistence.journal").agent_journal_dir(sdd_dir(args), args["agent_id"])


@op("step_journal.append")
def step_journal_append(args: Args) -> Any:
    """Append ``steps`` (each the keyword arguments of the reference's append)."""
    module = load("core.persistence.journal")
    journal = module.Journal.open(step_journal_dir(args))
    try:
        with fixed_time(module, args.get("now")):
            rows = [plain(journal.append(**step).to_dict()) for step in args["steps"]]
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
    return plain(reader.verify(args.get("expected_head")))


@op("step_journal.rows")
def step_journal_rows(args: Args) -> Any:
    """The steps as the reference reads them."""
    reader = load("core.persistence.journal").JournalReader(step_journal_dir(args))
    return {"rows": [plain(entry.to_dict()) for entry in reader.entries()]}


# --------------------------------------------------------------------------
# 5. Event journal
# --------------------------------------------------------------------------


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
    return plain(module.verify_journal(event_journal_path(args), seal=seal))


@op("journal.rows")
def journal_rows(args: Args) -> Any:
    """The rows the reference reads, and the lines it skips (or, ``strict``, refuses)."""
    module = load("core.replay.journal")
    return plain(module.load_events(event_journal_path(args), strict=args.get("strict", False)))


@op("journal.hash")
def journal_hash(args: Args) -> Any:
    """Event hashes for given prev_hash, event_type, payload_hash and index."""
    module = load("core.replay.journal")
    return {"hashes": [module.compute_event_hash(**item) for item in args["events"]]}


@op("journal.repair")
def journal_repair(args: Args) -> Any:
    """Cut a torn tail off a journal, as the reference does."""
    return plain(load("core.replay.journal").repair_journal_tail(event_journal_path(args)))


@op("journal.rebuild")
def journal_rebuild(args: Args) -> Any:
    """The state projection of the first ``from_step`` events."""
    module = load("core.replay.journal")
    return plain(module.rebuild_state(event_journal_path(args), from_step=args["from_step"]))


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


# --------------------------------------------------------------------------
# 6. Lineage spine
# --------------------------------------------------------------------------


def open_spine(args: Args) -> Any:
    """The spine of ``root``/``run_id`` (root: ``.sdd/lineage`` of ``workdir``)."""
    module = load("core.lineage.spine")
    root = Path(args["root"]) if "root" in args else sdd_dir(args) / "lineage"
    return module.LineageSpine(
        root,
        run_id=args["run_id"],
        hmac_key=key_of(args),
        hash_profile=args.get("hash_profile", module.HASH_PROFILE_LEGACY),
    )


@op("spine.append")
def spine_append(args: Args) -> Any:
    """Append ``entries``; the artifact's bytes are ``content`` or ``content_b64``."""
    spine = open_spine(args)
    rows = []
    for item in args["entries"]:
        fields = dict(item)
        if "content_b64" in fields:
            fields["content"] = base64.b64decode(fields.pop("content_b64"))
        else:
            fields["content"] = fields["content"].encode()
        rows.append(plain(spine.record_entry(**fields)))
    return {"rows": rows, "head_hash": spine.head_hash(), "path": str(spine.spine_path)}


@op("spine.append_v1")
def spine_append_v1(args: Args) -> Any:
    """Append rows of scheme 1, which the reference reads and no longer writes.

    Hash and tag come from the reference's own functions, called for scheme 1;
    ``spine.head`` is left as it is.
    """
    module = load("core.lineage.spine")
    spine = open_spine(args)
    key = key_of(args)
    spine.run_dir.mkdir(parents=True, exist_ok=True)
    previous = spine.head_hash()
    rows = []
    for item in args["entries"]:
        fields = dict(item)
        content = fields.pop("content").encode()
        fields |= {"prev_hash": previous, "content_hash": module.content_hash_of(content)}
        entry = module.SpineEntry(
            v=1, entry_hash=module.compute_entry_hash(**fields), hmac="", **fields
        )
        tag = hmac_hex(key, canonical_utf8(entry.body()))
        entry = dataclasses.replace(entry, hmac=tag)
        if not module.verify_entry(entry, key):
            raise RuntimeError("the reference refuses the row that was made for it")
        with spine.spine_path.open("ab") as file:
            file.write(entry.to_row().rstrip(b"\n") + b"\n")
        rows.append(plain(entry))
        previous = entry.entry_hash
    return {"rows": rows, "head_hash": previous, "path": str(spine.spine_path)}


@op("spine.verify")
def spine_verify(args: Args) -> Any:
    """Recompute a spine's chain and tags."""
    result = open_spine(args).verify()
    return {"ok": result.ok, **plain(result)}


@op("spine.rows")
def spine_rows(args: Args) -> Any:
    """The entries as the reference reads them, and its head."""
    spine = open_spine(args)
    return {"rows": [plain(entry) for entry in spine.iter_entries()], "head_hash": spine.head_hash()}


# --------------------------------------------------------------------------
# 7. Audit log
# --------------------------------------------------------------------------


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
            rows.append(plain(log.log(**fields)))
    return {"rows": rows}


@op("audit.append_chained")
def audit_append_chained(args: Args) -> Any:
    """Append ``events`` with ``prev_chain_digest`` in their details."""
    module = load("core.security.audit")
    chain = load("core.security.audit_chain").AuditChainStore(
        audit_dir(args), key=key_of(args, required=False)
    )
    with fixed_datetime(module, args.get("now")):
        return {"rows": [plain(chain.log_with_prev_digest(**item)) for item in args["events"]]}


def mirror(args: Args, function: str) -> dict[str, Any]:
    """Append one of the two events that mirror what happened elsewhere."""
    module = load("core.security.audit_chain")
    chain = module.AuditChainStore(audit_dir(args), key=key_of(args, required=False))
    with fixed_datetime(load("core.security.audit"), args.get("now")):
        return {"row": plain(getattr(module, function)(chain=chain, **args["fields"]))}


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
        "errors": plain(errors),
        "hard_errors": plain(report.hard_errors),
        "tears": plain(report.tears),
    }


@op("audit.rows")
def audit_rows(args: Args) -> Any:
    """Events in the log; ``filters`` are the reference's query arguments."""
    filters = {"include_archived": True, **args.get("filters", {})}
    return {"rows": plain(open_audit(args).query(**filters))}


@op("audit.archive")
def audit_archive(args: Args) -> Any:
    """Gzip days older than ``retention_days``, as of ``now``."""
    module = load("core.security.audit")
    policy = module.RetentionPolicy(retention_days=args.get("retention_days", 90))
    with fixed_datetime(module, args.get("now")):
        return plain(open_audit(args).archive(policy))


@op("audit.key")
def audit_key(args: Args) -> Any:
    """Load the master key (``create``: make it if absent) from ``key_path`` or the environment."""
    module = load("core.security.audit")
    load_key = module.load_or_create_audit_key if args.get("create") else module.load_audit_key
    path = Path(args["key_path"]) if "key_path" in args else None
    return {"key": load_key(path).decode("latin-1")}


# --------------------------------------------------------------------------
# 8. Receipts, snapshots, forks
# --------------------------------------------------------------------------


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
        "receipt": plain(receipt.to_dict()),
        "binding_b64": b64(receipt.to_canonical_bytes()),
        "path": str(path),
        "file_b64": b64(path.read_bytes()) if path.exists() else None,
    }


@op("receipt.verify")
def receipt_verify(args: Args) -> Any:
    """Verify a stored receipt with the given master key."""
    sdd = sdd_dir(args)
    return plain(
        load("core.orchestration.escalation").verify_escalation_receipt(
            sdd_dir=sdd,
            lineage_root=sdd / "lineage",
            hmac_key=key_of(args),
            receipt_id=args["receipt_id"],
        )
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
        "projection": plain(module.project_escalation_receipt(receipt)),
        "receipt": plain(receipt.to_dict()),
    }


@op("receipt.action")
def receipt_action(args: Args) -> Any:
    """Recommended actions for ``cases`` of reason, entries and respawn budget."""
    module = load("core.orchestration.supervisor_receipt")
    return {
        "actions": [
            plain(
                module.recommend_action(
                    case["stall_reason"],
                    case.get("entries", []),
                    respawn_budget_remaining=case.get("respawn_budget_remaining", 0),
                )
            )
            for case in args["cases"]
        ]
    }


@op("snapshot.take")
def snapshot_take(args: Args) -> Any:
    """Commit a work tree to its snapshot ref; ``record`` also writes the journal event."""
    module = load("core.sandbox.snapshot")
    repo = Path(args.get("repo", args["workdir"]))
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
    repo = Path(args.get("repo", args.get("workdir", ".")))
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
    return plain(
        load("core.replay.fork").fork_run(
            sdd_dir(args),
            args["run_id"],
            from_step=args["from_step"],
            repo_root=Path(args.get("repo", args.get("workdir", "."))),
            chain=chain,
        )
    )


# --------------------------------------------------------------------------
# The loop
# --------------------------------------------------------------------------


def private_environment() -> None:
    """Point home, XDG and git configuration into a scratch folder."""
    scratch = tempfile.mkdtemp(prefix="waybill-interop-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    home = Path(scratch, "home")
    home.mkdir(mode=0o700)
    set_environment(
        {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "BERNSTEIN_AUDIT_KEY_PATH": None,
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": None,
            "GIT_WORK_TREE": None,
            "GIT_INDEX_FILE": None,
        }
    )


def take_protocol_streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper]:
    """Keep stdin and stdout for the protocol; give the rest of the process others."""
    reader = os.fdopen(os.dup(0), "r", encoding="utf-8", errors="surrogatepass", newline="\n")
    writer = os.fdopen(os.dup(1), "w", encoding="ascii", newline="\n")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return reader, writer


def answer(line: str) -> dict[str, Any]:
    """Carry out one request."""
    ident = None
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise ValueError("a request is a JSON object")
        ident = request.get("id")
        name = request.get("op")
        if name not in OPS:
            raise ValueError(f"unknown operation: {name}")
        with environment(request.get("env") or {}):
            result = OPS[name](request.get("args") or {})
        reply = {"id": ident, "ok": True, "result": result}
        reply_text(reply)
        return reply
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit: nothing ends the loop
        text = str(error) or repr(error)
        return {"id": ident, "ok": False, "error": f"{type(error).__name__}: {text}"}


def reply_text(reply: dict[str, Any]) -> str:
    """The line of one answer."""
    return json.dumps(reply, default=repr) + "\n"


def main(argv: list[str]) -> int:
    """Answer requests until the input ends."""
    reader, writer = take_protocol_streams()
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))
    if "--inherit-env" not in argv:
        private_environment()
    for line in reader:
        if not line.strip():
            continue
        writer.write(reply_text(answer(line)))
        writer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
