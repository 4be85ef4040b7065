//! The gate on real repositories.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::anchors::{Host, World};
use crate::help::{Report, Said, is_explained, report};

const RUN: &str = "goal-42";
const REF: &str = "refs/bernstein/work-ledger/goal-42";
const SIDE: [&str; 2] = [
    "+refs/bernstein/work-ledger/*:refs/bernstein/work-ledger/*",
    "+refs/waybill/aside/*:refs/waybill/aside/*",
];

impl World {
    /// A remote whose main has the heads of one run, and the clone that recorded it.
    fn gated(&self, policy: &str) -> Host<'_> {
        self.remote();
        let host = self.clone("host", &[]).opened();
        host.git(&["config", "remote.origin.push", "refs/heads/*:refs/heads/*"]);
        fs::write(host.folder.join(".gitignore"), ".sdd\n").unwrap();
        fs::create_dir(host.folder.join(".waybill")).unwrap();
        if !policy.is_empty() {
            fs::write(host.folder.join(".waybill/policy.toml"), policy).unwrap();
        }
        host.ok(&["ledger", "anchor", RUN]);
        host.ok(&["check", "--update"]);
        host.commit("heads");
        host.publish();
        host
    }

    /// What a CI job has: a clone with the side refs, and no records of its own.
    fn job(&self, name: &str) -> Host<'_> {
        let job = self.clone(name, &[]);
        job.git(&[&["fetch", "-q", "origin"][..], &SIDE].concat());
        job
    }
}

impl Host<'_> {
    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn publish(&self) {
        let refs =
            ["+HEAD:refs/heads/main", "+refs/bernstein/*:refs/bernstein/*", "+refs/waybill/*:refs/waybill/*"];
        self.git(&[&["push", "-q", "origin"][..], &refs].concat());
    }

    fn check(&self, more: &[&str]) -> Report {
        report(&self.run(&[&["check", "--json"][..], more].concat()))
    }

    /// The heads file that is here.
    fn heads(&self) -> String {
        fs::read_to_string(self.folder.join(".waybill/heads.json")).unwrap()
    }

    /// Makes the anchor of a run one whose tree was edited by hand: `edit` gets its rows.
    fn forge(&self, reference: &str, edit: impl FnOnce(String) -> String) {
        let rows = self.git(&["cat-file", "blob", &format!("{reference}:chunk-000000.jsonl")]);
        let blob = self.object("blob", edit(rows).as_bytes());
        let listed = self.git(&["ls-tree", reference]);
        let tree: String = listed
            .lines()
            .map(|line| match line.ends_with("\tchunk-000000.jsonl") {
                true => format!("100644 blob {blob}\tchunk-000000.jsonl\n"),
                false => format!("{line}\n"),
            })
            .collect();
        let tree = self.pipe(&["mktree"], tree.as_bytes());
        let old = self.git(&["rev-parse", &format!("{reference}^{{tree}}")]);
        let commit = self.git(&["cat-file", "commit", reference]).replace(old.trim(), tree.trim());
        let commit = self.object("commit", commit.as_bytes());
        self.git(&["update-ref", reference, &commit]);
    }

    fn object(&self, kind: &str, bytes: &[u8]) -> String {
        self.pipe(&["hash-object", "-w", "--literally", "-t", kind, "--stdin"], bytes).trim().to_owned()
    }

    fn pipe(&self, arguments: &[&str], bytes: &[u8]) -> String {
        let mut command = self.world.command(std::process::Command::new("git"));
        let command = command.current_dir(&self.folder).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let said: Said = child.wait_with_output().unwrap().into();
        assert_eq!(said.code, Some(0), "git {arguments:?}: {said:?}");
        said.out
    }

    /// Records the run anew, with the same kinds of entries and other hashes.
    fn record_anew(&self, payload: &str) {
        fs::remove_dir_all(self.folder.join(".sdd/runtime/ledger").join(RUN)).unwrap();
        self.git(&["update-ref", "-d", REF]);
        self.ok(&["ledger", "open", RUN]);
        for kind in ["task.scheduled", "task.started"] {
            self.ok(&["ledger", "append", RUN, "--kind", kind, "--task", "t0", "--payload", payload]);
        }
        self.ok(&["ledger", "anchor", RUN]);
    }
}

