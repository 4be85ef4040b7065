//! What the tests share: a project folder, the binary, and its reports.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub const RUN: &str = "goal-42";

/// The binary, in a folder, with an environment that has nothing to scrub.
pub fn waybill(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waybill"));
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(Stdio::null());
    command
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A project folder.
pub struct Project(TempDir);

impl Project {
    pub fn new() -> Project {
        Project(TempDir::new().unwrap())
    }

    /// A project whose run was opened.
    pub fn opened() -> Project {
        let project = Project::new();
        project.ok(["ledger", "open", RUN]);
        project
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn folder(&self) -> PathBuf {
        self.path().join(".sdd/runtime/ledger").join(RUN)
    }

    pub fn ledger(&self) -> PathBuf {
        self.folder().join("000000.jsonl")
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.ledger()).unwrap()
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        waybill(self.path()).args(arguments).output().unwrap().into()
    }

    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{said:?}");
        said
    }

    /// Runs a command that must fail with a code and say one line that has these words.
    #[track_caller]
    pub fn fails<S: AsRef<OsStr>>(&self, code: i32, words: &[&str], arguments: impl IntoIterator<Item = S>) {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(code), "{said:?}");
        assert_eq!(said.err.lines().count(), 1, "one line: {said:?}");
        for word in words {
            assert!(said.err.contains(word), "{word:?} in {said:?}");
        }
    }

    pub fn append(&self, kind: &str, task: &str) -> Said {
        self.ok(["ledger", "append", RUN, "--kind", kind, "--task", task])
    }

    /// `append --stdin` with its pipes.
    pub fn recorder(&self, durability: &str) -> Child {
        waybill(self.path())
            .args(["ledger", "append", RUN, "--stdin", "--durability", durability])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Feeds lines to `append --stdin`, and gives back its answers.
    pub fn feed(&self, lines: &str, durability: &str) -> Said {
        let mut child = self.recorder(durability);
        let mut input = child.stdin.take().unwrap();
        let lines = lines.to_owned();
        let feeder = std::thread::spawn(move || drop(input.write_all(lines.as_bytes())));
        let said = child.wait_with_output().unwrap().into();
        feeder.join().unwrap();
        said
    }

    pub fn report(&self) -> Report {
        report(&self.run(["ledger", "verify", RUN, "--json"]))
    }
}

/// A report as a reader of its JSON sees it.
#[derive(Debug)]
pub struct Report(pub Value);

pub fn report(said: &Said) -> Report {
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    assert_eq!(report["schema"], "waybill.report/1");
    assert_eq!(report["exit_code"].as_i64(), said.code.map(i64::from), "{said:?}");
    Report(report)
}

/// The report on a file.
pub fn verify(path: &Path) -> Report {
    let said = waybill(path.parent().unwrap())
        .args(["ledger", "verify", "--json", "--file"])
        .arg(path)
        .output()
        .unwrap()
        .into();
    report(&said)
}

impl Report {
    pub fn verdict(&self) -> &str {
        self.0["verdict"].as_str().unwrap()
    }

    pub fn entries(&self) -> u64 {
        self.0["facts"]["entries"].as_u64().unwrap()
    }

    pub fn head(&self) -> &str {
        self.0["facts"]["head_hash"].as_str().unwrap()
    }

    pub fn check(&self, id: &str) -> &Value {
        let checks = self.0["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("{id}: {self:?}"))
    }

    pub fn first_failure(&self) -> Option<&Value> {
        self.0["checks"].as_array().unwrap().iter().find(|check| check["status"] == "fail")
    }
}

/// A project folder with a home of its own: where the HMAC key and the trust file are.
pub struct Home {
    pub project: Project,
    pub home: TempDir,
}

impl Home {
    pub fn new() -> Home {
        Home { project: Project::new(), home: TempDir::new().unwrap() }
    }

    /// With the vectors' key, and a copy of a vector's folder as the project.
    pub fn of_vector(kind: &str, name: &str) -> Home {
        let home = Home::new();
        home.put_vectors_key();
        copy(&vectors().join(kind).join(name), home.path());
        home
    }

