"""What the operations share: their registry, argument conventions, and conversions."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime as datetime_module
import enum
import importlib
import math
import os
import subprocess
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Args = dict[str, Any]
Op = Callable[[Args], Any]

OPS: dict[str, Op] = {}

# The one file of a ledger and of a step journal.
BUCKET = "000000.jsonl"


def op(name: str) -> Callable[[Op], Op]:
    """Register the decorated function as the operation ``name``."""

    def register(function: Op) -> Op:
        OPS[name] = function
        return function

    return register


def load(module: str) -> Any:
    """Import a module of the reference by its name under ``bernstein.``."""
    return importlib.import_module("bernstein." + module)


def plain(value: Any) -> Any:
    """Turn a result object of the reference into plain JSON values."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, bytes):
        return {"b64": b64(value)}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
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


def bucket_dir(path: str) -> Path:
    """The folder of a chain given by its folder or by its bucket file."""
    where = Path(path)
    if where.is_dir():
        return where
    if where.name != BUCKET:
        raise ValueError(f"the reference reads {BUCKET} in a folder: {path}")
    return where.parent


def repository(args: Args) -> Path:
    """The git repository: ``repo`` if given, else ``workdir``."""
    return Path(args["repo"] if "repo" in args else args["workdir"])


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