/// The gate's own check of a name that did not pass.
fn open<'a>(report: &'a Report, id: &str) -> &'a Value {
    let mut checks = report.0["checks"].as_array().unwrap().iter();
    let found = checks.find(|check| check["id"] == id && check["status"] != "pass");
    found.unwrap_or_else(|| panic!("{id}: {report:?}"))
}

/// All checks, those of the subjects too.
fn all(report: &Report) -> Vec<&Value> {
    let parts = report.0["subjects"].as_array().into_iter().flatten();
    let parts = parts.flat_map(|part| part["checks"].as_array().unwrap());
    report.0["checks"].as_array().unwrap().iter().chain(parts).collect()
}

#[test]
fn what_holds_passes_and_goes_on() {
    let world = World::new();
    let host = world.gated("require = [\"anchored\"]\n");
    let job = world.job("job");
    let found = job.check(&["--base", "origin/main"]);
    assert_eq!(found.verdict(), "consistent", "{found:?}");
    assert_eq!((&found.0["facts"]["entries"], &found.0["facts"]["runs"]), (&Value::from(3), &Value::from(1)));
    assert_eq!(found.check("gate.base")["status"], "pass");
    let said = job.ok(&["check"]).out;
    assert!(said.starts_with("CONSISTENT  gate repository\n1 subject held, none rewritten\n"), "{said}");
    assert!(!said.contains("PASS") && said.lines().count() < 10, "{said}");
    assert!(
        said.contains("CONSISTENT   anchor refs/bernstein/work-ledger/goal-42: 3 entries anchored"),
        "{said}"
    );
    assert_eq!(job.ok(&["check", "--quiet"]).out, "");
    // The ledger goes on, and the heads that were merged are still entries of it.
    host.append("task.completed", "t0");
    host.ok(&["ledger", "anchor", RUN]);
    host.publish();
    job.git(&["fetch", "-q", "origin", SIDE[0]]);
    let found = job.check(&[]);
    assert_eq!(found.verdict(), "consistent");
    assert_eq!(open(&found, "gate.heads")["status"], "warn");
    // A gc makes other commits of the same rows.
    host.ok(&["ledger", "gc", RUN]);
    host.publish();
    job.git(&["fetch", "-q", "origin", SIDE[0]]);
    assert_eq!(job.check(&[]).verdict(), "consistent");
    let mut known = BTreeSet::new();
    is_explained(&found, &mut known);
}

#[test]
fn a_changed_entry_is_named() {
    let world = World::new();
    let host = world.gated("");
    host.forge(REF, |rows| rows.replacen("task.scheduled", "task.abandoned", 1));
    host.publish();
    let found = world.job("job").check(&[]);
    assert_eq!(found.verdict(), "failed");
    let checks = all(&found);
    let chain = checks.iter().find(|check| check["id"] == "anchor.chain").unwrap();
    assert_eq!(
        (&chain["fault"], &chain["at"]["entry"]),
        (&Value::from("entry_hash_mismatch"), &Value::from(1))
    );
}

