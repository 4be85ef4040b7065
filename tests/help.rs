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
