"""Clones of one remote, in which the two programs anchor, fetch, push and resume in turns."""

from __future__ import annotations

import base64
import re
import shutil
from pathlib import Path
from typing import Any

from harness import Reference, Refused, Suite, Waybill, same
from ledger import Ledger

IDENT = rb"bernstein-work-ledger <work-ledger@bernstein\.invalid> \d+ [+-]\d{4}"
CHUNK = 1000


class World:
    """A bare remote, and the run that goes through it."""

    def __init__(
        self, folder: Path, waybill: Waybill, reference: Reference, suite: Suite, run_id: str
    ) -> None:
        self.folder = folder
        self.waybill = waybill
        self.reference = reference
        self.suite = suite
        self.run = run_id
        self.ref = f"refs/bernstein/work-ledger/{run_id}"
        self.remote = folder / "remote.git"
        self.git(folder, "init", "-q", "--bare", "remote.git")

    def git(self, cwd: Path, *argv: str) -> str:
        """Plain git, which must succeed."""
        done = self.reference("git", cwd=str(cwd), argv=list(argv))
        same(done["exit"], 0, f"git {' '.join(argv)} ({done['stderr']})")
        return str(done["stdout"])

    def clones(self) -> tuple[Host, Host]:
        """Two clones."""
        return Host(self, "a"), Host(self, "b")


