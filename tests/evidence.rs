//! Evidence archives: all that there is of a run, in one file, checked together anywhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use waybill_verifier::evidence::manifest::{Manifest, Seal, Subject};
use waybill_verifier::evidence::tar;
use waybill_verifier::hash::Digest;
use waybill_verifier::table::Table;

use crate::help::{Home, RUN, Report, copy, git, is_explained, report, vectors};

const REF: &str = "refs/bernstein/work-ledger/goal-42";

/// A repository with a run that was anchored at 1, 1,200 and 2,600 entries, and stalled.
fn recorded() -> Home {
    let home = Home::new();
    git(home.path(), &["init", "-q"]);
    home.ok(["ledger", "open", RUN]);
    home.ok(["ledger", "anchor", RUN]);
    for (from, to) in [(0, 1199), (1199, 2599)] {
        feed(&home, from..to);
        home.ok(["ledger", "anchor", RUN]);
    }
    feed(&home, 2599..2610);
    home.ok(["keys", "init"]);
    let events: String = (0..20).map(|n| format!("{{\"event\":\"tool.called\",\"n\":{n}}}\n")).collect();
    pipe(&home, &["journal", "record", RUN, "--stdin"], &events);
    home.ok(["escalation", "emit", RUN, "--worker", "w1", "--reason", "no_progress"]);
    home
}

fn feed(home: &Home, entries: std::ops::Range<u32>) {
    let lines: String = entries
        .map(|n| {
            format!("{{\"kind\":\"task.started\",\"task_id\":\"t{}\",\"payload\":{{\"n\":{n}}}}}\n", n % 40)
        })
        .collect();
    pipe(home, &["ledger", "append", RUN, "--stdin", "--durability", "os"], &lines);
}

fn pipe(home: &Home, arguments: &[&str], lines: &str) {
    let mut command = home.command();
    command.args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn export(home: &Home, name: &str) -> std::path::PathBuf {
    let tar = home.home.path().join(format!("{name}.tar"));
    home.ok(["evidence", "export", name, "-o", tar.to_str().unwrap()]);
    tar
}

fn verify(home: &Home, path: &Path, more: &[&str]) -> Report {
    let mut arguments = vec!["verify", path.to_str().unwrap(), "--json"];
    arguments.extend(more);
    report(&home.run(arguments))
}

fn part<'a>(report: &'a Report, kind: &str) -> &'a Value {
    let parts = report.0["subjects"].as_array().unwrap();
    parts.iter().find(|part| part["subject"]["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {report:?}"))
}

fn check<'a>(part: &'a Value, id: &str) -> &'a Value {
    part["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap()
}

fn unpack(tar: &Path) -> TempDir {
    let folder = TempDir::new().unwrap();
    let done = Command::new("tar").arg("-xf").arg(tar).arg("-C").arg(folder.path()).status().unwrap();
    assert!(done.success());
    folder
}

#[test]
fn a_run_is_exported_whole_and_verifies_from_the_one_file() {
    let home = recorded();
    let tar = export(&home, RUN);
    let bytes = fs::read(&tar).unwrap();

    let whole = verify(&home, &tar, &[]);
    assert_eq!(whole.verdict(), "consistent");
    let mut kinds: Vec<_> = whole.0["subjects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["subject"]["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["audit", "journal", "ledger", "receipt", "set", "spine"]);
    let ledger = part(&whole, "ledger");
    assert_eq!(ledger["facts"]["entries"], 2611);
    let anchored = check(ledger, "ledger.anchored")["sentence"].as_str().unwrap();
    assert!(
        anchored.contains("2600 entries, the first of the ledger; not there yet: 11 entries"),
        "{anchored}"
    );
    let anchor = &part(&whole, "set")["subjects"][0];
    assert_eq!((&anchor["facts"]["history_length"], &anchor["verdict"]), (&3.into(), &"consistent".into()));
    assert_eq!(check(part(&whole, "receipt"), "audit.mirror")["status"], "pass");
    assert_eq!(whole.check("evidence.manifest")["status"], "pass");
    let mut known = BTreeSet::new();
    is_explained(&whole, &mut known);

    // The same evidence, the same bytes; from another folder, too.
    let other = Home::new();
    copy(home.path(), other.path());
    copy(home.home.path(), other.home.path());
    assert_eq!(fs::read(export(&other, RUN)).unwrap(), bytes);

    // No secret is in it.
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("PRIVATE KEY"));
    assert!(!text.contains(fs::read_to_string(home.key()).unwrap().trim()));

    // Without the key something is not checked, and is named.
    fs::remove_file(home.key()).unwrap();
    let without = verify(&home, &tar, &[]);
    assert_eq!(without.verdict(), "incomplete");
    assert!(without.0["facts"]["missing"][0].as_str().unwrap().contains("HMAC key"), "{without:?}");
}

