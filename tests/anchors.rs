//! Anchors on real git repositories, with git as the oracle.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::help::{Said, report, waybill};

const RUN: &str = "goal-42";
const REF: &str = "refs/bernstein/work-ledger/goal-42";

/// A folder with a home, in which repositories are made.
pub struct World(pub TempDir);

/// A clone in it.
pub struct Host<'a> {
    pub world: &'a World,
    pub folder: PathBuf,
}

impl World {
    pub fn new() -> World {
        let world = World(TempDir::new().unwrap());
        fs::create_dir(world.0.path().join("home")).unwrap();
        world
    }

    pub fn command(&self, mut command: Command) -> Command {
        let home = self.0.path().join("home");
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &home)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "x")
            .env("GIT_AUTHOR_EMAIL", "x@example.org")
            .env("GIT_COMMITTER_NAME", "x")
            .env("GIT_COMMITTER_EMAIL", "x@example.org")
            .stdin(Stdio::null());
        command
    }

    pub fn git(&self, folder: &Path, arguments: &[&str]) -> String {
        let said = self.try_git(folder, arguments);
        assert_eq!(said.code, Some(0), "git {arguments:?}: {said:?}");
        said.out
    }

    pub fn try_git(&self, folder: &Path, arguments: &[&str]) -> Said {
        let mut command = self.command(Command::new("git"));
        command.current_dir(folder).args(arguments).output().unwrap().into()
    }

    /// A bare remote with one commit.
    pub fn remote(&self) -> PathBuf {
        let remote = self.0.path().join("remote.git");
        self.git(self.0.path(), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        let seed = self.host("seed", &["init", "-q", "-b", "main"]);
        fs::write(seed.folder.join("f"), "hello").unwrap();
        seed.git(&["add", "f"]);
        seed.git(&["commit", "-q", "-m", "one"]);
        seed.git(&["push", "-q", "../remote.git", "main"]);
        remote
    }

    pub fn host(&self, name: &str, init: &[&str]) -> Host<'_> {
        let folder = self.0.path().join(name);
        fs::create_dir(&folder).unwrap();
        self.git(&folder, init);
        Host { world: self, folder }
    }

    pub fn clone(&self, name: &str, more: &[&str]) -> Host<'_> {
        let url = format!("file://{}", self.0.path().join("remote.git").display());
        let arguments = [&["clone", "-q"][..], more, &[&url, name]].concat();
        self.git(self.0.path(), &arguments);
        Host { world: self, folder: self.0.path().join(name) }
    }
}

impl Host<'_> {
    pub fn git(&self, arguments: &[&str]) -> String {
        self.world.git(&self.folder, arguments)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.command(waybill(&self.folder));
        command.current_dir(&self.folder).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> Said {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
        said
    }

    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str], arguments: &[&str]) -> Said {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "one line: {said:?}");
        for word in words {
            assert!(said.err.contains(word), "{word:?} in {said:?}");
        }
        said
    }

    pub fn append(&self, kind: &str, task: &str) {
        self.ok(&["ledger", "append", RUN, "--kind", kind, "--task", task]);
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat()).out).unwrap()
    }

    pub fn ledger(&self) -> PathBuf {
        self.folder.join(".sdd/runtime/ledger").join(RUN).join("000000.jsonl")
    }

    pub fn tip(&self) -> Option<String> {
        let said = self.world.try_git(&self.folder, &["rev-parse", "--verify", "-q", REF]);
        (said.code == Some(0)).then(|| said.out.trim().to_owned())
    }

    /// All that a refused command must leave as it was.
    fn everything(&self) -> (Vec<u8>, String, Option<Vec<u8>>) {
        let audit = fs::read_dir(self.folder.join(".sdd/audit")).into_iter().flatten().flatten();
        let audit: Vec<u8> = audit
            .filter(|entry| entry.path().is_file())
            .flat_map(|entry| fs::read(entry.path()).unwrap())
            .collect();
        (fs::read(self.ledger()).unwrap_or_default(), self.git(&["for-each-ref"]), Some(audit))
    }

    pub fn opened(self) -> Self {
        self.ok(&["ledger", "open", RUN]);
        self.append("task.scheduled", "t0");
        self.append("task.started", "t0");
        self
    }
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/anchor")
}

