//! `make demo`: records a run, kills its recorder in the middle of a write, recovers, finds one
//! changed byte, takes the run to another machine by git, and signs what a stalled worker did last.
//! Then it supervises commands: one stalls, one is killed, and a boot continues what it may.
//! Everything shown is done with the `waybill` binary, and checked.
//!
//! `demo [--keep]`: with `--keep` the folder stays, to look around in. Everything is done below it,
//! with a home and a git configuration of its own. Without git the steps that need it are left out.
//!
//! Called as `demo worker`, it is the worker of the run: it does some arithmetic, and says what it
//! does on standard output, a JSON transition a line. Any language could.
#![allow(missing_docs, clippy::print_stdout, clippy::print_stderr, reason = "a demo talks")]

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const RUN: &str = "goal-42";
const LEDGER_RECORDER: &[&str] = &["ledger", "append", RUN, "--stdin"];
const JOURNAL_RECORDER: &[&str] = &["journal", "record", RUN, "--stdin"];
/// How many events the worker says before it stalls.
const EVENTS: usize = 5;
/// How long the stalled worker is waited for.
const PATIENCE: Duration = Duration::from_millis(300);
/// Lines are folded at this width.
const WIDTH: usize = 98;
/// How far what a program printed is indented.
const INDENT: usize = 4;
/// How many bytes the worker's log has: a write that takes some milliseconds.
const LOG_BYTES: usize = 24 << 20;
/// How often the kill is tried again where it came too early or too late.
const TRIES: u32 = 8;

type Step = fn(&mut Demo) -> Result<()>;

/// The steps, in their order. A later one may use what the earlier ones left in [`Demo`].
const STEPS: &[(&str, Step)] = &[
    ("A run is recorded", record),
    ("The recorder is killed in the middle of a write", kill),
    ("The run is recovered", recover),
    ("Where the run stands", state),
    ("One byte is changed", flip),
    ("An entry is cut off at the end", cut),
];

/// The steps that need git, behind those.
const GIT_STEPS: &[(&str, Step)] = &[
    ("The ledger is anchored in git", anchor),
    ("Another machine goes on with the run", migrate),
    ("The first machine goes on with it, too", diverge),
    ("The divergence is settled", settle),
];

/// The last steps. They need no git.
const RECEIPT_STEPS: &[(&str, Step)] = &[
    ("A worker stalls", stall),
    ("What it did last is signed", sign),
    ("One byte of the journal is changed", tamper),
    ("All of it goes into one file", export),
];

/// The last steps, behind those: a command that is supervised.
const RUN_STEPS: &[(&str, Step)] =
    &[("A supervised worker stalls", watched), ("Runs go on after a reboot", reboot)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["worker"] => worker(),
        [] => demonstrate(false),
        ["--keep"] => demonstrate(true),
        _ => {
            eprintln!("usage: demo [--keep]");
            ExitCode::from(64)
        }
    }
}

fn demonstrate(keep: bool) -> ExitCode {
    let start = Instant::now();
    let mut demo = match Demo::new() {
        Ok(demo) => demo,
        Err(error) => {
            eprintln!("demo: {error}");
            return ExitCode::FAILURE;
        }
    };
    tell(
        "A flight recorder writes down what a long run does, entry by entry, so that after a crash \
         the run goes on from what is certain, and anyone can check the record. Here is a small run, \
         a real kill, a changed byte, a move to another machine, a signed receipt for a worker that \
         stalled, and commands that are watched, and continued after a reboot. Lines that start with $ are \
         commands, and what is below them is what they print (long lines are folded).",
    );
    let has_git = demo.has_git();
    let git_steps = if has_git { GIT_STEPS } else { &[] };
    let steps: Vec<_> = STEPS.iter().chain(git_steps).chain(RECEIPT_STEPS).chain(RUN_STEPS).collect();
    for (number, (title, step)) in (1..).zip(&steps) {
        println!("{number}. {title}\n");
        if let Err(error) = step(&mut demo) {
            println!("\nThis did not come out as told: {error}");
            println!("The folder is kept: {}", demo.root.display());
            return ExitCode::FAILURE;
        }
    }
    if !has_git {
        tell("There is no git here, so the steps that anchor the run and move it are left out.");
    }
    println!("All {} steps came out as told, in {:.1} s.", steps.len(), start.elapsed().as_secs_f64());
    if keep {
        println!("The folder is kept: {}", demo.root.display());
        return ExitCode::SUCCESS;
    }
    match fs::remove_dir_all(&demo.root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: can't remove {}: {error}", demo.root.display());
            ExitCode::FAILURE
        }
    }
}

