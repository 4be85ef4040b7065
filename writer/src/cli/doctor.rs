//! `waybill doctor`: what on this machine would break recording, and the mend.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use waybill_verifier::json::{Object, Value};
use waybill_verifier::report::counted;

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form};
use crate::identity;
use crate::lock::Lock;
use crate::master::KeyFile;
use crate::project::Project;
use crate::registry::Entry;
use crate::trust::TrustFile;

/// One thing that was looked at.
struct Finding {
    id: &'static str,
    standing: Standing,
    sentence: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Well,
    /// Recording works, something else will not.
    Note,
    /// Recording will fail or is not safe.
    Ill,
}

impl Standing {
    const fn word(self) -> &'static str {
        match self {
            Standing::Well => "OK",
            Standing::Note => "NOTE",
            Standing::Ill => "ILL",
        }
    }
}

pub(super) fn run(global: &Global) -> Result<Exit, Failure> {
    let project = global.project()?;
    let mut findings = vec![clock(), git(), linger(), folder(&project)];
    findings.extend(global.data_folder().map(|folder| data_folder(&folder)));
    findings.extend(ledgers(&project)?);
    findings.extend(keys(&project));
    findings.extend(runs(global));
    match global.form() {
        Form::Json => {
            let list = findings.iter().map(|finding| {
                Value::from(Object::of([
                    ("id", Value::from(finding.id)),
                    ("standing", Value::from(finding.standing.word())),
                    ("sentence", Value::from(finding.sentence.as_str())),
                ]))
            });
            super::put_document(Object::of([("findings", Value::from(list.collect::<Vec<_>>()))]))?;
        }
        Form::Text | Form::Quiet => {
            let shown = |finding: &&Finding| global.form() == Form::Text || finding.standing == Standing::Ill;
            let lines: String = findings
                .iter()
                .filter(shown)
                .map(|Finding { id, standing, sentence }| {
                    format!("{:<4}  {id:<14}  {}\n", standing.word(), out::escape(sentence))
                })
                .collect();
            super::put(lines.as_bytes())?;
        }
    }
    let ill = findings.iter().any(|finding| finding.standing == Standing::Ill);
    Ok(if ill { Exit::Failed } else { Exit::Done })
}

fn clock() -> Finding {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // 2024-01-01: this program is younger.
    let (standing, sentence) = if since < 1_704_067_200 {
        (Standing::Ill, "the clock is before 2024: entries get wrong times; set it (timedatectl)")
    } else {
        (Standing::Well, "the clock is plausible")
    };
    Finding { id: "clock", standing, sentence: sentence.to_owned() }
}

fn git() -> Finding {
    let version = Command::new("git").arg("--version").output();
    let (standing, sentence) = match version {
        Ok(output) if output.status.success() => {
            (Standing::Well, String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => (
            Standing::Note,
            String::from(
                "git does not run: recording works, anchors can't be fetched or pushed; install git",
            ),
        ),
    };
    Finding { id: "git", standing, sentence }
}

fn linger() -> Finding {
    let found = |standing, sentence: &str| Finding { id: "linger", standing, sentence: sentence.to_owned() };
    if !Path::new("/run/systemd/system").is_dir() {
        return found(Standing::Note, "no systemd here: runs are not resumed at boot by a user unit");
    }
    if lingers() {
        return found(Standing::Well, "linger is on: user units start at boot");
    }
    found(
        Standing::Note,
        "linger is off: user units start at login, not at boot; 'loginctl enable-linger' mends that",
    )
}

/// Whether this user's units start at boot.
pub(super) fn lingers() -> bool {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.name);
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists())
}

fn folder(project: &Project) -> Finding {
    let records = project.root().join(".sdd");
    let looked_at = if records.exists() { records } else { project.root().to_owned() };
    let probe = looked_at.join(format!(".waybill-doctor-{}", std::process::id()));
    let written = crate::durable::create(&probe, b"probe");
    drop(fs::remove_file(&probe));
    match written {
        Ok(()) => Finding {
            id: "folder",
            standing: Standing::Well,
            sentence: format!("{} can be written and synced", looked_at.display()),
        },
        Err(error) => Finding { id: "folder", standing: Standing::Ill, sentence: super::exit::chain(&error) },
    }
}