#[test]
fn any_tar_and_any_git_can_unpack_it() {
    let home = recorded();
    let tar = export(&home, RUN);
    let folder = unpack(&tar);
    let bundle = folder.path().join(format!("anchors/{RUN}/anchor.bundle"));
    let bundle = bundle.to_str().unwrap();

    let clone = TempDir::new().unwrap();
    git(clone.path(), &["init", "-q", "--bare"]);
    git(clone.path(), &["bundle", "verify", "-q", bundle]);
    git(clone.path(), &["fetch", "-q", bundle, &format!("{REF}:{REF}")]);
    git(clone.path(), &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(git(clone.path(), &["rev-parse", REF]), git(home.path(), &["rev-parse", REF]));
    assert_eq!(git(clone.path(), &["rev-list", "--count", REF]), "3");
    // Earlier chunks are beginnings of later ones, and packed as such.
    let ledger =
        fs::metadata(home.path().join(format!(".sdd/runtime/ledger/{RUN}/000000.jsonl"))).unwrap().len();
    assert!(fs::metadata(bundle).unwrap().len() < ledger / 2);

    // The folder says what the archive says, but for the archive itself.
    let of_folder = verify(&home, folder.path(), &[]);
    let of_tar = verify(&home, &tar, &[]);
    assert_eq!(of_folder.0["subjects"], of_tar.0["subjects"]);
    assert_eq!(of_folder.check("evidence.manifest")["status"], "pass");
    fs::write(folder.path().join("more.jsonl"), "{}").unwrap();
    assert_eq!(verify(&home, folder.path(), &[]).check("evidence.manifest")["status"], "fail");
    fs::remove_file(folder.path().join("more.jsonl")).unwrap();
    // And so does an archive that tar packs again.
    let again = home.home.path().join("again.tar");
    let packed = Command::new("tar")
        .args(["--format=ustar", "-cf"])
        .arg(&again)
        .arg("-C")
        .arg(folder.path())
        .arg(".")
        .status();
    assert!(packed.unwrap().success());
    assert_eq!(verify(&home, &again, &[]).0["subjects"], of_tar.0["subjects"]);
}

#[test]
fn what_fails_is_exported_all_the_same_and_fails_at_the_same_place() {
    let home = recorded();
    let journal = home.path().join(format!(".sdd/runs/{RUN}/journal.jsonl"));
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("\"n\":12", "\"n\":13", 1)).unwrap();
    let id = home.receipts().pop().unwrap();
    let in_project = report(&home.run(["escalation", "verify", &id, "--json"]));
    assert_eq!(in_project.verdict(), "failed");
    for name in [RUN, &id] {
        let tar = home.home.path().join("failed.tar");
        let said = home.ok(["evidence", "export", name, "-o", tar.to_str().unwrap()]);
        assert!(said.out.contains("failed: "), "{said:?}");
        let exported = verify(&home, &tar, &[]);
        assert_eq!(exported.verdict(), "failed");
        let receipt = part(&exported, "receipt");
        assert_eq!(receipt["checks"], in_project.0["checks"], "{name}");
        assert_eq!(in_project.first_failure().unwrap()["at"]["line"], 13);
    }
    let said = home.ok(["evidence", "export", RUN, "-o", "x.tar", "--json"]);
    let said: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&said["verdict"], &said["file"]), (&"failed".into(), &"x.tar".into()));
    home.fails(1, &["no run and no receipt"], ["evidence", "export", "nothing", "-o", "y.tar"]);
    assert!(!home.path().join("y.tar").exists());
}