/// What the steps share.
struct Demo {
    /// The folder that was made for this; all else is below it.
    root: PathBuf,
    /// The project's folder on the first machine.
    folder: PathBuf,
    /// The `waybill` binary.
    waybill: PathBuf,
    /// What the recorder acknowledged.
    acknowledged: Vec<Acknowledged>,
    /// The worker and the recorder that it feeds.
    pipeline: Option<Pipeline>,
    /// The last entry's hash, noted outside the ledger.
    head: String,
    /// The receipt's id.
    receipt: String,
    /// The fingerprint of who signs, noted outside the project.
    signer: String,
}

/// Where a command is called.
#[derive(Clone, Copy)]
enum Machine {
    /// Where the run began.
    First,
    /// Where it goes on: another clone of the project.
    Other,
}

impl Machine {
    /// The project's folder on it, below [`Demo::root`].
    const fn folder(self) -> &'static str {
        match self {
            Machine::First => "project",
            Machine::Other => "other",
        }
    }

    const fn prompt(self) -> &'static str {
        match self {
            Machine::First => "$",
            Machine::Other => "other$",
        }
    }
}

/// An entry that the recorder said is on disk.
struct Acknowledged {
    seq: usize,
    hash: String,
}

impl Demo {
    fn new() -> Result<Demo> {
        let this = std::env::current_exe()?;
        // target/release/examples/demo → target/release/waybill
        let waybill = this.ancestors().nth(2).ok_or("this program is nowhere")?.join("waybill");
        if !waybill.is_file() {
            return Err("the waybill binary is missing: run 'cargo build --release' first".into());
        }
        let root = std::env::temp_dir().join(format!("waybill-demo-{}", std::process::id()));
        let folder = root.join(Machine::First.folder());
        for made in [&root, &folder, &root.join("home"), &root.join("tmp")] {
            fs::create_dir(made).map_err(|error| format!("can't make {}: {error}", made.display()))?;
        }
        let (acknowledged, head, receipt, signer) = (Vec::new(), String::new(), String::new(), String::new());
        Ok(Demo { root, folder, waybill, acknowledged, pipeline: None, head, receipt, signer })
    }

    fn run_folder(&self) -> PathBuf {
        self.folder.join(".sdd/runtime/ledger").join(RUN)
    }

    fn ledger(&self) -> PathBuf {
        self.run_folder().join("000000.jsonl")
    }

    fn journal(&self) -> PathBuf {
        self.folder.join(".sdd/runs").join(RUN).join("journal.jsonl")
    }

    fn ledger_bytes(&self) -> Result<u64> {
        Ok(fs::metadata(self.ledger())?.len())
    }

    /// The caller's programs, and the binary before them.
    fn path(&self) -> std::ffi::OsString {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let own = self.waybill.parent().map(Path::to_owned);
        std::env::join_paths(own.into_iter().chain(std::env::split_paths(&others))).unwrap_or(others)
    }

    /// The binary in the project's folder.
    fn command(&self, arguments: &[&str]) -> Command {
        self.program(Machine::First, &self.waybill, arguments)
    }

    /// A program in the project's folder, with an environment that has nothing of the caller's to
    /// scrub, and a home of its own: a key is made there, and no git configuration is found.
    fn program(&self, machine: Machine, program: &Path, arguments: &[&str]) -> Command {
        let home = self.root.join("home");
        let mut command = Command::new(program);
        command
            .current_dir(self.root.join(machine.folder()))
            .args(arguments)
            .env_clear()
            .env("PATH", self.path())
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .env("HOME", home)
            .env("TMPDIR", self.root.join("tmp"))
            .env("COLUMNS", (WIDTH - INDENT).to_string())
            .env("NO_COLOR", "1")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::null());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "demo");
            command.env(format!("GIT_{role}_EMAIL"), "demo@example.org");
        }
        command
    }

    fn has_git(&self) -> bool {
        let said = self.program(Machine::First, Path::new("git"), &["--version"]).output();
        said.is_ok_and(|said| said.status.success())
    }

    /// Runs git, and shows nothing unless it fails.
    fn git(&self, machine: Machine, arguments: &[&str]) -> Result<String> {
        let said = self.program(machine, Path::new("git"), arguments).output()?;
        let error = String::from_utf8_lossy(&said.stderr);
        expect(said.status.success(), &format!("git {} was to work: {error}", arguments.join(" ")))?;
        Ok(String::from_utf8(said.stdout)?)
    }

    /// What a command says, unshown.
    fn quietly(&self, arguments: &[&str]) -> Result<String> {
        Ok(String::from_utf8(self.command(arguments).output()?.stdout)?)
    }

    /// Runs the binary and shows the call, all that it prints, and a code that is not 0.
    fn show(&self, code: i32, arguments: &[&str]) -> Result<String> {
        self.show_on(Machine::First, code, arguments)
    }

    fn show_on(&self, machine: Machine, code: i32, arguments: &[&str]) -> Result<String> {
        show_call(machine, "waybill", arguments);
        let (mut output, writer) = io::pipe()?;
        let mut command = self.program(machine, &self.waybill, arguments);
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // It holds the pipe's other end, and would keep it open.
        drop(command);
        let mut text = String::new();
        output.read_to_string(&mut text)?;
        let status = child.wait()?;
        show_output(&text);
        match status.code() {
            Some(0) => {}
            Some(code) => println!("    (exit code {code})"),
            None => println!("    (killed)"),
        }
        println!();
        expect(status.code() == Some(code), &format!("it was to exit with code {code}"))?;
        Ok(text)
    }

    /// The last entry's hash on a machine.
    fn head_on(&self, machine: Machine) -> Result<String> {
        let said = self.program(machine, &self.waybill, &["ledger", "state", RUN]).output()?;
        head_in(&String::from_utf8(said.stdout)?)
    }
}

