//! Snapshots and forks on real repositories: what goes in, what stays as it was.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::help::{Home, git};

/// A repository with staged, changed, new and ignored files, and an identity.
fn repository() -> Home {
    let home = Home::new();
    let folder = home.path();
    git(folder, &["init", "-q", "-b", "main"]);
    fs::write(folder.join("kept"), "1\n").unwrap();
    fs::write(folder.join("gone"), "1\n").unwrap();
    fs::write(folder.join(".gitignore"), "*.log\n").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "one"]);
    home.ok(["keys", "init"]);
    fs::write(folder.join("kept"), "2\n").unwrap();
    git(folder, &["add", "kept"]);
    fs::write(folder.join("kept"), "3\n").unwrap();
    fs::write(folder.join("new \n-name"), "x\n").unwrap();
    fs::write(folder.join("noise.log"), "x\n").unwrap();
    fs::remove_file(folder.join("gone")).unwrap();
    home
}

fn snapshot(home: &Home, more: &[&str]) -> Value {
    let said = home.ok([&["snapshot", "r", "--json"], more].concat());
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn a_snapshot_is_the_working_tree_without_records_and_touches_nothing() {
    let home = repository();
    // Even records that somebody committed stay out.
    fs::create_dir_all(home.path().join("sub/.sdd/identity")).unwrap();
    fs::write(home.path().join("sub/.sdd/identity/key"), "private\n").unwrap();
    git(home.path(), &["add", "-f", "sub"]);
    let state = || {
        (
            git(home.path(), &["status", "--porcelain=v2", "-z", "--", ".", ":(exclude).sdd"]),
            git(home.path(), &["rev-parse", "HEAD"]),
            git(home.path(), &["ls-files", "-s"]),
            fs::read(home.path().join("kept")).unwrap(),
        )
    };
    let before = state();
    let taken = snapshot(&home, &[]);
    assert_eq!(state(), before);
    assert_eq!((&taken["step_index"], &taken["index"]), (&Value::from(0), &Value::from(0)));
    let reference = taken["ref"].as_str().unwrap();
    assert_eq!(git(home.path(), &["rev-parse", reference]), taken["snapshot_sha"].as_str().unwrap());
    let names = git(home.path(), &["ls-tree", "-r", "--name-only", "-z", reference]);
    assert_eq!(
        names.trim_end_matches('\0').split('\0').collect::<Vec<_>>(),
        [".gitignore", "kept", "new \n-name"]
    );
    assert_eq!(git(home.path(), &["show", &format!("{reference}:kept")]), "3");
    let commit = git(home.path(), &["cat-file", "commit", reference]);
    let ident = "bernstein-snapshot <snapshot@bernstein.local> 946684800 +0000";
    assert!(commit.contains(&format!("\nauthor {ident}\ncommitter {ident}\n\n")), "{commit}");
    assert!(commit.ends_with("\n\nbernstein snapshot run=r step=0"), "{commit}");
    assert!(commit.contains(&format!("parent {}", git(home.path(), &["rev-parse", "HEAD"]))));
}

#[test]
fn the_same_step_again_is_the_same_or_refused() {
    let home = repository();
    let first = snapshot(&home, &["--step", "5"]);
    let again = snapshot(&home, &["--step", "5"]);
    assert_eq!(first["snapshot_sha"], again["snapshot_sha"]);
    assert!(again["index"].is_null());
    fs::write(home.path().join("kept"), "4\n").unwrap();
    home.fails(2, &["already", "--step"], ["snapshot", "r", "--step", "5"]);
    // A ref that no event names is a crash's: the next one takes its place.
    git(home.path(), &["update-ref", "refs/bernstein/snapshots/r/1", "HEAD"]);
    let next = snapshot(&home, &[]);
    assert_eq!(next["step_index"], 1);
}

#[test]
fn where_there_is_nothing_to_snapshot_it_says_so_and_makes_no_journal() {
    let home = Home::new();
    home.fails(1, &["git init"], ["snapshot", "r"]);
    assert!(!home.path().join(".sdd/runs").exists());
    git(home.path(), &["init", "-q"]);
    home.fails(1, &["no commit yet"], ["snapshot", "r"]);
}

#[test]
fn variables_that_point_git_elsewhere_and_hooks_do_nothing() {
    let home = repository();
    let hook = home.path().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch /tmp/waybill-hook-ran-$PPID; exit 1\n").unwrap();
    Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
    let elsewhere = Home::new();
    let output = home
        .command()
        .env("GIT_DIR", elsewhere.path())
        .env("GIT_INDEX_FILE", elsewhere.path().join("index"))
        .args(["snapshot", "r"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    home.ok(["fork", "--run", "r", "--from-step", "0"]);
}

#[test]
fn a_receipt_names_a_fork_point_and_a_fork_goes_on_from_it() {
    let home = repository();
    home.ok(["journal", "record", "r", "--event", "a.b"]);
    let emit = |step: &'static str| {
        [
            "escalation",
            "emit",
            "r",
            "--worker",
            "w",
            "--reason",
            "no_progress",
            "--budget",
            "1",
            "--fork-step",
            step,
        ]
    };
    home.fails(1, &["no snapshot of step 1", "waybill snapshot r"], emit("1"));
    let taken = snapshot(&home, &[]);
    home.ok(emit("1"));
    let id = home.receipts().pop().unwrap();
    let report = home.verify_receipt(&id);
    assert_eq!(report.verdict(), "consistent", "{report:?}");
    assert!(report.check("receipt.fork")["sentence"].as_str().unwrap().contains("the repository has it"));

    let said = home.ok(["fork", "--run", "r", "--from-step", "1", "--json"]);
    let fork: Value = serde_json::from_str(&said.out).unwrap();
    let (child, tree) = (fork["run_id"].as_str().unwrap(), fork["worktree"].as_str().unwrap());
    assert!(child.starts_with("fork-r-s1-") && child.len() == "fork-r-s1-".len() + 8, "{child}");
    let tree = home.path().join(tree);
    assert_eq!(fs::read_to_string(tree.join("kept")).unwrap(), "3\n");
    assert!(!tree.join(".sdd").exists());
    assert_eq!(git(&tree, &["rev-parse", "HEAD"]), taken["snapshot_sha"].as_str().unwrap());
    let log = home.ok(["journal", "log", child, "--json"]);
    let first: Value = serde_json::from_str(log.out.lines().next().unwrap()).unwrap();
    assert_eq!((first["event"].as_str(), first["parent_run_id"].as_str()), (Some("fork"), Some("r")));
    assert_eq!(first["fork_step"], 1);

    // A moved ref is told by all of them.
    git(home.path(), &["update-ref", "refs/bernstein/snapshots/r/1", "HEAD"]);
    assert_eq!(home.verify_receipt(&id).first_failure().unwrap()["id"], "receipt.fork");
    home.fails(2, &["one of the two was changed"], ["fork", "--run", "r", "--from-step", "1"]);
    home.fails(2, &["one of the two was changed"], emit("1"));
    home.fails(1, &["no snapshot of step 9"], ["fork", "--run", "r", "--from-step", "9"]);
}

#[test]
fn the_private_key_is_kept_out_of_commits() {
    let home = repository();
    let exclude = fs::read_to_string(home.path().join(".git/info/exclude")).unwrap();
    assert!(exclude.lines().any(|line| line == "**/.sdd/identity/"), "{exclude}");
    home.ok(["keys", "init"]);
    let again = fs::read_to_string(home.path().join(".git/info/exclude")).unwrap();
    assert_eq!(again, exclude, "said once");
    git(home.path(), &["add", "-A"]);
    assert!(!git(home.path(), &["ls-files"]).contains("identity"));
    // Also where only the folder was taken along.
    let other = Home::new();
    git(other.path(), &["init", "-q"]);
    crate::help::copy(&home.path().join(".sdd/identity"), &other.path().join(".sdd/identity"));
    git(other.path(), &["add", "-A"]);
    assert_eq!(git(other.path(), &["ls-files"]), "");
    // And it is said where it is too late.
    git(home.path(), &["add", "-f", ".sdd/identity/escalation-identity-key.pem"]);
    let said = home.ok(["keys", "init"]);
    assert!(said.err.contains("git tracks"), "{said:?}");
}