#[test]
fn every_bundle_fetched_by_git_gives_what_strict_says() {
    let mut seen = 0;
    for entry in fs::read_dir(vectors()).unwrap() {
        let case = entry.unwrap().path();
        let expected: Value = serde_json::from_slice(&fs::read(case.join("expected.json")).unwrap()).unwrap();
        let strict = &expected["strict"];
        let reference = expected["ref"].as_str().unwrap();
        let run = reference.rsplit('/').next().unwrap();
        let world = World::new();
        let host = world.host("host", &["init", "-q"]);
        let bundle = case.join("anchor.bundle");
        host.git(&["fetch", "-q", bundle.to_str().unwrap(), &format!("{reference}:{reference}")]);
        let said = host.run(&["ledger", "verify", run, "--anchored", "--json"]);
        assert_eq!(said.code.map(i64::from), strict["exit"].as_i64(), "{}: {said:?}", case.display());
        let report = report(&said);
        if let Some(fault) = strict["fault"].as_str() {
            assert_eq!(report.first_failure().unwrap()["fault"], fault, "{}", case.display());
        }
        if let (Some(tree), Ok(ledger)) =
            (strict["tree_sha"].as_str().or(expected["tree"].as_str()), fs::read(case.join("000000.jsonl")))
        {
            let other = world.host("other", &["init", "-q"]);
            let folder = other.folder.join(".sdd/runtime/ledger").join(run);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("000000.jsonl"), ledger).unwrap();
            let made = other.json(&["ledger", "anchor", run]);
            assert_eq!(made["tree"], tree, "{}", case.display());
        }
        seen += 1;
    }
    assert!(seen >= 25);
}

#[test]
fn time_stamps_that_differ_are_neither_the_same_nor_a_divergence() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]);
    let [a, b] = ["ok-ts-differs-a", "ok-ts-differs-b"].map(|name| vectors().join(name));
    let expected: Value = serde_json::from_slice(&fs::read(a.join("expected.json")).unwrap()).unwrap();
    let reference = expected["ref"].as_str().unwrap();
    let run = reference.rsplit('/').next().unwrap();
    host.git(&[
        "fetch",
        "-q",
        a.join("anchor.bundle").to_str().unwrap(),
        &format!("{reference}:{reference}"),
    ]);
    host.git(&[
        "fetch",
        "-q",
        b.join("anchor.bundle").to_str().unwrap(),
        &format!("{reference}:refs/heads/b"),
    ]);
    let rows = host.git(&["cat-file", "blob", "refs/heads/b:chunk-000000.jsonl"]);
    let folder = host.folder.join(".sdd/runtime/ledger").join(run);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("000000.jsonl"), rows).unwrap();
    host.fails(2, &["no hash covers"], &["ledger", "anchor", run]);
    let said = host.run(&["ledger", "diff", run, "--json"]);
    assert_eq!(said.code, Some(2));
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["comparison"], "unhashed_fields_differ");
}

