//! Every receipt vector gives what its `strict` says: unpinned, pinned, without the HMAC key.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use support::{case, check, files, first_failed, key, number, object, status, string, vectors, warned};
use waybill_verifier::audit::{self, Log, Start, arrange};
use waybill_verifier::chain::{LastLine, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::journal::{self, EventRows, Profile, Snapshot};
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::key::{PrivateKey, PublicKey};
use waybill_verifier::receipt::{
    self, Action, AtStall, Audit, AuditIndex, Binding, Draft, Evidence, File, ForkCommit, Journal,
    JournalView, LastEvents, Pin, Scope, Spine, SpineIndex, StallReason, Trust, TrustEntry, Unsigned,
};
use waybill_verifier::report::{Report, Status};
use waybill_verifier::spine::{self, HeadFile, SpineRows};
use waybill_verifier::tag::MasterKey;
use waybill_verifier::time::Timestamp;

/// A project folder: its files by their path in it.
#[derive(Clone, Default)]
struct Project(BTreeMap<String, Vec<u8>>);

const SPINE: &str = ".sdd/lineage/escalations/spine.jsonl";
const HEAD: &str = ".sdd/lineage/escalations/spine.head";
const IDENTITY: &str = ".sdd/identity/escalation-identity-public.pem";

impl Project {
    fn load(name: &str) -> Project {
        Project(
            files(&case("receipt", name)).into_iter().filter(|(name, _)| name.starts_with(".sdd/")).collect(),
        )
    }

    fn receipt(&self) -> String {
        let mut receipts = self.0.keys().filter(|name| name.starts_with(receipt::FOLDER));
        receipts.next().unwrap().clone()
    }

    fn journal_name(&self) -> String {
        self.0.keys().find(|name| name.starts_with(".sdd/runs/")).unwrap().clone()
    }

    fn verify(&self, key: Option<&MasterKey>, trust: &Trust) -> Report {
        self.verify_in(Scope::Project, key, trust, &ForkCommit::NotLookedAt)
    }

    fn verify_in(&self, scope: Scope, key: Option<&MasterKey>, trust: &Trust, fork: &ForkCommit) -> Report {
        let name = self.receipt();
        let receipt = File::read(&self.0[&name]);
        let run =
            receipt.binding.as_ref().map(|binding| format!(".sdd/runs/{}/journal.jsonl", binding.run_id));
        let journal = run.and_then(|run| Some((self.0.get(&run)?, run))).map(|(bytes, run)| {
            let mut walk = Walk::new(EventRows::new(JournalView::of(receipt.binding.as_ref())));
            bytes.chunks(999).for_each(|piece| walk.push(piece));
            Journal::of(&run, walk.finish(LastLine::Settled))
        });
        let spine = self.0.get(SPINE).map(|bytes| {
            let head = HeadFile::read(self.0.get(HEAD).map(Vec::as_slice));
            let mut walk = Walk::new(SpineRows::new(key, &head, SpineIndex::default()));
            walk.push(bytes);
            Spine::of((SPINE, HEAD), walk.finish(LastLine::Settled), &head)
        });
        receipt::report(&Evidence {
            file: &name,
            receipt: &receipt,
            scope,
            journal: journal.as_ref(),
            spine: spine.as_ref(),
            audit: self.audit(key).as_ref(),
            identity: self.0.get(IDENTITY).map(Vec::as_slice),
            fork_commit: fork.clone(),
            trust,
        })
    }

    fn audit(&self, key: Option<&MasterKey>) -> Option<Audit> {
        let names: Vec<&str> = self.0.keys().filter_map(|name| name.strip_prefix(".sdd/audit/")).collect();
        let folder = arrange(names);
        let mut log = Log::new(key, Start::Genesis, AuditIndex::default()).in_folder(&folder);
        for day in &folder.days {
            log.open(day);
            log.push(&self.0[&format!(".sdd/audit/{}", day.name)]);
        }
        (!folder.days.is_empty()).then(|| Audit::of(log.finish(LastLine::Settled)))
    }

    /// Pinned to whoever signed it.
    fn own_pin(&self) -> Trust {
        let file = File::read(&self.0[&self.receipt()]);
        file.signer.map_or(Trust::Unpinned, |key| Trust::Pinned(vec![Pin::Key(key)]))
    }
}

fn unpinned(project: &Project) -> Report {
    project.verify(Some(&key()), &Trust::Unpinned)
}

#[test]
fn every_vector_gives_what_strict_says() {
    for (name, _, expected) in vectors("receipt") {
        let strict = object(&expected, "strict");
        let project = Project::load(&name);
        let report = unpinned(&project);
        check(&name, strict, &report);
        if let Some(action) = string(strict, "action") {
            assert_eq!(string(&report.facts, "recommended_action"), Some(action), "{name}");
            assert!(report.facts.get("action_reading").is_some(), "{name}");
        }
        if let Some(projection) = expected.get("projection").and_then(Value::as_object) {
            for (key, value) in projection.iter() {
                assert_eq!(report.facts.get(key.as_str().unwrap()), Some(value), "{name}: {key:?}");
            }
        }
        let id = report.subject.1.clone();
        if number(strict, "exit") == Some(0) {
            assert_eq!(Some(id.as_str()), string(&expected, "receipt_id"), "{name}");
            assert_eq!(status(&report, "receipt.signer"), Status::Warn, "{name}: unpinned warns");
            let pinned = project.verify(Some(&key()), &project.own_pin());
            assert_eq!(warned(&pinned), strict.get("warn").is_some(), "{name}: {:?}", pinned.checks);
            let verdict = if name.starts_with("ok-degraded") { "degraded" } else { "verified" };
            assert_eq!(pinned.verdict.name(), verdict, "{name}");
        }
        if let Some(with) = strict.get("with_pinned_key").and_then(Value::as_object) {
            let pin = PublicKey::from_file(&project.0[string(with, "file").unwrap()]).unwrap();
            for pin in [Pin::Key(pin), Pin::Fingerprint(pin.fingerprint())] {
                let report = project.verify(Some(&key()), &Trust::Pinned(vec![pin]));
                assert_eq!(Some(u64::from(report.verdict.exit_code())), number(with, "exit"), "{name}");
                assert_eq!(first_failed(&report).unwrap().id, "receipt.signer", "{name}");
            }
        }
    }
}

#[test]
fn without_the_hmac_key_tags_are_not_checked_and_it_reads_incomplete() {
    for (name, _, expected) in vectors("receipt") {
        let strict = object(&expected, "strict");
        let report = Project::load(&name).verify(None, &Trust::Unpinned);
        if number(strict, "exit") == Some(0) || name == "bad-spine-hmac" {
            assert_eq!(report.verdict.name(), "incomplete", "{name}: {:?}", first_failed(&report));
            assert_eq!(status(&report, "spine.hmac"), Status::NotChecked, "{name}");
            assert_eq!(status(&report, "receipt.anchor"), Status::Pass, "{name}");
        } else {
            check(&name, strict, &report);
        }
    }
}

#[test]
fn checks_come_in_their_order_whatever_fails() {
    const ORDER: [&str; 13] = [
        "receipt.form",
        "receipt.signature",
        "receipt.signer",
        "receipt.id",
        "spine.chain",
        "spine.hmac",
        "spine.head",
        "receipt.anchor",
        "journal.chain",
        "receipt.window",
        "receipt.fork",
        "receipt.action",
        "audit.mirror",
    ];
    let broken = Project([(format!("{}x.json", receipt::FOLDER), b"{".to_vec())].into());
    let projects = vectors("receipt").into_iter().map(|(name, ..)| Project::load(&name)).chain([broken]);
    for project in projects {
        let ids: Vec<_> = unpinned(&project).checks.iter().map(|check| check.id).collect();
        assert_eq!(ids, ORDER);
    }
}

#[test]
fn the_first_failing_check_is_the_rule_s_own() {
    for (name, id) in [
        ("bad-anchor-hash", "receipt.anchor"),
        ("bad-degraded-but-journal-exists", "receipt.window"),
        ("bad-field-run-id", "receipt.signature"),
        ("bad-field-v", "receipt.form"),
        ("bad-fork-sha", "receipt.signature"),
        ("bad-journal-missing", "journal.chain"),
        ("bad-small-order-key", "receipt.signature"),
        ("bad-spine-edit", "spine.chain"),
        ("bad-spine-hmac", "spine.hmac"),
        ("bad-spine-missing", "spine.chain"),
        ("bad-spine-truncated", "spine.head"),
        ("bad-unsigned-field", "receipt.form"),
    ] {
        assert_eq!(first_failed(&unpinned(&Project::load(name))).unwrap().id, id, "{name}");
    }
}

#[test]
fn alone_it_is_incomplete_and_nothing_of_it_reads_as_a_pass() {
    for name in ["ok-full-window", "ok-degraded-journal-missing"] {
        let mut project = Project::load(name);
        let receipt = project.receipt();
        project.0.retain(|name, _| *name == receipt);
        let report =
            project.verify_in(Scope::Alone, Some(&key()), &project.own_pin(), &ForkCommit::NotLookedAt);
        assert_eq!(report.verdict.name(), "incomplete", "{name}");
        for id in
            ["spine.chain", "spine.hmac", "spine.head", "receipt.anchor", "journal.chain", "receipt.window"]
        {
            assert_eq!(status(&report, id), Status::NotChecked, "{name}: {id}");
        }
        assert_eq!(status(&report, "receipt.signature"), Status::Pass, "{name}");
        assert_eq!(project.verify(Some(&key()), &Trust::Unpinned).verdict.name(), "failed", "{name}");
    }
}

#[test]
fn each_changed_byte_of_a_receipt_fails() {
    let project = Project::load("ok-full-window");
    let (name, key) = (project.receipt(), key());
    let length = project.0[&name].len();
    for at in 0..length {
        let mut changed = project.clone();
        changed.0.get_mut(&name).unwrap()[at] ^= 1;
        let report = changed.verify(Some(&key), &Trust::Unpinned);
        let failed = first_failed(&report).unwrap_or_else(|| panic!("byte {at}"));
        let expect = ["receipt.form", "receipt.signature", "receipt.anchor"];
        assert!(expect.contains(&failed.id), "byte {at}: {failed:?}");
    }
    for cut in 0..length {
        let mut changed = project.clone();
        changed.0.get_mut(&name).unwrap().truncate(cut);
        assert_eq!(
            first_failed(&changed.verify(None, &Trust::Unpinned)).unwrap().id,
            "receipt.form",
            "cut {cut}"
        );
    }
}

#[test]
fn each_covered_field_of_each_event_up_to_the_window_s_end_fails() {
    let project = Project::load("ok-journal-grew-since");
    let name = project.journal_name();
    let text = String::from_utf8(project.0[&name].clone()).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    let end = File::read(&project.0[&project.receipt()]).binding.unwrap().end().unwrap();
    assert!(rows.len() > usize::try_from(end).unwrap());
    for (index, row) in rows.iter().enumerate().take(usize::try_from(end).unwrap()) {
        let object = json::parse(row.as_bytes()).unwrap().as_object().unwrap().clone();
        for (key_name, _) in object.iter() {
            let key_name = key_name.as_str().unwrap();
            let mut altered = object.clone();
            let changed = match altered.get(key_name) {
                Some(Value::String(text)) if text.as_wtf8().len() == 64 => {
                    Value::from(Digest::of(b"").to_hex())
                }
                Some(Value::String(_)) => Value::from("changed"),
                _ => Value::from(4),
            };
            if Some(&changed) == altered.get(key_name) {
                continue;
            }
            altered.insert(key_name.into(), changed);
            let altered = String::from_utf8(json::ascii(&Value::from(altered))).unwrap();
            let mut lines = rows.clone();
            lines[index] = &altered;
            let mut changed = project.clone();
            changed.0.insert(name.clone(), lines.join("\n").into_bytes());
            let report = unpinned(&changed);
            if matches!(key_name, "ts" | "elapsed_s") {
                assert_eq!(report.verdict.name(), "consistent", "{index} {key_name}");
                assert!(report.does_not_establish.iter().any(|line| line.contains(key_name)));
            } else {
                let failed = first_failed(&report).unwrap_or_else(|| panic!("{index} {key_name}"));
                assert_eq!(failed.id, "journal.chain", "{index} {key_name}");
                let place = failed.at.as_ref().unwrap().place.unwrap();
                assert_eq!(usize::try_from(place.entry).unwrap(), index, "{key_name}");
            }
        }
    }
}

#[test]
fn each_changed_byte_of_spine_and_head_fails() {
    let project = Project::load("ok-short-window");
    let key = key();
    for name in [SPINE, HEAD] {
        for at in 0..project.0[name].len() {
            let mut changed = project.clone();
            changed.0.get_mut(name).unwrap()[at] ^= 1;
            let report = changed.verify(Some(&key), &Trust::Unpinned);
            let failed = first_failed(&report).unwrap_or_else(|| panic!("{name} byte {at}"));
            let expect: &[&str] = if name == HEAD { &["spine.head"] } else { &["spine.chain", "spine.hmac"] };
            assert!(expect.contains(&failed.id), "{name} byte {at}: {failed:?}");
        }
    }
}

#[test]
fn the_fork_point_is_looked_for_in_the_repository_too() {
    let project = Project::load("ok-full-window");
    let sha = "a103b994980fe0ee1b32e55fedfb706959fea80b";
    for (fork, expect) in [
        (ForkCommit::NotLookedAt, Status::Pass),
        (ForkCommit::At(String::from(sha)), Status::Pass),
        (ForkCommit::At("0".repeat(40)), Status::Fail),
        (ForkCommit::Missing, Status::Fail),
    ] {
        let report = project.verify_in(Scope::Project, Some(&key()), &Trust::Unpinned, &fork);
        assert_eq!(status(&report, "receipt.fork"), expect, "{fork:?}");
    }
}

#[test]
fn a_trust_file_names_limits_and_revokes_signers() {
    let project = Project::load("ok-full-window");
    let signer = File::read(&project.0[&project.receipt()]).signer.unwrap();
    let entry = TrustEntry {
        name: String::from("ops"),
        key: Pin::Key(signer),
        valid_from: None,
        valid_until: None,
        revoked: false,
    };
    let other = TrustEntry { key: Pin::Key(PublicKey::from_bytes([7; 32])), ..entry.clone() };
    let time = 1_795_977_009;
    for (entries, verdict, expect) in [
        (vec![entry.clone()], "verified", Status::Pass),
        (vec![other.clone(), entry.clone()], "verified", Status::Pass),
        (vec![other], "consistent", Status::Warn),
        (vec![], "consistent", Status::Warn),
        (vec![TrustEntry { revoked: true, ..entry.clone() }], "failed", Status::Fail),
        (vec![entry.clone(), TrustEntry { revoked: true, ..entry.clone() }], "failed", Status::Fail),
        (
            vec![TrustEntry { valid_from: Some(time), valid_until: Some(time), ..entry.clone() }],
            "verified",
            Status::Pass,
        ),
        (vec![TrustEntry { valid_from: Some(time + 1), ..entry.clone() }], "failed", Status::Fail),
        (vec![TrustEntry { valid_until: Some(time - 1), ..entry.clone() }], "failed", Status::Fail),
        (
            vec![TrustEntry { valid_until: Some(time - 1), ..entry.clone() }, entry.clone()],
            "verified",
            Status::Pass,
        ),
    ] {
        let report = project.verify(Some(&key()), &Trust::Store(entries.clone()));
        assert_eq!(
            (report.verdict.name(), status(&report, "receipt.signer")),
            (verdict, expect),
            "{entries:?}"
        );
    }
}

#[test]
fn a_pinned_signer_of_a_broken_signature_vouches_for_nothing() {
    let project = Project::load("bad-signature-bit");
    let report = project.verify(Some(&key()), &project.own_pin());
    assert_eq!(report.verdict.name(), "failed");
    assert_eq!(first_failed(&report).unwrap().id, "receipt.signature");
}

#[test]
fn spine_entries_whose_receipt_is_gone_are_listed() {
    let project = Project::load("ok-full-window");
    let head = HeadFile::Missing;
    let mut walk = Walk::new(SpineRows::new(None, &head, SpineIndex::default()));
    walk.push(&project.0[SPINE]);
    let index = walk.finish(LastLine::Settled).rows.visitor;
    assert_eq!(index.receipts_gone(|_| true), []);
    let gone = index.receipts_gone(|_| false);
    assert_eq!(gone[0].path(), project.receipt());
}

#[test]
fn the_mirror_event_is_compared_and_a_damaged_log_is_said() {
    let project = Project::load("ok-audit-mirrored");
    assert_eq!(status(&unpinned(&project), "audit.mirror"), Status::Pass);
    assert_eq!(status(&project.verify(None, &Trust::Unpinned), "audit.mirror"), Status::NotChecked);
    let damage = |name: &str| {
        let mut damaged = project.clone();
        damaged.0.get_mut(name).unwrap()[20] ^= 1;
        status(&unpinned(&damaged), "audit.mirror")
    };
    assert_eq!(damage(".sdd/audit/2026-11-28.jsonl"), Status::Fail);
    assert_eq!(damage(".sdd/audit/2026-11-27.jsonl"), Status::Warn);
    let mut contradicted = Project::load("warn-audit-without-mirror");
    let file = File::read(&contradicted.0[&contradicted.receipt()]);
    let mut unsigned = Unsigned::new(file.binding.unwrap()).unwrap().binding().clone();
    unsigned.recommended_action = Action::Park;
    let draft = Unsigned::new(unsigned).unwrap().mirror(&file.entry_hash.unwrap()).draft(time());
    let (row, _) = audit::next(&key(), &Digest::ZERO, &draft);
    contradicted.0.insert(String::from(".sdd/audit/2026-11-28.jsonl"), [row, b"\n".to_vec()].concat());
    assert_eq!(status(&unpinned(&contradicted), "audit.mirror"), Status::Warn);
}

fn time() -> Timestamp {
    Timestamp::parse("2026-11-28T00:00:01.000000Z").unwrap()
}

/// Makes a project as a writer does: journal, binding, signature, spine, head, receipt, mirror.
fn emit(
    events: &[(&str, Object)],
    profile: Profile,
    change: impl FnOnce(&mut Draft<'_>, &LastEvents),
) -> Project {
    let mut project = Project::default();
    let run = RunId::new("run-9").unwrap();
    let (mut bytes, mut prev) = (Vec::new(), None);
    for (index, (event, fields)) in (0..).zip(events) {
        let draft = journal::Draft { event, fields, ts: 1.5, elapsed_s: 0.5 };
        let (row, hash) = journal::next(profile, (index, prev.as_ref()), &draft).unwrap();
        bytes.extend([row, b"\n".to_vec()].concat());
        prev = Some(hash);
    }
    let mut walk = Walk::new(EventRows::new(LastEvents::default()));
    walk.push(&bytes);
    let last = walk.finish(LastLine::Settled).rows.visitor;
    let mut draft = Draft {
        run_id: &run,
        worker_id: "wörker \u{7f}",
        session_id: "",
        worktree_id: "wt",
        install_rev: "rev",
        stall_reason: StallReason::NoProgress,
        respawn_budget_remaining: 2,
        timestamp: 1_800_000_000,
        fork_ref: None,
        extra: None,
        journal: AtStall::Journal(&last),
    };
    change(&mut draft, &last);
    if !matches!(draft.journal, AtStall::Missing) {
        project.0.insert(String::from(".sdd/runs/run-9/journal.jsonl"), bytes);
    }
    let signer = PrivateKey::from_seed(&zeroize::Zeroizing::new([9; 32]));
    let unsigned = Unsigned::new(draft.binding()).unwrap();
    let (row, entry_hash) = spine::next(&key(), None, &unsigned.spine_draft());
    let file = unsigned.file(&signer.public(), &signer.sign(unsigned.bytes()), &entry_hash);
    let (event, _) = audit::next(&key(), &Digest::ZERO, &unsigned.mirror(&entry_hash).draft(time()));
    for (name, bytes) in [
        (unsigned.id().path(), file),
        (String::from(SPINE), [row, b"\n".to_vec()].concat()),
        (String::from(HEAD), spine::head(&key(), 1, Some(&entry_hash))),
        (String::from(IDENTITY), signer.public().to_pem().into_bytes()),
        (String::from(".sdd/audit/2026-11-28.jsonl"), [event, b"\n".to_vec()].concat()),
    ] {
        project.0.insert(name, bytes);
    }
    project
}

#[track_caller]
fn verified(project: &Project, verdict: &str, action: &str) -> Report {
    let report = project.verify(Some(&key()), &project.own_pin());
    assert_eq!(report.verdict.name(), verdict, "{:?}", first_failed(&report));
    assert_eq!(string(&report.facts, "recommended_action"), Some(action));
    assert_eq!(status(&report, "audit.mirror"), Status::Pass);
    report
}

#[test]
fn what_is_emitted_verifies() {
    let none = Object::default;
    let many: Vec<_> = (0..40).map(|_| ("tool_call", none())).collect();
    let report = verified(&emit(&many, Profile::PyJsonV1, |_, _| {}), "verified", "respawn");
    assert_eq!(number(&report.facts, "window_size"), Some(16));
    assert_eq!(number(&report.facts, "from_step"), Some(24));
    let failing = [("a.failed", none()), ("Über.ERROR", none())];
    verified(&emit(&failing, Profile::JcsV2, |_, _| {}), "verified", "escalate");
    let typed = [("x", Object::of([("event_type", Value::from("Policy.check"))]))];
    let report = verified(&emit(&typed, Profile::JcsV2, |_, _| {}), "verified", "escalate");
    assert_eq!(string(&report.facts, "action_reading"), Some("both"));
    let forked = [("x", none()), (Snapshot::EVENT, Snapshot { sha: "abc", step: 5 }.fields())];
    let project = emit(&forked, Profile::PyJsonV1, |draft, last| {
        assert_eq!(last.fork(draft.run_id, 6), None);
        draft.fork_ref = last.fork(draft.run_id, 5);
        draft.extra = Some(Object::of([("ü", Value::from(vec![Value::from(1)]))]));
        draft.stall_reason = StallReason::IntentDrift;
    });
    let report = verified(&project, "verified", "inspect");
    assert_eq!(string(&report.facts, "fork_snapshot_sha"), Some("abc"));
    verified(&emit(&[], Profile::PyJsonV1, |_, _| {}), "degraded", "respawn");
    verified(
        &emit(&[], Profile::PyJsonV1, |draft, _| draft.journal = AtStall::Missing),
        "degraded",
        "respawn",
    );
}

#[test]
fn two_operators_with_the_same_prefix_make_the_same_receipt() {
    let file = |name: &str| {
        let project = Project::load(name);
        (File::read(&project.0[&project.receipt()]), project)
    };
    let (receipt, project) = file("ok-full-window");
    let binding: Binding = receipt.binding.clone().unwrap();
    let mut walk = Walk::new(EventRows::new(LastEvents::default()));
    walk.push(&project.0[&project.journal_name()]);
    let last = walk.finish(LastLine::Settled).rows.visitor;
    let remade = |worker: &str| {
        let draft = Draft {
            run_id: &binding.run_id,
            worker_id: worker,
            session_id: &binding.session_id,
            worktree_id: &binding.worktree_id,
            install_rev: &binding.install_rev,
            stall_reason: binding.stall_reason,
            respawn_budget_remaining: binding.respawn_budget_remaining,
            timestamp: binding.timestamp,
            fork_ref: last.fork(&binding.run_id, 3),
            extra: None,
            journal: AtStall::Journal(&last),
        };
        Unsigned::new(draft.binding()).unwrap()
    };
    // Remade by us from the reference's journal, it is the reference's receipt, byte for byte.
    assert_eq!(Some(remade("worker-1").id()), receipt.id());
    let other = remade("worker-2");
    assert_ne!(Some(other.id()), receipt.id());
    assert_eq!(other.binding().window, binding.window);
    assert_eq!(other.binding().recommended_action, binding.recommended_action);
}

#[test]
fn each_rule_of_form_is_named() {
    let project = Project::load("ok-full-window");
    let name = project.receipt();
    let good = json::parse(&project.0[&name]).unwrap().as_object().unwrap().clone();
    let fork = |key: &str, value: Value| {
        let mut fork = good.get("fork_ref").unwrap().as_object().unwrap().clone();
        fork.insert(key.into(), value);
        Value::from(fork)
    };
    let text = |text: &str| json::parse(text.as_bytes()).unwrap();
    let x25519 = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEAwJ4uOSxCNM6rv/LBbSOt8V3yqPLiA2Wzf7ECNqSvUwg=\n-----END PUBLIC KEY-----\n";
    for (key, value, says) in [
        ("approved", Value::from(1), "\"approved\" is no field"),
        ("journal_state", Value::from("present"), "`journal_state` is not missing or empty"),
        ("journal_state", Value::Null, "`journal_state` is not missing or empty"),
        ("journal_state", Value::from("missing"), "and yet there is a window"),
        ("extra_binding", Value::from(vec![]), "`extra_binding` is not an object"),
        ("fork_ref", Value::from("x"), "`fork_ref` is not an object or null"),
        ("fork_ref", fork("approved", Value::from(1)), "\"approved\" is no field"),
        ("fork_ref", fork("fork_step", text("3.0")), "`fork_step` is not an integer"),
        ("from_step", text("-1"), "`from_step` is not an integer"),
        ("from_step", text("16.0"), "`from_step` is not an integer"),
        ("from_step", text("true"), "`from_step` is not an integer"),
        ("from_step", text("18446744073709551616"), "`from_step` is not an integer"),
        ("journal_head_at_stall", Value::from("X"), "`journal_head_at_stall` is not 64"),
        ("journal_entry_hash", Value::from("0".repeat(64)), "`journal_entry_hash` is not sha256:"),
        ("recommended_action", Value::from("Park"), "`recommended_action` is none that is known"),
        ("stall_reason", Value::from(""), "`stall_reason` is none that is known"),
        ("run_id", Value::from("../x"), "`run_id`: a run id is"),
        ("session_id", Value::from(1), "`session_id` is not a string"),
        ("install_rev", Value::Null, "`install_rev` is not a string"),
        ("v", Value::from(2), "`v` is not 1"),
        ("v", text("1.0"), "`v` is not an integer"),
        ("window_entry_hashes", Value::from("x"), "`window_entry_hashes` is not an array"),
        ("window_entry_hashes", Value::from(vec![Value::from("x")]), "`window_entry_hashes` is not 64"),
        ("signature", Value::from("AA"), "`signature` is not 64 bytes"),
        ("signature", Value::Null, "`signature` is not 64 bytes"),
        ("signer_public_key_pem", Value::from(""), "`signer_public_key_pem`: no PEM block"),
        ("signer_public_key_pem", Value::from(x25519), "it is an X25519 key"),
        ("worker_id", text("\"\\ud800\""), "a lone surrogate"),
    ] {
        let mut object = good.clone();
        object.insert(key.into(), value);
        let value = Value::from(object);
        // A lone surrogate has no canonical bytes; any bytes serve to show that it is said.
        let bytes = json::encode(json::Encoding::Utf8, &value).unwrap_or_else(|_| json::ascii(&value));
        let mut changed = project.clone();
        changed.0.insert(name.clone(), bytes);
        let report = unpinned(&changed);
        let failed = first_failed(&report).unwrap_or_else(|| panic!("{key}"));
        assert_eq!(failed.id, "receipt.form", "{key}");
        assert!(failed.sentence.contains(says), "{key}: {}", failed.sentence);
    }
    for missing in good.iter().map(|(key, _)| key.as_str().unwrap()) {
        let mut object = good.clone();
        object.remove(missing);
        let mut changed = project.clone();
        let bytes = json::encode(json::Encoding::Utf8, &Value::from(object)).unwrap();
        changed.0.insert(name.clone(), bytes);
        let failed = unpinned(&changed);
        let failed = first_failed(&failed).unwrap();
        assert!(failed.id == "receipt.form" && failed.sentence.contains("is missing"), "{missing}");
    }
    let twice = String::from_utf8(project.0[&name].clone()).unwrap().replacen('{', "{\"v\":1,", 1);
    for (bytes, says) in [
        (twice.into_bytes(), "an object key stands twice"),
        (b"[]".to_vec(), "no JSON object"),
        (b"".to_vec(), "not one complete JSON text"),
        (vec![b' '; receipt::MAX_FILE + 1], "longer than"),
    ] {
        let mut changed = project.clone();
        changed.0.insert(name.clone(), bytes);
        let report = unpinned(&changed);
        assert!(first_failed(&report).unwrap().sentence.contains(says), "{says}");
    }
}

#[test]
fn the_same_evidence_gives_the_same_bytes() {
    let project = Project::load("ok-full-window");
    let first = unpinned(&project).to_json();
    assert_eq!(first, unpinned(&project).to_json());
    let text = String::from_utf8(first).unwrap();
    assert!(!text.contains("signature\": \"") && text.contains("receipt.signature"));
}