#[test]
fn a_ledger_and_its_anchor_may_not_diverge() {
    let world = World::new();
    let host = world.gated("");
    let rows = fs::read_to_string(host.ledger()).unwrap();
    let kept: String = rows.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(host.ledger(), kept).unwrap();
    host.ok(&["ledger", "append", RUN, "--kind", "task.failed", "--task", "t0", "--accept-loss"]);
    let said = host.run(&["check", "--json"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(report(&said).verdict(), "diverged");
    let text = host.run(&["check"]).out;
    assert!(text.starts_with("DIVERGED  gate repository\n"), "{text}");
    assert!(text.contains("\nFAIL         ledger.anchored: diverged at entry 2"), "{text}");
}

#[test]
fn a_rewritten_ledger_that_holds_is_refused_and_a_settled_one_is_not() {
    let world = World::new();
    let host = world.gated("");
    let old = world.clone("other", &[]);
    old.ok(&["ledger", "fetch", RUN]);
    host.record_anew("{\"other\":1}");
    host.ok(&["check", "--update"]);
    host.commit("rewritten");
    host.publish();
    let job = world.job("job");
    // By itself all is well: only the base knows.
    assert_eq!(job.check(&["--base", "HEAD"]).verdict(), "consistent");
    let base = job.git(&["rev-parse", "HEAD~1"]);
    let found = job.check(&["--base", base.trim()]);
    assert_eq!(found.verdict(), "failed");
    assert_eq!(open(&found, "gate.base")["fault"], "history_rewritten");
    let said = job.run(&["check", "--base", base.trim(), "--format", "github"]).out;
    assert!(
        said.contains("is no entry of it any more")
            && said.starts_with("::error file=.waybill/heads.json,line=1")
    );
    let mut known = BTreeSet::new();
    is_explained(&found, &mut known);

    // Two machines went on, somebody kept one, and the other is aside.
    let world = World::new();
    let host = world.gated("");
    let other = world.clone("other", &[]);
    other.ok(&["ledger", "fetch", RUN]);
    for (host, task) in [(&host, "a"), (&other, "b")] {
        host.append("task.started", task);
        host.ok(&["ledger", "anchor", RUN]);
    }
    host.ok(&["check", "--update"]);
    host.commit("a goes on");
    host.publish();
    other.fails(3, &["diverged at entry 3"], &["ledger", "fetch", RUN]);
    other.ok(&["ledger", "diff", RUN, "--remote", "origin", "--keep", "local"]);
    other.ok(&["ledger", "push", RUN]);
    let job = world.job("job");
    let found = job.check(&[]);
    let settled = open(&found, "gate.base");
    assert_eq!(settled["status"], "warn", "{found:?}");
    assert!(settled["sentence"].as_str().unwrap().contains("kept in refs/waybill/aside/goal-42/"));
    assert_eq!(found.verdict(), "failed", "its own heads are not those of the lineage that was kept");
    job.git(&["switch", "-q", "-c", "settle"]);
    job.ok(&["check", "--update"]);
    assert_eq!(job.check(&["--base", "origin/main"]).verdict(), "consistent");
    // Under a policy that wants no such thing, it fails.
    let strict = job.folder.join("strict.toml");
    fs::write(&strict, "settled = \"fail\"\n").unwrap();
    assert_eq!(job.check(&["--policy", strict.to_str().unwrap()]).verdict(), "failed");
    // Without the side ref of what was set aside, it is a rewrite.
    job.git(&[
        "update-ref",
        "-d",
        job.git(&["for-each-ref", "--format=%(refname)", "refs/waybill/aside"]).trim(),
    ]);
    assert_eq!(open(&job.check(&[]), "gate.base")["fault"], "history_rewritten");
}

#[test]
fn what_is_missing_fails_unless_the_base_s_policy_says_otherwise() {
    let world = World::new();
    let host = world.gated("");
    let job = world.clone("job", &[]);
    let found = job.check(&[]);
    assert_eq!(found.verdict(), "failed");
    assert!(open(&found, "gate.base")["sentence"].as_str().unwrap().contains("fetch its ref"));
    // A policy that asks for less counts once it is on the base, and not before.
    fs::write(job.folder.join(".waybill/policy.toml"), "missing = \"pass\"\n").unwrap();
    job.commit("less");
    let found = job.check(&["--base", "origin/main"]);
    assert_eq!(found.verdict(), "failed");
    assert_eq!(open(&found, "gate.policy")["status"], "not_applicable");
    let warned =
        all(&found).into_iter().any(|check| check["id"] == "gate.policy" && check["status"] == "warn");
    assert!(warned, "{found:?}");
    assert_eq!(job.check(&["--base", "HEAD"]).verdict(), "empty");
    // A heads file that is taken away.
    let job = world.job("taken");
    job.git(&["rm", "-q", ".waybill/heads.json"]);
    job.commit("away");
    let found = job.check(&["--base", "origin/main"]);
    assert_eq!((found.verdict(), &open(&found, "gate.heads")["status"]), ("failed", &Value::from("fail")));
    // A repository that never had a ledger: a gate that looks at nothing does not pass.
    let bare = world.host("none", &["init", "-q"]);
    assert_eq!(open(&bare.check(&[]), "gate.runs")["status"], "fail");
    // A run that the policy does not name is not looked at, whatever it holds.
    fs::write(host.ledger(), "broken\n").unwrap();
    let only = host.folder.join("only.toml");
    fs::write(&only, "runs = [\"release-*\"]\nmissing = \"pass\"\n").unwrap();
    let found = host.check(&["--policy", only.to_str().unwrap()]);
    assert_eq!((found.verdict(), &found.0["facts"]["runs"]), ("consistent", &Value::from(0)));
}

#[test]
fn receipts_are_held_against_the_base_s_signers() {
    let world = World::new();
    let host = world.gated("");
    host.ok(&["keys", "init"]);
    let shown = host.json(&["keys", "show"]);
    let ours = shown["fingerprint"].as_str().unwrap().to_owned();
    host.ok(&["journal", "record", RUN, "--event", "worker.started"]);
    host.ok(&["escalation", "emit", RUN, "--worker", "w1", "--reason", "heartbeat_stale"]);
    let other = "SHA256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg";
    let policy = host.folder.join("policy.toml");
    for (text, verdict, standing) in [
        ("", "consistent", "warn"),
        (&*format!("signers = [\"{other}\"]"), "failed", "fail"),
        (
            &format!("signers = [\"{ours}\"]\nrequire = [\"pinned\", \"complete\", \"hmac\"]"),
            "consistent",
            "pass",
        ),
        ("require = [\"pinned\"]", "failed", "warn"),
    ] {
        fs::write(&policy, text).unwrap();
        let found = host.check(&["--policy", policy.to_str().unwrap()]);
        assert_eq!(found.verdict(), verdict, "{text}: {found:?}");
        let signer = all(&found).into_iter().find(|check| check["id"] == "receipt.signer").unwrap();
        assert_eq!(signer["status"], standing, "{text}");
        assert_eq!(found.0["facts"]["signers"], serde_json::json!([ours]));
    }
    // What asks to be merged names itself as a signer: the base's word counts.
    fs::write(host.folder.join(".waybill/policy.toml"), format!("signers = [\"{other}\"]")).unwrap();
    host.commit("strict");
    host.publish();
    fs::write(host.folder.join(".waybill/policy.toml"), format!("signers = [\"{ours}\"]")).unwrap();
    host.commit("mine");
    let found = host.check(&["--base", "origin/main"]);
    assert_eq!((found.verdict(), &open(&found, "gate.policy")["status"]), ("failed", &Value::from("warn")));
}

#[test]
fn thirty_faults_are_nine_annotations_and_a_number() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]);
    for run in 0..30 {
        let run = format!("run-{run:02}");
        host.ok(&["ledger", "open", &run]);
        host.ok(&["ledger", "anchor", &run]);
        host.forge(&format!("refs/bernstein/work-ledger/{run}"), |rows| {
            rows.replacen("run.open", "run.oven", 1)
        });
        let path = host.folder.join(".sdd/runtime/ledger").join(&run).join("000000.jsonl");
        fs::write(&path, fs::read_to_string(&path).unwrap().replacen("run.open", "run.oven", 1)).unwrap();
    }
    let said = host.run(&["check", "--format", "github", "--format", "markdown=summary.md"]);
    assert_eq!(said.code, Some(2));
    let annotations = said.out.lines().filter(|line| line.starts_with("::error ")).count();
    let more = said.out.lines().filter(|line| line.contains("more: see the job summary")).count();
    assert_eq!((annotations, more, said.out.lines().count()), (9, 1, 11), "{}", said.out);
    let summary = fs::read_to_string(host.folder.join("summary.md")).unwrap();
    assert!(
        summary.len() < 1 << 20 && summary.lines().filter(|line| line.starts_with("| FAIL")).count() >= 60
    );
}