#[test]
fn an_anchor_writes_what_is_new_and_a_second_one_nothing() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    let lines = "{\"kind\":\"task.started\",\"task_id\":\"t\"}\n".repeat(2500);
    let mut child = host.command(&["ledger", "append", RUN, "--stdin", "--durability", "os"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let first = host.json(&["ledger", "anchor", RUN]);
    assert_eq!((&first["chunks"], &first["blobs_written"]), (&Value::from(3), &Value::from(4)));
    let second = host.json(&["ledger", "anchor", RUN]);
    assert_eq!(
        (&second["commit"], &second["blobs_written"], &second["moved"]),
        (&first["commit"], &Value::from(0), &Value::from(false))
    );
    host.append("task.completed", "t");
    let third = host.json(&["ledger", "anchor", RUN]);
    assert_eq!(third["blobs_written"], 2, "the last chunk and LEDGER.json");
    assert_eq!(host.git(&["rev-parse", &format!("{REF}^")]).trim(), first["commit"]);
    assert_eq!(host.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert_eq!(
        host.git(&["log", "--format=%an <%ae>", "-1", REF]).trim(),
        "bernstein-work-ledger <work-ledger@bernstein.invalid>"
    );
    let report = report(&host.run(&["ledger", "verify", RUN, "--anchored", "--json"]));
    assert_eq!(report.verdict(), "consistent");
    let commit = third["commit"].as_str().unwrap();
    let report = crate::help::report(&host.run(&[
        "ledger",
        "verify",
        RUN,
        "--anchored",
        "--expected-commit",
        commit,
        "--json",
    ]));
    assert_eq!(report.verdict(), "verified");
    for check in report.0["checks"].as_array().unwrap() {
        host.ok(&["explain", check["id"].as_str().unwrap()]);
    }
    host.ok(&["explain", "ledger.anchored"]);
}

#[test]
fn a_run_migrates_and_a_second_resume_is_refused_at_the_fork() {
    let world = World::new();
    world.remote();
    let a = world.clone("a", &[]).opened();
    a.ok(&["ledger", "anchor", RUN]);
    a.ok(&["ledger", "push", RUN]);
    // A dies. B goes on.
    let b = world.clone("b", &[]);
    assert_eq!(b.json(&["ledger", "fetch", RUN])["action"], "created");
    assert_eq!(fs::read(a.ledger()).unwrap(), fs::read(b.ledger()).unwrap());
    let dry = b.json(&["ledger", "resume", RUN, "--dry-run"]);
    assert_eq!(dry["state"]["resume_frontier"], serde_json::json!(["t0"]));
    assert!(!b.folder.join(".sdd/runtime/resume").exists());
    b.ok(&["ledger", "resume", RUN]);
    let signal: Value =
        serde_json::from_slice(&fs::read(b.folder.join(".sdd/runtime/resume/t0.signal")).unwrap()).unwrap();
    assert_eq!((&signal["run_id"], &signal["resume_count"]), (&Value::from(RUN), &Value::from(0)));
    b.append("task.completed", "t0");
    b.ok(&["ledger", "anchor", RUN]);
    b.ok(&["ledger", "push", RUN]);
    // A comes back, and knows nothing of it.
    a.ok(&["ledger", "resume", RUN]);
    let head = |host: &Host<'_>| report(&host.run(&["ledger", "verify", RUN, "--json"])).head().to_owned();
    let (ours, theirs) = (head(&a), head(&b));
    let before = a.everything();
    let remote_before = world.git(&world.0.path().join("remote.git"), &["for-each-ref"]);
    let words = ["diverged at entry 3", &ours, &theirs];
    let said = a.fails(3, &words, &["ledger", "fetch", RUN]);
    assert!(said.err.contains("ledger diff goal-42 --remote origin"), "{said:?}");
    assert_eq!(a.run(&["ledger", "verify", RUN, "--remote", "origin"]).code, Some(3));
    assert_eq!(a.run(&["ledger", "diff", RUN, "--remote", "origin"]).code, Some(3));
    assert_eq!(a.everything(), before);
    a.ok(&["ledger", "anchor", RUN]);
    a.fails(3, &words, &["ledger", "push", RUN]);
    assert_eq!(world.git(&world.0.path().join("remote.git"), &["for-each-ref"]), remote_before);
    // Somebody decides. Nothing is lost.
    a.ok(&["ledger", "diff", RUN, "--remote", "origin", "--keep", "anchored"]);
    assert_eq!(head(&a), theirs);
    let aside = a.ledger().with_file_name(format!(".aside-{ours}"));
    assert_eq!(fs::read(aside).unwrap(), before.0);
    assert!(a.git(&["for-each-ref"]).contains(&format!("refs/waybill/aside/{RUN}/{ours}")));
    assert!(a.ok(&["audit", "log"]).out.contains("work_ledger.diverged_settled"));
    a.ok(&["audit", "verify", "--require", "complete,hmac"]);
    assert_eq!(a.json(&["ledger", "fetch", RUN])["action"], "unchanged");
    assert!(!a.folder.join(".sdd/runtime/resume/t0.signal").exists(), "t0 is complete in the lineage kept");
    // What a remote holds now vouches, also for an anchor that a gc made another commit of.
    b.ok(&["ledger", "gc", RUN]);
    for (host, more) in [(&a, &["--anchored"][..]), (&b, &["--anchored"]), (&a, &[])] {
        let arguments = [&["ledger", "verify", RUN, "--remote", "origin", "--json"], more].concat();
        let report = report(&host.run(&arguments));
        assert_eq!(report.verdict(), "verified", "{report:?}");
    }
}

#[test]
fn the_local_lineage_can_be_kept_and_the_remote_s_is_set_aside_there() {
    let world = World::new();
    let remote = world.remote();
    let a = world.clone("a", &[]).opened();
    a.ok(&["ledger", "anchor", RUN]);
    a.ok(&["ledger", "push", RUN]);
    let b = world.clone("b", &[]);
    b.ok(&["ledger", "fetch", RUN]);
    for (host, task) in [(&a, "a"), (&b, "b")] {
        host.append("task.started", task);
        host.ok(&["ledger", "anchor", RUN]);
    }
    b.ok(&["ledger", "push", RUN]);
    let theirs = b.tip().unwrap();
    a.fails(3, &["diverged at entry 3"], &["ledger", "push", RUN]);
    a.ok(&["ledger", "diff", RUN, "--remote", "origin", "--keep", "local"]);
    a.ok(&["ledger", "push", RUN]);
    assert_eq!(world.git(&remote, &["rev-parse", REF]).trim(), a.tip().unwrap());
    assert!(world.git(&remote, &["for-each-ref", "refs/waybill/aside"]).contains(&theirs));
    a.fails(64, &["did not diverge"], &["ledger", "diff", RUN, "--keep", "local"]);
}

#[test]
fn a_remote_that_was_rolled_back_takes_nothing_away() {
    let world = World::new();
    let remote = world.remote();
    let a = world.clone("a", &[]).opened();
    a.ok(&["ledger", "anchor", RUN]);
    let old = a.tip().unwrap();
    a.append("task.completed", "t0");
    a.ok(&["ledger", "anchor", RUN]);
    a.ok(&["ledger", "push", RUN]);
    world.git(&remote, &["update-ref", REF, &old]);
    let before = a.everything();
    a.fails(
        2,
        &["4 entries", "the anchor at origin has 3", "waybill ledger anchor"],
        &["ledger", "fetch", RUN],
    );
    assert_eq!(a.everything(), before);
    let b = world.clone("b", &[]);
    b.ok(&["ledger", "fetch", RUN]);
    a.ok(&["ledger", "push", RUN]);
    b.append("task.failed", "t0");
    b.fails(3, &["diverged at entry 3"], &["ledger", "fetch", RUN]);
}

#[test]
fn a_hostile_remote_s_chunk_of_100_mb_is_refused_and_nothing_is_taken() {
    let world = World::new();
    let remote = world.remote();
    let evil = world.clone("evil", &[]).opened();
    evil.ok(&["ledger", "anchor", RUN]);
    let meta = evil.git(&["rev-parse", &format!("{REF}:LEDGER.json")]);
    for text in ["x".repeat(100 << 20), "{}\n".repeat(30 << 20)] {
        fs::write(evil.folder.join("big"), text).unwrap();
        let blob = evil.git(&["hash-object", "-w", "big"]);
        let tree = format!(
            "100644 blob {}\tLEDGER.json\n100644 blob {}\tchunk-000000.jsonl\n",
            meta.trim(),
            blob.trim()
        );
        fs::write(evil.folder.join("tree"), tree).unwrap();
        let made =
            Command::new("sh").args(["-c", "git mktree < tree"]).current_dir(&evil.folder).output().unwrap();
        let tree = String::from_utf8(made.stdout).unwrap();
        let message = evil.git(&["log", "-1", "--format=%B", REF]);
        let commit = evil.git(&["commit-tree", tree.trim(), "-m", message.trim()]);
        evil.git(&["push", "-q", "--force", "origin", &format!("{}:{REF}", commit.trim())]);
        let b = world.clone(&format!("b{}", blob.trim()), &[]);
        b.fails(2, &["does not hold", "nothing was taken"], &["ledger", "fetch", RUN]);
        assert!(!b.ledger().exists() && b.tip().is_none());
    }
    drop(remote);
}

#[test]
fn a_closed_run_or_one_without_frontier_has_nothing_to_resume() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    host.append("task.completed", "t0");
    let before = fs::read(host.ledger()).unwrap();
    assert!(host.ok(&["ledger", "resume", RUN]).out.contains("nothing to resume"));
    assert_eq!(fs::read(host.ledger()).unwrap(), before);
    host.append("task.scheduled", "t1");
    host.ok(&["ledger", "close", RUN]);
    assert!(host.ok(&["ledger", "resume", RUN]).out.contains("closed"));
    host.fails(1, &["no ledger of run nope"], &["ledger", "resume", "nope"]);
}

#[test]
fn another_run_s_unclaimed_signal_is_named_and_left() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    host.append("task.scheduled", "t1");
    host.append("task.scheduled", "..");
    let folder = host.folder.join(".sdd/runtime/resume");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("t0.signal"), "{\"run_id\":\"other\"}").unwrap();
    let said = host.ok(&["ledger", "resume", RUN]);
    assert!(said.err.contains("task t0") && said.err.contains("run other"), "{said:?}");
    assert_eq!(fs::read_to_string(folder.join("t0.signal")).unwrap(), "{\"run_id\":\"other\"}");
    assert!(folder.join("t1.signal").exists());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "none for a folder's name");
}

