"""Anchors that are worth never missing: chunks, divergence, and what is ahead."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable

from harness import same
from host import Host, World, refusal
from ledger import Ledger, Transition
from values import Speller


def begun(world: World, ours: bool) -> tuple[Host, Host]:
    """Two clones with the same anchored ledger, in which some tasks are in flight."""
    here, there = world.clones()
    here.ledger.we_open({"note": "é\ud800"})
    here.ledger.they_append(
        [("task.scheduled", "b", {}), ("task.started", "a", {"n": 1.5}), ("task.started", "c", {})]
    )
    here.anchor(ours)
    here.push(ours)
    there.fetch(not ours, here)
    return here, there


def chunks(world: World) -> None:
    """Over several chunks, by turns; an anchor again leaves the chunks that are full."""
    here, there = world.clones()
    spell = Speller(random.Random(0), breaks=False)
    here.ledger.we_open({})
    ours = False
    for count in (998, 1, 1, 1, 1500):
        rows: list[Transition] = [
            ("task.started", f"t{index % 50}", {"n": index, "f": index / 7})
            for index in range(count)
        ]
        before = here.blobs() if here.ledger.told[1:] else {}
        full = len(here.ledger.told) // 1000
        if ours:
            here.ledger.we_append_all(rows, spell, "os")
        else:
            here.ledger.they_append(rows)
        here.ledger.check()
        here.anchor(not ours)
        here.anchor(ours)
        here.check_anchor()
        if len(here.ledger.told) in (1000, 1001, 2502):
            here.check_twin(ours)
        after = here.blobs()
        for name in sorted(before)[1 : full + 1]:
            same(after[name], before[name], f"{name}, which was full")
        here.push(ours)
        there.fetch(not ours, here)
        here, there = there, here
        ours = not ours
    same(len(here.ledger.told), 2502, "entries")
    here.ledger.they_append([("note", "", {})])
    said = here.ledger.ours("anchor").json()
    same(said["blobs_written"], 2, "blobs written: the last chunk and LEDGER.json")
    same(here.ledger.ours("anchor").json()["blobs_written"], 0, "blobs of an anchor again")
    here.check_anchor()


def squashed(world: World, ours: bool) -> None:
    """A gc by one, extended by the other, and a clone that still has the history."""
    here, there = begun(world, ours)
    here.ledger.they_append([("note", "", {})])
    here.anchor(ours)
    here.gc(ours)
    here.check_anchor()
    here.push(ours)
    there.fetch(not ours, here)
    there.resume(not ours)
    there.anchor(not ours)
    there.check_anchor()
    same(there.git("rev-list", "--count", world.ref), "2\n", "commits on the squash")
    there.push(not ours)
    here.fetch(ours, there)
    here.gc(not ours)
    here.gc(ours)
    here.check_anchor()
    here.push(not ours)
    there.fetch(ours, here, again=True)


def diverged(world: World, ours: bool, keep: str) -> None:
    """A resume by each program: we refuse at the fork, and change nothing; then it is settled."""
    here, there = begun(world, ours)
    fork = len(here.ledger.told)
    there.resume(not ours)
    there.ledger.they_append([("task.completed", "a", {})])
    there.anchor(not ours)
    there.push(not ours)
    here.resume(ours)
    local, remote = here.ledger.head(), there.ledger.head()
    refuses(here, fork, local, remote, "fetch")
    here.anchor(ours)
    refuses(here, fork, local, remote, "fetch")
    refuses(here, fork, local, remote, "push")
    theirs = here.reference(
        "ledger.compare", local=str(here.ledger.file), remote=str(there.ledger.file)
    )
    same((theirs["relation"], theirs["fork_seq"]), ("diverged", fork), "the reference's comparison")
    ours_said = here.ledger.ours("diff", "--remote", "origin", code=3).json()
    same(
        (ours_said["comparison"], ours_said["entries_in_common"]), ("diverged", fork), "our diff"
    )
    heads = ours_said["local_head"], ours_said["anchored_head"]
    same(heads, (local, remote), "heads of our diff")
    for side, host in (("local", here), ("anchored", there)):
        hashes = [row["entry_hash"] for row in ours_said[side]]
        same(hashes, host.ledger.hashes[fork:], f"{side} lineage of our diff")
    # The reference refuses, too, but its fetch has moved the ref: the anchor here is the other's.
    said = refusal(lambda: here.theirs("ledger.fetch"))
    assert said.startswith("LedgerDivergenceError") and f"at entry {fork}" in said, said
    same(here.tip(), there.tip(), "the ref after the reference's refused fetch")
    for verb in ("anchor", "fetch", "resume"):
        refuses(here, fork, local, remote, verb)
    done = here.their_cli("anchor")
    same(done["exit"], 3, "exit code of the reference's anchor")
    settled(here, there, keep)


def refuses(host: Host, fork: int, local: str, remote: str, verb: str) -> None:
    """We refuse with exit code 3, the entry and both heads, and change nothing anywhere."""
    world = host.world
    before = host.everything(), world.git(world.remote, "for-each-ref")
    done = host.ledger.ours(verb, code=3)
    for part in (f"diverged at entry {fork}:", local, remote):
        assert part in done.err, f"{part} in what {verb} says: {done.err}"
    after = host.everything(), world.git(world.remote, "for-each-ref")
    changed = sorted(
        name
        for name in before[0].keys() | after[0].keys()
        if before[0].get(name) != after[0].get(name)
    )
    same(changed, [], f"files that a refused {verb} changed")
    same(after[1], before[1], f"the remote after a refused {verb}")
    world.suite.saw(f"refusals of {verb}")


def settled(here: Host, there: Host, keep: str) -> None:
    """``diff --keep``: afterwards both clones and both programs go on."""
    here.ledger.ours("diff", "--keep", keep, "--remote", "origin")
    if keep == "anchored":
        here.learn(there)
    here.ledger.check()
    here.anchor(True)
    here.anchor(False)
    here.check_anchor()
    here.push(True)
    if keep == "local":
        there.ledger.ours("diff", "--keep", "anchored", "--remote", "origin")
        there.learn(here)
    there.fetch(False, here, again=True)
    there.fetch(True, here, again=True)
    there.ledger.they_append([("note", "", {"after": keep})])
    there.anchor(False)
    there.push(False)
    here.fetch(True, there)
    here.check_anchor()
    for host in (here, there):
        host.audits()


def ahead(world: World) -> None:
    """What is ahead is refused by both with exit code 2, and not by a fork."""
    here, there = begun(world, True)
    here.ledger.they_append([("note", "", {})])
    here.anchor(True)
    here.push(True)
    there.ledger.they_append([])
    # The reference's ref here is ahead of the ledger.
    there.theirs("ledger.fetch", materialize=False)
    same(there.their_cli("anchor")["exit"], 2, "the reference's anchor behind its ref")
    there.ledger.ours("anchor", code=2)
    there.fetch(True, here)
    there.ledger.they_append([("note", "", {})])
    same(there.their_cli("fetch")["exit"], 2, "the reference's fetch of what is behind")
    there.ledger.ours("fetch", code=2)
    there.anchor(True)
    here.theirs("ledger.push")
    there.push(True)
    here.fetch(False, there)
    same(here.their_cli("gc")["exit"], 0, "the reference's gc")
    here.check_anchor()


def none(world: World) -> None:
    """A run that isn't there: exit code 1 from both."""
    here, _ = world.clones()
    for verb in ("anchor", "fetch", "resume", "gc"):
        here.ledger.ours(verb, code=1)
        same(here.their_cli(verb)["exit"], 1, f"exit code of the reference's {verb}")