/// A worker, and the recorder that it feeds.
struct Pipeline {
    worker: Child,
    recorder: Child,
    answers: BufReader<ChildStdout>,
}

impl Pipeline {
    /// The recorder is the binary with these arguments.
    fn start(demo: &Demo, recorder: &[&str]) -> Result<Pipeline> {
        let mut worker = Command::new(std::env::current_exe()?)
            .arg("worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = worker.stdout.take().ok_or("the worker has no output")?;
        let mut recorder = demo.command(recorder).stdin(said).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(recorder.stdout.take().ok_or("the recorder has no output")?);
        Ok(Pipeline { worker, recorder, answers })
    }

    /// Tells the worker what to do next.
    fn order(&mut self, order: &str) -> Result<()> {
        let input = self.worker.stdin.as_mut().ok_or("the worker has no input")?;
        Ok(writeln!(input, "{order}")?)
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line)
    }

    /// Gives the worker no more orders: it ends, and so does the recorder.
    fn end(mut self) -> Result<()> {
        drop(self.worker.stdin.take());
        self.worker.wait()?;
        expect(self.answer()?.is_empty(), "the worker was to say no more")?;
        expect(self.recorder.wait()?.success(), "the recorder was to end well")
    }

    /// Kills the recorder with SIGKILL, and gives back what it still answered.
    fn kill(mut self) -> Result<String> {
        self.recorder.kill()?;
        self.recorder.wait()?;
        let mut rest = String::new();
        self.answers.read_to_string(&mut rest)?;
        // Its recorder is gone, and its orders end: nothing keeps the worker.
        drop(self.worker.stdin.take());
        self.worker.wait()?;
        Ok(rest)
    }
}

fn record(demo: &mut Demo) -> Result<()> {
    tell(
        "A run has a ledger: a file to which entries are only appended. Each entry has a hash over \
         its content and the hash before it, so they form a chain.",
    );
    demo.show(0, &["ledger", "open", RUN, "--goal", "some arithmetic"])?;
    tell(
        "A worker, another process, does the work. It says what it schedules, starts and finishes \
         as JSON lines. The recorder answers each one with the entry's hash, and only once it is on \
         disk.",
    );
    println!("    $ worker | waybill ledger append {RUN} --stdin");
    let mut pipeline = Pipeline::start(demo, LEDGER_RECORDER)?;
    pipeline.order("work")?;
    for seq in 1..=8 {
        let answer = pipeline.answer()?;
        show_output(&answer);
        let answered = answer.contains(&format!("\"seq\":{seq}}}"));
        expect(answered, &format!("the worker's entry {seq} was to be answered"))?;
        demo.acknowledged.push(acknowledged(&answer)?);
    }
    println!();
    demo.pipeline = Some(pipeline);
    tell("Anyone may read while it records:");
    let log = demo.show(0, &["ledger", "log", RUN])?;
    expect(log.lines().count() == 9, "nine entries were to be shown")?;
    expect(log.contains("17984"), "the number of primes below 200000 was to be recorded")?;
    tell(
        "The worker sent entry 4 with a password in it. Secrets are scrubbed before anything is hashed \
         or written, and this is what the ledger has:",
    );
    let ledger = fs::read_to_string(demo.ledger())?;
    let row = ledger.lines().nth(4).ok_or("entry 4 was to be there")?;
    let command = row.split("\"command\":").nth(1).and_then(|rest| rest.split('}').next()).unwrap_or(row);
    show_output(&format!("\"command\":{command}"));
    println!();
    expect(!ledger.contains("correct-horse"), "the password was not to be written")?;
    expect(ledger.contains("***REDACTED***"), "the password was to be replaced")
}

