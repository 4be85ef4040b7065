//! Resume at boot: what a sweep decides and does, attempts, dry runs, several at once, units.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::help::{Machine, Said, alive, kill};

/// A command that dies at first, and waits after a resume.
const ONCE: &str = "[ -n \"$WAYBILL_RESUME\" ] && exec sleep 100; kill -9 $$";

#[test]
fn a_run_killed_in_the_middle_goes_on_and_completed_tasks_stay_untouched() {
    let machine = Machine::new();
    let script = r#"
        if [ -z "$WAYBILL_RESUME" ]; then
            for t in a b; do "$W" record --kind task.scheduled --task $t -q; done
            "$W" record --kind task.started --task a -q; "$W" record --kind task.completed --task a -q
            "$W" record --kind task.started --task b -q; kill -9 $$
        fi
        "$W" record --kind task.completed --task b -q
    "#;
    machine.script("r", &[], script);
    let before = machine.entries("r");
    machine.decided("r", "continue");
    machine.ended("r");
    assert_eq!(machine.status("r"), "complete");
    let after = machine.entries("r");
    assert_eq!(after[..before.len()], before);
    assert!(after[before.len()..].iter().all(|entry| !entry.ends_with(" a")), "{after:?}");
    assert_eq!(machine.attempts("r"), 0, "forgotten at a good end");
    assert_eq!(machine.count("r", "boot.decision"), 1);
}

#[test]
fn exactly_three_continuations_then_exhausted_and_still_resumable_by_hand() {
    let machine = Machine::new();
    machine.script("r", &[], "echo x >> starts; kill -9 $$");
    for attempt in 1..=3 {
        let decisions = machine.sweep(&[]);
        assert_eq!(decisions["r"], (String::from("continue"), format!("attempt {attempt} of 3")));
        assert_eq!(machine.attempts("r"), attempt);
        machine.ended("r");
    }
    for _ in 0..2 {
        machine.decided("r", "exhausted");
    }
    let starts = || fs::read_to_string(machine.project().join("starts")).unwrap().lines().count();
    assert_eq!(starts(), 4);
    machine.ok(["jobs", "resume", "r"]);
    machine.until(|| starts() == 5);
    machine.ended("r");
    machine.decided("r", "exhausted");
    let names: Vec<_> = machine
        .events("r")
        .iter()
        .filter(|event| event["event"] == "boot.decision")
        .map(|event| event["decision"].clone())
        .collect();
    assert_eq!(names, ["continue", "continue", "continue", "exhausted", "exhausted", "exhausted"]);
}

#[test]
fn a_lost_or_damaged_attempts_file_counts_as_exhausted() {
    let machine = Machine::new();
    for (run, text) in [("gone", None), ("empty", Some("")), ("broken", Some("{\"attempts\":\"none\"}"))] {
        machine.script(run, &[], "kill -9 $$");
        let path = machine.file(run, "attempts.json");
        match text {
            None => fs::remove_file(path).unwrap(),
            Some(text) => fs::write(path, text).unwrap(),
        }
        machine.decided(run, "exhausted");
    }
}

#[test]
fn attempts_are_spent_before_the_spawn_and_never_given_back() {
    let machine = Machine::new();
    machine.script("r", &[], "kill -9 $$");
    // The ledger's folder can't be written: every start fails.
    let ledger = machine.project().join(".sdd/runtime/ledger/r/.ledger.lock");
    fs::remove_file(&ledger).unwrap();
    fs::create_dir(&ledger).unwrap();
    for attempt in 1..=3 {
        assert_eq!(machine.sweep(&[])["r"].0, "failed");
        assert_eq!(machine.attempts("r"), attempt);
    }
    machine.decided("r", "exhausted");
}

#[test]
fn one_failure_does_not_strand_the_rest_and_the_parked_one_is_skipped() {
    let machine = Machine::new();
    machine.script("a", &[], "kill -9 $$");
    let lock = machine.project().join(".sdd/runtime/ledger/a/.ledger.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    machine.detach("b", &[], "\"$W\" ask 'which?'");
    machine.until(|| machine.shown("b") == "needs_input");
    let (supervisor, child) = (machine.pid("b", "supervisor"), machine.pid("b", "child"));
    kill(supervisor, Signal::SIGKILL);
    kill(child, Signal::SIGKILL);
    machine.until(|| machine.sweep(&["--dry-run"])["b"].0 != "still running");
    machine.script("c", &[], ONCE);
    fs::create_dir(machine.data().join("runs/zz")).unwrap();
    let decisions = machine.sweep(&[]);
    let words: Vec<_> = decisions.values().map(|(decision, _)| decision.as_str()).collect();
    assert_eq!(words, ["failed", "needs input", "continue", "damaged"], "{decisions:?}");
    assert_eq!(machine.run(["boot", "resume-all"]).code, Some(1));
    assert_eq!(machine.shown("c"), "in_progress");
}

