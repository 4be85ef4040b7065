"""What the tests share: the two programs under test, counted cases, and scratch folders."""

from __future__ import annotations

import collections
import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DRIVER = Path(__file__).with_name("driver.py")
GENESIS = "0" * 64


class Refused(Exception):
    """The reference raised; the message is its own."""


class Reference:
    """One running driver, which is the reference."""

    def __init__(self) -> None:
        self.count = 0
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __call__(self, op: str, /, env: dict[str, Any] | None = None, **args: Any) -> Any:
        """Carry out an operation; its result, or ``Refused``."""
        self.count += 1
        request = {"id": self.count, "op": op, "args": args, "env": env or {}}
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.count, answer
        if not answer["ok"]:
            raise Refused(answer["error"])
        return answer["result"]

    def close(self) -> None:
        """End the driver."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(timeout=30)


class Done:
    """What a command did."""

    def __init__(self, argv: list[str], done: subprocess.CompletedProcess[bytes]) -> None:
        self.argv = argv
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr.decode("utf-8", "replace")

    def json(self) -> Any:
        """The output as one JSON value."""
        return json.loads(self.out)

    def lines(self) -> list[Any]:
        """The output as one JSON value a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def expect(self, code: int) -> Done:
        """Itself, if the exit code is as expected."""
        shown = " ".join(argument[:200] for argument in self.argv)
        same(self.code, code, f"exit code of waybill {shown} ({self.err.strip()[:600]})")
        return self


class Waybill:
    """The binary under test, in an environment that has nothing of ours in it."""

    def __init__(self, binary: Path, home: Path) -> None:
        self.binary = binary
        self.count = 0
        # Secret-like variables would be scrubbed out of payloads; so would the home folder.
        self.env = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}

    def without(self, *names: str) -> Waybill:
        """The same binary and home, in an environment that lacks some variables."""
        other = Waybill(self.binary, Path(self.env["HOME"]))
        other.env = {name: value for name, value in self.env.items() if name not in names}
        return other

    def __call__(self, *argv: str, stdin: bytes = b"", cwd: Path | None = None) -> Done:
        """Run a command to its end."""
        self.count += 1
        command = [str(self.binary).encode(), *(argument.encode() for argument in argv)]
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            env=self.env,
            cwd=cwd,
            timeout=120,
            check=False,
        )
        return Done(list(argv), done)


def same(got: Any, expect: Any, what: str) -> None:
    """Fail, showing both, unless they are equal (and of one type, so that 1 is not 1.0)."""
    if type(got) is not type(expect) or got != expect:
        raise AssertionError(f"{what}: got {cut(got)}, expected {cut(expect)}")


def cut(value: Any) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= 1500 else f"{text[:1400]}… ({len(text)} characters)"


class Suite:
    """Counts cases, shows what failed, and keeps the folders of failed cases."""

    def __init__(self, scratch: Path, keep: Path | None, only: str | None) -> None:
        self.scratch = scratch
        self.keep = keep
        self.only = only
        self.passed = 0
        self.failed: list[str] = []
        self.seen: collections.Counter[str] = collections.Counter()

    def case(self, name: str, check: Callable[[Path], None]) -> None:
        """Run one case in a folder of its own."""
        if self.only and not name.startswith(self.only):
            return
        folder = self.scratch / name.replace(" ", "-").replace("/", "-").replace(":", "-")
        folder.mkdir()
        try:
            check(folder)
        except Exception as error:  # a case that crashes is a failed case
            self.fail(name, error)
            if self.keep:
                kept = self.keep / folder.name
                shutil.copytree(folder, kept, dirs_exist_ok=True, symlinks=True)
                print(f"     kept: {kept}")
        else:
            self.passed += 1
        shutil.rmtree(folder, ignore_errors=True)

    def fail(self, name: str, error: Exception) -> None:
        """Note a failure and show it."""
        self.failed.append(name)
        text = (
            str(error)
            if isinstance(error, AssertionError) and str(error)
            else traceback.format_exc()
        )
        print(f"FAIL {name}: {text}".rstrip(), flush=True)

    def saw(self, what: str) -> None:
        """Count something that random cases met, to be shown: it tells what a run covered."""
        self.seen[what] += 1

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """A part of the suite: says what it did and how long it took."""
        passed, failed, began = self.passed, len(self.failed), time.monotonic()
        self.seen.clear()
        yield
        took = time.monotonic() - began
        count = f"{self.passed - passed} passed, {len(self.failed) - failed} failed"
        seen = "; ".join(f"{what} {number}" for what, number in sorted(self.seen.items()))
        print(f"{title}: {count} ({took:.1f} s){'; ' + seen if seen else ''}", flush=True)