fn kill(demo: &mut Demo) -> Result<()> {
    tell(&format!(
        "The worker now hands over a log of {} MB as one entry. As soon as the ledger grows, the \
         recorder gets a SIGKILL, which no program can catch: as in a crash, the write stops where it is.",
        LOG_BYTES >> 20
    ));
    let mut is_torn = false;
    for attempt in 1..=TRIES {
        let mut pipeline = match demo.pipeline.take() {
            Some(pipeline) => pipeline,
            None => Pipeline::start(demo, LEDGER_RECORDER)?,
        };
        let before = demo.ledger_bytes()?;
        pipeline.order("log")?;
        // No sleep in between: the write takes some milliseconds.
        let deadline = Instant::now() + Duration::from_secs(60);
        while demo.ledger_bytes()? == before {
            expect(Instant::now() < deadline, "the recorder was to write")?;
        }
        let answers = pipeline.kill()?;
        for answer in answers.lines() {
            demo.acknowledged.push(acknowledged(answer)?);
        }
        is_torn = last_byte(&demo.ledger())? != b'\n';
        if is_torn {
            let written = demo.ledger_bytes()? - before;
            println!(
                "    kill -9: the recorder is dead, and {written} bytes of the entry are in the ledger\n"
            );
            break;
        }
        println!("    try {attempt}: the write was over before the kill came; once more\n");
    }
    if !is_torn {
        cut_by_hand(demo)?;
    }
    tell(
        "The ledger now ends in the middle of an entry: a torn tail. That entry was never acknowledged, \
         so nobody relies on it. A check names it, and says what still holds:",
    );
    let said = demo.show(2, &["verify", RUN, "--quiet"])?;
    expect(said.contains("torn_tail"), "the torn tail was to be named")
}

/// Where a kill never falls into a write, the tail is torn by hand, and the reader is told so.
fn cut_by_hand(demo: &mut Demo) -> Result<()> {
    let length = demo.ledger_bytes()?;
    fs::OpenOptions::new().write(true).open(demo.ledger())?.set_len(length - 1000)?;
    let last = fs::read_to_string(demo.ledger())?.lines().count() - 1;
    demo.acknowledged.retain(|acknowledged| acknowledged.seq != last);
    tell(&format!(
        "In {TRIES} tries no kill fell into a write: this machine is too fast for that. So the last 1000 \
         bytes are cut off by hand here; what the recorder said of that one entry does not count."
    ));
    Ok(())
}

fn recover(demo: &mut Demo) -> Result<()> {
    tell(
        "There is nothing to repair by hand. Whoever opens the run next checks it from its first \
         entry, moves the torn bytes into a file of their own, and goes on behind the last whole entry:",
    );
    let said = demo.show(0, &["ledger", "append", RUN, "--kind", "task.resumed", "--task", "report"])?;
    expect(said.contains(".torn-"), "the torn tail was to be set aside")?;
    tell(&format!("The run's folder, .sdd/runtime/ledger/{RUN}, now has:"));
    let mut files = Vec::new();
    for file in fs::read_dir(demo.run_folder())? {
        let file = file?;
        files.push((file.file_name().to_string_lossy().into_owned(), file.metadata()?.len()));
    }
    files.sort();
    for (name, bytes) in &files {
        println!("    {name:<14}{bytes:>10} bytes");
    }
    println!();
    expect(files.iter().any(|(name, _)| name.starts_with(".torn-")), "the torn bytes were to be kept")?;
    let ledger = fs::read_to_string(demo.ledger())?;
    let rows: Vec<&str> = ledger.lines().collect();
    for Acknowledged { seq, hash } in &demo.acknowledged {
        let is_there =
            rows.get(*seq).is_some_and(|row| row.starts_with(&format!("{{\"entry_hash\":\"{hash}\"")));
        expect(is_there, &format!("the acknowledged entry {seq} was to be there"))?;
    }
    tell(&format!(
        "Each of the {} entries that were acknowledged to the worker is there.",
        demo.acknowledged.len()
    ));
    Ok(())
}

fn state(demo: &mut Demo) -> Result<()> {
    tell(
        "The state follows from the entries alone. Two tasks are done and stay done; the third was \
         started, so it is the frontier: what a resume goes on with.",
    );
    let text = demo.show(0, &["ledger", "state", RUN])?;
    expect(text.contains("A resume goes on with: report"), "the frontier was to be the task 'report'")?;
    demo.head = head_in(&text)?;
    tell(
        "The head, the last entry's hash, stands for the whole chain. Somebody who noted it \
         elsewhere can have the ledger checked against it:",
    );
    let report = demo.show(0, &["verify", RUN, "--expected-head", &demo.head])?;
    expect(report.starts_with("VERIFIED"), "the ledger was to be verified")
}

fn flip(demo: &mut Demo) -> Result<()> {
    tell(
        "In a copy, one digit of a result is changed: entry 5 says that there are 17984 primes below \
         200000, and now says 17985.",
    );
    let ledger = fs::read(demo.ledger())?;
    let at = find(&ledger, b"17984").ok_or("the result was to be in the ledger")? + 4;
    let mut copy = ledger;
    copy[at] ^= 1;
    fs::write(demo.folder.join("copy.jsonl"), &copy)?;
    let report = demo.show(2, &["verify", "copy.jsonl"])?;
    expect(report.contains("entry 5 (line 6, "), "entry 5 was to be named")?;
    expect(report.contains("entry_hash_mismatch"), "the fault was to be a wrong hash")
}

