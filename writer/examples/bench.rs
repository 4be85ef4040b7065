//! `make bench`: rates and sizes from one run, as ratios that travel between machines.
//!
//! `bench [--entries N] [--big-gb N] [--only PART] [--reference PYTHON DRIVER]`
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, clippy::as_conversions, reason = "a bench")]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use waybill_verifier::chain::{LastLine, Place};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::{Kind, TaskId};
use waybill_verifier::json::{Object, Value};
use waybill_verifier::ledger::{LedgerRows, Row, RowText};
use waybill_writer::read;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("ticks") {
        return ticks();
    }
    let options = Options::read();
    let folder = tempfile::Builder::new().prefix("waybill-bench").tempdir_in(&options.folder).unwrap();
    println!("machine: {}", machine());
    let ledger = folder.path().join("ledger.jsonl");
    let bytes = write_ledger(&ledger, options.entries);
    let per_row = bytes / options.entries;
    println!("ledger: {} entries, {:.0} MB, {per_row} bytes a row", options.entries, bytes as f64 / 1e6);
    let folder = folder.path();
    let parts: [(&str, &dyn Fn()); 6] = [
        ("verify", &|| verify_rates(&ledger, &options)),
        ("append", &|| append_rates(folder, &options)),
        ("start", &|| start_time(folder, &options)),
        ("supervisors", &|| supervisors(folder, &options)),
        ("anchor", &|| anchor_times(folder, &ledger, &options)),
        ("memory", &|| peak_memory(folder, &options)),
    ];
    for (name, measure) in parts {
        if options.only.as_deref().is_none_or(|only| only == name) {
            measure();
        }
    }
}

struct Options {
    entries: u64,
    big_gb: u64,
    folder: PathBuf,
    reference: Option<(String, String)>,
    binary: PathBuf,
    only: Option<String>,
}

impl Options {
    fn read() -> Options {
        let mut options = Options {
            entries: 1_000_000,
            big_gb: 2,
            folder: std::env::temp_dir(),
            reference: None,
            only: None,
            binary: std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("waybill"),
        };
        let mut arguments = std::env::args().skip(1);
        let mut next = || arguments.next();
        while let Some(name) = next() {
            match name.as_str() {
                "--entries" => options.entries = next().unwrap().parse().unwrap(),
                "--big-gb" => options.big_gb = next().unwrap().parse().unwrap(),
                "--only" => options.only = next(),
                "--folder" => options.folder = next().unwrap().into(),
                "--reference" => options.reference = Some((next().unwrap(), next().unwrap())),
                other => panic!("unknown option {other}"),
            }
        }
        options
    }
}

fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let find = |key: &str| {
        text.lines()
            .find(|line| line.starts_with(key))
            .and_then(|line| line.split(": ").nth(1))
            .unwrap_or("?")
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let sha = if find("flags").contains("sha_ni") { "with SHA extensions" } else { "without SHA extensions" };
    format!("{cores} cores, {}, {sha}", find("model name"))
}

/// A payload like a task's: ids, a hash, numbers, a little text that differs from row to row.
fn payload(seq: u64) -> Object {
    let noise = Digest::of(&seq.to_le_bytes()).to_hex();
    let number = (seq.wrapping_mul(2_654_435_761) % 100_000) as f64 / 7.0;
    Object::of([
        ("attempt", Value::from(seq % 4)),
        ("commit", Value::from(&noise[..40])),
        ("elapsed_s", Value::Float((number * 1000.0).round() / 1000.0)),
        (
            "message",
            Value::from(format!(
                "step {seq} went well: na\u{ef}ve {}; all checks of it are green, and nothing is left over",
                &noise[40..]
            )),
        ),
    ])
}

fn write_ledger(path: &Path, entries: u64) -> u64 {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    let mut head = Digest::ZERO;
    let mut bytes = 0;
    for seq in 0..entries {
        let (kind, payload, task) = match seq {
            0 => ("run.open", Object::of([("run_id", Value::from("bench"))]), String::new()),
            _ => {
                let kind = ["task.scheduled", "task.started", "task.completed"][(seq % 3) as usize];
                (kind, payload(seq), format!("t{}", seq / 3))
            }
        };
        let ts = 1_795_975_359.384_364 + seq as f64 * 0.537;
        let (row, hash) = RowText::next(
            &Kind::new(kind).unwrap(),
            &TaskId::new(&task).unwrap(),
            &payload,
            (seq, &head),
            0,
            ts,
        );
        head = hash;
        file.write_all(row.as_bytes()).unwrap();
        file.write_all(b"\n").unwrap();
        bytes += row.as_bytes().len() as u64 + 1;
    }
    file.flush().unwrap();
    bytes
}

