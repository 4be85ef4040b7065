//! `waybill keys`: the identity that signs here, and whose receipts this user believes.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Subcommand;
use waybill_verifier::json::{Object, Value};
use waybill_verifier::key::{Fingerprint, PublicKey};
use waybill_verifier::receipt::{Pin, TrustEntry};

use super::Global;
use super::exit::{Exit, Failure, chain};
use super::out::{self, Form, escape};
use super::table::lay_out;
use crate::durable::{AppendFile, Sync};
use crate::identity::{self, Init};
use crate::project::Project;
use crate::trust::{NewEntry, TrustFile};
use crate::worktree::Worktree;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make the identity that signs this project's receipts
    #[command(after_help = INIT_HELP)]
    Init,
    /// Show the identity: its fingerprint and public key, never the private one
    Show,
    /// Trust a signer from now on, in your own trust file
    #[command(after_help = TRUST_HELP)]
    Trust {
        /// Their public key's file, or its fingerprint
        #[arg(value_name = "FILE|FINGERPRINT")]
        signer: String,
        /// What you call them
        #[arg(long, value_parser = name)]
        name: String,
        /// From when on: 2026-01-31, or a time as 2026-01-31T12:00:00Z
        #[arg(long, value_name = "TIME", value_parser = from)]
        valid_from: Option<String>,
        /// Until when, that day or second included
        #[arg(long, value_name = "TIME", value_parser = until)]
        valid_until: Option<String>,
    },
    /// Believe nothing that a key signed, whatever time its receipts state
    #[command(after_help = REVOKE_HELP)]
    Revoke {
        /// A name in your trust file, a public key's file, or a fingerprint
        #[arg(value_name = "NAME|FILE|FINGERPRINT")]
        signer: String,
    },
    /// List whom your trust file names
    List,
}

const INIT_HELP: &str = "\
An Ed25519 key pair in .sdd/identity: PKCS#8 for its owner alone, and the public key to hand out. A
pair that is there is left as it is, so one that OpenSSL made can be put there instead:
  openssl genpkey -algorithm ed25519 -out .sdd/identity/escalation-identity-key.pem

Exit codes: 0 made or there, 74 I/O, or a key that others can use";

const TRUST_HELP: &str = "\
The trust file is $XDG_CONFIG_HOME/waybill/trust.toml, else ~/.config/waybill/trust.toml: yours, and
never one that came with evidence. Compare the fingerprint by another way before you trust it.

Examples:
  waybill keys trust ann.pem --name ann
  waybill keys trust SHA256:4jSePaNl… --name ann --valid-until 2026-12-31

Exit codes: 0 done (or it was already), 64 wrong arguments, no public key, or a revoked one, 74 I/O, or
no such file";

const REVOKE_HELP: &str = "\
Nothing undoes it but your own hand in the trust file, and what the key signed before counts no more
either: a receipt's time is its signer's word.

Examples:
  waybill keys revoke ann
  waybill keys revoke SHA256:4jSePaNl…

Exit codes: 0 done (or it was already), 1 no such name or file, 64 no public key, or several, 74 I/O";

fn name(text: &str) -> Result<String, String> {
    let fits = !text.trim().is_empty() && text.chars().count() <= 64 && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(String::from("a name has 1 to 64 visible characters")) }
}

fn from(text: &str) -> Result<String, String> {
    time(text, "T00:00:00Z")
}

fn until(text: &str) -> Result<String, String> {
    time(text, "T23:59:59Z")
}

fn time(text: &str, of_day: &str) -> Result<String, String> {
    let whole = if text.len() == 10 { format!("{text}{of_day}") } else { text.to_owned() };
    match whole.parse::<jiff::Timestamp>() {
        Ok(time) if time.as_second() >= 0 => Ok(whole),
        _ => Err(String::from("a time is 2026-01-31, or 2026-01-31T12:00:00Z")),
    }
}

pub(super) fn run(global: &Global, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Init => init(global, &global.project()?),
        Command::Show => show(global, &global.project()?),
        Command::Trust { signer, name, valid_from, valid_until } => {
            let entry = NewEntry {
                name: name.clone(),
                key: fingerprint(signer)?,
                valid_from: valid_from.clone(),
                valid_until: valid_until.clone(),
                revoked: false,
            };
            trust(global, &entry)
        }
        Command::Revoke { signer } => revoke(global, signer),
        Command::List => list(global),
    }
}