#[test]
fn an_anchor_that_knows_more_than_the_ledger_is_said_and_nothing_is_extended() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    host.ok(&["ledger", "anchor", RUN]);
    let whole = fs::read(host.ledger()).unwrap();
    let cut = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    fs::write(host.ledger(), &whole[..cut]).unwrap();
    host.fails(
        2,
        &["knows 3 entries", "has 2", "--accept-loss"],
        &["ledger", "append", RUN, "--kind", "a.b"],
    );
    assert_eq!(fs::read(host.ledger()).unwrap(), &whole[..cut]);
    let said = host.run(&["verify", RUN, "--json"]);
    let said_ledger = host.run(&["ledger", "verify", RUN, "--json"]);
    assert_eq!((said.code, said_ledger.code), (Some(2), Some(2)), "{said:?}");
    assert_eq!(report(&said_ledger).first_failure().unwrap()["id"], "ledger.anchored");
    // Resuming takes it over from the anchor.
    assert_eq!(host.json(&["ledger", "resume", RUN])["materialized"], "fast-forwarded");
    assert!(fs::read(host.ledger()).unwrap().starts_with(&whole));
    fs::write(host.ledger(), &whole[..cut]).unwrap();
    assert!(host.ok(&["ledger", "append", RUN, "--kind", "a.b", "--accept-loss"]).err.contains("going on"));
}

