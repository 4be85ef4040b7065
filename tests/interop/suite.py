#!/usr/bin/env python3
"""The interop suite; ``run.py`` prepares what it needs and starts it.

The interpreter must have the reference installed. Each case is random in a way that
its name and the seed fix: ``--only 'ledger 17'`` runs the one that failed.
Prints what each part met, and a closing line ``N passed, N failed``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # leave nothing in the repository

import anchors  # noqa: E402
import audit  # noqa: E402
import encoders  # noqa: E402
import ledgers  # noqa: E402
import receipts  # noqa: E402
import steps  # noqa: E402
from harness import Reference, Suite, Waybill  # noqa: E402

TARGET = Path(__file__).resolve().parents[2] / "target"


def main() -> int:
    """Run all parts."""
    options = arguments()
    scratch = Path(tempfile.mkdtemp(prefix="waybill-interop-"))
    if options.keep:
        shutil.rmtree(options.keep, ignore_errors=True)
        options.keep.mkdir(parents=True)
    home = scratch / "home"
    home.mkdir(mode=0o700)
    reference = Reference()
    waybill = Waybill(options.waybill, home)
    key = home / "audit.key"
    key.touch(mode=0o600)
    key.write_text("5a" * 32)
    waybill.env["BERNSTEIN_AUDIT_KEY_PATH"] = str(key)
    reference("env.set", vars={"BERNSTEIN_AUDIT_KEY_PATH": str(key)})
    suite = Suite(scratch, options.keep, options.only)
    try:
        peer = reference("ping")
        print(
            f"bernstein {peer['bernstein']} on Python {peer['python']}; seed {options.seed}",
            flush=True,
        )
        with suite.group("encoders against CPython's json"):
            encoders.run(suite, reference, options.encode, options.seed, options.texts)
        with suite.group("ledgers, both directions"):
            ledgers.run(suite, waybill, reference, options.seed, options.ledgers)
        with suite.group("step journals"):
            steps.run(suite, waybill, reference, options.seed, options.journals)
        with suite.group("anchors, both directions"):
            anchors.run(suite, waybill, reference, options.seed, options.anchors)
        with suite.group("audit logs, both directions"):
            audit.run(suite, waybill, reference, options.seed, options.logs)
        with suite.group("receipts, audit logs, event journals"):
            receipts.run(suite, waybill, reference, options.seed, options.receipts)
    finally:
        reference.close()
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{suite.passed} passed, {len(suite.failed)} failed")
    return 1 if suite.failed or not suite.passed else 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    release = TARGET / "release"
    parser.add_argument(
        "--waybill", type=Path, default=release / "waybill", help="the binary under test"
    )
    parser.add_argument(
        "--encode", type=Path, default=release / "examples" / "encode", help="the encoder example"
    )
    parser.add_argument("--seed", default="1", help="of everything random")
    parser.add_argument(
        "--texts", type=int, default=110_000, help="how many texts the encoders get"
    )
    parser.add_argument("--ledgers", type=int, default=220, help="how many random ledgers")
    parser.add_argument("--journals", type=int, default=60, help="how many random step journals")
    parser.add_argument("--anchors", type=int, default=6, help="how many random anchored runs")
    parser.add_argument("--logs", type=int, default=12, help="how many random audit logs")
    parser.add_argument("--receipts", type=int, default=30, help="how many in each direction")
    parser.add_argument("--only", metavar="PREFIX", help="only cases whose name begins so")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="where folders of failed cases go (emptied first)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