fn timed(mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn best(times: usize, mut work: impl FnMut()) -> Duration {
    (0..times).map(|_| timed(&mut work)).min().unwrap()
}

/// The best of what each work says that it took, all done in turns: what slows this machine down for
/// a while then slows them all.
fn best_in_turns<const N: usize>(
    rounds: usize,
    mut works: [&mut dyn FnMut() -> Duration; N],
) -> [Duration; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..rounds {
        for (best, work) in best.iter_mut().zip(&mut works) {
            *best = work().min(*best);
        }
    }
    best
}

fn verify_rates(path: &Path, options: &Options) {
    let file = File::open(path).unwrap();
    let size = read::size(&file).unwrap();
    let mut preimages = Vec::new();
    let mut ends = Vec::new();
    let rows = LedgerRows::new(None, |row: &Row<'_>, _: Place| {
        preimages.extend_from_slice(row.preimage().as_bytes());
        ends.push(preimages.len());
    });
    read::walk(&file, size, rows, LastLine::Settled).unwrap();
    let count = ends.len() as f64;
    let bare = || {
        let mut from = 0;
        for &end in &ends {
            black_box(Digest::of(&preimages[from..end]));
            from = end;
        }
    };
    let verify = |threads| {
        let rows = LedgerRows::unvisited(None);
        let outcome = read::walk_ledger(&file, size, rows, LastLine::Settled, threads).unwrap();
        assert_eq!((outcome.end.entry, outcome.fault_count), (options.entries, 0));
    };
    let [bare, one, two] =
        best_in_turns(8, [&mut || timed(bare), &mut || timed(|| verify(1)), &mut || timed(|| verify(2))]);
    let rate = |time: Duration| count / time.as_secs_f64();
    println!(
        "bare SHA-256 of the preimages   {:>10.0} rows/s  ({:.0} bytes each)",
        rate(bare),
        preimages.len() as f64 / count
    );
    println!(
        "verify, one thread              {:>10.0} rows/s  {:.2} of bare (goal 0.50)",
        rate(one),
        bare.as_secs_f64() / one.as_secs_f64()
    );
    println!(
        "verify, two threads             {:>10.0} rows/s  {:.2} of one (goal 1.70)",
        rate(two),
        one.as_secs_f64() / two.as_secs_f64()
    );
    let command = best(3, || {
        let status = Command::new(&options.binary)
            .args(["--quiet", "ledger", "verify", "--file"])
            .arg(path)
            .status()
            .unwrap();
        assert!(status.success());
    });
    println!("waybill ledger verify, all cores{:>10.0} rows/s", rate(command));
    if let Some((python, driver)) = &options.reference {
        let seconds = reference_seconds(python, driver, path);
        println!(
            "the reference's verifier        {:>10.0} rows/s  ours on one thread is {:.0} times it (goal 25)",
            count / seconds,
            seconds / one.as_secs_f64()
        );
    }
}