fn cut(demo: &mut Demo) -> Result<()> {
    tell(
        "What a chain can't tell by itself: in another copy the last entry is gone, newline and all. \
         What is left still recomputes, so it is 'consistent', which is less than 'verified':",
    );
    let mut copy = fs::read(demo.ledger())?;
    copy.pop();
    copy.truncate(copy.iter().rposition(|&byte| byte == b'\n').ok_or("entries were to be there")? + 1);
    fs::write(demo.folder.join("cut.jsonl"), &copy)?;
    let report = demo.show(0, &["verify", "cut.jsonl"])?;
    expect(report.starts_with("CONSISTENT"), "the copy was to be consistent")?;
    tell("The head from step 4 tells:");
    let report = demo.show(2, &["verify", "cut.jsonl", "--quiet", "--expected-head", &demo.head])?;
    expect(report.contains("entries are missing"), "the missing entry was to be noticed")
}

fn anchor(demo: &mut Demo) -> Result<()> {
    let first = Machine::First;
    demo.git(first, &["init", "--quiet"])?;
    demo.git(first, &["init", "--quiet", "--bare", "../remote.git"])?;
    demo.git(first, &["remote", "add", "origin", "../remote.git"])?;
    fs::write(demo.folder.join(".gitignore"), ".sdd/\n")?;
    demo.git(first, &["add", ".gitignore"])?;
    demo.git(first, &["commit", "--quiet", "--message", "Keep the records out"])?;
    demo.git(first, &["push", "--quiet", "origin", "HEAD"])?;
    tell(
        "A head is best noted elsewhere as a matter of course. The project is a git repository with a \
         remote. An anchor is the ledger as a commit of its own, under a ref that is no branch; it \
         touches neither files nor history of the project. The audit log records it, with a key that \
         is made at the first time:",
    );
    let said = demo.show(0, &["ledger", "anchor", RUN])?;
    expect(said.contains(&demo.head), "the head was to be anchored")?;
    expect(demo.root.join("home/.local/state/bernstein/audit.key").is_file(), "the key was to be made")?;
    let said = demo.show(0, &["ledger", "push", RUN])?;
    expect(said.starts_with("pushed"), "the anchor was to be pushed")?;
    tell(
        "Who trusts the remote need not note a head: its anchor, read at this moment, vouches for the ledger:",
    );
    let report = demo.show(0, &["ledger", "verify", RUN, "--remote", "origin"])?;
    expect(report.starts_with("VERIFIED"), "the ledger was to be verified")
}

fn migrate(demo: &mut Demo) -> Result<()> {
    let other = Machine::Other;
    tell(
        "The first machine is out of reach. Another one, other$, has a clone of the project. What it \
         fetches stays in a temporary repository until it is verified:",
    );
    show_call(other, "git", &["clone", "remote.git", "."]);
    println!();
    let (from, to) = (demo.root.join("remote.git"), demo.root.join(other.folder()));
    let (from, to) =
        (from.to_str().ok_or("a folder has no name")?, to.to_str().ok_or("a folder has no name")?);
    demo.git(Machine::First, &["clone", "--quiet", from, to])?;
    demo.show_on(other, 0, &["ledger", "fetch", RUN])?;
    let ledger = Path::new(".sdd/runtime/ledger").join(RUN).join("000000.jsonl");
    let fetched = fs::read(Path::new(to).join(ledger))?;
    expect(fetched == fs::read(demo.ledger())?, "the ledgers of both machines were to be the same bytes")?;
    tell(
        "The ledger is there, byte for byte. A resume records itself and leaves a signal for each task of \
         the frontier, here the report; whoever runs tasks there picks it up.",
    );
    let said = demo.show_on(other, 0, &["ledger", "resume", RUN])?;
    expect(said.contains("signalled report"), "the task 'report' was to be signalled")?;
    demo.show_on(other, 0, &["ledger", "append", RUN, "--kind", "task.completed", "--task", "report"])?;
    demo.show_on(other, 0, &["ledger", "close", RUN])?;
    demo.show_on(other, 0, &["ledger", "anchor", RUN])?;
    let said = demo.show_on(other, 0, &["ledger", "push", RUN])?;
    expect(said.starts_with("pushed"), "the anchor was to be pushed")
}

