//! From the files to the reports on them, and from these to one.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::content::{Content, Entry, Ledger, RECENT};
use super::held::{compared, held_against};
use super::kind::Kind;
use super::manifest::{self, Manifest, Seal};
use super::project::{self, folder, folder_name};
use super::session::{Archive, Session};
use super::tar::TarError;
use crate::anchor::{self, bundle};
use crate::audit::{self, Log, Start, arrange_days};
use crate::chain::{LastLine, Place, Walk};
use crate::compare::{Comparison, Stamp, compare};
use crate::find::has;
use crate::gzip::Gunzip;
use crate::hash::Digest;
use crate::id::RunId;
use crate::journal;
use crate::json::{self, Object, Value};
use crate::ledger::{self, Expect};
use crate::receipt::{AuditIndex, Files, Scope, SpineIndex, Together, Trust};
use crate::report::{Check, Report, Status, Verdict, Voucher, counted};
use crate::spine::{self, HeadFile, SpineRows};
use crate::step;
use crate::table::Table;

/// The first row of a packed day must end within so many bytes.
const MAX_FIRST_ROW: usize = 16 << 20;

/// The report, and what a view of it needs to know.
pub(super) struct Composed<'a> {
    pub(super) report: Report,
    pub(super) forks: Vec<Fork<'a>>,
}

/// Two lineages of one run.
pub(super) struct Fork<'a> {
    pub(super) run: String,
    /// The first entry whose hashes differ.
    pub(super) entry: u64,
    pub(super) sides: [Side<'a>; 2],
}

/// One of two lineages.
pub(super) struct Side<'a> {
    pub(super) name: String,
    pub(super) entries: u64,
    pub(super) rows: Rows<'a>,
}

/// Where the entries of a lineage are to be read again.
pub(super) enum Rows<'a> {
    Text(Option<&'a [u8]>),
    Read(Vec<Entry>),
}

impl<'a> Side<'a> {
    fn of_ledger(name: &str, ledger: &'a Ledger) -> Side<'a> {
        Side {
            name: name.to_string(),
            entries: size(ledger.stamps.len()),
            rows: Rows::Text(ledger.text.as_deref()),
        }
    }
}

/// An anchor of the evidence.
struct Anchored<'a> {
    name: String,
    holds: bool,
    stamps: Cow<'a, [Stamp]>,
    recent: Vec<Entry>,
}

pub(super) fn compose(session: &Session) -> Composed<'_> {
    let mut all = Composer::new(session);
    all.bundles();
    all.trees();
    all.chains();
    all.spines();
    all.audit_logs();
    all.receipts();
    all.finish()
}

struct Composer<'a> {
    session: &'a Session,
    parts: Vec<Report>,
    checks: Vec<Check>,
    forks: Vec<Fork<'a>>,
    anchored: Table<Vec<Anchored<'a>>>,
    manifests: Table<Manifest>,
    missing: Vec<String>,
    /// What a check of the whole forces.
    verdict: Verdict,
}