    /// With an identity.
    pub fn signing() -> Home {
        let home = Home::new();
        home.ok(["keys", "init"]);
        home
    }

    pub fn path(&self) -> &Path {
        self.project.path()
    }

    pub fn key(&self) -> PathBuf {
        self.home.path().join(".local/state/bernstein/audit.key")
    }

    pub fn put_vectors_key(&self) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(self.key().parent().unwrap()).unwrap();
        std::fs::copy(vectors().join("hmac.key"), self.key()).unwrap();
        std::fs::set_permissions(self.key(), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub fn command(&self) -> Command {
        let mut command = waybill(self.path());
        command.env("HOME", self.home.path());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        self.command().args(arguments).output().unwrap().into()
    }

    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{said:?}");
        said
    }

    #[track_caller]
    pub fn fails<S: AsRef<OsStr>>(
        &self,
        code: i32,
        words: &[&str],
        arguments: impl IntoIterator<Item = S>,
    ) -> Said {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(code), "{said:?}");
        for word in words {
            assert!(said.err.contains(word), "{word:?} in {said:?}");
        }
        said
    }

    /// The ids of the receipts that are there.
    pub fn receipts(&self) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(self.path().join(".sdd/escalation/receipts")) else {
            return Vec::new();
        };
        let mut ids: Vec<_> = folder
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .collect();
        ids.sort();
        ids
    }

    pub fn verify_receipt(&self, id: &str) -> Report {
        report(&self.run(["escalation", "verify", id, "--json"]))
    }
}

pub fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors")
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Each of a report's check ids and faults has an explanation.
#[track_caller]
pub fn is_explained(report: &Report, known: &mut std::collections::BTreeSet<String>) {
    for check in report.0["checks"].as_array().unwrap() {
        for name in [&check["id"], &check["fault"]].into_iter().filter_map(Value::as_str) {
            if known.insert(name.to_owned()) {
                let said: Said = waybill(Path::new("/")).args(["explain", name]).output().unwrap().into();
                assert_eq!(said.code, Some(0), "{name} is not explained: {said:?}");
            }
        }
    }
}

/// A machine of its own: a project, a home, a data folder, a runtime folder. What still runs of it
/// at the end is killed: what has the folder's name in its environment, and nothing else.
pub struct Machine(TempDir);