#[test]
fn two_anchors_at_once_leave_one_good_history() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    for round in 0..5 {
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let host = &host;
                scope.spawn(move || {
                    host.append("task.started", &format!("r{round}w{worker}"));
                    host.ok(&["ledger", "anchor", RUN]);
                });
            }
        });
    }
    assert_eq!(host.json(&["ledger", "anchor", RUN])["entries"], 18);
    let report = report(&host.run(&["ledger", "verify", RUN, "--anchored", "--json"]));
    assert_eq!(report.verdict(), "consistent");
    host.ok(&["audit", "verify", "--require", "complete,hmac"]);
}

#[test]
fn anchors_survive_git_gc_packed_refs_and_pruned_folders() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    std::thread::scope(|scope| {
        let gc = scope.spawn(|| {
            for _ in 0..6 {
                // git may find that another gc, or a ref's lock, is in its way.
                world.try_git(&host.folder, &["gc", "-q", "--force"]);
                world.try_git(&host.folder, &["pack-refs", "--all", "--prune"]);
            }
        });
        for entry in 0..20 {
            host.append("task.started", &format!("t{entry}"));
            host.ok(&["ledger", "anchor", RUN]);
        }
        gc.join().unwrap();
    });
    host.git(&["pack-refs", "--all", "--prune"]);
    assert!(!host.folder.join(".git").join(REF).exists());
    drop(fs::remove_dir_all(host.folder.join(".git/refs/bernstein")));
    host.append("task.started", "last");
    host.ok(&["ledger", "anchor", RUN]);
    let report = report(&host.run(&["ledger", "verify", RUN, "--anchored", "--json"]));
    assert_eq!((report.verdict(), report.entries()), ("consistent", 24));
    assert!(host.ok(&["ledger", "runs"]).out.contains("agree"));
}