fn diverge(demo: &mut Demo) -> Result<()> {
    tell("The first machine comes back, knows nothing of that, and resumes the run as well:");
    demo.show(0, &["ledger", "resume", RUN])?;
    let [ours, theirs] = [demo.head_on(Machine::First)?, demo.head_on(Machine::Other)?];
    let before = (fs::read(demo.ledger())?, demo.git(Machine::First, &["for-each-ref"])?);
    tell(
        "Now there are two lineages of one run. They are never merged, and none replaces the other: \
         the fetch is refused, and names the fork and both heads.",
    );
    let said = demo.show(3, &["ledger", "fetch", RUN])?;
    for head in [&ours, &theirs] {
        expect(said.contains(head), &format!("the head {head} was to be named"))?;
    }
    let after = (fs::read(demo.ledger())?, demo.git(Machine::First, &["for-each-ref"])?);
    expect(before == after, "neither ledger nor refs were to change")?;
    tell("Both, side by side from the fork on:");
    let said = demo.show(3, &["ledger", "diff", RUN, "--remote", "origin"])?;
    for head in [&ours, &theirs] {
        expect(said.contains(&head[..12]), &format!("the lineage of {head} was to be shown"))?;
    }
    expect(said.contains("run.closed"), "what the other machine did was to be shown")
}

fn settle(demo: &mut Demo) -> Result<()> {
    let (ours, theirs) = (demo.head_on(Machine::First)?, demo.head_on(Machine::Other)?);
    let before = fs::read(demo.ledger())?;
    tell(
        "Which one counts is for somebody who knows the run to say. The report was finished on the other \
         machine, so its lineage is kept. This one is set aside, not deleted:",
    );
    demo.show(0, &["ledger", "diff", RUN, "--remote", "origin", "--keep", "anchored"])?;
    let aside = fs::read(demo.run_folder().join(format!(".aside-{ours}")))?;
    expect(aside == before, "the lineage that was set aside was to be kept as it was")?;
    expect(demo.head_on(Machine::First)? == theirs, "the other lineage was to be in its place")?;
    tell("The audit log says that it was done; each of its events is tagged with the key.");
    let log = demo.show(0, &["audit", "log"])?;
    expect(log.contains("work_ledger.diverged_settled"), "the decision was to be recorded")?;
    let log = demo.program(Machine::First, &demo.waybill, &["audit", "log", "--json"]).output()?;
    let log = String::from_utf8(log.stdout)?;
    let event = log.lines().last().unwrap_or_default();
    for head in [&ours, &theirs] {
        expect(event.contains(head.as_str()), "the event was to name both heads")?;
    }
    demo.show(0, &["audit", "verify", "--require", "complete,hmac", "--quiet"])?;
    let runs = demo.show(0, &["ledger", "runs", "--remote", "origin"])?;
    expect(runs.contains("agree") && runs.contains("same"), "ledger, anchor and remote were to agree")
}

fn stall(demo: &mut Demo) -> Result<()> {
    tell(
        "Beside the ledger, a run may have a journal: a chain of events, of whatever workers say of \
         their steps. One works here, says what it does, and then waits for an answer that never comes.",
    );
    println!("    $ worker | waybill {}", JOURNAL_RECORDER.join(" "));
    let mut pipeline = Pipeline::start(demo, JOURNAL_RECORDER)?;
    pipeline.order("check")?;
    for index in 0..EVENTS {
        let answer = pipeline.answer()?;
        show_output(&answer);
        let answered = answer.contains(&format!("\"index\":{index}}}"));
        expect(answered, &format!("the worker's event {index} was to be answered"))?;
    }
    println!();
    let before = fs::read(demo.journal())?;
    std::thread::sleep(PATIENCE);
    expect(fs::read(demo.journal())? == before, "the worker was to stall")?;
    pipeline.end()?;
    tell("Nothing more comes, so whoever watches the worker gives it up. What is known of it:");
    let log = demo.show(0, &["journal", "log", RUN])?;
    expect(log.lines().count() == EVENTS, "the worker's events were to be shown")?;
    expect(!log.contains("correct-horse"), "the password was not to be written")
}

fn sign(demo: &mut Demo) -> Result<()> {
    tell(
        "A receipt says who stalled and why, which events came last, and what follows. It is signed by \
         the project's identity, a key that is made once and that no commit takes along:",
    );
    let said = demo.show(0, &["keys", "init"])?;
    let key = demo.folder.join(".sdd/identity/escalation-identity-key.pem");
    let private = fs::read_to_string(&key)?;
    let secret = private.lines().nth(1).ok_or("the private key was to be there")?;
    expect(!said.contains(secret), "the private key was not to be shown")?;
    demo.signer = word_in(&said, |word| word.starts_with("SHA256:"))?;
    let said = demo.show(
        0,
        &["escalation", "emit", RUN, "--worker", "w1", "--reason", "heartbeat_stale", "--budget", "2"],
    )?;
    demo.receipt = word_in(&said, |word| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit()))?;
    tell(
        "What to do next is no opinion: it follows from the reason, the budget and the events by fixed \
         rules, and the check computes it again.",
    );
    let said = demo.show(0, &["escalation", "show", &demo.receipt])?;
    expect(said.contains("respawn"), "a respawn was to be recommended")?;
    tell(
        "A key that comes with a receipt vouches for nothing. Whoever has the signer's fingerprint by \
         another way gives it, or notes it with 'waybill keys trust':",
    );
    let said = demo.show(0, &["escalation", "verify", &demo.receipt, "--signer", &demo.signer])?;
    expect(said.starts_with("VERIFIED"), "the receipt was to be verified")
}

