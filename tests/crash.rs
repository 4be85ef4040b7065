//! Crashes: cut at every byte, killed at any moment, several writers, writes that fail.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::help::{Project, RUN, Said, verify, waybill};

/// A project with some entries, and their acknowledged hashes.
fn recorded(entries: usize) -> (Project, Vec<String>) {
    let project = Project::opened();
    let lines: String = (1..entries)
        .map(|entry| format!("{{\"kind\":\"task.started\",\"task_id\":\"t{entry}\",\"payload\":{{\"n\":\"né {entry}\"}}}}\n"))
        .collect();
    let said = project.feed(&lines, "group");
    assert_eq!(said.code, Some(0), "{said:?}");
    let hashes = hashes(&project.bytes());
    assert_eq!(hashes.len(), entries);
    (project, hashes)
}

fn hashes(ledger: &[u8]) -> Vec<String> {
    ledger
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .map(|row| row["entry_hash"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_log_cut_at_any_byte_of_its_last_two_rows_loses_nothing_that_stands_before() {
    let (project, all) = recorded(6);
    let whole = project.bytes();
    let starts: Vec<usize> = [0]
        .into_iter()
        .chain(whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1))
        .collect();
    let from = starts[starts.len() - 3];
    for cut in from..whole.len() {
        for zeros in [0, 7] {
            for name in fs::read_dir(project.folder()).unwrap() {
                fs::remove_file(name.unwrap().path()).unwrap();
            }
            let mut left = whole[..cut].to_vec();
            left.extend(std::iter::repeat_n(0, zeros));
            fs::write(project.ledger(), &left).unwrap();
            // Rows that are whole before the cut, with or without their newline.
            let complete = hashes(&whole[..cut]).len();
            let fused = zeros > 0 && complete > 0 && !starts.contains(&cut) && cut + 1 == starts[complete];
            let append =
                |task| project.run(["ledger", "append", RUN, "--kind", "task.started", "--task", task]);
            if fused {
                // A whole row with bytes behind it in its line is damage, by the format's rule.
                assert_eq!(append("a").code, Some(2));
                assert_eq!(fs::read(project.ledger()).unwrap(), left);
                continue;
            }
            for task in ["a", "b"] {
                let said = append(task);
                assert_eq!(said.code, Some(0), "cut at {cut}: {said:?}");
            }
            let report = project.report();
            assert_eq!(report.verdict(), "consistent", "cut at {cut}: {report:?}");
            let now = hashes(&project.bytes());
            assert_eq!(now.len(), complete + 2, "cut at {cut}");
            assert_eq!(now[..complete], all[..complete], "cut at {cut}");
        }
    }
}

/// Feeds a writing process, kills it after a while, and gives back what it acknowledged.
fn kill_while_writing(project: &Project, durability: &str, wait: Duration) -> Vec<(u64, String)> {
    let mut child = project.recorder(durability);
    let mut input = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        for line in 0u64.. {
            let line = format!("{{\"kind\":\"task.started\",\"task_id\":\"t{line}\"}}\n");
            if input.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let output = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut acknowledged = Vec::new();
        for line in output.lines() {
            let line = line.unwrap();
            // The last answer may be cut by the kill: then it was not given.
            let Ok(answer) = serde_json::from_str::<Value>(&line) else { break };
            acknowledged
                .push((answer["seq"].as_u64().unwrap(), answer["entry_hash"].as_str().unwrap().to_owned()));
        }
        acknowledged
    });
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
    feeder.join().unwrap();
    reader.join().unwrap()
}

#[test]
fn every_entry_acknowledged_before_a_kill_is_there() {
    // 200 kills for each durability, at moments spread over start, first writes and full flow.
    for durability in ["entry", "group", "os"] {
        let mut acknowledged_in_all = 0;
        let mut project = Project::opened();
        for kill in 0..200u64 {
            if kill % 20 == 0 {
                project = Project::opened();
            }
            let spread = kill.wrapping_mul(2_654_435_761) % 23_000;
            let acknowledged =
                kill_while_writing(&project, durability, Duration::from_micros(1_000 + spread));
            acknowledged_in_all += acknowledged.len();
            let before = project.run(["ledger", "verify", RUN, "--json"]);
            assert!(matches!(before.code, Some(0 | 2)), "{before:?}");
            project.append("task.failed", "crash");
            assert_eq!(project.report().verdict(), "consistent");
            let there = hashes(&project.bytes());
            for (seq, hash) in acknowledged {
                assert_eq!(
                    there.get(usize::try_from(seq).unwrap()),
                    Some(&hash),
                    "{durability}, kill {kill}"
                );
            }
        }
        assert!(acknowledged_in_all > 200, "{durability}: too few acknowledged to show anything");
    }
}

#[test]
fn six_processes_with_eight_appends_each_make_one_linear_chain() {
    let project = Project::opened();
    std::thread::scope(|scope| {
        for process in 0..6 {
            let project = &project;
            scope.spawn(move || {
                for entry in 0..8 {
                    project.append("task.started", &format!("p{process}-{entry}"));
                }
            });
        }
    });
    let report = project.report();
    assert_eq!((report.verdict(), report.entries()), ("consistent", 49));
    let mut parents = HashMap::new();
    for line in String::from_utf8(project.bytes()).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        *parents.entry(row["prev_hash"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert!(parents.values().all(|&children| children == 1));
    assert_eq!(parents.len(), 49);
}

#[test]
fn a_held_lock_is_named_to_who_waits_and_never_to_who_reads() {
    let project = Project::opened();
    let mut holder = project.recorder("os");
    // It answers once it has the lock.
    let mut input = holder.stdin.take().unwrap();
    input.write_all(b"{\"kind\":\"task.started\",\"task_id\":\"t\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
    let pid = format!("pid {}", holder.id());
    project.fails(
        75,
        &["held by", &pid, "ledger append"],
        ["ledger", "append", RUN, "--no-wait", "--kind", "task.started", "--task", "x"],
    );
    // Bytes behind the last newline are being written, and no fault.
    let mut bytes = project.bytes();
    bytes.extend_from_slice(b"{\"entry_hash\":\"half");
    fs::write(project.ledger(), &bytes).unwrap();
    let report = project.report();
    assert_eq!((report.verdict(), report.entries()), ("consistent", 2));
    assert_eq!(report.0["facts"]["bytes_in_flight"], 19);
    project.ok(["ledger", "state", RUN]);
    drop(input);
    holder.wait().unwrap();
    assert_eq!(project.report().verdict(), "failed");
}

#[test]
fn a_file_that_another_program_wrote_to_is_not_appended_to() {
    let project = Project::opened();
    let mut holder = project.recorder("entry");
    let mut input = holder.stdin.take().unwrap();
    let mut output = BufReader::new(holder.stdout.take().unwrap());
    let mut ask = |line: &str| {
        input.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        answer
    };
    assert!(ask("{\"kind\":\"a.b\"}\n").contains("entry_hash"));
    let mut file = fs::OpenOptions::new().append(true).open(project.ledger()).unwrap();
    file.write_all(b"{}\n").unwrap();
    assert!(ask("{\"kind\":\"a.b\"}\n").contains("another program writes to it"));
    assert_eq!(holder.wait().unwrap().code(), Some(74));
}

/// A library that makes a system call fail when it is told to: what a dying disk does.
pub fn failing_calls() -> &'static PathBuf {
    static LIBRARY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fail.c");
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fail.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
        let status = compiler.status().expect("a C compiler is needed to make system calls fail");
        assert!(status.success());
        library
    })
}

fn append_while_failing(project: &Project, variable: &str, lines: usize) -> Said {
    let mut child = waybill(project.path())
        .env("LD_PRELOAD", failing_calls())
        .env(variable, "000000.jsonl")
        .args(["ledger", "append", RUN, "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = "{\"kind\":\"task.started\",\"task_id\":\"t\"}\n".repeat(lines);
    // The process may end before it reads all of it.
    drop(input.write_all(lines.as_bytes()));
    drop(input);
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_write_or_sync_that_fails_records_nothing_and_says_so() {
    for (variable, reason) in [
        ("FAIL_SYNC", "Input/output error"),
        ("FAIL_WRITE", "No space left on device"),
        ("FAIL_SHORT_WRITE", "No space left on device"),
    ] {
        let (project, before) = recorded(3);
        let said = append_while_failing(&project, variable, 2);
        assert_eq!(said.code, Some(74), "{variable}: {said:?}");
        assert!(said.err.contains("entry 3 was not recorded"), "{variable}: {said:?}");
        assert!(said.err.contains(reason), "{variable}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "{variable}: {said:?}");
        assert!(!said.out.contains("entry_hash"), "{variable}: {said:?}");
        assert_eq!(hashes(&project.bytes()), before, "{variable}");
        let said = project.append("task.started", "again");
        assert!(said.out.contains("recorded entry 3"), "{said:?}");
        assert_eq!(project.report().verdict(), "consistent");
    }
}

#[test]
fn lines_that_were_read_before_a_read_fails_are_recorded_and_answered() {
    for durability in ["entry", "group"] {
        let (project, _) = recorded(3);
        let lines = project.path().join("lines.jsonl");
        std::fs::write(&lines, "{\"kind\":\"task.started\",\"task_id\":\"t\"}\n".repeat(3)).unwrap();
        let said: Said = waybill(project.path())
            .env("LD_PRELOAD", failing_calls())
            .env("FAIL_READ", "lines.jsonl")
            .args(["ledger", "append", RUN, "--stdin", "--durability", durability])
            .stdin(std::fs::File::open(&lines).unwrap())
            .output()
            .unwrap()
            .into();
        assert_eq!(said.code, Some(74), "{durability}: {said:?}");
        assert!(said.err.contains("can't read standard input"), "{durability}: {said:?}");
        assert_eq!(said.out.matches("entry_hash").count(), 3, "{durability}: {said:?}");
        assert_eq!(hashes(&project.bytes()).len(), 6, "{durability}");
        assert_eq!(project.report().verdict(), "consistent");
    }
}

#[test]
fn a_line_that_is_refused_costs_nothing_on_the_disk() {
    let (project, before) = recorded(3);
    let mut child = waybill(project.path());
    let lines = project.path().join("lines.jsonl");
    std::fs::write(&lines, "{\"kind\":\"Not one\"}\nno JSON\n").unwrap();
    child.env("LD_PRELOAD", failing_calls()).env("FAIL_SYNC", "000000.jsonl");
    child.args(["ledger", "append", RUN, "--stdin"]).stdin(std::fs::File::open(&lines).unwrap());
    let said: Said = child.output().unwrap().into();
    assert_eq!(said.code, Some(64), "{said:?}");
    assert_eq!(said.out.matches("\"error\"").count(), 2, "{said:?}");
    assert!(said.err.contains("2 lines were refused"), "{said:?}");
    assert_eq!(hashes(&project.bytes()), before);
}

#[test]
fn what_could_not_even_be_taken_back_is_said_and_recovered_on_the_next_open() {
    let (project, before) = recorded(3);
    let mut child = waybill(project.path());
    child
        .env("LD_PRELOAD", failing_calls())
        .env("FAIL_SHORT_WRITE", "000000.jsonl")
        .env("FAIL_TRUNCATE", "1");
    let said: Said = child
        .args(["ledger", "append", RUN, "--kind", "task.started", "--task", "t"])
        .output()
        .unwrap()
        .into();
    assert_eq!(said.code, Some(74), "{said:?}");
    assert!(said.err.contains("could not be taken back"), "{said:?}");
    let said = project.append("task.started", "again");
    assert!(said.err.contains("never acknowledged"), "{said:?}");
    assert_eq!(hashes(&project.bytes())[..3], before);
    assert_eq!(project.report().verdict(), "consistent");
}

/// A small file system of its own, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k,nr_inodes=64", "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then(|| SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.0.path()).status());
    }
}

#[test]
fn a_full_disk_leaves_a_ledger_that_opens() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("NOT RUN: mounting a tmpfs needs root; the injected ENOSPC was tested");
        return;
    };
    let run =
        |arguments: &[&str]| -> Said { waybill(disk.0.path()).args(arguments).output().unwrap().into() };
    assert_eq!(run(&["ledger", "open", RUN]).code, Some(0));
    let payload = format!("{{\"text\":\"{}\"}}", "x".repeat(900));
    let ledger = disk.0.path().join(".sdd/runtime/ledger").join(RUN).join("000000.jsonl");
    let mut recorded = 1;
    let said = loop {
        let said = run(&["ledger", "append", RUN, "--kind", "a.b", "--payload", &payload]);
        if said.code != Some(0) {
            break said;
        }
        recorded += 1;
        assert!(recorded < 100);
    };
    assert_eq!(said.code, Some(74), "{said:?}");
    assert!(said.err.contains(&format!("entry {recorded} was not recorded")), "{said:?}");
    let report = verify(&ledger);
    assert_eq!((report.verdict(), report.entries()), ("consistent", recorded));
    let small = run(&["ledger", "append", RUN, "--kind", "a.b"]);
    assert!(matches!(small.code, Some(0 | 74)), "{small:?}");
    assert_eq!(verify(&ledger).verdict(), "consistent");
}