impl Machine {
    pub fn new() -> Machine {
        use std::os::unix::fs::PermissionsExt;
        let machine = Machine(TempDir::new().unwrap());
        for name in ["p", "home", "rt"] {
            std::fs::create_dir(machine.0.path().join(name)).unwrap();
        }
        let runtime = machine.0.path().join("rt");
        std::fs::set_permissions(runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
        machine
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn project(&self) -> PathBuf {
        self.0.path().join("p")
    }

    pub fn data(&self) -> PathBuf {
        self.0.path().join("d")
    }

    /// A file of a run's record.
    pub fn file(&self, run: &str, name: &str) -> PathBuf {
        self.data().join("runs").join(run).join(name)
    }

    pub fn command(&self) -> Command {
        let mut command = waybill(&self.project());
        command
            .env("HOME", self.0.path().join("home"))
            .env("XDG_RUNTIME_DIR", self.0.path().join("rt"))
            .env("WAYBILL_DATA_DIR", self.data())
            .env("W", env!("CARGO_BIN_EXE_waybill"));
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        self.command().args(arguments).output().unwrap().into()
    }

    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{said:?}");
        said
    }

    /// Supervises a shell script in the foreground.
    pub fn script(&self, run: &str, options: &[&str], script: &str) -> Said {
        let arguments = [&["run", "--id", run], options, &["--", "sh", "-c", script]].concat();
        self.run(arguments)
    }

    /// Supervises a shell script in the background.
    #[track_caller]
    pub fn detach(&self, run: &str, options: &[&str], script: &str) {
        let arguments = [&["run", "--detach", "--id", run], options, &["--", "sh", "-c", script]].concat();
        self.ok(arguments);
    }

    /// A supervisor in the foreground, as a process that can be signalled.
    pub fn foreground(&self, run: &str, options: &[&str], script: &str) -> Child {
        let arguments = [&["run", "--id", run], options, &["--", "sh", "-c", script]].concat();
        let mut command = self.command();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        self.until(|| self.point(run));
        child
    }

    pub fn record(&self, run: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.file(run, "record.json")).unwrap()).unwrap()
    }

    pub fn status(&self, run: &str) -> String {
        self.record(run)["status"].as_str().unwrap().to_owned()
    }

    /// How a run is shown in the list.
    pub fn shown(&self, run: &str) -> String {
        let list: Value = serde_json::from_str(&self.ok(["jobs", "list", "--all", "--json"]).out).unwrap();
        let runs = list["runs"].as_array().unwrap();
        let found = runs.iter().find(|found| found["run_id"] == run).unwrap_or_else(|| panic!("{list}"));
        found["shown"].as_str().unwrap().to_owned()
    }

    pub fn pid(&self, run: &str, of: &str) -> i32 {
        i32::try_from(self.record(run)[of]["pid"].as_i64().unwrap()).unwrap()
    }

    /// Whether a run has a resume point.
    pub fn point(&self, run: &str) -> bool {
        self.file(run, "resume-point.json").exists()
    }

    pub fn attempts(&self, run: &str) -> u64 {
        let attempts = std::fs::read(self.file(run, "attempts.json")).unwrap();
        serde_json::from_slice::<Value>(&attempts).unwrap()["attempts"].as_u64().unwrap()
    }

    /// A run's events: their types.
    pub fn events(&self, run: &str) -> Vec<Value> {
        let path = self.project().join(".sdd/runs").join(run).join("journal.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn count(&self, run: &str, event: &str) -> usize {
        self.events(run).iter().filter(|found| found["event"] == event).count()
    }

    /// A run's entries as `kind task`.
    pub fn entries(&self, run: &str) -> Vec<String> {
        let path = self.project().join(".sdd/runtime/ledger").join(run).join("000000.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        rows.map(|row| {
            format!("{} {}", row["kind"].as_str().unwrap(), row["task_id"].as_str().unwrap())
                .trim_end()
                .to_owned()
        })
        .collect()
    }

    /// A sweep's decision on each run.
    #[track_caller]
    pub fn sweep(&self, options: &[&str]) -> std::collections::BTreeMap<String, (String, String)> {
        let said = self.run([&["boot", "resume-all", "--json"], options].concat());
        let document: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
        let lines = document["decisions"].as_array().unwrap().iter();
        lines.map(|line| (text(line, "run_id"), (text(line, "decision"), text(line, "reason")))).collect()
    }

    #[track_caller]
    pub fn decided(&self, run: &str, decision: &str) {
        let decisions = self.sweep(&[]);
        assert_eq!(decisions[run].0, decision, "{decisions:?}");
    }

    /// Waits for something, for a while.
    #[track_caller]
    pub fn until(&self, mut met: impl FnMut() -> bool) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !met() {
            assert!(std::time::Instant::now() < deadline, "it did not come");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Waits until a run's supervisor is gone.
    #[track_caller]
    pub fn ended(&self, run: &str) {
        self.until(|| self.record(run)["supervisor"].is_null());
        // The record is written before the process ends, and only then its lock is free.
        self.until(|| self.sweep(&["--dry-run"])[run].0 != "still running");
    }

    /// The processes of this machine that are alive, as numbers.
    pub fn processes(&self) -> Vec<i32> {
        let name = self.root().as_os_str().as_encoded_bytes();
        let belongs = |pid: i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(name.len()).any(|window| window == name)
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| belongs(*pid)).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for pid in self.processes() {
            kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// Sends a signal.
pub fn kill(pid: i32, signal: nix::sys::signal::Signal) -> bool {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).is_ok()
}

/// Whether a process runs, or is stopped.
pub fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// What git says, with nobody's configuration, to a command that must succeed.
#[track_caller]
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(arguments)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .output()
        .unwrap();
    let said = Said::from(output);
    assert_eq!(said.code, Some(0), "git {arguments:?}: {said:?}");
    said.out.trim_end().to_owned()
}