impl<'a> Composer<'a> {
    fn new(session: &'a Session) -> Composer<'a> {
        let mut composer = Composer {
            session,
            parts: Vec::new(),
            checks: Vec::new(),
            forks: Vec::new(),
            anchored: Table::new(),
            manifests: Table::new(),
            missing: Vec::new(),
            verdict: Verdict::Verified,
        };
        for (path, why) in &session.refused {
            let sentence = format!("{} was not taken: {why}", shown(path));
            composer.check(Check::new("evidence.files", Status::Fail, sentence));
        }
        for archive in &session.archives {
            composer.archive(archive);
        }
        if session.options.folder && session.files.contains(manifest::NAME) {
            composer.manifest("", &session.seals, None);
        }
        composer
    }

    fn check(&mut self, check: Check) {
        let verdict = match check.status {
            Status::Fail => Verdict::Failed,
            Status::NotChecked => Verdict::Incomplete,
            _ => Verdict::Verified,
        };
        self.force(verdict);
        self.checks.push(check);
    }

    fn force(&mut self, verdict: Verdict) {
        if verdict.badness() > self.verdict.badness() {
            self.verdict = verdict;
        }
    }

    fn archive(&mut self, archive: &'a Archive) {
        const ID: &str = "evidence.archive";
        let Archive { path, root, seals, fault, .. } = archive;
        let check = match fault {
            Some(fault) => Check::new(ID, Status::Fail, format!("the archive is refused: {fault}")),
            None => {
                let files = counted(size(seals.len()), "file");
                Check::new(ID, Status::Pass, format!("{files} unpacked, and nothing hidden between them"))
            }
        };
        self.check(check.at(path, None));
        self.manifest(root, seals, fault.as_ref());
    }

    /// Holds the files of an archive, packed or not, against its manifest.
    fn manifest(&mut self, root: &str, seals: &Table<Seal>, fault: Option<&TarError>) {
        const ID: &str = "evidence.manifest";
        let name = format!("{root}{}", manifest::NAME);
        let failed = |sentence| Check::new(ID, Status::Fail, sentence);
        let check = match self.held(&name).map(Manifest::read) {
            None => {
                let sentence = format!("there is no {}: nothing says what belongs to it", manifest::NAME);
                Check::new(ID, Status::NotApplicable, sentence)
            }
            Some(Err(why)) => failed(format!("{} can't be read: {why}", manifest::NAME)),
            Some(Ok(manifest)) => {
                let check = match manifest.mismatch(seals) {
                    _ if fault.is_some() => {
                        Check::new(ID, Status::NotChecked, "the archive was not read to its end")
                    }
                    Some((path, what)) => failed(format!("{} {what}", shown(&path))),
                    None => {
                        let files = counted(size(manifest.files.len()), "file");
                        Check::new(ID, Status::Pass, format!("each of {files} is as it says"))
                    }
                };
                self.manifests.insert(root, manifest);
                check
            }
        };
        self.check(check.at(&name, None));
    }

    fn of_kind(&self, wanted: Kind) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.session.files.iter().filter_map(move |(path, content)| match content {
            Content::Held(kind, bytes) if *kind == wanted => Some((path, bytes.as_slice())),
            _ => None,
        })
    }