#[test]
fn nothing_hostile_becomes_a_command_or_markup() {
    let world = World::new();
    let host = world.gated("");
    // Rows, a file's name, the name of a receipt, and a policy that say what they like.
    let hostile =
        "x%0A::error::y\\n::warning::z ##[error]q \u{202e}\u{1b}[31m<img src=x>|`a`[b](http://c)@d]]>&\"'";
    host.forge(REF, |rows| rows.replacen("task.scheduled", hostile, 1));
    let receipts = host.folder.join(".sdd/escalation/receipts");
    fs::create_dir_all(&receipts).unwrap();
    for name in ["::error::a.json", "##[error]b.json", "c\n::error::d.json", "<e>&\"'.json", "%0A::f.json"] {
        fs::write(receipts.join(name), format!("{{\"{hostile}\":1}}")).unwrap();
    }
    fs::write(host.folder.join(".waybill/policy.toml"), format!("\"{hostile}\" = 1")).unwrap();
    fs::write(host.folder.join(".waybill/heads.json"), format!("{{\"{hostile}\":1}}")).unwrap();
    let of = |form: &str| {
        let said = host.run(&["check", "--format", form]);
        assert_eq!(said.code, Some(2), "{form}: {said:?}");
        said.out
    };
    let github = of("github");
    for line in github.lines() {
        let ours = ["::error file=", "::error title=", "::warning ", "::notice ", "waybill: "];
        assert!(ours.iter().any(|start| line.starts_with(start)), "{line}");
        assert!(!line.contains("##[") && !line.contains("\u{202e}") && !line.contains('\u{1b}'), "{line}");
    }
    for form in ["text", "markdown", "junit", "sarif", "gitlab", "json"] {
        let said = of(form);
        for line in said.lines() {
            assert!(!line.trim_start().starts_with("::"), "{form}: {line}");
        }
        for raw in ["\u{202e}", "\u{1b}", "\r"] {
            assert!(!said.contains(raw), "{form}: {raw:?}");
        }
    }
    let summary = of("markdown");
    for raw in ["<img", "](http", "@d", "`a`", "##["] {
        assert!(!summary.contains(raw), "{raw}: {summary}");
    }
    assert!(!of("junit").contains("<img"));
    for form in ["sarif", "gitlab", "json"] {
        serde_json::from_str::<Value>(&of(form)).unwrap();
    }
}