def only_anchored(world: World, ours: bool) -> None:
    """A resume where the ledger is gone, and one where it is behind its anchor."""
    here, there = begun(world, ours)
    shutil.rmtree(here.ledger.file.parent)
    here.ledger.ours("resume", "--dry-run")
    same(here.ledger.file.exists(), False, "that a dry run of ours writes the ledger")
    here.resume(ours, everything=False)
    here.anchor(not ours)
    here.check_anchor()
    here.push(ours)
    there.theirs("ledger.fetch", materialize=False)
    there.learn(here)
    there.resume(ours, everything=False)
    there.anchor(ours)
    there.check_anchor()


def elsewhere(world: World) -> None:
    """Another time zone, packed refs and objects, and a project in a folder of its repository."""
    here, there = begun(world, False)
    for ours, zone in ((False, "Asia/Tokyo"), (True, "America/St_Johns"), (False, "")):
        here.ledger.they_append([("note", "", {"zone": zone})])
        before = here.waybill.env
        here.reference("env.set", vars={"TZ": zone})
        here.waybill.env = {**before, "TZ": zone}
        try:
            here.anchor(ours)
            here.check_anchor()
            here.check_twin(not ours)
        finally:
            here.reference("env.set", vars={"TZ": None})
            here.waybill.env = before
        here.git("gc", "-q", "--prune=now")
        same(here.git("show-ref", world.ref).split()[0], here.tip(), "the packed ref")
        here.check_anchor()
    here.push(True)
    above = there.ledger.file
    kept = above.read_bytes()
    there.folder = there.top / "deep" / "er"
    there.folder.mkdir(parents=True)
    there.ledger = Ledger(there.folder, world.waybill, world.reference, world.suite, world.run)
    for ours in (False, True):
        shutil.rmtree(there.folder / ".sdd", ignore_errors=True)
        there.ledger.told.clear()
        there.ledger.hashes.clear()
        there.fetch(ours, here)
        there.resume(ours, everything=False)
        # The reference's own command can't read an anchor from down there; its library can.
        there.anchor(True)
        there.check_anchor()
        there.git("update-ref", "-d", world.ref)
    same(above.read_bytes(), kept, "the ledger at the top")