/// Has the reference verify the ledger in a process that is already started.
fn reference_seconds(python: &str, driver: &str, path: &Path) -> f64 {
    let mut child = Command::new(python)
        .arg(driver)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |op: &str, arguments: String| {
        writeln!(input, "{{\"id\":1,\"op\":\"{op}\",\"args\":{arguments}}}").unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    // The reference reads a ledger as 000000.jsonl in a folder.
    let named = |name: &str| {
        let folder = path.with_file_name(name);
        fs::create_dir(&folder).unwrap();
        folder.join("000000.jsonl")
    };
    let (small, large) = (named("reference-small"), named("reference-large"));
    write_ledger(&small, 3);
    fs::copy(path, &large).unwrap();
    ask("ledger.verify", format!("{{\"path\":\"{}\"}}", small.display()));
    let start = Instant::now();
    let answer = ask("ledger.verify", format!("{{\"path\":\"{}\"}}", large.display()));
    let seconds = start.elapsed().as_secs_f64();
    assert!(answer.contains("\"ok\":true") || answer.contains("\"ok\": true"), "{answer}");
    drop(input);
    child.wait().unwrap();
    seconds
}

/// How many entries are appended one by one, each synced.
const SYNCED: u32 = 1000;

fn append_rates(folder: &Path, options: &Options) {
    let row = [b'x'; 500];
    let bare_file = folder.join("bare");
    let mut runs = 0;
    let mut append = |durability: &str, input: &[u8]| {
        runs += 1;
        let run = format!("{durability}-{runs}");
        let waybill = |arguments: &[&str]| {
            let mut command = Command::new(&options.binary);
            command.current_dir(folder).args(["--quiet", "ledger"]).args(arguments);
            command
        };
        assert!(waybill(&["open", &run]).status().unwrap().success());
        timed(|| {
            let mut child = waybill(&["append", &run, "--stdin", "--durability", durability])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(input).unwrap();
            assert!(child.wait().unwrap().success());
        })
    };
    let few = transitions(SYNCED);
    let bare = || {
        let mut file = File::create(&bare_file).unwrap();
        for _ in 0..SYNCED {
            file.write_all(&row).unwrap();
            file.sync_data().unwrap();
        }
    };
    let [bare, entry] = best_in_turns(5, [&mut || timed(bare), &mut || append("entry", &few)]);
    let rate = |count: u32, took: Duration| f64::from(count) / took.as_secs_f64();
    println!("bare write + fdatasync          {:>10.0} a second", rate(SYNCED, bare));
    let say = |durability: &str, rate: f64, beside: &str| {
        println!("append --durability {durability:<11} {rate:>10.0} a second  {beside}");
    };
    let ratio = entry.as_secs_f64() / bare.as_secs_f64();
    let beside = format!("{ratio:.2} times a bare write + fdatasync (goal 1.30)");
    say("entry", rate(SYNCED, entry), &beside);
    let count = 400_000;
    let many = transitions(count);
    for (durability, goal) in [("group", "(goal 100000)"), ("os", "")] {
        let took = (0..3).map(|_| append(durability, &many)).min().unwrap();
        say(durability, rate(count, took), goal);
    }
}

/// So many transitions, as lines for `append --stdin`.
fn transitions(count: u32) -> Vec<u8> {
    let mut input = Vec::new();
    for seq in 0..u64::from(count) {
        let line = Object::of([
            ("kind", Value::from("task.started")),
            ("task_id", Value::from(format!("t{seq}"))),
            ("payload", Value::from(payload(seq))),
        ]);
        input.extend_from_slice(&waybill_verifier::json::ascii(&Value::from(line)));
        input.push(b'\n');
    }
    input
}

fn start_time(folder: &Path, options: &Options) {
    let small = folder.join("small.jsonl");
    write_ledger(&small, 20);
    let took = best(20, || {
        let status = Command::new(&options.binary)
            .args(["--quiet", "ledger", "verify", "--file"])
            .arg(&small)
            .status()
            .unwrap();
        assert!(status.success());
    });
    println!("verify of a small ledger        {:>10.1} ms      (goal 20)", took.as_secs_f64() * 1e3);
}

/// Anchors the ledger, appends one entry, anchors again; beside `git hash-object` of the same bytes.
fn anchor_times(folder: &Path, ledger: &Path, options: &Options) {
    let project = folder.join("project");
    let run_folder = project.join(".sdd/runtime/ledger/bench");
    fs::create_dir_all(&run_folder).unwrap();
    fs::copy(ledger, run_folder.join("000000.jsonl")).unwrap();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(&project).args(arguments);
        command
    };
    if !git(&["init", "-q"]).status().is_ok_and(|status| status.success()) {
        println!("anchors: not measured, git does not run");
        return;
    }
    let waybill = |arguments: &[&str]| {
        let start = Instant::now();
        let output = Command::new(&options.binary)
            .current_dir(&project)
            .env("BERNSTEIN_AUDIT_KEY_PATH", folder.join("audit.key"))
            .args(arguments)
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        (start.elapsed().as_secs_f64(), said)
    };
    let blobs = |said: &str| {
        let from = said.find("\"blobs_written\":").unwrap() + 16;
        said[from..].split([',', '}']).next().unwrap().to_owned()
    };
    let (first, said) = waybill(&["ledger", "anchor", "bench", "--json"]);
    println!(
        "anchor {} entries               {first:>9.1} s        {} blobs written",
        options.entries,
        blobs(&said)
    );
    waybill(&["--quiet", "ledger", "append", "bench", "--kind", "task.started", "--task", "last"]);
    let (again, said) = waybill(&["ledger", "anchor", "bench", "--json"]);
    println!(
        "anchor again after one append    {again:>9.1} s        {} blobs written (goal: one chunk, and LEDGER.json)",
        blobs(&said)
    );
    let chunks = folder.join("chunks");
    fs::create_dir(&chunks).unwrap();
    let mut names = String::new();
    let text = fs::read(ledger).unwrap();
    let mut lines = text.split_inclusive(|&byte| byte == b'\n').peekable();
    for index in 0.. {
        let chunk: Vec<u8> = lines.by_ref().take(1000).flatten().copied().collect();
        if chunk.is_empty() {
            break;
        }
        let path = chunks.join(index.to_string());
        fs::write(&path, chunk).unwrap();
        names.push_str(&format!("{}\n", path.display()));
    }
    for (what, write) in
        [("git hash-object of the chunks", None), ("git hash-object -w of the chunks", Some("-w"))]
    {
        let start = Instant::now();
        let mut command = git(&["hash-object", "--no-filters", "--stdin-paths"]);
        let mut child = command.args(write).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(names.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        println!("{what:<32} {:>9.1} s", start.elapsed().as_secs_f64());
    }
}

/// How many runs are supervised at once, how often each records something, and for how long.
const RUNS: u32 = 100;
const TICK: Duration = Duration::from_millis(100);
const TICKS: u32 = 100;

/// The command of a supervised run: an event now and then, each answered before the next.
fn ticks() {
    use std::os::unix::net::UnixStream;
    let socket = std::env::var_os("WAYBILL_SOCKET").unwrap();
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let start = Instant::now();
    for n in 0..TICKS {
        writeln!(stream, "{{\"event\":\"tick\",\"n\":{n}}}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.contains("event_hash"), "{answer}");
        std::thread::sleep((TICK * (n + 1)).saturating_sub(start.elapsed()));
    }
}

/// What it costs to supervise many runs: memory and processor time of their supervisors.
fn supervisors(folder: &Path, options: &Options) {
    let project = folder.join("supervised");
    fs::create_dir(&project).unwrap();
    let this = std::env::current_exe().unwrap();
    let start = Instant::now();
    let mut children: Vec<_> = (0..RUNS)
        .map(|run| {
            let mut command = Command::new(&options.binary);
            command.current_dir(&project).arg("--data-dir").arg(folder.join("data"));
            command.args(["run", "--id", &format!("r{run}"), "--"]).arg(&this).arg("ticks");
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    std::thread::sleep(TICK * (TICKS - 20));
    let (mut memory, mut ticks) = (0, 0);
    for child in &children {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        // What is its own: the program's text is shared by all.
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        memory += own.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        // utime and stime, in hundredths of a second.
        ticks += fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    println!(
        "{RUNS} supervisors, 10 events/s each  {:>9.1} MiB      each; {:.1} % of a core all together",
        memory as f64 / 1024.0 / f64::from(RUNS),
        ticks as f64 / seconds
    );
}

fn peak_memory(folder: &Path, options: &Options) {
    if options.big_gb == 0 {
        return;
    }
    let path = folder.join("big.jsonl");
    let bytes = write_ledger(&path, options.big_gb * 1_000_000_000 / 500);
    let start = Instant::now();
    let mut child = Command::new(&options.binary)
        .args(["--quiet", "ledger", "verify", "--file"])
        .arg(&path)
        .spawn()
        .unwrap();
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status_file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
        peak = peak.max(kib);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
    println!(
        "verify of a {:.1} GB ledger: {:.1} s, peak memory {} MiB (goal 64)",
        bytes as f64 / 1e9,
        start.elapsed().as_secs_f64(),
        peak / 1024
    );
}