    fn ledgers(&self) -> impl Iterator<Item = (&'a str, &'a Ledger)> + use<'a> {
        self.session.files.iter().filter_map(|(path, content)| match content {
            Content::Ledger(ledger) => Some((path, &**ledger)),
            _ => None,
        })
    }

    fn anchor_expect(&self) -> anchor::Expect {
        let Expect { head, contains } = self.session.options.expect;
        anchor::Expect { commit: self.session.options.commit, head, contains }
    }

    fn bundles(&mut self) {
        for anchor in &self.session.anchors {
            let holds = anchor.report.verdict != Verdict::Failed;
            self.anchored.get_or_default(&anchor.run).push(Anchored {
                name: anchor.name.clone(),
                holds,
                stamps: Cow::Borrowed(&anchor.stamps),
                recent: Vec::new(),
            });
            self.parts.push(anchor.report.clone());
        }
        for (path, bytes) in self.of_kind(Kind::Bundle) {
            let mut chains: Table<(Vec<Stamp>, Vec<Entry>)> = Table::new();
            let report = bundle::report_with(path, bytes, self.anchor_expect(), &mut |run, row, place| {
                let (stamps, recent) = chains.get_or_default(run.as_str());
                stamps.push(Stamp::of(row));
                if self.session.options.shown {
                    recent.push(Entry::of(row, place));
                    if recent.len() > 50 * RECENT {
                        recent.drain(..RECENT);
                    }
                }
            });
            let holds = |run: &str| {
                report.parts.iter().any(|part| {
                    part.verdict != Verdict::Failed
                        && part.facts.get("run_id").and_then(Value::as_str) == Some(run)
                })
            };
            for (run, (stamps, recent)) in chains {
                let (name, holds) = (format!("the anchor in {path}"), holds(&run));
                let stamps = Cow::Owned(stamps);
                self.anchored.get_or_default(&run).push(Anchored { name, holds, stamps, recent });
            }
            self.parts.push(report);
        }
    }

    /// Trees of anchors, checked out as files.
    fn trees(&mut self) {
        let mut folders: Table<Vec<(&str, &[u8])>> = Table::new();
        for (path, bytes) in self.of_kind(Kind::Chunk).chain(self.of_kind(Kind::AnchorMeta)) {
            let folder = folder(path);
            folders.get_or_default(folder).push((path.strip_prefix(folder).unwrap_or(path), bytes));
        }
        for (folder, files) in &folders {
            let name = folder_name(folder, &self.session.name);
            self.parts.push(anchor::report_tree(&name, folder, files, self.anchor_expect()));
        }
    }

    fn chains(&mut self) {
        let expect = self.session.options.expect;
        let no_ledgers = self.ledgers().next().is_none() && self.anchored.is_empty();
        let mut met = !no_ledgers || expect == Expect::default();
        for (path, content) in &self.session.files {
            let name = project::run_of_ledger(path).map_or_else(|| path.to_string(), |run| run.to_string());
            match content {
                Content::Ledger(ledger) => {
                    let mut report = ledger::report(&name, path, &ledger.outcome, &expect);
                    self.hold_against_anchors(&mut report, &name, ledger);
                    self.parts.push(report);
                }
                Content::Steps(outcome) => self.parts.push(step::report(path, path, outcome)),
                Content::Journal(journal) => {
                    let head = expect.head.filter(|_| no_ledgers);
                    met |= head.is_some() && expect.contains.is_none();
                    self.parts.push(journal::report(path, path, &journal.outcome, head));
                }
                _ => {}
            }
        }
        if !met && self.anchored.is_empty() && self.of_kind(Kind::Bundle).next().is_none() {
            let sentence = "a hash was expected of a ledger, and there is none";
            self.check(Check::new("ledger.expected_head", Status::NotChecked, sentence));
        }
        self.compare_ledgers();
    }

    fn hold_against_anchors(&mut self, report: &mut Report, name: &str, ledger: &'a Ledger) {
        const ID: &str = "ledger.anchored";
        let Some(run) = ledger.run() else { return };
        let Some(anchors) = self.anchored.get(run) else {
            if self.session.options.several
                || self.session.options.folder
                || !self.session.archives.is_empty()
            {
                let what = format!("an anchor of run {run}: nothing else says where its ledger ends");
                if !self.missing.contains(&what) {
                    self.missing.push(what);
                }
            }
            return;
        };
        for anchored in anchors {
            let held = if !anchored.holds || !ledger.holds() {
                let which = if ledger.holds() { anchored.name.as_str() } else { "the ledger" };
                let sentence = format!("{which} does not hold, so the two were not compared");
                (Check::new(ID, Status::NotChecked, sentence), None, Voucher::None)
            } else {
                let comparison = compare(&ledger.stamps, &anchored.stamps);
                if let Comparison::Diverged { entry, .. } = comparison {
                    let theirs = Side {
                        name: anchored.name.clone(),
                        entries: size(anchored.stamps.len()),
                        rows: Rows::Read(anchored.recent.clone()),
                    };
                    let sides = [Side::of_ledger(name, ledger), theirs];
                    self.forks.push(Fork { run: run.to_string(), entry: size(entry), sides });
                }
                held_against(
                    ID,
                    comparison,
                    ("the ledger", &ledger.stamps),
                    (&anchored.name, &anchored.stamps),
                    Voucher::None,
                )
            };
            report.add(held);
        }
    }

    /// Compares each ledger with the ones before it that name the same run.
    fn compare_ledgers(&mut self) {
        if !self.session.options.several && self.session.archives.is_empty() {
            return;
        }
        let mut runs: Table<Vec<(&str, &'a Ledger)>> = Table::new();
        for (path, ledger) in self.ledgers() {
            if let Some(run) = ledger.run() {
                runs.get_or_default(run).push((path, ledger));
            }
        }
        for (run, ledgers) in &runs {
            if ledgers.len() < 2 {
                continue;
            }
            for (path, _) in ledgers.iter().filter(|(_, ledger)| !ledger.holds()) {
                let sentence =
                    format!("{path} does not hold, so it was not compared with the others of run {run}");
                self.check(Check::new("ledger.compare", Status::NotChecked, sentence));
            }
            let holding: Vec<_> = ledgers.iter().filter(|(_, ledger)| ledger.holds()).collect();
            for (index, (second, theirs)) in holding.iter().enumerate() {
                for (first, ours) in &holding[..index] {
                    let comparison = compare(&ours.stamps, &theirs.stamps);
                    if let Comparison::Diverged { entry, .. } = comparison {
                        let sides = [Side::of_ledger(first, ours), Side::of_ledger(second, theirs)];
                        self.forks.push(Fork { run: run.to_string(), entry: size(entry), sides });
                    }
                    let (check, verdict) = compared((first, second), run, comparison);
                    self.force(verdict);
                    self.checks.push(check);
                }
            }
        }
    }

    fn spines(&mut self) {
        for (path, bytes) in self.of_kind(Kind::Spine) {
            let head_path = format!("{}spine.head", folder(path));
            let head = HeadFile::read(self.held(&head_path));
            let mut walk = Walk::new(SpineRows::new(self.session.key.as_ref(), &head, SpineIndex::default()));
            walk.push(bytes);
            let outcome = walk.finish(LastLine::Settled);
            let name = match folder(path) {
                "" => self.session.name.as_str(),
                folder => folder.trim_end_matches('/'),
            };
            let alone = !self.session.options.folder && !path.contains('/');
            let name = if alone { path } else { name };
            self.parts.push(spine::report(name, (path, &head_path), &outcome, &head));
        }
    }

    fn held(&self, path: &str) -> Option<&'a [u8]> {
        match self.session.files.get(path) {
            Some(Content::Held(_, bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The audit logs: the folder of each, with a final `/`, and its days by their names in it.
    fn logs(&self) -> Table<Table<&'a [u8]>> {
        let mut logs: Table<Table<&'a [u8]>> = Table::new();
        for (path, content) in &self.session.files {
            let Content::Held(Kind::AuditDay | Kind::Packed, bytes) = content else { continue };
            let (at, name) = audit_place(path);
            logs.get_or_default(at).insert(&name, bytes);
        }
        logs
    }

    fn audit_logs(&mut self) {
        for (root, days) in &self.logs() {
            let start = self.audit_start(root, days);
            let arranged = arrange_days(days.names());
            let mut log =
                Log::new(self.session.key.as_ref(), start, AuditIndex::default()).in_folder(&arranged);
            for day in &arranged.days {
                log.open(day);
                log.push(days.get(day.name).copied().unwrap_or_default());
            }
            let name = match days.len() {
                1 if root.is_empty() && !self.session.options.folder => {
                    let name = days.names().next().unwrap_or_default();
                    name.strip_prefix("archive/").unwrap_or(name).to_string()
                }
                _ => folder_name(root, &self.session.name),
            };
            self.parts.push(audit::report(&name, root, &log.finish(LastLine::Settled)));
        }
    }

    /// Where a log begins: at its first row, unless a manifest says otherwise, or days were given
    /// by themselves.
    fn audit_start(&self, root: &str, days: &Table<&'a [u8]>) -> Start {
        let project = project::split(root);
        let stated = project.and_then(|(at, _)| self.manifests.get(at)).map(|m| m.audit_starts_after);
        match stated {
            Some(Some(link)) => return Start::After(link),
            Some(None) => return Start::Genesis,
            None if project.is_some() || self.session.options.folder => return Start::Genesis,
            None => {}
        }
        let arranged = arrange_days(days.names());
        let first = arranged.days.first().and_then(|day| {
            let row = first_row(days.get(day.name)?, day.archived())?;
            let row = json::parse(&row).ok()?;
            Digest::from_hex(row.as_object()?.get("prev_hmac")?.as_str()?.as_bytes())
        });
        match first {
            Some(link) if link != Digest::ZERO => Start::After(link),
            _ => Start::Genesis,
        }
    }

    fn receipts(&mut self) {
        let mut groups: Table<[Vec<&str>; 2]> = Table::new();
        for (path, _) in self.of_kind(Kind::Receipt) {
            let (root, in_project) = match project::split(path) {
                Some((root, _)) => (root, true),
                None => (folder(path), false),
            };
            groups.get_or_default(root)[usize::from(in_project)].push(path);
        }
        for (root, [loose, of_project]) in &groups {
            self.receipts_of(root, false, loose);
            self.receipts_of(root, true, of_project);
        }
    }

    fn receipts_of(&mut self, root: &str, in_project: bool, receipts: &[&str]) {
        if !receipts.is_empty() {
            let layout = if in_project { self.project_files(root) } else { self.loose_files(root, receipts) };
            let files: Files<'_> = layout.iter().map(|(path, (_, bytes))| (path, *bytes)).collect();
            let start = match in_project {
                true => self.audit_start(&format!("{root}.sdd/audit/"), &Table::new()),
                false => self.logs().get(root).map_or(Start::Genesis, |days| self.audit_start(root, days)),
            };
            let scope = if in_project { Scope::Project } else { Scope::Alone };
            let together = Together::of(files, start, self.session.key.as_ref());
            for (path, (real, _)) in &layout {
                if receipts.contains(real) {
                    let mut report = together.report(path, scope, &self.session.options.trust);
                    for at in report.checks.iter_mut().filter_map(|check| check.at.as_mut()) {
                        if let Some((real, _)) = layout.get(&at.file) {
                            at.file = (*real).to_string();
                        }
                    }
                    self.parts.push(report);
                }
            }
        }
    }

    /// What belongs to a project's receipts: paths in it, where these really are, and their bytes.
    fn project_files(&self, root: &str) -> Table<(&'a str, &'a [u8])> {
        self.session
            .files
            .iter()
            .filter_map(|(path, content)| {
                let below = path.strip_prefix(root)?;
                let bytes = match content {
                    Content::Held(kind, bytes) if *kind != Kind::Unknown => bytes,
                    Content::Journal(journal) => journal.bytes.as_ref()?,
                    _ => return None,
                };
                below.starts_with(".sdd/").then_some((below, (path, bytes.as_slice())))
            })
            .collect()
    }

    /// What lies beside loose receipts, as if it were in its place in a project.
    fn loose_files(&self, at: &str, receipts: &[&str]) -> Table<(&'a str, &'a [u8])> {
        let mut layout = Table::new();
        let mut journals = Vec::new();
        for (path, content) in self.session.files.iter().filter(|(path, _)| path.starts_with(at)) {
            match content {
                Content::Journal(journal) if folder(path) == at => {
                    journals.extend(journal.bytes.as_ref().map(|bytes| (path, bytes.as_slice())));
                }
                Content::Held(kind, bytes) => {
                    let place = match kind {
                        Kind::AuditDay | Kind::Packed if audit_place(path).0 == at => {
                            format!(".sdd/audit/{}", audit_place(path).1)
                        }
                        _ if folder(path) != at => continue,
                        Kind::Receipt => path.to_string(),
                        Kind::Spine => ".sdd/lineage/escalations/spine.jsonl".to_string(),
                        Kind::SpineHead => ".sdd/lineage/escalations/spine.head".to_string(),
                        Kind::PublicKey => ".sdd/identity/escalation-identity-public.pem".to_string(),
                        _ => continue,
                    };
                    layout.insert(&place, (path, bytes.as_slice()));
                }
                _ => {}
            }
        }
        // A journal does not name its run. One that is there alone is the one that is meant: its
        // hashes say whether it is.
        for receipt in receipts {
            let run = self.held(receipt).and_then(|bytes| crate::receipt::File::read(bytes).binding);
            let Some(run) = run.map(|binding| binding.run_id) else { continue };
            let journal = match journals.as_slice() {
                [journal] => Some(journal),
                several => several
                    .iter()
                    .find(|(path, _)| path.strip_prefix(at).is_some_and(|name| has(name, run.as_str()))),
            };
            if let Some(journal) = journal {
                layout.insert(&format!(".sdd/runs/{run}/journal.jsonl"), *journal);
            }
        }
        layout
    }

    fn finish(mut self) -> Composed<'a> {
        let session = self.session;
        let wrong = self.checks.iter().any(|check| check.status == Status::Fail);
        let (check, one) = self.files_check();
        let alone = one
            && !session.options.together
            && self.parts.len() == 1
            && session.archives.is_empty()
            && self.checks.is_empty();
        if alone && let Some(report) = self.parts.pop() {
            return Composed { report, forks: self.forks };
        }
        if self.parts.is_empty() && !wrong && check.status != Status::Fail {
            self.force(Verdict::Absent);
        }
        self.check(check);
        self.find_missing();
        let (parts, verdict) = (self.parts, self.verdict);
        let mut report = Report::of_parts(session.name.clone(), self.checks, parts, verdict);
        report.facts = Object::of([
            ("files", Value::from(size(session.files.len()))),
            ("missing", Value::from(self.missing.into_iter().map(Value::from).collect::<Vec<_>>())),
        ]);
        if report.verdict.exit_code() == 0 {
            report.summary = summary(&report);
        }
        Composed { report, forks: self.forks }
    }

    /// What the files are, and whether all of them are something.
    fn files_check(&self) -> (Check, bool) {
        const ID: &str = "evidence.files";
        let mut kinds: Table<usize> = Table::new();
        let (mut unknown, mut large, mut private) = (Vec::new(), Vec::new(), Vec::new());
        for (path, content) in &self.session.files {
            match content {
                Content::Held(Kind::Unknown, _) => unknown.push(path),
                Content::Held(Kind::PrivateKey, _) => private.push(path),
                Content::Held(Kind::Manifest, _) | Content::Unpacked => {}
                Content::TooLarge => large.push(path),
                Content::Ledger(_) => *kinds.get_or_default("ledger") += 1,
                Content::Steps(_) => *kinds.get_or_default("step journal") += 1,
                Content::Journal(_) => *kinds.get_or_default("event journal") += 1,
                Content::Held(kind, _) => *kinds.get_or_default(spoken(*kind)) += 1,
            }
        }
        let said: Vec<_> = kinds.iter().map(|(kind, count)| counted(size(*count), kind)).collect();
        let said = if said.is_empty() { String::from("no evidence") } else { said.join(", ") };
        let first = |paths: &[&str]| {
            let more = if paths.len() > 1 { format!(" and {} more", paths.len() - 1) } else { String::new() };
            format!("{}{more}", shown(paths[0]))
        };
        let nothing = kinds.is_empty();
        let (status, sentence) = if !private.is_empty() {
            let which = first(&private);
            let sentence =
                format!("{said}; {which} holds a private key, which was not looked at: take it away");
            (Status::Warn, sentence)
        } else if !large.is_empty() {
            (Status::NotChecked, format!("{said}; {} would have taken too much memory", first(&large)))
        } else if nothing && !unknown.is_empty() {
            let which = first(&unknown);
            (Status::Fail, format!("{which} is no evidence that this program knows, by its content"))
        } else if nothing && self.session.archives.is_empty() {
            (Status::NotApplicable, String::from("there is no evidence in it"))
        } else if !unknown.is_empty() {
            (Status::Warn, format!("{said}; not known by content, and not looked at: {}", first(&unknown)))
        } else {
            (Status::Pass, said)
        };
        (Check::new(ID, status, sentence), status == Status::Pass)
    }

    fn find_missing(&mut self) {
        let unchecked = |part: &Report, id: &str| {
            part.checks.iter().any(|check| check.id == id && check.status == Status::NotChecked)
        };
        let tags = |part: &Report| unchecked(part, "spine.hmac") || unchecked(part, "audit.hmac");
        if self.parts.iter().any(tags) {
            self.missing.push("the HMAC key: tags of the spine and the audit log were not checked".into());
        }
        let unpinned = |part: &Report| {
            part.subject.0 == "receipt"
                && part.facts.get("signer_standing").and_then(Value::as_str) == Some("unpinned")
        };
        if self.session.options.trust == Trust::Unpinned && self.parts.iter().any(unpinned) {
            self.missing.push("a pinned signer: the receipts name their own".into());
        }
        for (path, content) in &self.session.files {
            if matches!(content, Content::Journal(journal) if journal.bytes.is_none()) {
                self.missing.push(format!("room to hold {} for the receipts that speak of it", shown(path)));
            }
        }
    }
}

/// The audit log that a day's file is of, and the file's name in it.
fn audit_place(path: &str) -> (&str, String) {
    let at = folder(path);
    let name = path.strip_prefix(at).unwrap_or(path);
    match at.strip_suffix("archive/") {
        Some(root) if root.is_empty() || root.ends_with('/') => (root, format!("archive/{name}")),
        _ if name.ends_with(".gz") => (at, format!("archive/{name}")),
        _ => (at, name.to_string()),
    }
}

fn first_row(bytes: &[u8], packed: bool) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    if packed {
        let mut gunzip = Gunzip::new(u64::try_from(MAX_FIRST_ROW).unwrap_or(u64::MAX));
        for piece in bytes.chunks(64 << 10) {
            let more = gunzip.push(piece, |unpacked| start.extend_from_slice(unpacked));
            if more.is_err() || memchr::memchr(b'\n', &start).is_some() {
                break;
            }
        }
    }
    let bytes = if packed { &start } else { bytes };
    memchr::memchr(b'\n', bytes).map(|end| bytes[..end].to_vec())
}

