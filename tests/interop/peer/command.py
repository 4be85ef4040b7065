"""The driver itself, plain git, and the reference's command line."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from peer.common import OPS, Args, git, load, op, set_environment, working_directory


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

    if not argv:
        raise ValueError("give a command: alone, bernstein may start a session")
    place = CLI_GROUPS.get(argv[0])
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


@op("git")
def git_op(args: Args) -> Any:
    """Plain git in a folder, in the driver's environment."""
    return git(args["cwd"], *args["argv"], check=False)