/// The folder for the user's own records: nobody else's, if it is there.
fn data_folder(folder: &Path) -> Finding {
    let found = |standing, sentence| Finding { id: "data_folder", standing, sentence };
    let shown = folder.display();
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return found(Standing::Well, format!("{shown} is not there, and nothing needs it yet"));
        }
        Err(error) => return found(Standing::Ill, format!("can't look at {shown}: {error}")),
    };
    let (mode, owner) = (metadata.permissions().mode() & 0o777, metadata.uid());
    if !metadata.is_dir() {
        found(Standing::Ill, format!("{shown} is no folder: move it away, or give another --data-dir"))
    } else if owner != nix::unistd::geteuid().as_raw() {
        let sentence = format!("{shown} belongs to user {owner}: give a --data-dir of your own");
        found(Standing::Ill, sentence)
    } else if mode != 0o700 {
        let sentence = format!("{shown} has mode {mode:04o}, not 0700: 'chmod 700 {shown}' mends that");
        found(Standing::Ill, sentence)
    } else {
        found(Standing::Well, format!("{shown} is yours alone (mode 0700)"))
    }
}

/// The keys, as far as there are some: each is looked at as its users do.
fn keys(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    let place = KeyFile::of_environment();
    let shown = place.path().map(|path| path.display().to_string()).unwrap_or_default();
    let key = place.read().map(|key| key.map(|_| format!("the HMAC key is {shown}")));
    findings.extend(found("hmac_key", key));
    let signer = identity::private(project)
        .map(|key| key.map(|key| format!("receipts are signed by {}", key.public().fingerprint())));
    findings.extend(found("identity", signer));
    let trust = TrustFile::of_environment().entries().map(|entries| {
        entries.map(|entries| format!("your trust file has {}", counted(entries.len(), "entry")))
    });
    findings.extend(found("trust", trust));
    findings
}

/// The user's own records of supervised runs, as far as there are some.
fn runs(global: &Global) -> Vec<Finding> {
    let finding = |standing, sentence| Finding { id: "runs", standing, sentence };
    let registry = match global.registry() {
        Ok(registry) => registry,
        Err(failure) => return vec![finding(Standing::Note, failure.message)],
    };
    let listed = match registry.list() {
        Ok(listed) => listed,
        Err(error) => return vec![finding(Standing::Ill, super::exit::chain(&error))],
    };
    let damaged = listed.iter().filter_map(|entry| match entry {
        Entry::Damaged { name, reason } => {
            Some(finding(Standing::Ill, format!("the record of run {name} can't be used: {reason}")))
        }
        Entry::Run(_) => None,
    });
    damaged.collect()
}

fn found<E: std::error::Error>(id: &'static str, judged: Result<Option<String>, E>) -> Option<Finding> {
    let (standing, sentence) = match judged {
        Ok(sentence) => (Standing::Well, sentence?),
        Err(error) => (Standing::Ill, super::exit::chain(&error)),
    };
    Some(Finding { id, standing, sentence })
}

fn ledgers(project: &Project) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for run in project.runs()? {
        let path = project.ledger(&run);
        if let Some(holder) = Lock::holder_of(&project.ledger_lock(&run)) {
            let sentence = format!("run {run} is being recorded by {holder}");
            findings.push(Finding { id: "lock", standing: Standing::Well, sentence });
        }
        if let Ok(metadata) = fs::symlink_metadata(&path)
            && metadata.permissions().mode() & 0o077 != 0
        {
            let shown = path.display();
            findings.push(Finding {
                id: "mode",
                standing: Standing::Ill,
                sentence: format!("others can reach {shown}: 'chmod 600 {shown}' mends that"),
            });
        }
        let aside = fs::read_dir(project.ledger_folder(&run)).into_iter().flatten().flatten();
        let torn = aside.filter(|entry| entry.file_name().to_string_lossy().starts_with(".torn-")).count();
        if torn > 0 {
            let sentence =
                format!("run {run}: torn tails set aside after crashes: {torn}; delete them when understood");
            findings.push(Finding { id: "torn", standing: Standing::Note, sentence });
        }
    }
    Ok(findings)
}