#[test]
fn an_empty_ref_file_is_named_with_its_mend_and_hides_no_other_run() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    host.ok(&["ledger", "anchor", RUN]);
    host.ok(&["ledger", "open", "other"]);
    host.ok(&["ledger", "anchor", "other"]);
    let file = host.folder.join(".git").join(REF);
    fs::write(&file, "").unwrap();
    for command in
        [&["ledger", "anchor", RUN][..], &["ledger", "gc", RUN], &["ledger", "verify", RUN, "--anchored"]]
    {
        host.fails(74, &[REF, "is empty", "delete that file"], command);
    }
    host.ok(&["ledger", "anchor", "other"]);
    let runs = host.ok(&["ledger", "runs"]).out;
    assert!(runs.contains("agree") && runs.contains("is empty"), "{runs}");
    host.append("task.failed", "t0");
    fs::remove_file(&file).unwrap();
    host.ok(&["ledger", "anchor", RUN]);
    assert_eq!(report(&host.run(&["ledger", "verify", RUN, "--anchored", "--json"])).entries(), 4);
}

#[test]
fn gc_leaves_one_commit_of_the_same_tree_and_the_repository_shrinks() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    for entry in 0..12 {
        host.append("task.started", &format!("t{entry}"));
        host.ok(&["ledger", "anchor", RUN]);
    }
    let tree = host.git(&["rev-parse", &format!("{REF}^{{tree}}")]);
    let squashed = host.json(&["ledger", "gc", RUN]);
    assert_eq!(squashed["commits_before"], 12);
    assert_eq!(host.git(&["rev-parse", &format!("{REF}^{{tree}}")]), tree);
    assert_eq!(host.git(&["rev-list", "--count", REF]).trim(), "1");
    assert_eq!(host.json(&["ledger", "gc", RUN])["commit"], squashed["commit"]);
    host.git(&["gc", "-q", "--prune=now"]);
    let left = host.git(&["count-objects", "-v"]);
    assert!(left.contains("in-pack: 4"), "commit, tree, LEDGER.json and one chunk: {left}");
    let report = report(&host.run(&["ledger", "verify", RUN, "--anchored", "--json"]));
    assert_eq!((report.verdict(), &report.0["facts"]["squashed"]), ("consistent", &Value::from(true)));
    host.append("task.failed", "t0");
    host.ok(&["ledger", "anchor", RUN]);
    host.fails(1, &["no anchor of run nope"], &["ledger", "gc", "nope"]);
}

#[test]
fn bare_linked_and_shallow_repositories_work_and_others_are_refused_in_a_line() {
    let world = World::new();
    world.remote();
    let a = world.clone("a", &[]).opened();
    for entry in 0..3 {
        a.append("task.started", &format!("t{entry}"));
        a.ok(&["ledger", "anchor", RUN]);
    }
    a.ok(&["ledger", "push", RUN]);
    // A linked worktree shares the refs; a subfolder finds its repository.
    a.git(&["worktree", "add", "-q", "../linked"]);
    let linked = Host { world: &world, folder: world.0.path().join("linked") };
    assert_eq!(linked.json(&["ledger", "resume", RUN, "--dry-run"])["materialized"], "created");
    assert!(linked.ok(&["ledger", "runs"]).out.contains("only anchored"));
    // A bare one can hold a project, too.
    let bare = world.host("bare", &["init", "-q", "--bare"]).opened();
    bare.ok(&["ledger", "anchor", RUN]);
    assert_eq!(report(&bare.run(&["ledger", "verify", RUN, "--anchored", "--json"])).verdict(), "consistent");
    // A shallow clone fetches by depth 1 itself: what is before the anchor can't be checked.
    let shallow = world.clone("shallow", &["--depth", "1"]);
    shallow.git(&["fetch", "-q", "--depth", "1", "origin", &format!("{REF}:{REF}")]);
    let said = shallow.run(&["ledger", "verify", RUN, "--anchored", "--json"]);
    let found = report(&said);
    assert_eq!((said.code, found.verdict()), (Some(0), "incomplete"), "{found:?}");
    assert_eq!(found.check("anchor.history")["status"], "not_checked");
    assert_eq!(shallow.run(&["ledger", "verify", RUN, "--anchored", "--require", "complete"]).code, Some(2));
    shallow.ok(&["ledger", "resume", RUN]);
    // SHA-256 and reftable.
    let sha256 = world.host("sha256", &["init", "-q", "--object-format=sha256"]).opened();
    sha256.fails(74, &["sha256", "SHA-1"], &["ledger", "anchor", RUN]);
    sha256.ok(&["ledger", "verify", RUN]);
    let reftable = world.try_git(world.0.path(), &["init", "-q", "--ref-format=reftable", "reftable"]);
    if reftable.code == Some(0) {
        let host = Host { world: &world, folder: world.0.path().join("reftable") }.opened();
        host.fails(74, &["reftable"], &["ledger", "anchor", RUN]);
    }
    let nowhere = TempDir::new().unwrap();
    let said: Said = waybill(nowhere.path()).args(["ledger", "open", RUN]).output().unwrap().into();
    assert_eq!(said.code, Some(0));
    let said: Said = waybill(nowhere.path()).args(["ledger", "anchor", RUN]).output().unwrap().into();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("no git repository"), "{said:?}");
}