/// A signer as a user names one: a fingerprint, or a public key's file.
pub(super) fn pin(signer: &str) -> Result<Pin, Failure> {
    if signer.starts_with("SHA256:") {
        let fingerprint = signer.parse().map_err(|error| Failure::usage(format!("{signer}: {error}")))?;
        return Ok(Pin::Fingerprint(fingerprint));
    }
    // A missing file is none of the evidence: nothing was looked for, and not found, in it.
    let bytes = identity::read_key_file(Path::new(signer)).map_err(|error| Failure::io(&error))?;
    let key = PublicKey::from_file(&bytes)
        .map_err(|error| Failure::usage(format!("{signer} is no public key to pin: {error}")))?;
    Ok(Pin::Key(key))
}

fn fingerprint(signer: &str) -> Result<Fingerprint, Failure> {
    Ok(pin(signer)?.fingerprint())
}

fn init(global: &Global, project: &Project) -> Result<Exit, Failure> {
    let (key, made) = identity::init(project)?;
    exclude(project);
    let text = match made {
        Init::Made => "made the identity",
        Init::There => "the identity is there already:",
    };
    let what = format!("{text} {}\n", key.fingerprint());
    put_key(global, &what, &key)
}

fn show(global: &Global, project: &Project) -> Result<Exit, Failure> {
    let Some(key) = identity::public(project)? else {
        let message = String::from("there is no identity here: 'waybill keys init' makes one");
        return Err(Failure { exit: Exit::Absent, message });
    };
    let what = format!("{}\ninstall_rev {}\n", key.fingerprint(), key.fingerprint().install_rev());
    put_key(global, &what, &key)
}

fn put_key(global: &Global, what: &str, key: &PublicKey) -> Result<Exit, Failure> {
    match global.form() {
        Form::Quiet => {}
        Form::Text => super::put(format!("{what}{}", key.to_pem()).as_bytes())?,
        Form::Json => super::put_document(Object::of([
            ("fingerprint", Value::from(key.fingerprint().to_string())),
            ("install_rev", Value::from(key.fingerprint().install_rev())),
            ("public_key_pem", Value::from(key.to_pem())),
        ]))?,
    }
    Ok(Exit::Done)
}

/// Keeps the private key out of this clone's commits; the folder's own `.gitignore` does so in
/// others. What can't be done is said, and stops nobody.
fn exclude(project: &Project) {
    const LINE: &str = "**/.sdd/identity/";
    let Ok(Some(worktree)) = Worktree::find(project.root()) else { return };
    let Ok(path) = worktree.exclude_file() else { return };
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    if !there.lines().any(|line| line.trim() == LINE) {
        let newline = if there.is_empty() || there.ends_with('\n') { "" } else { "\n" };
        let added = AppendFile::open(&path)
            .and_then(|mut file| file.append(format!("{newline}{LINE}\n").as_bytes(), Sync::Data));
        if let Err(error) = added {
            out::say(&format!(
                "{LINE} was not added to {}: {}; keep that folder out of commits",
                path.display(),
                chain(&error)
            ));
        }
    }
    let private = project.identity().join(identity::PRIVATE);
    let private = private.canonicalize().unwrap_or(private);
    if worktree.tracks(&private).unwrap_or(false) {
        out::say(&format!(
            "git tracks {}: 'git rm --cached' it, and make a new identity, since it was in commits",
            private.display()
        ));
    }
}

fn add(global: &Global, entry: &NewEntry, done: &str) -> Result<Exit, Failure> {
    let path = TrustFile::of_environment().add(entry)?;
    match global.form() {
        Form::Quiet => {}
        Form::Text => {
            let (name, path) = (escape(&entry.name), path.display());
            super::put(format!("{done} {name} ({}) in {path}\n", entry.key).as_bytes())?;
        }
        Form::Json => super::put_document(Object::of([
            ("name", Value::from(entry.name.as_str())),
            ("fingerprint", Value::from(entry.key.to_string())),
            ("revoked", Value::from(entry.revoked)),
        ]))?,
    }
    Ok(Exit::Done)
}

/// Adds a signer, who must not be revoked; the same words again add nothing.
fn trust(global: &Global, entry: &NewEntry) -> Result<Exit, Failure> {
    let file = TrustFile::of_environment();
    let entries = file.entries()?.unwrap_or_default();
    let mut of_key = entries.iter().filter(|known| known.key.fingerprint() == entry.key);
    if let Some(revoked) = of_key.clone().find(|known| known.revoked) {
        let place = file.path().map(|path| path.display().to_string()).unwrap_or_default();
        return Err(Failure::usage(format!(
            "{} is revoked, as {}: nothing was added; if that was a mistake, take its `revoked = true` out of \
             {place} by hand",
            entry.key,
            escape(&revoked.name)
        )));
    }
    if of_key.any(|known| entry.states(known)) {
        out::say(&format!("{} is trusted already, in the same words", entry.key));
        return Ok(Exit::Done);
    }
    add(global, entry, "trusted")
}