#[test]
fn heads_are_written_and_read_back() {
    let world = World::new();
    let host = world.gated("");
    let before = host.heads();
    assert!(before.contains("\"entries\": 3"), "{before}");
    host.append("task.completed", "t0");
    // The ledger went on, its anchor did not: what travels counts.
    host.ok(&["check", "--update"]);
    assert_eq!(host.heads(), before);
    host.ok(&["ledger", "anchor", RUN]);
    let said = host.ok(&["check", "--update"]).out;
    assert!(said.contains(".waybill/heads.json names 1 run; 3 subjects held"), "{said}");
    assert!(host.heads().contains("\"entries\": 4"));
    let written = fs::metadata(host.folder.join(".waybill/heads.json")).unwrap().modified().unwrap();
    host.ok(&["check", "--update"]);
    let again = fs::metadata(host.folder.join(".waybill/heads.json")).unwrap().modified().unwrap();
    assert_eq!(written, again, "nothing new, nothing written");
    assert_eq!(host.check(&[]).verdict(), "consistent");
    // A run whose ref is not here keeps its head.
    let job = world.clone("job", &[]);
    job.ok(&["ledger", "open", "other"]);
    job.ok(&["ledger", "anchor", "other"]);
    let found = job.check(&["--update"]);
    assert_eq!(open(&found, "gate.heads")["status"], "warn");
    assert!(job.heads().contains("goal-42") && job.heads().contains("other"), "{}", job.heads());
    // What fails writes nothing.
    let before = host.heads();
    host.forge(REF, |rows| rows.replacen("task.completed", "task.abandoned", 1));
    let said = host.run(&["check", "--update"]);
    assert_eq!(said.code, Some(2));
    assert!(said.out.contains("was not written") && host.heads() == before, "{said:?}");
    // Nor is anything written through a link.
    let link = world.job("link");
    fs::rename(link.folder.join(".waybill"), link.folder.join("real")).unwrap();
    std::os::unix::fs::symlink("real", link.folder.join(".waybill")).unwrap();
    link.fails(74, &["link"], &["check", "--update"]);
}