#[test]
fn each_other_reason_is_found_and_burns_no_attempt() {
    let machine = Machine::new();
    let check = |run: &str, decision: &str, reason: &str| {
        let decisions = machine.sweep(&[]);
        assert_eq!(decisions[run].0, decision, "{decisions:?}");
        assert!(decisions[run].1.contains(reason), "{decisions:?}");
        assert_eq!(machine.attempts(run), 0);
    };
    machine.script("not-at-boot", &["--no-boot"], "kill -9 $$");
    check("not-at-boot", "not supervised", "--no-boot");

    let mut command = machine.command();
    command.env("API_KEY", "x").args([
        "run",
        "--id",
        "needs",
        "--require-env",
        "API_KEY",
        "--",
        "sh",
        "-c",
        "kill -9 $$",
    ]);
    command.output().unwrap();
    check("needs", "not ready", "missing: API_KEY");
    let record = fs::read_to_string(machine.file("needs", "record.json")).unwrap();
    assert!(record.contains("API_KEY"), "the name is kept");
    assert_eq!(machine.sweep(&["--require-env", "OTHER"])["needs"].1, "missing: API_KEY, OTHER");

    machine.script("cut", &[], "kill -9 $$");
    let ledger = machine.project().join(".sdd/runtime/ledger/cut/000000.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    let first: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(&ledger, first).unwrap();
    check("cut", "no resume point", "entry 2 is not there");
    fs::write(&ledger, text.replace("sh", "no")).unwrap();
    check("cut", "no resume point", "damaged");
    fs::remove_file(&ledger).unwrap();
    check("cut", "no resume point", "it is gone");

    machine.script("torn", &[], "kill -9 $$");
    let ledger = machine.project().join(".sdd/runtime/ledger/torn/000000.jsonl");
    let mut bytes = fs::read(&ledger).unwrap();
    bytes.extend_from_slice(b"{\"entry_hash\":\"12");
    fs::write(&ledger, bytes).unwrap();
    assert_eq!(machine.sweep(&["--dry-run"])["torn"].0, "continue", "a torn tail is a crash's");

    let elsewhere = machine.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut command = machine.command();
    let command = command.current_dir(&elsewhere).arg("--workdir").arg(machine.project());
    command.args(["run", "--id", "homeless", "--", "sh", "-c", "kill -9 $$"]).output().unwrap();
    fs::remove_dir(&elsewhere).unwrap();
    check("homeless", "workspace gone", "elsewhere is gone");
}

#[test]
fn a_run_that_is_closed_in_its_ledger_ended_whatever_its_record_says() {
    let machine = Machine::new();
    machine.script("r", &[], "kill -9 $$");
    machine.ok(["ledger", "close", "r"]);
    machine.decided("r", "ended deliberately");
    assert_eq!(machine.run(["jobs", "resume", "r"]).code, Some(2));
}

/// Every file below a folder, with its bytes and its time.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let time = fs::metadata(&path).unwrap().modified().unwrap();
                files.insert(path.clone(), (fs::read(&path).unwrap(), time));
            }
        }
    }
    files
}

#[test]
fn a_dry_run_shows_the_same_and_leaves_every_byte() {
    let machine = Machine::new();
    machine.script("a", &[], ONCE);
    machine.script("b", &[], "true");
    fs::create_dir(machine.data().join("runs/broken")).unwrap();
    let before = (tree(&machine.data()), tree(&machine.project()));
    let dry = machine.sweep(&["--dry-run"]);
    assert!(
        machine
            .ok(["boot", "resume-all", "--dry-run"])
            .out
            .starts_with("continue            a  attempt 1 of 3\n")
    );
    machine.ok(["jobs", "list"]);
    machine.ok(["top", "--once"]);
    assert_eq!((tree(&machine.data()), tree(&machine.project())), before);
    assert_eq!(machine.sweep(&[]), dry);
}

#[test]
fn a_dry_run_without_a_data_folder_makes_none() {
    let machine = Machine::new();
    assert!(machine.sweep(&["--dry-run"]).is_empty());
    assert!(!machine.data().exists());
}