#[test]
fn a_remote_s_name_can_not_be_an_option_or_a_command() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    host.ok(&["ledger", "anchor", RUN]);
    let marker = host.folder.join("marker");
    let helper = format!("ext::sh -c 'touch {}'", marker.display());
    for remote in ["--upload-pack=touch marker", "-x", "", &helper] {
        for command in ["fetch", "push"] {
            let said = host.run(&["ledger", command, RUN, &format!("--remote={remote}")]);
            assert_eq!(said.code, Some(74), "{remote:?}: {said:?}");
        }
    }
    assert!(!marker.exists());
    host.fails(74, &["git ls-remote failed"], &["ledger", "fetch", RUN, "--remote", "nowhere"]);
}

#[test]
fn killed_between_any_two_steps_one_more_anchor_makes_it_right() {
    if Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_err() {
        panic!("strace is needed to kill at each step: tools/setup.sh installs it");
    }
    let world = World::new();
    let mut kills = 0;
    for call in 1..200 {
        let host = world.host(&format!("host{call}"), &["init", "-q"]).opened();
        host.ok(&["ledger", "anchor", RUN]);
        host.append("task.completed", "t0");
        let inject = format!(
            "inject=fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat,unlink,ftruncate:signal=SIGKILL:when={call}"
        );
        let mut command = world.command(Command::new("strace"));
        let status = command
            .current_dir(&host.folder)
            .args(["-f", "-o", "/dev/null", "-e", &inject])
            .arg(env!("CARGO_BIN_EXE_waybill"))
            .args(["ledger", "anchor", RUN])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let made = host.json(&["ledger", "anchor", RUN]);
        assert_eq!(made["entries"], 4, "killed at {call}");
        let report = report(&host.run(&["ledger", "verify", RUN, "--anchored", "--json"]));
        assert_eq!(report.verdict(), "consistent", "killed at {call}");
        let log = host.ok(&["audit", "log", "--type", "work_ledger.anchor", "--json"]).out;
        for entries in ["\"entry_count\":3", "\"entry_count\":4"] {
            assert_eq!(log.replace(": ", ":").matches(entries).count(), 1, "killed at {call}: {log}");
        }
        host.ok(&["audit", "verify", "--require", "complete,hmac"]);
        assert_eq!(host.git(&["fsck", "--strict", "--no-dangling"]), "");
        if status.success() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 8, "only {kills} steps were found to kill at");
}

#[test]
fn a_resume_killed_at_any_step_is_made_right_by_one_more() {
    if Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_err() {
        panic!("strace is needed to kill at each step: tools/setup.sh installs it");
    }
    let world = World::new();
    let mut kills = 0;
    for call in 1..100 {
        let host = world.host(&format!("host{call}"), &["init", "-q"]).opened();
        host.append("task.scheduled", "t1");
        let inject = format!("inject=fsync,fdatasync,rename,renameat,renameat2:signal=SIGKILL:when={call}");
        let mut command = world.command(Command::new("strace"));
        let status = command
            .current_dir(&host.folder)
            .args(["-f", "-o", "/dev/null", "-e", &inject])
            .arg(env!("CARGO_BIN_EXE_waybill"))
            .args(["ledger", "resume", RUN])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let done = host.json(&["ledger", "resume", RUN]);
        let head = done["from_head"].as_str().unwrap();
        for task in ["t0", "t1"] {
            let text =
                fs::read_to_string(host.folder.join(format!(".sdd/runtime/resume/{task}.signal"))).unwrap();
            assert!(text.contains(head), "killed at {call}: {text}");
        }
        assert_eq!(report(&host.run(&["ledger", "verify", RUN, "--json"])).verdict(), "consistent");
        if status.success() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 3, "only {kills} steps were found to kill at");
}