#[test]
fn the_base_is_what_is_given_or_what_ci_says() {
    let world = World::new();
    let host = world.gated("");
    host.record_anew("{\"other\":1}");
    host.ok(&["check", "--update"]);
    host.git(&["switch", "-q", "-c", "topic"]);
    host.commit("rewritten");
    let main = host.git(&["rev-parse", "origin/main"]).trim().to_owned();
    // A tag of that name stands for nothing else.
    host.git(&["tag", "origin/main", "HEAD"]);
    let event = host.folder.join("event.json");
    let run = |variables: &[(&str, &str)], text: &str| {
        fs::write(&event, text).unwrap();
        let mut command = host.command(&["check", "--json"]);
        if !text.is_empty() {
            command.env("GITHUB_EVENT_PATH", &event);
        }
        let said: Said = command.envs(variables.iter().copied()).output().unwrap().into();
        said
    };
    let group = format!("{{\"merge_group\":{{\"base_sha\":\"{main}\"}}}}");
    let push = format!("{{\"before\":\"{main}\"}}");
    for (variables, text, code) in [
        (&[("GITHUB_BASE_REF", "main")][..], "", 2),
        (&[("GITHUB_BASE_REF", "")], "", 0),
        (&[("CI_MERGE_REQUEST_DIFF_BASE_SHA", &main)], "", 2),
        (&[("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", &main)], "", 2),
        (&[], &group, 2),
        (&[], &push, 2),
        (&[], "{}", 0),
        (&[("GITHUB_BASE_REF", "gone")], "", 1),
        (&[("CI_MERGE_REQUEST_DIFF_BASE_SHA", &"ab".repeat(20))], "", 1),
    ] {
        let said = run(variables, text);
        assert_eq!(said.code, Some(code), "{variables:?} {text}: {said:?}");
    }
    host.fails(1, &["the base nowhere is not here: fetch it"], &["check", "--base", "nowhere"]);
    host.fails(64, &["one form"], &["check", "--json", "--format", "github"]);
    host.fails(64, &["a format is"], &["check", "--format", "xml"]);
    assert_eq!(host.run(&["check", "--base", &main]).code, Some(2));
    // What is written to a file does not take the place of what is said.
    let said = host.run(&["check", "--base", &main, "--format", "sarif=w.sarif", "--format", "junit=w.xml"]);
    assert!(said.out.starts_with("FAILED  gate repository"), "{said:?}");
    assert!(host.folder.join("w.sarif").exists() && host.folder.join("w.xml").exists());
    let none = world.0.path().join("nowhere");
    fs::create_dir(&none).unwrap();
    let none = Host { world: &world, folder: none };
    none.fails(1, &["no git repository"], &["check"]);
}

#[test]
fn a_bare_and_a_shallow_repository_are_checked() {
    let world = World::new();
    world.gated("");
    let bare = Host { world: &world, folder: world.0.path().join("remote.git") };
    let found = bare.check(&["--base", "main"]);
    assert_eq!(found.verdict(), "consistent", "{found:?}");
    bare.fails(64, &["a bare repository has no files"], &["check", "--update"]);
    let shallow = world.clone("shallow", &["--depth=1"]);
    shallow.git(&[&["fetch", "-q", "--depth=1", "origin"][..], &SIDE].concat());
    assert_eq!(shallow.check(&[]).verdict(), "consistent");
}

/// A bare repository with the hook that is documented.
fn server<'a>(world: &'a World, options: &str) -> Host<'a> {
    let server = Host { world, folder: world.remote() };
    let hook = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../hooks/pre-receive")).unwrap();
    assert!(hook.contains("exec waybill check --pre-receive"));
    let hook = hook.replace("exec waybill", &format!("exec {}", env!("CARGO_BIN_EXE_waybill")));
    let path = server.folder.join("hooks/pre-receive");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, hook.replace("--pre-receive", &format!("--pre-receive{options}"))).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    server
}