fn revoke(global: &Global, signer: &str) -> Result<Exit, Failure> {
    let entries = TrustFile::of_environment().entries()?.unwrap_or_default();
    let named: Vec<&TrustEntry> = entries.iter().filter(|entry| entry.name == signer).collect();
    let mut keys: Vec<Fingerprint> = named.iter().map(|entry| entry.key.fingerprint()).collect();
    keys.sort_unstable();
    keys.dedup();
    let key = match keys.as_slice() {
        [] => fingerprint(signer).map_err(|failure| {
            let message =
                format!("{}; it is no name in your trust file either ('waybill keys list')", failure.message);
            let there = Path::new(signer).symlink_metadata().is_ok() || signer.starts_with("SHA256:");
            Failure { exit: if there { failure.exit } else { Exit::Absent }, message }
        })?,
        [key] => *key,
        _ => {
            let message = format!("{} names several keys: give the fingerprint", escape(signer));
            return Err(Failure::usage(message));
        }
    };
    let known = entries.iter().find(|entry| entry.key.fingerprint() == key);
    let name = known.map_or_else(|| String::from("(revoked)"), |entry| entry.name.clone());
    if entries.iter().any(|entry| entry.revoked && entry.key.fingerprint() == key) {
        out::say(&format!("{key} is revoked already"));
        return Ok(Exit::Done);
    }
    let entry = NewEntry { name, key, valid_from: None, valid_until: None, revoked: true };
    add(global, &entry, "revoked")
}

/// How many keys the trust file trusts, and how many it revokes.
pub(super) fn trusted_and_revoked() -> Result<(usize, usize), Failure> {
    let entries = TrustFile::of_environment().entries()?.unwrap_or_default();
    let all: BTreeSet<Fingerprint> = entries.iter().map(|entry| entry.key.fingerprint()).collect();
    let revoked: BTreeSet<Fingerprint> =
        entries.iter().filter(|entry| entry.revoked).map(|entry| entry.key.fingerprint()).collect();
    Ok((all.len() - revoked.len(), revoked.len()))
}

fn list(global: &Global) -> Result<Exit, Failure> {
    let entries = TrustFile::of_environment().entries()?.unwrap_or_default();
    let time = |seconds: Option<u64>| {
        let seconds = seconds.and_then(|seconds| i64::try_from(seconds).ok())?;
        jiff::Timestamp::from_second(seconds).ok().map(|time| time.to_string())
    };
    let revoked =
        |key: Fingerprint| entries.iter().any(|entry| entry.revoked && entry.key.fingerprint() == key);
    match global.form() {
        Form::Quiet => {}
        Form::Json => {
            let signers = entries.iter().map(|entry| {
                Value::from(Object::of([
                    ("name", Value::from(entry.name.as_str())),
                    ("fingerprint", Value::from(entry.key.fingerprint().to_string())),
                    ("valid_from", Value::from(time(entry.valid_from))),
                    ("valid_until", Value::from(time(entry.valid_until))),
                    ("revoked", Value::from(revoked(entry.key.fingerprint()))),
                ]))
            });
            super::put_document(Object::of([("signers", Value::from(signers.collect::<Vec<_>>()))]))?;
        }
        Form::Text if entries.is_empty() => {
            super::put(b"you trust nobody yet: 'waybill keys trust' adds a signer\n")?;
        }
        Form::Text => {
            let mut rows = vec![["name", "standing", "from", "until", "key"].map(String::from).to_vec()];
            for entry in &entries {
                let standing = if revoked(entry.key.fingerprint()) { "revoked" } else { "trusted" };
                rows.push(vec![
                    escape(&entry.name),
                    standing.to_owned(),
                    time(entry.valid_from).unwrap_or_else(|| String::from("-")),
                    time(entry.valid_until).unwrap_or_else(|| String::from("-")),
                    entry.key.fingerprint().to_string(),
                ]);
            }
            // Fingerprints are there to be compared: never cut.
            super::put(lay_out(&rows, usize::MAX).as_bytes())?;
        }
    }
    Ok(Exit::Done)
}
