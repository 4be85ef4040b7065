#!/usr/bin/env python3
"""Run the interop suite: ``python3 tests/interop/run.py [suite arguments]``.

Needs nothing but the standard library of any Python from 3.8 on. The reference
(PyPI ``bernstein``) needs Python 3.12 or newer: one is looked for on the path and
among pyenv's, and gets a virtual environment of its own in ``target/interop-venv``,
which is kept until the interpreter or the package's version changes. Then the
binaries are built (release) and ``suite.py`` runs in that environment; its exit
code is passed on.

Where no such Python exists, ``INTEROP DID NOT RUN`` is said and the exit code is 0.
"""

import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys

REFERENCE = "bernstein==3.23.0"
OLDEST, NEWEST = (3, 12), (3, 14)
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")

# Printed by an interpreter about itself: where it is, and whether it is a release with a GIL.
ABOUT = """
import sys, sysconfig
print(sys.version_info.releaselevel, sysconfig.get_config_var("Py_GIL_DISABLED") or 0,
      "%d.%d.%d" % sys.version_info[:3], sys.executable)
import ensurepip, venv
"""


def main():
    """Set up what is needed, run the suite, and pass its exit code on."""
    found = newest_python()
    if found is None:
        loudly(
            "there is no Python {}.{} to {}.{} (with venv) on the path or among pyenv's; "
            "install one and run this again".format(*OLDEST, *NEWEST)
        )
        return 0
    version, executable = found
    try:
        python = environment(version, executable)
        build()
    except subprocess.CalledProcessError as error:
        loudly("{} ended with {}".format(" ".join(error.cmd[:5]), error.returncode))
        return 1
    release = os.path.join(TARGET, "release")
    command = [
        python,
        os.path.join(HERE, "suite.py"),
        "--waybill=" + os.path.join(release, "waybill"),
        "--encode=" + os.path.join(release, "examples", "encode"),
        "--keep=" + os.path.join(TARGET, "interop-failed"),
    ]
    # What points other interpreters at their libraries would mislead this one.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.call(command + sys.argv[1:], env=clean)


def loudly(reason):
    """Say that the suite did not run, so that nobody overlooks it."""
    line = "INTEROP DID NOT RUN: " + reason
    print("\n".join(["", "!" * len(line), line, "!" * len(line), ""]), flush=True)


def say(text):
    """Say what is being set up."""
    print("interop: " + text, flush=True)


def newest_python():
    """Version and path of the newest fitting interpreter, or None."""
    found = {}
    for name in candidates():
        about = ask(name)
        if about and OLDEST <= about[0][:2] <= NEWEST:
            found.setdefault(about[0], about[1])
    return max(found.items()) if found else None


def candidates():
    """Interpreters that there may be, each once."""
    names = ["python%d.%d" % (3, minor) for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    paths = [shutil.which(name) for name in names + ["python3"]] + [sys.executable]
    roots = [os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")]
    if shutil.which("pyenv"):
        done = subprocess.run(
            ["pyenv", "root"], stdout=subprocess.PIPE, universal_newlines=True, check=False
        )
        roots.append(done.stdout.strip())
    for root in filter(None, roots):
        paths.extend(sorted(glob.glob(os.path.join(root, "versions", "3.*", "bin", "python3"))))
    return list(dict.fromkeys(filter(None, paths)))


def ask(python):
    """The version and real path of an interpreter that can make environments, or None."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", ABOUT],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            universal_newlines=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"final 0 (\d+)\.(\d+)\.(\d+) (\S.*)\n$", done.stdout)
    if done.returncode != 0 or match is None:
        return None
    return tuple(int(number) for number in match.groups()[:3]), match.group(4)


def environment(version, executable):
    """The interpreter of a virtual environment that has the reference; made where missing."""
    folder = os.path.join(TARGET, "interop-venv")
    python = os.path.join(folder, "bin", "python")
    stamp = os.path.join(folder, "made-of")
    wanted = "%s %d.%d.%d %s\n" % ((executable,) + version + (REFERENCE,))
    os.makedirs(TARGET, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(stamp):
            with open(stamp) as file:
                if file.read() == wanted and ask(python):
                    return python
        shutil.rmtree(folder, ignore_errors=True)
        say("making %s with Python %d.%d.%d" % ((folder,) + version))
        subprocess.run([executable, "-m", "venv", folder], check=True)
        say("installing %s from PyPI" % REFERENCE)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REFERENCE]
        subprocess.run(pip, check=True)
        with open(stamp, "w") as file:
            file.write(wanted)
    return python


def build():
    """Build the binary and the encoder; two commands, since an example pulls in test features."""
    say("building")
    cargo = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "waybill-writer"]
    subprocess.run(cargo + ["--bin", "waybill"], cwd=ROOT, check=True)
    subprocess.run(cargo + ["--example", "encode"], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