fn summary(report: &Report) -> String {
    let of = counted(size(report.parts.len()), "subject");
    let worst = report.parts.iter().find(|part| part.verdict == report.verdict);
    let open = report.checks.iter().find(|check| check.status == Status::NotChecked);
    match (report.verdict, worst, open) {
        (Verdict::Verified, ..) => format!("{of} hold, and something outside vouches for each"),
        (Verdict::Consistent, ..) => {
            format!("{of} hold; nothing outside the evidence vouches for all of them")
        }
        (_, Some(part), _) => format!("{of}, none failed; {}: {}", part.subject.1, part.summary),
        (_, None, Some(check)) => check.sentence.clone(),
        (verdict, None, None) => format!("{of}: {}", verdict.name()),
    }
}

const fn spoken(kind: Kind) -> &'static str {
    match kind {
        Kind::Spine => "spine",
        Kind::SpineHead => "spine head",
        Kind::AuditDay | Kind::Packed => "audit day",
        Kind::Receipt => "receipt",
        Kind::Bundle => "git bundle",
        Kind::PublicKey => "public key",
        Kind::Chunk => "anchor chunk",
        Kind::AnchorMeta => "anchor description",
        _ => "file",
    }
}

fn size(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A path that may come from anywhere, short and without control characters.
pub(super) fn shown(path: &str) -> String {
    let text = json::ascii(&Value::from(path.chars().take(200).collect::<String>()));
    let text = String::from_utf8_lossy(&text);
    text.trim_matches('"').to_string()
}

/// The entries around a fork, of one side.
pub(super) fn around(side: &Side<'_>, entry: u64, run: &str) -> Vec<Entry> {
    let near = entry.saturating_sub(2)..entry.saturating_add(20);
    match &side.rows {
        Rows::Read(entries) => entries.iter().filter(|found| near.contains(&found.entry)).cloned().collect(),
        Rows::Text(None) => Vec::new(),
        Rows::Text(Some(text)) => {
            let mut found = Vec::new();
            let run = RunId::new(run).ok();
            let visit: ledger::Visitor<'_> = Box::new(|row: &ledger::Row<'_>, place: Place| {
                if near.contains(&place.entry) {
                    found.push(Entry::of(row, place));
                }
            });
            let mut walk = Walk::new(ledger::LedgerRows::new(run.as_ref(), visit));
            walk.push(text);
            drop(walk.finish(LastLine::Settled));
            found
        }
    }
}