#[test]
fn a_ledger_that_left_its_anchor_is_diverged_in_the_archive() {
    let home = recorded();
    let ledger = home.path().join(format!(".sdd/runtime/ledger/{RUN}/000000.jsonl"));
    let whole = fs::read_to_string(&ledger).unwrap();
    let first: String = whole.lines().take(2595).flat_map(|line| [line, "\n"]).collect();
    fs::write(&ledger, first).unwrap();
    home.ok(["ledger", "append", RUN, "--kind", "task.failed", "--task", "t1", "--accept-loss"]);
    let said = verify(&home, &export(&home, RUN), &[]);
    assert_eq!((said.verdict(), &said.0["exit_code"]), ("diverged", &3.into()));
    assert_eq!(said.0["facts"]["missing"].as_array().unwrap().len(), 1, "a pinned signer");
    let fork = check(part(&said, "ledger"), "ledger.anchored");
    assert!(fork["sentence"].as_str().unwrap().starts_with("diverged at entry 2595"), "{fork}");
}

#[test]
fn the_audit_log_is_taken_from_the_first_day_that_speaks_of_the_run() {
    let home = recorded();
    // Days before it: a log of the vectors, on which this project's goes on.
    let audit = home.path().join(".sdd/audit");
    fs::remove_dir_all(&audit).unwrap();
    copy(&vectors().join("audit/ok-v2-rotated/audit"), &audit);
    home.put_vectors_key();
    let days = || {
        fs::read_dir(&audit)
            .unwrap()
            .filter(|day| day.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".jsonl"))
            .count()
    };
    let before = days();
    feed(&home, 0..1);
    let said = home.run(["ledger", "anchor", RUN]);
    // The vectors' last day may lie ahead of the clock: then events go on in it.
    assert_eq!(said.code, Some(0), "{said:?}");
    let tar = export(&home, RUN);
    let folder = unpack(&tar);
    let taken = fs::read_dir(folder.path().join(".sdd/audit")).unwrap().count();
    assert_eq!(taken, 1, "of {} days, {before} of them older", days());
    let manifest = Manifest::read(&fs::read(folder.path().join("MANIFEST.json")).unwrap()).unwrap();
    assert!(manifest.audit_starts_after.is_some());
    let said = verify(&home, &tar, &[]);
    let log = part(&said, "audit");
    assert_eq!(log["facts"]["starts_after"], manifest.audit_starts_after.unwrap().to_hex());
    assert_eq!(check(log, "audit.hmac")["status"], "pass", "{log}");
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap()
}

