"""Anchors in both directions: a run that moves between two clones and two programs.

Over a bare remote and two clones. In each round one clone records, anchors and pushes, and
the other fetches and goes on; which program does each of these is random.
"""

from __future__ import annotations

import random

from fixed_anchors import FIXED
from harness import Reference, Suite, Waybill
from host import Host, World
from ledger import Ledger
from ledgers import run_id, task_id, transitions
from values import Speller


def run(suite: Suite, waybill: Waybill, reference: Reference, seed: str, count: int) -> None:
    """The fixed cases, then the random runs."""
    for name, check in FIXED:
        suite.case(
            f"anchor {name}",
            lambda folder, check=check: check(World(folder, waybill, reference, suite, "f")),
        )
    for number in range(count):
        rng = random.Random(f"anchor {seed} {number}")
        suite.case(
            f"anchor {number}",
            lambda folder, rng=rng: play(
                rng, World(folder, waybill, reference, suite, run_id(rng))
            ),
        )


def play(rng: random.Random, world: World) -> None:
    """A few rounds; afterwards the two clones and the remote hold the same."""
    here, there = world.clones()
    tasks = [task_id(rng) for _ in range(rng.randrange(1, 6))]
    here.ledger.they_append([("run.open", "", {"run_id": world.run})])
    for _ in range(rng.choice([2, 3, 3, 4])):
        for _ in range(rng.choice([1, 1, 2])):
            record(rng, here.ledger, tasks)
        anchored(rng, here)
        if rng.random() < 0.3:
            here.gc(rng.random() < 0.5)
            anchored(rng, here)
        here.push(rng.random() < 0.5)
        there.fetch(rng.random() < 0.5, here)
        if rng.random() < 0.4:
            there.fetch(rng.random() < 0.5, here, again=True)
        here, there = there, here
        if rng.random() < 0.7:
            here.resume(rng.random() < 0.5)
    anchored(rng, here)
    here.push(rng.random() < 0.5)
    there.fetch(rng.random() < 0.5, here)
    for host in (here, there):
        host.ledger.check()
        host.lists(remote="same")
        host.audits()


def record(rng: random.Random, ledger: Ledger, tasks: list[str]) -> None:
    """One of the two records a few transitions."""
    ours = rng.random() < 0.5
    made = transitions(rng, tasks, ours)
    if ours:
        ledger.we_append_all(made, Speller(rng, breaks=False), "os")
    else:
        ledger.they_append(made)


def anchored(rng: random.Random, host: Host) -> None:
    """One anchors, and the other has nothing to add; rows and tree are the same from both."""
    ours = rng.random() < 0.5
    first = host.anchor(ours)
    if rng.random() < 0.5:
        second = host.anchor(not ours)
        assert second == first, f"an anchor again, by the other: {second}, not {first}"
    host.check_anchor()
    if rng.random() < 0.5:
        host.check_twin(not ours)