#[test]
fn the_hook_refuses_a_rewritten_ledger_and_lets_an_append_through() {
    // Loose objects and packs, which git holds apart in either form.
    for limit in ["1", "10000"] {
        let world = World::new();
        let server = server(&world, "");
        server.git(&["config", "receive.unpackLimit", limit]);
        let host = world.clone("host", &[]).opened();
        host.ok(&["ledger", "anchor", RUN]);
        let push = |refs: &[&str]| world.try_git(&host.folder, &[&["push", "origin"][..], refs].concat());
        let at = || world.try_git(&server.folder, &["rev-parse", "--verify", "-q", REF]).out;
        let this = format!("+{REF}:{REF}");
        let said = push(&[&this]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(
            said.err.contains("taken: refs/bernstein/work-ledger/goal-42: 3 entries, a new ledger"),
            "{said:?}"
        );
        host.append("task.completed", "t0");
        host.ok(&["ledger", "anchor", RUN]);
        assert_eq!(push(&[&this]).code, Some(0));
        assert_eq!(at(), host.git(&["rev-parse", REF]));
        host.ok(&["ledger", "gc", RUN]);
        assert_eq!(push(&[&this]).code, Some(0), "a gc has the same rows");
        assert_eq!(at(), host.git(&["rev-parse", REF]));
        let before = (at(), host.git(&["rev-parse", REF]).trim().to_owned());
        let refused = |words: &str, refs: &[&str]| {
            let said = push(refs);
            assert_ne!(said.code, Some(0), "{said:?}");
            assert!(said.err.contains(words), "{words:?}: {said:?}");
            assert_eq!(at(), before.0);
        };
        refused("is not deleted", &[&format!(":{REF}")]);
        refused("does not name a run and a head", &[&format!("{REF}:refs/waybill/aside/x")]);
        host.git(&["switch", "-q", "-c", "topic"]);
        refused("does not belong there", &[&format!("+HEAD:{REF}")]);
        host.forge(REF, |rows| rows.replacen("task.completed", "task.failed", 1));
        refused("entry_hash_mismatch", &[&this]);
        host.record_anew("{\"other\":1}");
        // A push is refused as a whole, also the branch in it.
        refused("it rewrites history from entry 1 on", &[&this, "HEAD:refs/heads/topic"]);
        let topic = world.try_git(&server.folder, &["rev-parse", "--verify", "-q", "refs/heads/topic"]);
        assert_eq!(topic.out, "");
        host.git(&["update-ref", REF, &before.1]);
        assert_eq!(push(&["HEAD:refs/heads/topic"]).code, Some(0), "branches are none of its business");
    }
}

#[test]
fn a_settled_divergence_passes_the_hook_only_where_it_says_so() {
    for (options, code) in [("", 1), (" --allow-settled", 0)] {
        let world = World::new();
        let server = server(&world, options);
        let a = world.clone("a", &[]).opened();
        a.ok(&["ledger", "anchor", RUN]);
        a.ok(&["ledger", "push", RUN]);
        let b = world.clone("b", &[]);
        b.ok(&["ledger", "fetch", RUN]);
        for (host, task) in [(&a, "a"), (&b, "b")] {
            host.append("task.started", task);
            host.ok(&["ledger", "anchor", RUN]);
        }
        a.ok(&["ledger", "push", RUN]);
        b.ok(&["ledger", "diff", RUN, "--remote", "origin", "--keep", "local"]);
        let said = b.run(&["ledger", "push", RUN]);
        assert_eq!(said.code == Some(0), code == 0, "{options}: {said:?}");
        let aside = world.git(&server.folder, &["for-each-ref", "--format=%(refname)", "refs/waybill/aside"]);
        if code == 0 {
            let delete = world.try_git(&b.folder, &["push", "origin", &format!(":{}", aside.trim())]);
            assert!(delete.err.contains("what was set aside stays as it is"), "{delete:?}");
        }
    }
}

#[test]
fn the_hook_s_lines_are_read_strictly() {
    let world = World::new();
    let host = world.host("host", &["init", "-q"]);
    for (line, code) in [("", 0), ("x y z\n", 64), ("0 0 refs/heads/a\n", 64)] {
        let mut command = host.command(&["check", "--pre-receive"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        let said: Said = child.wait_with_output().unwrap().into();
        assert_eq!(said.code, Some(code), "{line:?}: {said:?}");
    }
}

#[test]
fn the_documented_refspecs_carry_side_refs() {
    let world = World::new();
    world.remote();
    let host = world.clone("host", &[]).opened();
    host.ok(&["ledger", "anchor", RUN]);
    let reader = world.clone("reader", &[]);
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ci.md")).unwrap();
    let mut lines = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("git config --add remote.origin.")) {
        let (key, value) = line.split_once(' ').unwrap();
        let clone = if key == "push" { &host } else { &reader };
        clone.git(&["config", "--add", &format!("remote.origin.{key}"), value.trim_matches('\'')]);
        lines += 1;
    }
    assert_eq!(lines, 5);
    fs::write(host.folder.join("f"), "more").unwrap();
    host.git(&["commit", "-q", "-a", "-m", "two"]);
    host.git(&["push", "-q"]);
    reader.git(&["fetch", "-q"]);
    assert_eq!(reader.git(&["rev-parse", REF, "origin/main"]), host.git(&["rev-parse", REF, "main"]));
    // No plain push rewrites one.
    host.record_anew("{\"other\":1}");
    let said = world.try_git(&host.folder, &["push"]);
    assert!(said.err.contains("non-fast-forward"), "{said:?}");
}