/// An archive of some files, with a manifest of them.
fn packed(files: &[(&str, &[u8])], spoil: impl FnOnce(&mut Manifest)) -> Vec<u8> {
    let seal = |bytes: &[u8]| Seal { bytes: length(bytes), sha256: Digest::of(bytes) };
    let mut manifest = Manifest {
        subject: Subject::Run(String::from("r")),
        audit_starts_after: None,
        files: files.iter().map(|(path, bytes)| ((*path).to_owned(), seal(bytes))).collect(),
    };
    spoil(&mut manifest);
    let manifest = manifest.to_json();
    let mut archive = Vec::new();
    for (path, bytes) in files.iter().copied().chain([("MANIFEST.json", manifest.as_slice())]) {
        archive.extend_from_slice(&tar::header(path, length(bytes)).unwrap());
        archive.extend_from_slice(bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

#[test]
fn an_archive_that_is_not_what_its_manifest_says_fails() {
    let home = Home::new();
    let ledger = fs::read(vectors().join("ledger/full-payloads/000000.jsonl"))
        .or_else(|_| fs::read(vectors().join("ledger/torn-tail/000000.jsonl")))
        .unwrap();
    let path = ".sdd/runtime/ledger/r/000000.jsonl";
    let tar = home.path().join("x.tar");
    let said = |spoil: &dyn Fn(&mut Manifest)| {
        fs::write(&tar, packed(&[(path, &ledger)], spoil)).unwrap();
        verify(&home, &tar, &[]).check("evidence.manifest").clone()
    };
    assert_eq!(said(&|_| {})["status"], "pass");
    let other = Seal { bytes: 1, sha256: Digest::ZERO };
    let gone = said(&|manifest| {
        let _ = manifest.files.insert("gone", other);
    });
    assert!(gone["sentence"].as_str().unwrap().contains("gone is named and not there"), "{gone}");
    let size = said(&|manifest| manifest.files.get_mut(path).unwrap().bytes += 1);
    assert!(size["sentence"].as_str().unwrap().contains("another size"), "{size}");
    let hash = said(&|manifest| manifest.files.get_mut(path).unwrap().sha256 = Digest::ZERO);
    assert!(hash["sentence"].as_str().unwrap().contains("another SHA-256"), "{hash}");
    let extra = said(&|manifest| manifest.files = Table::new());
    assert!(extra["sentence"].as_str().unwrap().contains("is there and not named"), "{extra}");
}

#[test]
fn hostile_archives_are_refused_in_one_sentence() {
    let home = Home::new();
    let tar = home.path().join("x.tar");
    let whole = packed(&[(".sdd/runs/r/journal.jsonl", b"{}\n")], |_| {});
    let refused = |bytes: &[u8], why: &str| {
        fs::write(&tar, bytes).unwrap();
        let report = verify(&home, &tar, &[]);
        assert_eq!(report.verdict(), "failed");
        let check = report.check("evidence.archive");
        assert!(check["sentence"].as_str().unwrap().contains(why), "{why}: {check}");
    };
    refused(&whole[..whole.len() - 600], "cut off");
    refused(&[&whole[..], b"more"].concat(), "cut off");
    refused(&[&whole[..], &[7; 512]].concat(), "hidden behind the archive's end");
    let link = Command::new("sh")
        .current_dir(home.path())
        .args(["-c", "ln -s /etc/passwd l && tar --format=ustar -cf l.tar l"])
        .status();
    assert!(link.unwrap().success());
    refused(&fs::read(home.path().join("l.tar")).unwrap(), "a symbolic link");
    let mut nested = tar::header("inner.tar", length(&whole)).unwrap().to_vec();
    nested.extend_from_slice(&whole);
    nested.resize(nested.len().next_multiple_of(512) + 1024, 0);
    refused(&nested, "an archive in an archive");
    // A size that no file has is no memory either.
    let mut huge = tar::header("a", (1 << 33) - 1).unwrap().to_vec();
    huge.extend_from_slice(b"{}");
    refused(&huge, "cut off");
}

#[test]
fn files_that_lie_loose_are_checked_together() {
    let home = Home::of_vector("receipt", "ok-full-window");
    let id = home.receipts().pop().unwrap();
    let loose = home.home.path().join("loose");
    fs::create_dir(&loose).unwrap();
    for path in [
        format!(".sdd/escalation/receipts/{id}.json").as_str(),
        ".sdd/lineage/escalations/spine.jsonl",
        ".sdd/lineage/escalations/spine.head",
        ".sdd/runs/run-7/journal.jsonl",
    ] {
        let path = home.path().join(path);
        fs::copy(&path, loose.join(path.file_name().unwrap())).unwrap();
    }
    let said = verify(&home, &loose, &[]);
    let receipt = part(&said, "receipt");
    for id in ["receipt.window", "receipt.anchor", "spine.hmac", "journal.chain"] {
        assert_eq!(check(receipt, id)["status"], "pass", "{id}");
    }
    assert_eq!(check(receipt, "receipt.window")["at"]["file"], "journal.jsonl");
    // What is not there is not checked, and no fault.
    fs::remove_file(loose.join("journal.jsonl")).unwrap();
    let said = verify(&home, &loose, &[]);
    assert_eq!(check(part(&said, "receipt"), "receipt.window")["status"], "not_checked");
    assert_eq!(said.verdict(), "incomplete");
    // A spine's head is taken along once, whoever names it.
    let named = |files: &[&str]| {
        let paths: Vec<_> = files.iter().map(|file| loose.join(file)).collect();
        let paths = paths.iter().map(|path| path.to_str().unwrap());
        report(&home.run(["verify", "--json"].into_iter().chain(paths))).0["facts"]["files"].as_u64()
    };
    assert_eq!(named(&["spine.jsonl", "spine.head", &format!("{id}.json")]), Some(3));
    // A private key among it is named, and not looked at.
    fs::write(loose.join("key.pem"), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
        .unwrap();
    let said = verify(&home, &loose, &[]);
    assert!(
        said.check("evidence.files")["sentence"].as_str().unwrap().contains("key.pem holds a private key")
    );
}

#[test]
fn every_bundle_by_itself_gives_what_strict_says() {
    let home = Home::new();
    for case in fs::read_dir(vectors().join("anchor")).unwrap() {
        let case = case.unwrap().path();
        let Ok(bundle) = fs::canonicalize(case.join("anchor.bundle")) else { continue };
        let expected: Value = serde_json::from_slice(&fs::read(case.join("expected.json")).unwrap()).unwrap();
        let strict = &expected["strict"];
        let said = verify(&home, &bundle, &[]);
        assert_eq!(said.0["exit_code"], strict["exit"], "{}: {said:?}", case.display());
        if let Some(fault) = strict["fault"].as_str() {
            let checks = said.0["subjects"][0]["checks"].as_array().unwrap();
            let first = checks.iter().find(|check| check["status"] == "fail").unwrap();
            assert_eq!(first["fault"], fault, "{}", case.display());
        }
    }
}

#[test]
fn a_day_of_an_audit_log_that_is_called_something_else_is_not_passed_over() {
    let home = Home::new();
    let audit = vectors().join("audit/ok-archived/audit");
    for (file, name) in [
        ("2026-11-28.jsonl", "day.txt"),
        ("2026-11-28.jsonl", "2026-11-28"),
        ("archive/2026-11-27.jsonl.gz", "evidence.tar"),
        ("archive/2026-11-27.jsonl.gz", "day"),
    ] {
        let path = home.home.path().join(name);
        fs::copy(audit.join(file), &path).unwrap();
        for path in [&path, home.home.path()] {
            let said = verify(&home, path, &[]);
            assert_eq!(said.0["exit_code"], 2, "{name}: {said:?}");
            assert!(said.0["summary"].as_str().unwrap().contains("undated_file"), "{name}: {said:?}");
        }
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn an_anchors_tree_checked_out_as_files_is_checked_as_one() {
    let home = recorded();
    let tree = home.home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    git(home.path(), &["--work-tree", tree.to_str().unwrap(), "checkout", "-q", REF, "--", "."]);
    let said = verify(&home, &tree, &[]);
    assert_eq!((said.verdict(), &said.0["subject"]["kind"]), ("incomplete", &"anchor".into()));
    assert_eq!(said.0["facts"]["entries"], 2600);
    assert_eq!(said.check("anchor.commit")["status"], "not_checked");
    fs::remove_file(tree.join("chunk-000001.jsonl")).unwrap();
    assert_eq!(verify(&home, &tree, &[]).check("anchor.tree")["status"], "fail");
}

#[test]
fn one_report_of_a_run_has_all_that_there_is_of_it() {
    let home = recorded();
    let said = report(&home.run(["verify", RUN, "--json"]));
    let kinds: Vec<_> = said.0["subjects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["subject"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["ledger", "journal", "receipt"]);
    assert_eq!(said.verdict(), "consistent");
    let project = verify(&home, home.path(), &[]);
    assert_eq!(part(&project, "ledger")["verdict"], "consistent");
    assert_eq!(verify(&home, &home.path().join(".sdd"), &[]).0["subjects"], project.0["subjects"]);
}