fn watched(demo: &mut Demo) -> Result<()> {
    tell(
        "So far, somebody else noticed the stall. 'waybill run' notices it itself: it starts a command, \
         records it, and hears what it prints and says. This one says something once, and then hangs.",
    );
    let script = "waybill record --event tool.called --worker w1; exec sleep 60";
    let limits = ["--stall-after", "500ms", "--on-stall", "stop"];
    let call = [&["run", "--id", "watched"], &limits[..], &["--", "sh", "-c", script]].concat();
    let said = demo.show(3, &call)?;
    expect(said.contains("stalled: worker w1"), "the stall was to be noticed")?;
    let receipt = word_in(&said, |word| word.len() == 33 && word.ends_with(':'))?;
    tell("The verdict is in the journal, and the receipt was signed without anybody's help:");
    let said =
        demo.show(0, &["escalation", "verify", receipt.trim_end_matches(':'), "--signer", &demo.signer])?;
    expect(said.starts_with("VERIFIED"), "the run's receipt was to be verified")
}

fn reboot(demo: &mut Demo) -> Result<()> {
    tell(
        "Two more commands: one kills itself in its second task, as a power cut would; the other is ended \
         on purpose.",
    );
    let script = "record() { waybill record -q --kind task.$1 --task $2; }; if [ -z \"$WAYBILL_RESUME\" ]; then record \
                  completed lint; record started build; kill -9 $$; fi; record completed build";
    demo.show(137, &["run", "--id", "crashed", "--", "sh", "-c", script])?;
    demo.show(0, &["run", "--id", "ended", "--detach", "--", "sleep", "60"])?;
    demo.show(0, &["jobs", "stop", "ended"])?;
    tell("What the next boot would do, and does:");
    let said = demo.show(0, &["boot", "resume-all", "--dry-run"])?;
    expect(said.contains("continue            crashed"), "the crashed run was to go on")?;
    expect(said.contains("ended deliberately  ended"), "the stopped run was to stay down")?;
    demo.show(0, &["boot", "resume-all"])?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while !demo.quietly(&["jobs", "list"])?.contains("complete") && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    tell("It went on behind what was completed, and did nothing twice:");
    let said = demo.show(0, &["ledger", "log", "crashed"])?;
    expect(said.matches("lint").count() == 1, "the completed task was not to be done again")?;
    expect(
        said.contains("run.resumed") && said.contains("run.closed"),
        "the run was to be resumed and to end",
    )?;
    let said = demo.show(0, &["top", "--once"])?;
    expect(said.contains("complete"), "the run was to be complete")
}

fn tamper(demo: &mut Demo) -> Result<()> {
    tell(
        "Somebody would rather have it that the tool worked: in event 2 of the journal, one byte is \
         changed, and its exit code 1 is now 0.",
    );
    let good = fs::read(demo.journal())?;
    let mut bad = good.clone();
    let what = br#""exit":1"#;
    let at = find(&bad, what).ok_or("the exit code was to be in the journal")? + what.len() - 1;
    bad[at] ^= 1;
    fs::write(demo.journal(), &bad)?;
    let arguments = ["escalation", "verify", &demo.receipt, "--signer", &demo.signer];
    let said = demo.show(2, &arguments)?;
    expect(said.starts_with("FAILED"), "the receipt was not to hold")?;
    expect(said.contains("journal.chain: entry 2 (line 3, "), "check and event were to be named")?;
    let fails = said.lines().any(|line| line.starts_with("FAIL ") && line.contains("receipt.window"));
    expect(fails, "the window was to fail")?;
    tell("With the byte put back it holds again:");
    fs::write(demo.journal(), &good)?;
    demo.show(0, &["escalation", "verify", &demo.receipt, "--signer", &demo.signer, "--quiet"])?;
    Ok(())
}

fn export(demo: &mut Demo) -> Result<()> {
    tell(
        "Whoever has to find out what happened gets one file: ledger, anchors, journal, receipts and \
         the audit log, with a hash of each, and no key that is secret.",
    );
    let said = demo.show(0, &["evidence", "export", RUN, "-o", "goal-42.tar"])?;
    expect(said.contains("what is in it: consistent"), "the evidence was to hold")?;
    tell("It is checked anywhere, offline, with the same code and the same verdict:");
    let said = demo.show(0, &["verify", "goal-42.tar", "--quiet"])?;
    expect(said.is_empty(), "nothing was to be said of evidence that holds")?;
    tell(
        "Without a terminal: 'make page' makes target/page/waybill-verify.html, one file that opens \
         from disk and asks nobody for anything. Drop goal-42.tar on it.",
    );
    Ok(())
}