def torn(world: World, ours: bool) -> None:
    """Of a ledger with a torn tail both anchor what is before it."""
    here, there = begun(world, ours)
    here.ledger.they_append([("note", "", {})])
    data = here.ledger.file.read_bytes()
    here.ledger.file.write_bytes(data + data[:100])
    here.anchor(ours)
    tree = here.tree()
    here.git("update-ref", "-d", world.ref)
    here.anchor(not ours)
    same(here.tree(), tree, "the tree, anchored by the other")
    here.push(True)
    same(there.theirs("ledger.fetch")["action"], "fast-forwarded", "the reference's fetch")
    same(there.ledger.file.read_bytes(), data, "the fetched ledger")


def other_chunks(world: World) -> None:
    """Chunks of another size hold for the reference; for us they are a fault."""
    here, there = begun(world, True)
    here.ledger.they_append([("note", "", {})])
    here.theirs("ledger.anchor", chunk_lines=2)
    same(here.theirs("ledger.materialize")["action"], "unchanged", "the reference's verdict")
    fault = here.ledger.we_verify("--anchored", code=2, verdict="failed")
    assert "chunk_size" in str(fault), fault
    here.push(False)
    before = there.everything()
    there.ledger.ours("fetch", code=2)
    same(there.everything(), before, "everything after a refused fetch")


def two_runs(world: World) -> None:
    """Two runs in one repository keep out of each other's way."""
    here, there = begun(world, True)
    world.run, world.ref = "g", "refs/bernstein/work-ledger/g"
    first = here.ledger, there.ledger
    for host in (here, there):
        host.ledger = Ledger(host.folder, world.waybill, world.reference, world.suite, "g")
    here.ledger.we_open({})
    here.ledger.they_append([("task.started", "z", {})])
    here.anchor(False)
    here.push(True)
    there.fetch(True, here)
    there.resume(False)
    world.run, world.ref = "f", "refs/bernstein/work-ledger/f"
    here.ledger, there.ledger = first
    here.check_anchor()
    there.resume(True)
    there.anchor(True)
    there.audits()
    for host in (here, there):
        runs = host.reference("ledger.runs", repo=str(host.folder))["runs"]
        done = host.waybill("ledger", "runs", "--workdir", str(host.folder), "--json").expect(0)
        same([run["run_id"] for run in done.json()["runs"]], runs, "runs")
        same(runs, ["f", "g"], "the reference's runs")


def both(check: Callable[[World, bool], None], ours: bool) -> Callable[[World], None]:
    """A case that one of the two begins."""
    return lambda world: check(world, ours)


def fork(ours: bool, keep: str) -> Callable[[World], None]:
    """A divergence by one of the two."""
    return lambda world: diverged(world, ours, keep)


FIXED: list[tuple[str, Callable[[World], None]]] = [
    ("of several chunks", chunks),
    ("squashed by us", both(squashed, True)),
    ("squashed by the reference", both(squashed, False)),
    ("diverged by us, local kept", fork(True, "local")),
    ("diverged by us, anchored kept", fork(True, "anchored")),
    ("diverged by the reference, local kept", fork(False, "local")),
    ("diverged by the reference, anchored kept", fork(False, "anchored")),
    ("ahead or behind", ahead),
    ("of no run", none),
    ("that is all there is, by us", both(only_anchored, True)),
    ("that is all there is, by the reference", both(only_anchored, False)),
    ("elsewhere", elsewhere),
    ("of a torn ledger by us", both(torn, True)),
    ("of a torn ledger by the reference", both(torn, False)),
    ("of other chunks", other_chunks),
    ("of two runs", two_runs),
]