class Host:
    """A clone, and the run's ledger in it."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.suite = world.suite
        self.reference = world.reference
        self.waybill = world.waybill
        self.folder = self.top = world.folder / name
        self.git_in(world.folder, "clone", "-q", "remote.git", name)
        self.ledger = Ledger(self.folder, world.waybill, world.reference, world.suite, world.run)

    def git_in(self, cwd: Path, *argv: str) -> str:
        """Plain git in any folder."""
        return self.world.git(cwd, *argv)

    def git(self, *argv: str) -> str:
        """Plain git here."""
        return self.world.git(self.top, *argv)

    def theirs(self, op: str, **args: Any) -> Any:
        """An operation of the reference on this run, here."""
        return self.reference(
            op, workdir=str(self.folder), repo=str(self.top), run_id=self.world.run, **args
        )

    def their_cli(self, *argv: str) -> Any:
        """A command of the reference on this run, here: its exit code, texts and JSON."""
        verb, *rest = argv
        full = ["ledger", verb, self.world.run, *rest, "--json"]
        return self.reference("cli", argv=full, cwd=str(self.folder))

    def tip(self, repository: Path | None = None) -> str:
        """The commit of the run's ref."""
        return self.git_in(repository or self.top, "rev-parse", self.world.ref).strip()

    def tree(self) -> str:
        """The tree of the run's ref."""
        return self.git("rev-parse", self.world.ref + "^{tree}").strip()

    def blobs(self) -> dict[str, str]:
        """The entries of the anchor's tree."""
        listed: dict[str, str] = {}
        for line in self.git("ls-tree", self.world.ref).splitlines():
            about, name = line.split("\t")
            mode, kind, blob = about.split()
            same((mode, kind), ("100644", "blob"), f"mode of {name}")
            listed[name] = blob
        return listed

    def everything(self) -> dict[str, Any]:
        """Every file here, git's too: what a refusal must leave as it is."""
        return {
            str(path.relative_to(self.folder)): (path.lstat().st_mode, path.read_bytes())
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name not in (".ledger.lock", ".chain.lock")
        }

    # Steps ---------------------------------------------------------------------

    def anchor(self, ours: bool) -> tuple[str, str]:
        """Anchor; the commit and the tree."""
        ledger = self.ledger
        entries = len(ledger.told)
        chunks = -(-entries // CHUNK)
        if ours:
            said = ledger.ours("anchor").json()
            told = (said["entries"], said["chunks"], said["head_hash"], said["ref"])
            made = (said["commit"], said["tree"])
        else:
            done = self.their_cli("anchor")
            same((done["exit"], done["exception"]), (0, None), f"their anchor ({done['stdout']})")
            said = done["json"]
            told = (said["entry_count"], said["chunk_count"], said["head_hash"], said["ref"])
            made = (said["commit_sha"], said["tree_sha"])
        same(told, (entries, chunks, ledger.head(), self.world.ref), "what the anchor said")
        same(made, (self.tip(), self.tree()), "the ref")
        self.suite.saw("we anchor" if ours else "reference anchors")
        return made

    def check_anchor(self) -> None:
        """Both find the anchor good, and what ledger and form say is in it."""
        entries, head = len(self.ledger.told), self.ledger.head()
        chunks = -(-entries // CHUNK)
        theirs = self.theirs("ledger.anchored")
        meta = {
            "chunk_count": chunks,
            "entry_count": entries,
            "format_version": 1,
            "head_hash": head,
            "run_id": self.world.run,
        }
        same(theirs["meta"], meta, "LEDGER.json by the reference")
        verdict = theirs["verification"]
        same((verdict["ok"], verdict["errors"]), (True, []), "the reference's verdict")
        same((verdict["entries"], verdict["head_hash"]), (entries, head), "its entries and head")
        same(self.theirs("ledger.materialize")["action"], "unchanged", "the reference's verifier")
        report = self.ledger.we_verify("--anchored")
        facts = report["facts"]
        same((facts["commit"], facts["chunk_count"]), (self.tip(), chunks), "our facts")
        unchecked = [check for check in report["checks"] if check["status"] != "pass"]
        same(unchecked, [], "our checks that are no pass")
        pinned = self.ledger.we_verify(
            "--anchored", "--expected-commit", self.tip(), verdict="verified"
        )
        same(pinned["exit_code"], 0, "given the commit")
        names = [f"chunk-{number:06}.jsonl" for number in range(chunks)]
        same(sorted(self.blobs()), ["LEDGER.json", *names], "the tree's entries")

    def check_twin(self, ours: bool) -> None:
        """The same rows, anchored in an empty repository by the other: tree, form, audit event."""
        twin = Host.__new__(Host)
        twin.__dict__.update(self.__dict__)
        twin.folder = twin.top = self.world.folder / "twin"
        shutil.rmtree(twin.folder, ignore_errors=True)
        self.git_in(self.world.folder, "init", "-q", "twin")
        twin.ledger = Ledger(
            twin.folder, self.waybill, self.reference, self.suite, self.world.run
        )
        twin.ledger.file.parent.mkdir(parents=True, mode=0o700)
        shutil.copy(self.ledger.file, twin.ledger.file)
        twin.learn(self)
        made = twin.anchor(ours)
        same(made[1], self.tree(), "the twin's tree")
        same(twin.blobs(), self.blobs(), "the twin's blobs")
        for host in (self, twin):
            host.check_commit()
        mirrors = [host.mirrors()[-1] for host in (self, twin)]
        for row in mirrors:
            same(row["details"].pop("prev_chain_digest"), row["prev_hmac"], "prev_chain_digest")
            for name in ("hmac", "prev_hmac", "timestamp"):
                del row[name]
        same(mirrors[1], mirrors[0], "the twin's audit event")
        self.suite.saw("twins")

    def check_commit(self) -> None:
        """The commit has one of the two forms, byte for byte."""
        data = self.git("cat-file", "commit", self.world.ref).encode()
        head, message = data.split(b"\n\n", 1)
        assert re.fullmatch(
            rb"tree [0-9a-f]{40}\n(parent [0-9a-f]{40}\n)?author %b\ncommitter %b" % (IDENT, IDENT),
            head,
        ), head
        subject, body = message.decode().split("\n\n", 1)
        run, ledger = self.world.run, self.ledger
        plain = f"run_id={run}\nhead={ledger.head()}\nentries={len(ledger.told)}\n"
        forms = {
            "bernstein work ledger anchor": plain,
            "bernstein work ledger anchor (gc squash)": f"run_id={run}\n",
        }
        same(forms.get(subject), body, f"message of {subject!r}")

    def gc(self, ours: bool) -> None:
        """Squash: one commit without a parent, the same tree."""
        tree = self.blobs()
        if ours:
            same(self.ledger.ours("gc").json()["commit"], self.tip(), "our gc's commit")
        else:
            same(self.theirs("ledger.gc")["commit_sha"], self.tip(), "the reference's gc's commit")
        same(self.blobs(), tree, "the tree after gc")
        same(self.git("rev-list", "--count", self.world.ref), "1\n", "commits after gc")
        self.check_commit()
        self.suite.saw("we gc" if ours else "reference squashes")

    def push(self, ours: bool) -> None:
        """Carry the anchor to the remote; a squash goes on from no commit that is there."""
        if ours:
            said = self.ledger.ours("push").json()
            same(said["commit"], self.tip(), "what we pushed")
        else:
            done = self.theirs("ledger.push", force=True)
            same(done["exit"], 0, f"git's push ({done['stderr']})")
        same(self.tip(self.world.remote), self.tip(), "the remote's commit")
        self.suite.saw("we push" if ours else "git pushes")

    def fetch(self, ours: bool, source: Host, again: bool = False) -> None:
        """Take over what the other clone pushed."""
        begun = len(self.ledger.told)
        action = "created" if not begun else "fast-forwarded"
        if again or begun == len(source.ledger.told):
            action = "unchanged"
        if ours:
            said = self.ledger.ours("fetch").json()
            told = (said["commit"], said["entries"], said["head_hash"])
        else:
            said = self.theirs("ledger.fetch")
            told = (said["commit_sha"], said["entry_count"], said["head_hash"])
        tip = source.tip()
        same(told, (tip, len(source.ledger.told), source.ledger.head()), "what the fetch said")
        same(said["action"], action, "action of the fetch")
        same(self.tip(), tip, "the ref after the fetch")
        same(self.ledger.file.read_bytes(), source.ledger.file.read_bytes(), "the fetched ledger")
        same(self.ledger.file.stat().st_mode & 0o7777, 0o600, "its mode")
        self.learn(source)
        self.ledger.check()
        self.suite.saw(f"{'we fetch' if ours else 'reference fetches'} ({action})")

    def learn(self, source: Host) -> None:
        """The ledger here is the other's."""
        self.ledger.told = list(source.ledger.told)
        self.ledger.hashes = list(source.ledger.hashes)

    def resume(self, ours: bool, everything: bool = True) -> None:
        """Resume; the signals are what the other program writes of the same ledger.

        Without ``everything`` the ledger may be missing or behind, and its tasks are in flight;
        the folder may be deep in a repository, and is then not compared.
        """
        ledger = self.ledger
        # Of a run that is closed or in which nothing is in flight we record no resume.
        state = self.theirs("ledger.state") if everything else None
        nothing = bool(state) and (state["state"]["run_closed"] or not state["frontier"])
        signals = self.folder / ".sdd" / "runtime" / "resume"
        shutil.rmtree(signals, ignore_errors=True)
        copy = self.world.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder, copy)
        if not (copy / ".git").exists():
            self.git_in(copy, "init", "-q")
        before = ledger.head()
        if ours:
            row = self.we_resume(nothing)
            theirs = their_signals(self.reference, copy, self.world.run)
            written = read_signals(self.folder)
        else:
            written = their_signals(self.reference, self.folder, self.world.run)
            row = ledger.rows()[-1]
            other = Ledger(copy, self.waybill, self.reference, self.suite, self.world.run)
            other.ours("resume")
            theirs, written = written, read_signals(copy)
        if nothing:
            same(written, {}, "our signals where nothing is to be resumed")
        else:
            # The reference also writes signals for names that are no task of ours.
            for name in (".signal", "..signal", "...signal"):
                theirs.pop(name, None)
            same(written, theirs, "signals, byte for byte")
        if row:
            names = ["from_head", "resume_nonce", "state"]
            same(sorted(row["payload"]), names, "fields of the resume")
            same(row["payload"]["from_head"], before, "from_head")
            same(row["payload"]["state"], "resumed", "state in the row of the resume")
            assert re.fullmatch("[0-9a-f]{32}", row["payload"]["resume_nonce"]), row
            ledger.acknowledged([("run.resumed", "", row["payload"])], [row])
        ledger.check()
        who = "we resume" if ours else "reference resumes"
        self.suite.saw(who + (" (nothing)" if nothing else ""))
        self.suite.seen["signals"] += len(written)

    def we_resume(self, nothing: bool) -> Any:
        """Our resume: a dry run that changes nothing, and then it; its row, if it wrote one."""
        everything = self.everything()
        dry = self.ledger.ours("resume", "--dry-run").json()
        same(self.everything(), everything, "everything after a dry run")
        said = self.ledger.ours("resume").json()
        same(dry["signals"], said["signals"], "signals of the dry run")
        same(dry["state"], said["state"], "state of the dry run")
        if nothing:
            same(said["recorded"], None, "what a resume of nothing recorded")
            return None
        row = self.ledger.rows()[-1]
        same(row["entry_hash"], said["recorded"]["entry_hash"], "the recorded row")
        return row

    # Lists and logs --------------------------------------------------------------

    def lists(self, remote: str) -> None:
        """Both list the run; we also say that ledger, anchor and remote agree."""
        same(self.reference("ledger.runs", repo=str(self.top))["runs"], [self.world.run], "runs")
        done = self.waybill(
            "ledger", "runs", "--remote", "origin", "--workdir", str(self.folder), "--json"
        )
        (listed,) = done.expect(0).json()["runs"]
        head = {"entries": len(self.ledger.told), "head_hash": self.ledger.head()}
        same((listed["run_id"], listed["remote"]), (self.world.run, remote), "our list")
        for where in ("local", "anchored"):
            got = {name: listed[where][name] for name in head}
            same(got, head, f"{where} in our list")
        same(listed["anchored_commit"], self.tip(), "the anchor in our list")

    def mirrors(self) -> list[Any]:
        """The rows of the audit log that mirror anchors."""
        filters = {"event_type": "work_ledger.anchor"}
        rows: list[Any] = self.reference("audit.rows", workdir=str(self.folder), filters=filters)[
            "rows"
        ]
        return sorted(rows, key=lambda row: row["timestamp"])

    def audits(self) -> None:
        """Both find the audit log good, in which both mirrored."""
        if not (self.folder / ".sdd" / "audit").exists():
            return
        theirs = self.reference("audit.verify", workdir=str(self.folder))
        same((theirs["ok"], theirs["errors"]), (True, []), "their verdict on the audit log")
        done = self.waybill("audit", "verify", "--workdir", str(self.folder), "--json")
        same(done.expect(0).json()["verdict"], "consistent", "our verdict on the audit log")
        self.suite.saw("audit logs")


def read_signals(folder: Path) -> dict[str, bytes]:
    """The resume signals of a project."""
    found = (folder / ".sdd" / "runtime" / "resume").glob("*")
    return {path.name: path.read_bytes() for path in found}


def their_signals(reference: Reference, folder: Path, run_id: str) -> dict[str, bytes]:
    """The reference resumes; its signals."""
    done = reference("ledger.resume", workdir=str(folder), run_id=run_id)
    same(done["exit"], 0, f"the reference's resume ({done['stdout']}{done['stderr']})")
    return {signal["name"]: base64.b64decode(signal["b64"]) for signal in done["signals"]}


def refusal(call: Any) -> str:
    """What the reference says as it refuses."""
    try:
        call()
    except Refused as error:
        return str(error)
    raise AssertionError("the reference doesn't refuse")