#[test]
fn a_dry_run_beside_a_sweep_does_not_disturb_it() {
    let machine = Machine::new();
    for run in ["a", "b", "c"] {
        machine.script(run, &[], ONCE);
    }
    let sweep =
        machine.command().args(["boot", "resume-all", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    for _ in 0..5 {
        machine.sweep(&["--dry-run"]);
    }
    let said = sweep.wait_with_output().unwrap();
    assert!(said.status.success());
    for run in ["a", "b", "c"] {
        assert_eq!((machine.shown(run).as_str(), machine.attempts(run)), ("in_progress", 1));
    }
}

#[test]
fn two_sweeps_exclude_each_other_and_start_one_child() {
    let machine = Machine::new();
    machine.script(
        "r",
        &[],
        "[ -n \"$WAYBILL_RESUME\" ] && { echo x >> copies; exec sleep 100; }; kill -9 $$",
    );
    let sweep = || {
        machine
            .command()
            .args(["boot", "resume-all"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut sweeps: Vec<_> = (0..4).map(|_| sweep()).collect();
    let codes: Vec<_> = sweeps.iter_mut().map(|sweep| sweep.wait().unwrap().code().unwrap()).collect();
    assert!(codes.iter().all(|code| [0, 75].contains(code)) && codes.contains(&0), "{codes:?}");
    machine.until(|| machine.project().join("copies").exists());
    assert_eq!(fs::read_to_string(machine.project().join("copies")).unwrap(), "x\n");
    assert_eq!(machine.attempts("r"), 1);
}

#[test]
fn a_sweep_and_a_resume_by_hand_start_one_child() {
    let machine = Machine::new();
    machine.script(
        "r",
        &[],
        "[ -n \"$WAYBILL_RESUME\" ] && { echo x >> copies; exec sleep 100; }; kill -9 $$",
    );
    let start = |arguments: &[&str]| {
        machine.command().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut both = [start(&["boot", "resume-all"]), start(&["jobs", "resume", "r"])];
    for child in &mut both {
        child.wait().unwrap();
    }
    machine.until(|| machine.project().join("copies").exists());
    assert_eq!(fs::read_to_string(machine.project().join("copies")).unwrap(), "x\n");
    assert_eq!(machine.shown("r"), "in_progress");
}

/// Holds a run's ledger from outside, so that its supervisor has to wait.
fn hold(machine: &Machine, run: &str) -> std::process::Child {
    let recorder = machine
        .command()
        .args(["ledger", "append", run, "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lock = machine.project().join(format!(".sdd/runtime/ledger/{run}/.ledger.lock"));
    machine.until(|| fs::read_to_string(&lock).unwrap_or_default().contains(&recorder.id().to_string()));
    recorder
}

#[test]
fn the_ceiling_bounds_the_sweep_s_wait_and_kills_no_run() {
    let machine = Machine::new();
    machine.script("a", &[], ONCE);
    machine.script("b", &[], ONCE);
    let mut recorder = hold(&machine, "a");
    let start = Instant::now();
    let decisions = machine.sweep(&["--ceiling", "500ms"]);
    assert!(start.elapsed() >= Duration::from_millis(500) && start.elapsed() < Duration::from_secs(30));
    assert!(decisions["a"].1.contains("no transition before the ceiling"), "{decisions:?}");
    assert_eq!(machine.shown("b"), "in_progress", "the next one is started all the same");
    // The first one is still at it, and makes it once it can.
    drop(recorder.stdin.take());
    recorder.wait().unwrap();
    machine.until(|| machine.entries("a").last().unwrap() == "task.resumed main");
    assert_eq!(machine.shown("a"), "in_progress");
}

#[test]
fn term_to_the_sweep_ends_the_sweep_and_harms_no_run() {
    let machine = Machine::new();
    machine.script("a", &[], ONCE);
    machine.script("b", &[], ONCE);
    machine.script("c", &[], ONCE);
    let mut recorder = hold(&machine, "b");
    let mut sweep = machine.command().args(["boot", "resume-all"]).stdout(Stdio::null()).spawn().unwrap();
    machine.until(|| machine.shown("a") == "in_progress" && machine.attempts("b") == 1);
    std::thread::sleep(Duration::from_millis(200));
    assert!(kill(i32::try_from(sweep.id()).unwrap(), Signal::SIGTERM));
    assert_eq!(sweep.wait().unwrap().code(), None);
    assert!(alive(machine.pid("a", "child")));
    drop(recorder.stdin.take());
    recorder.wait().unwrap();
    machine.until(|| machine.entries("b").last().unwrap() == "task.resumed main");
    assert_eq!((machine.shown("c").as_str(), machine.attempts("c")), ("interrupted", 0));
    machine.decided("c", "continue");
    assert!(alive(machine.pid("a", "child")));
}

#[test]
fn decisions_on_a_live_run_are_noted_by_its_supervisor() {
    let machine = Machine::new();
    machine.detach("r", &[], "exec sleep 100");
    machine.decided("r", "still running");
    let noted = machine.events("r").into_iter().find(|event| event["event"] == "boot.decision").unwrap();
    assert_eq!(noted["decision"], "still running");
    machine.ok(["jobs", "stop", "r"]);
    machine.ok(["journal", "verify", "r"]);
}

#[test]
fn a_unit_is_what_systemd_takes_for_one() {
    let machine = Machine::new();
    let odd = machine.root().join("a $x %h \"q' \\ é");
    let said = machine.ok([
        Path::new("--data-dir").as_os_str(),
        odd.as_os_str(),
        "boot".as_ref(),
        "install".as_ref(),
        "--dry-run".as_ref(),
        "--require-env".as_ref(),
        "KEY".as_ref(),
        "--kind".as_ref(),
        "systemd".as_ref(),
    ]);
    assert!(said.out.contains("KillMode=process") && said.out.contains("\"--require-env\" \"KEY\""));
    assert!(said.out.contains(r#"a $$x %%h \"q' \\ é""#), "{}", said.out);
    assert!(!odd.exists(), "nothing is written");
    let path = machine.root().join("waybill-resume.service");
    fs::write(&path, &said.out).unwrap();
    // Where systemd is installed, it is asked.
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--user"])
        .arg(&path)
        .env("HOME", machine.root())
        .env("XDG_RUNTIME_DIR", machine.root().join("rt"))
        .output();
    if let Ok(output) = verified {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("waybill-resume.service"), "{said}");
    }
}

#[test]
fn a_plist_is_parsed_to_the_same_arguments() {
    let machine = Machine::new();
    let odd = machine.root().join("a & <b> \"c' $d %e é");
    let said = machine.ok([
        Path::new("--data-dir").as_os_str(),
        odd.as_os_str(),
        "boot".as_ref(),
        "install".as_ref(),
        "--dry-run".as_ref(),
        "--kind".as_ref(),
        "launchd".as_ref(),
    ]);
    let code = "import plistlib,sys; print('\\0'.join(plistlib.loads(sys.stdin.buffer.read())['ProgramArguments']), end='')";
    let python =
        Command::new("python3").args(["-c", code]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    if let Ok(mut python) = python {
        use std::io::Write;
        python.stdin.take().unwrap().write_all(said.out.as_bytes()).unwrap();
        let parsed = String::from_utf8(python.wait_with_output().unwrap().stdout).unwrap();
        let parsed: Vec<&str> = parsed.split('\0').collect();
        assert_eq!(parsed[1..], ["--data-dir", odd.to_str().unwrap(), "boot", "resume-all"]);
    }
}

#[test]
fn installing_a_unit_says_when_it_would_not_start_at_boot() {
    // In a name space of its own, so that nothing of this machine is changed.
    let script = "mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/systemd/linger || exit 99
        \"$W\" boot install --kind systemd 2>off && touch \"/var/lib/systemd/linger/$(id -un)\" &&
        \"$W\" boot install --kind systemd 2>on && \"$W\" boot install --kind launchd 2>mac";
    let machine = Machine::new();
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .current_dir(machine.root())
        .env_clear()
        .envs([("PATH", std::env::var_os("PATH").unwrap()), ("W", env!("CARGO_BIN_EXE_waybill").into())])
        .envs([("HOME", machine.root().join("home")), ("XDG_RUNTIME_DIR", machine.root().join("rt"))])
        .output();
    let said: Said = match output {
        Ok(output) => output.into(),
        Err(error) => {
            eprintln!("NOT RUN: there is no unshare here: {error}");
            return;
        }
    };
    if said.code == Some(99) || said.err.lines().any(|line| line.starts_with("unshare:")) {
        eprintln!("NOT RUN: there are no name spaces here: {said:?}");
        return;
    }
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = |name: &str| fs::read_to_string(machine.root().join(name)).unwrap();
    assert!(said("off").contains("linger is off: the unit starts at login, not at boot"), "{}", said("off"));
    assert!(!said("on").contains("linger"), "{}", said("on"));
    assert!(!said("mac").contains("linger"), "{}", said("mac"));
}

#[test]
fn a_unit_is_installed_and_uninstalled_twice() {
    let machine = Machine::new();
    let unit = machine.root().join("home/.config/systemd/user/waybill-resume.service");
    for _ in 0..2 {
        machine.ok(["boot", "install", "--kind", "systemd"]);
        assert!(unit.is_file());
        assert_eq!(fs::metadata(&unit).unwrap().permissions().mode() & 0o777, 0o600);
    }
    for expect in ["removed", "nothing is installed"] {
        assert!(machine.ok(["boot", "uninstall", "--kind", "systemd"]).out.contains(expect));
        assert!(!unit.exists());
    }
}