/// The worker: does what it is ordered to on standard input, and says it on standard output.
fn worker() -> ExitCode {
    for order in io::stdin().lines().map_while(io::Result::ok) {
        let said = match order.as_str() {
            "work" => work(),
            "check" => check(),
            _ => say(&format!(
                r#"{{"kind":"task.progress","task_id":"report","payload":{{"log":"{}"}}}}"#,
                "one more line of a long log; ".repeat(LOG_BYTES / 29)
            )),
        };
        // Nobody records any more: a worker that must not work unrecorded stops.
        if said.is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn work() -> io::Result<()> {
    for task in ["primes", "collatz", "report"] {
        say(&format!(r#"{{"kind":"task.scheduled","task_id":"{task}"}}"#))?;
    }
    say(
        r#"{"kind":"task.started","task_id":"primes","payload":{"command":"./primes --password=correct-horse 200000"}}"#,
    )?;
    let count = (2..200_000u32).filter(|n| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0)).count();
    say(&format!(r#"{{"kind":"task.completed","task_id":"primes","payload":{{"primes":{count}}}}}"#))?;
    say(r#"{"kind":"task.started","task_id":"collatz"}"#)?;
    let longest = (1..200_000u64).max_by_key(|&n| steps_to_one(n)).unwrap_or(1);
    let steps = steps_to_one(longest);
    say(&format!(
        r#"{{"kind":"task.completed","task_id":"collatz","payload":{{"start":{longest},"steps":{steps}}}}}"#
    ))?;
    say(r#"{"kind":"task.started","task_id":"report"}"#)
}

/// What it says as events; for what comes then, it needs an answer.
fn check() -> io::Result<()> {
    for event in [
        r#"{"event":"worker.started","worker":"w1"}"#,
        r#"{"event":"tool.called","tool":"check","command":"./check --password=correct-horse"}"#,
        r#"{"event":"tool.failed","tool":"check","exit":1}"#,
        r#"{"event":"heartbeat","worker":"w1"}"#,
        r#"{"event":"question.asked","question":"try again?"}"#,
    ] {
        say(event)?;
    }
    Ok(())
}

fn steps_to_one(mut n: u64) -> u32 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

fn expect(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Reads an acknowledgement: `{"entry_hash":"<64 hex>","seq":3}`.
fn acknowledged(answer: &str) -> Result<Acknowledged> {
    let read = || {
        let rest = answer.strip_prefix("{\"entry_hash\":\"")?;
        let seq = rest.get(64..)?.strip_prefix("\",\"seq\":")?.trim_end().strip_suffix('}')?.parse().ok()?;
        Some(Acknowledged { seq, hash: rest.get(..64)?.to_owned() })
    };
    read().ok_or_else(|| format!("an acknowledgement was to come, not {answer:?}").into())
}

/// The head that `ledger state` shows.
fn head_in(state: &str) -> Result<String> {
    let head = state.lines().find_map(|line| line.strip_prefix("head "));
    Ok(head.ok_or("the head was to be shown")?.to_owned())
}

/// The first word that is like this.
fn word_in(text: &str, is_it: impl Fn(&str) -> bool) -> Result<String> {
    let word = text.split_whitespace().find(|word| is_it(word));
    Ok(word.ok_or("what was made was to be named")?.to_owned())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn last_byte(path: &Path) -> Result<u8> {
    Ok(*fs::read(path)?.last().ok_or("the ledger was not to be empty")?)
}

/// Prints a paragraph for the reader.
fn tell(text: &str) {
    for line in fold(text, 2, 2) {
        println!("{line}");
    }
    println!();
}

fn show_call(machine: Machine, program: &str, arguments: &[&str]) {
    let quoted = arguments.iter().map(|argument| match argument.contains(' ') {
        true => format!("'{argument}'"),
        false => (*argument).to_owned(),
    });
    let call = format!("{} {program} {}", machine.prompt(), quoted.collect::<Vec<_>>().join(" "));
    println!("{}", fold(&call, INDENT, INDENT + 4).join(" \\\n"));
}

/// Prints what a program printed, indented; a line that is too long is folded.
fn show_output(text: &str) {
    for line in text.lines() {
        let own = line.len() - line.trim_start().len();
        for part in fold(line.trim_start(), INDENT + own, INDENT + own + 4) {
            println!("{}", part.trim_end());
        }
    }
}

/// Folds a line between words: what is behind `lead` spaces, and its later parts behind `hang`.
fn fold(text: &str, lead: usize, hang: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = " ".repeat(lead);
    let mut is_begun = false;
    for word in text.split(' ') {
        if is_begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, " ".repeat(hang)));
            is_begun = false;
        }
        if is_begun {
            line.push(' ');
        }
        line.push_str(word);
        is_begun = true;
    }
    lines.push(line);
    lines
}
