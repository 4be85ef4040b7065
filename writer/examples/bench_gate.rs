//! `make bench`: what the gate takes for a repository with many runs.
//!
//! `bench_gate [--runs N] [--entries N] [--node PROGRAM]`
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, clippy::as_conversions, reason = "a bench")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use waybill_verifier::hash::Digest;
use waybill_verifier::id::{Kind, TaskId};
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::RowText;

fn main() {
    let (mut runs, mut entries, mut node) = (200, 1000, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap();
        match name.as_str() {
            "--runs" => runs = value.parse().unwrap(),
            "--entries" => entries = value.parse().unwrap(),
            "--node" => node = Some(value),
            other => panic!("unknown option {other}"),
        }
    }
    let binary = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("waybill");
    let folder = tempfile::Builder::new().prefix("waybill-bench").tempdir().unwrap();
    let repository = Repository { folder: folder.path().join("repository"), binary };
    let bytes = repository.make(runs, entries);
    println!("gate: {runs} runs with {entries} entries each, {:.0} MB", bytes as f64 / 1e6);
    repository.measure("waybill check, ledgers and anchors", &mut repository.waybill(&["check", "--quiet"]));
    fs::remove_dir_all(repository.folder.join(".sdd")).unwrap();
    repository.measure("waybill check, anchors only", &mut repository.waybill(&["check", "--quiet"]));
    repository.git(&["gc", "-q"]);
    repository.measure("waybill check, after git gc", &mut repository.waybill(&["check", "--quiet"]));
    if let Some(node) = node {
        let main = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wasm/action/dist/index.js");
        let mut action = Command::new(&node);
        action
            .arg(main)
            .current_dir(&repository.folder)
            .env("GITHUB_WORKSPACE", &repository.folder)
            .env("RUNNER_TEMP", folder.path())
            .env("INPUT_FETCH", "never");
        repository.measure("the action, after git gc", &mut action);
    }
}

struct Repository {
    folder: PathBuf,
    binary: PathBuf,
}

impl Repository {
    /// Makes it, with the heads of its runs committed; gives the ledgers' size in bytes.
    fn make(&self, runs: u64, entries: u64) -> u64 {
        fs::create_dir(&self.folder).unwrap();
        self.git(&["init", "-q", "-b", "main"]);
        let mut bytes = 0;
        for run in 0..runs {
            let name = format!("run-{run:04}");
            let ledger = self.folder.join(".sdd/runtime/ledger").join(&name);
            fs::create_dir_all(&ledger).unwrap();
            bytes += write_ledger(&ledger.join("000000.jsonl"), &name, entries);
            assert!(self.waybill(&["--quiet", "ledger", "anchor", &name]).status().unwrap().success());
        }
        assert!(self.waybill(&["--quiet", "check", "--update"]).status().unwrap().success());
        self.git(&["add", ".waybill"]);
        self.git(&["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "heads"]);
        bytes
    }

    fn git(&self, arguments: &[&str]) {
        let status = Command::new("git").current_dir(&self.folder).args(arguments).status().unwrap();
        assert!(status.success(), "git {arguments:?}");
    }

    fn waybill(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        let key = self.folder.with_file_name("audit.key");
        command.current_dir(&self.folder).env("BERNSTEIN_AUDIT_KEY_PATH", key).args(arguments);
        command.stderr(Stdio::null());
        command
    }

    /// The best of three times, and the most memory.
    fn measure(&self, what: &str, command: &mut Command) {
        let (mut best, mut peak) = (Duration::MAX, 0);
        for _ in 0..3 {
            let start = Instant::now();
            let mut child = command.stdout(Stdio::null()).spawn().unwrap();
            let status_file = format!("/proc/{}/status", child.id());
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break status;
                }
                let text = fs::read_to_string(&status_file).unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
                peak = peak.max(kib.unwrap_or(0_u64));
                std::thread::sleep(Duration::from_millis(2));
            };
            assert!(status.success(), "{what}: {status}");
            best = best.min(start.elapsed());
        }
        println!("{what:<36} {:>6.2} s   peak memory {} MiB", best.as_secs_f64(), peak / 1024);
    }
}

fn write_ledger(path: &Path, run: &str, entries: u64) -> u64 {
    let mut text = Vec::new();
    let mut head = Digest::ZERO;
    for seq in 0..entries {
        let noise = Digest::of(format!("{run} {seq}").as_bytes()).to_hex();
        let (kind, payload, task) = match seq {
            0 => ("run.open", Object::of([("run_id", Value::from(run))]), String::new()),
            _ => {
                let message = format!("step {seq} went well: na\u{ef}ve {}", &noise[40..]);
                let payload = Object::of([
                    ("attempt", Value::from(seq % 4)),
                    ("commit", Value::from(&noise[..40])),
                    ("message", Value::from(message)),
                ]);
                let kind = ["task.scheduled", "task.started", "task.completed"][(seq % 3) as usize];
                (kind, payload, format!("t{}", seq / 3))
            }
        };
        let ts = 1_795_975_359.384_364 + seq as f64 * 0.537;
        let (kind, task) = (Kind::new(kind).unwrap(), TaskId::new(&task).unwrap());
        let (row, hash) = RowText::next(&kind, &task, &payload, (seq, &head), 0, ts);
        head = hash;
        text.write_all(row.as_bytes()).unwrap();
        text.push(b'\n');
    }
    fs::write(path, &text).unwrap();
    text.len() as u64
}