#[test]
fn a_read_only_repository_is_said_and_nothing_is_lost() {
    let disk = TempDir::new().unwrap();
    let mount = |arguments: &[&str]| {
        let status = Command::new("mount").args(arguments).arg(disk.path()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "tmpfs"]) {
        eprintln!("NOT RUN: mounting a tmpfs needs root");
        return;
    }
    let world = World::new();
    world.git(disk.path(), &["init", "-q"]);
    let host = Host { world: &world, folder: disk.path().to_owned() }.opened();
    host.ok(&["ledger", "anchor", RUN]);
    host.append("task.failed", "t0");
    let before = host.everything();
    assert!(mount(&["-o", "remount,ro"]));
    host.fails(74, &["Read-only file system"], &["ledger", "anchor", RUN]);
    let verified = host.run(&["ledger", "verify", RUN, "--json"]);
    assert!(mount(&["-o", "remount,rw"]));
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(host.everything(), before);
    host.ok(&["ledger", "anchor", RUN]);
    assert!(Command::new("umount").arg(disk.path()).status().unwrap().success());
}

#[test]
fn a_list_tells_a_ledger_that_goes_on_from_its_anchor_from_one_that_does_not() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    host.ok(&["ledger", "anchor", RUN]);
    let whole = fs::read(host.ledger()).unwrap();
    host.append("task.completed", "t0");
    assert!(host.ok(&["ledger", "runs"]).out.contains("ledger ahead"));
    let cut = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    fs::write(host.ledger(), &whole[..cut]).unwrap();
    for task in ["x", "y"] {
        host.ok(&["ledger", "append", RUN, "--kind", "a.b", "--task", task, "--accept-loss"]);
    }
    assert!(host.ok(&["ledger", "runs"]).out.contains("DIVERGED"));
}

#[test]
fn a_thousand_runs_are_listed() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]).opened();
    let ledger = fs::read(host.ledger()).unwrap();
    for run in 0..1000 {
        let folder = host.folder.join(".sdd/runtime/ledger").join(format!("run-{run}"));
        fs::create_dir_all(&folder).unwrap();
        let text = String::from_utf8(ledger.clone()).unwrap();
        let only_first = text.lines().next().unwrap().replace(RUN, "run");
        fs::write(folder.join("000000.jsonl"), only_first).unwrap();
    }
    let listed = host.json(&["ledger", "runs"]);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1001);
}

#[test]
fn what_a_killed_fetch_left_is_removed_by_a_later_one_and_no_live_one_s() {
    let world = World::new();
    world.remote();
    let host = world.clone("host", &[]).opened();
    host.ok(&["ledger", "anchor", RUN]);
    host.ok(&["ledger", "push", RUN]);
    let folder = |name: &str| {
        let folder = world.0.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder
    };
    let (temporary, programs) = (folder("tmp"), folder("programs"));
    // A git that never ends its fetch.
    let path = std::env::var("PATH").unwrap();
    let slow = "#!/bin/sh\ncase \" $* \" in *' fetch '*) exec sleep 20;; esac\n\
                PATH=${PATH#*:} exec git \"$@\"\n";
    let program = programs.join("git");
    fs::write(&program, slow).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let left = || -> Vec<PathBuf> {
        let entries = fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.join("waybill.lock").exists()).collect()
    };
    let fetch = || {
        let mut command = host.command(&["ledger", "fetch", RUN]);
        command.env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut child = fetch().env("PATH", format!("{}:{path}", programs.display())).spawn().unwrap();
    while left().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(120);
    let age = || fs::File::open(&left()[0]).unwrap().set_modified(old).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    age();
    assert!(fetch().status().unwrap().success());
    assert_eq!(left().len(), 1, "its process lives");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(left().len(), 1);
    age();
    assert!(fetch().status().unwrap().success());
    assert!(left().is_empty(), "{:?}", left());
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
