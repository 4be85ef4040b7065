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
* Answers are ASCII JSON that any strict parser reads: in a result a lone
  surrogate is spelled out (the six characters ``\\ud800``) and a float that
  isn't finite is the string ``NaN``, ``Infinity`` or ``-Infinity``. Requests
  may hold both as they are.
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
import io
import json
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True  # leave nothing in the repository

from peer.common import OPS, environment, plain, set_environment  # noqa: E402


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


def take_protocol_streams() -> tuple[io.BufferedReader, io.BufferedWriter]:
    """Keep stdin and stdout for the protocol; give the rest of the process others."""
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return reader, writer


def reply(**fields: Any) -> bytes:
    """The line of one answer."""
    return (json.dumps(fields, allow_nan=False) + "\n").encode("ascii")


def answer(line: bytes) -> bytes:
    """Carry out one request and give its answer's line."""
    ident = None
    try:
        request = json.loads(line.decode("utf-8", "surrogatepass"))
        if not isinstance(request, dict):
            raise ValueError("a request is a JSON object")
        ident = plain(request.get("id"))
        name = request.get("op")
        if name not in OPS:
            raise ValueError(f"unknown operation: {name}")
        with environment(request.get("env") or {}):
            result = plain(OPS[name](request.get("args") or {}))
        return reply(id=ident, ok=True, result=result)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: nothing ends the loop
        text = plain(str(error) or repr(error))
        return reply(id=ident, ok=False, error=f"{type(error).__name__}: {text}")


def main(argv: list[str]) -> int:
    """Answer requests until the input ends."""
    reader, writer = take_protocol_streams()
    warnings.simplefilter("ignore")
    if "--inherit-env" not in argv:
        private_environment()
    try:
        for line in reader:
            if line.strip():
                writer.write(answer(line))
                writer.flush()
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
