//! Supervised runs: each row of the table, what a child gets, ends from outside, addresses, secrets.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::help::{Machine, Said, alive, git, kill};

const MODE: u32 = 0o777;

#[test]
fn a_child_that_exits_0_is_complete_and_its_run_closed() {
    let machine = Machine::new();
    let said = machine.script("r", &[], "echo out; echo err >&2");
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "out\n", "err\n"), "{said:?}");
    assert_eq!(machine.status("r"), "complete");
    assert!(!machine.point("r"));
    let entries =
        ["run.open", "task.scheduled main", "task.started main", "task.completed main", "run.closed"];
    assert_eq!(machine.entries("r"), entries);
    let events: Vec<_> = machine.events("r").iter().map(|event| event["event"].clone()).collect();
    assert_eq!(events, ["run.started", "run.exit"]);
    machine.decided("r", "ended deliberately");
    machine.ok(["verify", "r", "--require", "complete"]);
    machine.ok(["journal", "verify", "r"]);
}

#[test]
fn a_child_that_exits_n_is_an_error_and_is_resumed() {
    let machine = Machine::new();
    assert_eq!(machine.script("r", &[], "exit 7").code, Some(7));
    assert_eq!(machine.status("r"), "error");
    assert!(machine.point("r"));
    assert_eq!(machine.entries("r").last().unwrap(), "task.failed main");
    machine.decided("r", "continue");
}

#[test]
fn a_failed_run_without_a_resume_point_is_not_resumed() {
    let machine = Machine::new();
    machine.script("r", &[], "exit 7");
    fs::remove_file(machine.file("r", "resume-point.json")).unwrap();
    machine.decided("r", "no resume point");
    assert_eq!(machine.run(["jobs", "resume", "r"]).code, Some(2));
}

#[test]
fn a_child_that_a_signal_kills_stays_in_progress_and_is_resumed() {
    let machine = Machine::new();
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139), ("USR1", 138)] {
        assert_eq!(machine.script(signal, &[], &format!("kill -{signal} $$")).code, Some(code));
        assert_eq!(machine.status(signal), "in_progress");
        assert_eq!(machine.shown(signal), "interrupted");
        assert!(machine.point(signal));
        assert_eq!(machine.entries(signal).last().unwrap(), "task.started main");
    }
    for decision in machine.sweep(&["--dry-run"]).values() {
        assert_eq!(decision.0, "continue");
    }
}

#[test]
fn a_stopped_run_is_cancelled_and_not_resumed() {
    let machine = Machine::new();
    let child = machine.foreground("r", &[], "exec sleep 100");
    let said = machine.ok(["jobs", "stop", "r"]);
    assert_eq!(said.out, "run r: cancelled\n");
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(143));
    assert_eq!(machine.status("r"), "cancelled");
    assert!(!machine.point("r") && !machine.file("r", "intent.json").exists());
    assert_eq!(machine.entries("r")[3..], ["task.abandoned main", "run.closed"]);
    machine.decided("r", "ended deliberately");
    // Once more is no error.
    assert!(
        machine.ok(["jobs", "stop", "r"]).out.contains("it was not running")
            || machine.status("r") == "cancelled"
    );
}

#[test]
fn ctrl_c_cancels_with_130() {
    let machine = Machine::new();
    let mut child = machine.foreground("r", &[], "exec sleep 100");
    assert!(kill(i32::try_from(child.id()).unwrap(), Signal::SIGINT));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(machine.status("r"), "cancelled");
    assert!(!machine.point("r"));
    machine.decided("r", "ended deliberately");
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_the_grace() {
    let machine = Machine::new();
    let mut child = machine.foreground("r", &["--grace", "60s"], "trap '' INT; while :; do sleep 0.1; done");
    let pid = i32::try_from(child.id()).unwrap();
    let start = Instant::now();
    kill(pid, Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    kill(pid, Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(machine.record("r")["forced"], true);
}

#[test]
fn term_without_an_intent_is_a_reboot_and_is_resumed() {
    // To the supervisor, which passes it on; also where the child ends well on it.
    for (script, run) in [("exec sleep 100", "a"), ("trap 'exit 0' TERM; while :; do sleep 0.1; done", "b")] {
        let machine = Machine::new();
        let mut child = machine.foreground(run, &[], script);
        let command = machine.pid(run, "child");
        assert!(kill(i32::try_from(child.id()).unwrap(), Signal::SIGTERM));
        assert_eq!(child.wait().unwrap().code(), Some(143));
        assert!(!alive(command));
        assert_eq!(machine.status(run), "in_progress");
        assert!(machine.point(run));
        machine.decided(run, "continue");
    }
    // To the child alone.
    let machine = Machine::new();
    let mut child = machine.foreground("c", &[], "exec sleep 100");
    kill(machine.pid("c", "child"), Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    machine.decided("c", "continue");
}

#[test]
fn an_intent_that_was_recorded_before_a_crash_counts_at_boot_and_by_hand() {
    let machine = Machine::new();
    machine.detach("r", &[], "exec sleep 100");
    // The power goes between the record of the intent and the signal.
    let (supervisor, child) = (machine.pid("r", "supervisor"), machine.pid("r", "child"));
    kill(supervisor, Signal::SIGKILL);
    kill(child, Signal::SIGKILL);
    machine.until(|| !alive(child) && !alive(supervisor));
    fs::write(machine.file("r", "intent.json"), "{\"intent\":\"stop\",\"reason\":\"jobs stop\"}").unwrap();
    fs::set_permissions(machine.file("r", "intent.json"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(machine.shown("r"), "cancelled");
    machine.decided("r", "ended deliberately");
    assert_eq!(machine.run(["jobs", "resume", "r"]).code, Some(2));
    assert_eq!(machine.status("r"), "cancelled");
}

#[test]
fn limits_stop_a_run_with_3_and_it_is_not_resumed() {
    let machine = Machine::new();
    let cost = "\"$W\" record --event llm.call --data '{\"cost\":0.75}'; \"$W\" record --kind step.paid --task a \
                --payload '{\"cost\":0.75}'; exec sleep 100";
    let silent = ["--stall-after", "300ms", "--on-stall", "stop"];
    for (run, options, script) in [
        ("ceiling", &["--ceiling", "300ms"][..], "exec sleep 100"),
        ("budget", &["--budget", "1.0"], cost),
        ("stall", &silent, "exec sleep 100"),
    ] {
        let said = machine.script(run, options, script);
        assert_eq!(said.code, Some(3), "{run}: {said:?}");
        assert_eq!(machine.status(run), "stopped");
        assert!(!machine.point(run));
        machine.decided(run, "ended deliberately");
    }
}

#[test]
fn a_run_within_its_budget_goes_on() {
    let machine = Machine::new();
    let said =
        machine.script("r", &["--budget", "2"], "\"$W\" record --event a --data '{\"cost\":1}'; sleep 0.2");
    assert_eq!(said.code, Some(0));
}

#[test]
fn paused_and_archived_runs_keep_their_point_and_are_not_resumed_at_boot() {
    let machine = Machine::new();
    for (verb, status) in [("pause", "paused"), ("archive", "archived")] {
        let child = machine.foreground(verb, &[], "exec sleep 100");
        machine.ok(["jobs", verb, verb]);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
        assert_eq!(machine.status(verb), status);
        assert!(machine.point(verb));
        assert_eq!(machine.entries(verb).last().unwrap(), "task.suspended main");
        machine.decided(verb, "ended deliberately");
    }
    // An archived run is kept out of the list.
    assert!(!machine.ok(["jobs", "list"]).out.contains("archive"));
    assert!(machine.ok(["jobs", "list", "--all"]).out.contains("archived"));
    // By hand it goes on.
    machine.ok(["jobs", "resume", "pause"]);
    assert_eq!(machine.shown("pause"), "in_progress");
    assert_eq!(machine.entries("pause")[3..], ["task.suspended main", "run.resumed", "task.resumed main"]);
    machine.ok(["jobs", "stop", "pause"]);
}

#[test]
fn a_stop_of_a_run_that_fell_over_keeps_it_down() {
    let machine = Machine::new();
    for (run, script) in [("killed", "kill -9 $$"), ("failed", "exit 3")] {
        machine.script(run, &[], script);
        let said = machine.ok(["jobs", "stop", run]);
        assert!(said.out.contains("cancelled"), "{said:?}");
        assert!(!machine.point(run));
        assert_eq!(machine.entries(run).last().unwrap(), "run.closed");
        machine.decided(run, "ended deliberately");
        machine.ok(["jobs", "stop", run]);
    }
}

#[test]
fn a_child_that_ignores_term_is_killed_after_the_full_grace_and_the_line_says_forced() {
    for (run, script) in
        [("ignores", "trap '' TERM; while :; do sleep 0.1; done"), ("stopped", "kill -STOP $$")]
    {
        let machine = Machine::new();
        machine.detach(run, &["--grace", "1s"], script);
        std::thread::sleep(Duration::from_millis(200));
        let child = machine.pid(run, "child");
        let start = Instant::now();
        let said = machine.ok(["jobs", "stop", run]);
        assert!(start.elapsed() >= Duration::from_secs(1), "the full grace");
        assert!(said.out.contains("forced: it did not end within 1 s, and was killed"), "{said:?}");
        assert!(!alive(child));
        assert_eq!(machine.record(run)["forced"], true);
        let exit = machine.events(run).into_iter().find(|event| event["event"] == "run.exit").unwrap();
        assert_eq!((&exit["forced"], &exit["signal"]), (&true.into(), &9.into()));
    }
    // One that ends in time is not.
    let machine = Machine::new();
    machine.detach("ends", &["--grace", "30s"], "exec sleep 100");
    assert!(!machine.ok(["jobs", "stop", "ends"]).out.contains("forced"));
}

#[test]
fn a_stop_ends_the_whole_session_also_what_left_the_group() {
    let machine = Machine::new();
    // With job control, what runs in the background has a group of its own.
    machine.detach("r", &[], "sleep 987 & bash -c 'set -m; sleep 986 & wait' & wait");
    let sleeps = |machine: &Machine| {
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        machine.processes().iter().filter(|pid| name(pid).trim() == "sleep" && alive(**pid)).count()
    };
    machine.until(|| sleeps(&machine) == 2);
    machine.ok(["jobs", "stop", "r"]);
    assert_eq!(sleeps(&machine), 0);
}

#[test]
fn a_child_founds_a_session_of_its_own_and_is_told_who_it_is() {
    let machine = Machine::new();
    // The last one in the shell's place: a shell blocks signals itself while it starts another.
    let script = "echo \"$WAYBILL_RUN_ID|$WAYBILL_RESUME|$WAYBILL_SUPERVISE\"; cut -d' ' -f1,5,6 /proc/$$/stat; \
                  stat -c %a \"$(dirname \"$WAYBILL_SOCKET\")\"; exec grep SigBlk /proc/self/status";
    let said = machine.script("r", &[], script);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], "r||");
    let ids: Vec<&str> = lines[1].split(' ').collect();
    assert_eq!((ids[0], ids[0]), (ids[1], ids[2]), "founder of group and session");
    assert_eq!(lines[2], "700");
    assert!(lines[3].ends_with("0000000000000000"), "no signal is blocked: {lines:?}");
}

#[test]
fn standard_input_reaches_the_child() {
    let machine = Machine::new();
    let mut command = machine.command();
    let mut child = command
        .args(["run", "--id", "r", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"words\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"words\n");
}

#[test]
fn own_failures_are_125_to_127() {
    let machine = Machine::new();
    for (code, arguments) in [
        (127, &["run", "--id", "a", "--", "no-such-command"][..]),
        (126, &["run", "--id", "b", "--", "/etc/passwd"]),
        (125, &["run", "--no-such-option", "--", "true"]),
        (125, &["run"]),
        (125, &["--workdir", "/nonexistent", "run", "--", "true"]),
        (125, &["run", "--stall-after", "x", "--", "true"]),
        (125, &["run", "--require-env", "NOT_SET_ANYWHERE", "--", "true"]),
        (125, &["run", "--resume", "nothing-here", "--", "true"]),
        (127, &["run", "--detach", "--id", "c", "--", "no-such-command"]),
    ] {
        let said = machine.run(arguments);
        assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
    }
    // What never started has nothing to go on from.
    assert_eq!(machine.status("a"), "error");
    assert!(!machine.point("a") && !machine.point("b"));
    machine.decided("a", "no resume point");
    // A child's own code is passed on, whatever it is.
    for code in [64, 125, 126, 127, 255] {
        assert_eq!(machine.script(&format!("r{code}"), &[], &format!("exit {code}")).code, Some(code));
    }
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let machine = Machine::new();
    machine.script("r", &[], "true");
    let said = machine.script("r", &[], "true");
    assert_eq!(said.code, Some(125));
    assert!(said.err.contains("run --resume r"), "{said:?}");
    machine.ok(["ledger", "open", "other"]);
    assert_eq!(machine.script("other", &[], "true").code, Some(125));
    assert!(!machine.file("other", "record.json").exists());
    // Of two at once, one is.
    let start = |machine: &Machine| {
        let mut command = machine.command();
        command.args(["run", "--id", "x", "--", "sleep", "0.3"]).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut both = [start(&machine), start(&machine)];
    let mut codes = both.each_mut().map(|child| child.wait().unwrap().code().unwrap());
    codes.sort_unstable();
    assert_eq!(codes, [0, 125]);
    assert_eq!(machine.status("x"), "complete");
}

#[test]
fn lines_on_the_socket_are_acknowledged_when_they_are_recorded() {
    let machine = Machine::new();
    let script = r#"
        "$W" record --kind task.scheduled --task t --payload '{"n":1}' --json
        "$W" record --event tool.called --data '{"tool":"make"}' --worker w1 --session s --worktree /x --json
        "$W" record --heartbeat --worker w1 --json
        printf '%s\n' '{"kind":"task.started","task_id":"t"}' 'nonsense' '{"event":"run.exit"}' '{"event":"e"}' |
            "$W" record --stdin
        echo "code $?"
        "$W" ledger append "$WAYBILL_RUN_ID" --kind task.completed --task t --json
        echo '{"kind":"task.started","task_id":"u"}' | "$W" ledger append "$WAYBILL_RUN_ID" --stdin
        "$W" journal record "$WAYBILL_RUN_ID" --event late --json
        "$W" record --kind run.closed; echo "code $?"
        "$W" record --event snapshot; echo "code $?"
    "#;
    let said = machine.script("r", &[], script);
    assert_eq!(said.code, Some(0), "{said:?}");
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].contains("\"seq\":3") && lines[1].contains("\"index\":1"), "{said:?}");
    assert_eq!(lines[2], "{\"heartbeat\":true}");
    assert!(lines[3].contains("\"seq\":4"));
    assert!(lines[4].contains("error") && lines[5].contains("written by the supervisor"));
    assert!(lines[6].contains("\"index\":2"));
    assert_eq!(lines[7], "code 64");
    assert!(
        lines[8].contains("\"seq\":5") && lines[9].contains("\"seq\":6") && lines[10].contains("\"index\":3")
    );
    assert_eq!(lines[11..], ["code 64", "code 64"]);
    let entries = machine.entries("r");
    assert_eq!(entries[3..7], ["task.scheduled t", "task.started t", "task.completed t", "task.started u"]);
    let called = &machine.events("r")[1];
    assert_eq!((&called["worker"], &called["tool"]), (&"w1".into(), &"make".into()));
    machine.ok(["verify", "r"]);
    assert_eq!(machine.run(["record", "--event", "outside"]).code, Some(64));
}

#[test]
fn heartbeats_go_to_the_liveness_file_and_not_to_the_journal() {
    let machine = Machine::new();
    machine.script("r", &[], "for i in 1 2 3; do \"$W\" record --heartbeat --worker w1 --session s1; done");
    assert_eq!(machine.events("r").len(), 2);
    let liveness = fs::read_to_string(machine.file("r", "liveness.json")).unwrap();
    assert!(liveness.contains("\"worker\":\"w1\"") && liveness.contains("\"session\":\"s1\""), "{liveness}");
}

#[test]
fn a_snapshot_in_a_run_goes_through_its_recorder() {
    let machine = Machine::new();
    git(&machine.project(), &["init", "-q"]);
    git(&machine.project(), &["commit", "-q", "--allow-empty", "-m", "first"]);
    let said = machine.script("r", &[], "echo x > file; \"$W\" snapshot \"$WAYBILL_RUN_ID\"");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("refs/bernstein/snapshots/r/1 is "), "{said:?}");
    assert_eq!(machine.count("r", "snapshot"), 1);
}

#[test]
fn the_supervisor_killed_while_its_child_lives_leaves_an_orphan_and_never_a_second_copy() {
    let machine = Machine::new();
    machine.detach("r", &[], "exec sleep 100");
    let (supervisor, child) = (machine.pid("r", "supervisor"), machine.pid("r", "child"));
    kill(supervisor, Signal::SIGKILL);
    machine.until(|| !alive(supervisor));
    assert!(alive(child));
    assert_eq!(machine.shown("r"), "orphaned");
    machine.decided("r", "still running");
    let said = machine.run(["jobs", "resume", "r"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("still running without its supervisor"), "{said:?}");
    assert!(alive(child));
    // Once the group has ended, it goes on.
    kill(child, Signal::SIGKILL);
    machine.until(|| !alive(child));
    assert_eq!(machine.shown("r"), "interrupted");
    machine.decided("r", "continue");
    assert_ne!(machine.pid("r", "child"), child);
}

#[test]
fn an_orphan_is_stopped_by_whoever_says_so() {
    let machine = Machine::new();
    machine.detach("r", &["--grace", "500ms"], "trap '' TERM; while :; do sleep 0.1; done");
    std::thread::sleep(Duration::from_millis(200));
    let child = machine.pid("r", "child");
    kill(machine.pid("r", "supervisor"), Signal::SIGKILL);
    machine.until(|| machine.shown("r") == "orphaned");
    let said = machine.ok(["jobs", "stop", "r"]);
    assert!(said.out.contains("its supervisor was gone; forced"), "{said:?}");
    assert!(!alive(child));
    assert_eq!(machine.status("r"), "cancelled");
    assert_eq!(machine.entries("r").last().unwrap(), "run.closed");
}

#[test]
fn a_number_that_was_given_again_is_never_signalled() {
    let machine = Machine::new();
    machine.script("r", &[], "kill -9 $$");
    let mut stranger = std::process::Command::new("setsid").args(["sleep", "100"]).spawn().unwrap();
    let pid = i32::try_from(stranger.id()).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut record = machine.record("r");
    let edit = |record: &serde_json::Value| {
        fs::write(machine.file("r", "record.json"), record.to_string()).unwrap();
    };
    for (started, boot) in [(1, boot.trim()), (u64::MAX, boot.trim()), (1, "another-boot")] {
        let process = serde_json::json!({"pid": pid, "started": started, "boot": boot});
        record["child"] = process.clone();
        record["supervisor"] = process;
        edit(&record);
        assert_eq!(machine.shown("r"), "interrupted");
        let said = machine.run(["jobs", "stop", &pid.to_string()]);
        assert_eq!(said.code, Some(64), "{said:?}");
        assert!(said.err.contains("was of run r, and is another one (sleep) now"), "{said:?}");
        assert!(alive(pid));
    }
    machine.ok(["jobs", "stop", "r"]);
    assert!(alive(pid));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_run_is_meant_by_its_id_a_number_or_the_beginning_of_its_id() {
    let machine = Machine::new();
    machine.detach("build-a", &[], "exec sleep 100");
    machine.script("build-b", &[], "echo b");
    let pid = machine.pid("build-a", "child").to_string();
    let said = machine.run(["jobs", "stop", "build"]);
    assert_eq!(said.code, Some(64));
    assert!(said.err.contains("build-a, build-b"), "{said:?}");
    assert_eq!(machine.ok(["jobs", "logs", "build-b"]).out, "b\n");
    assert_eq!(machine.run(["jobs", "stop", "none"]).code, Some(1));
    assert!(machine.ok(["jobs", "stop", &pid]).out.contains("build-a: cancelled"));
}

#[test]
fn two_resumes_start_one_child_and_lose_no_record() {
    let machine = Machine::new();
    machine.script(
        "r",
        &[],
        "[ -n \"$WAYBILL_RESUME\" ] && { echo x >> copies; exec sleep 100; }; kill -9 $$",
    );
    let resume = |machine: &Machine| {
        machine
            .command()
            .args(["jobs", "resume", "r"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut all: Vec<_> = (0..4).map(|_| resume(&machine)).collect();
    let mut codes: Vec<_> = all.iter_mut().map(|child| child.wait().unwrap().code().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 2, 2, 2]);
    machine.until(|| machine.project().join("copies").exists());
    assert_eq!(fs::read_to_string(machine.project().join("copies")).unwrap(), "x\n");
    assert_eq!(machine.shown("r"), "in_progress");
    machine.ok(["jobs", "stop", "r"]);
    machine.ok(["verify", "r"]);
}

#[test]
fn a_stop_during_a_resume_leaves_nothing_alive() {
    for wait in [0, 5, 20, 60] {
        let machine = Machine::new();
        machine.script("r", &[], "[ -n \"$WAYBILL_RESUME\" ] && exec sleep 100; kill -9 $$");
        let mut resume = machine
            .command()
            .args(["jobs", "resume", "r"])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        machine.ok(["jobs", "stop", "r"]);
        resume.wait().unwrap();
        assert_eq!(machine.status("r"), "cancelled", "after {wait} ms");
        assert_eq!(machine.shown("r"), "cancelled");
        assert!(!machine.point("r"));
        machine.until(|| machine.processes().is_empty());
        machine.decided("r", "ended deliberately");
        machine.ok(["verify", "r"]);
    }
}

#[test]
fn a_resumed_command_gets_the_state_and_redoes_nothing() {
    let machine = Machine::new();
    let script = r#"
        if [ -z "$WAYBILL_RESUME" ]; then
            for t in a b c; do "$W" record --kind task.scheduled --task $t -q; done
            "$W" record --kind task.started --task a -q; "$W" record --kind task.completed --task a -q
            "$W" record --kind task.started --task b -q
            kill -9 $$
        fi
        grep -A3 frontier "$WAYBILL_STATE" | tr -d ' \n'; echo
        "$W" ledger state "$WAYBILL_RUN_ID" --json | grep -c completed_tasks
        for t in b c; do "$W" record --kind task.completed --task $t -q; done
    "#;
    assert_eq!(machine.script("r", &[], script).code, Some(137));
    machine.ok(["jobs", "resume", "r"]);
    machine.ended("r");
    assert_eq!(machine.status("r"), "complete");
    let log = machine.ok(["jobs", "logs", "r"]).out;
    assert!(log.contains("\"b\""), "{log}");
    let entries = machine.entries("r");
    let of_a = entries.iter().filter(|entry| entry.ends_with(" a")).count();
    assert_eq!(of_a, 3, "{entries:?}");
    // The tasks of the frontier are signalled, but for the command itself.
    assert!(machine.project().join(".sdd/runtime/resume/b.signal").exists());
    assert!(!machine.project().join(".sdd/runtime/resume/main.signal").exists());
}

#[test]
fn a_command_is_started_on_a_fetched_ledger() {
    let machine = Machine::new();
    machine.ok(["ledger", "open", "r"]);
    machine.ok(["ledger", "append", "r", "--kind", "task.started", "--task", "build"]);
    let arguments =
        ["run", "--resume", "r", "--", "sh", "-c", "echo $WAYBILL_RESUME; cat \"$WAYBILL_STATE\""];
    let said = machine.ok(arguments);
    assert!(said.out.starts_with("1\n") && said.out.contains("\"build\""), "{said:?}");
    let entries = machine.entries("r");
    assert_eq!(
        entries[2..],
        ["run.resumed", "task.scheduled main", "task.resumed main", "task.completed main", "run.closed"]
    );
    assert_eq!(machine.status("r"), "complete");
    // A closed run stays closed.
    assert_eq!(machine.run(arguments).code, Some(125));
}

#[test]
fn secrets_reach_no_file() {
    let machine = Machine::new();
    let secret = format!("{}{}", "ghp", "_16C7e42F292c6912E7710c838347Ae178B4a");
    let script = format!("echo token {secret}; printf 'a%s' {secret}; exec \"$W\" ask 'use {secret}?'");
    machine.detach("r", &[], &script);
    machine.until(|| machine.shown("r") == "needs_input");
    machine.ok(["jobs", "answer", "r", &secret]);
    machine.ended("r");
    let mut command = machine.command();
    command.env("API_TOKEN", "correct-horse-battery").args(["run", "--id", "e", "--", "sh", "-c"]);
    command.args(["echo $API_TOKEN; exit 1", "correct-horse-battery"]);
    assert_eq!(command.output().unwrap().status.code(), Some(1));
    let mut files = Vec::new();
    let mut folders = vec![machine.data(), machine.project()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert!(files.len() > 10);
    for file in files {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains(&secret) && !text.contains("correct-horse"), "{}", file.display());
    }
    // What is not stored can't be started again, and burns no attempt.
    let decisions = machine.sweep(&[]);
    assert_eq!(decisions["e"].0, "not ready", "{decisions:?}");
    assert_eq!(machine.attempts("e"), 0);
}

#[test]
fn the_console_log_is_kept_escaped_and_bounded() {
    let machine = Machine::new();
    let said = machine.script("r", &["--console-limit", "1"], "printf 'a\\033[31mb\\tc\\n'; seq 1 400000");
    assert_eq!(said.code, Some(0));
    assert!(said.out.starts_with("a\u{1b}[31mb"), "the terminal gets it as it is");
    let logs = machine.ok(["jobs", "logs", "r"]).out;
    assert!(!logs.contains('\u{1b}') && logs.ends_with("400000\n"));
    let size = |name: &str| fs::metadata(machine.file("r", name)).unwrap().len();
    assert!(size("console.log") <= 1 << 20 && size("console.log.1") <= 1 << 20);
    assert_eq!(machine.ok(["jobs", "logs", "r", "--last", "2"]).out, "399999\n400000\n");
}

#[test]
fn files_are_this_user_s_alone_and_links_are_refused() {
    let machine = Machine::new();
    machine.script("r", &[], "echo x; \"$W\" record --heartbeat --worker w; exit 1");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & MODE;
    assert_eq!(mode(&machine.data().join("runs")), 0o700);
    assert_eq!(mode(&machine.data().join("runs/r")), 0o700);
    for entry in fs::read_dir(machine.data().join("runs/r")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    // A record that others could have written is not believed, nor is one behind a link.
    let record = machine.file("r", "record.json");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(machine.shown("r"), "damaged");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&record, machine.root().join("record.json")).unwrap();
    std::os::unix::fs::symlink(machine.root().join("record.json"), &record).unwrap();
    assert_eq!(machine.shown("r"), "damaged");
    assert_eq!(machine.run(["jobs", "resume", "r"]).code, Some(2));
    fs::remove_file(&record).unwrap();
    assert_eq!(machine.shown("r"), "damaged");
    machine.decided("r", "damaged");
    assert!(machine.data().join("runs/r").is_dir(), "its folder is kept");
    fs::rename(machine.data().join("runs"), machine.root().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(machine.root().join("elsewhere"), machine.data().join("runs")).unwrap();
    assert_eq!(machine.run(["jobs", "list"]).code, Some(74));
    assert_eq!(machine.script("s", &[], "true").code, Some(125));
}

#[test]
fn attach_follows_a_run_and_answers_it() {
    let machine = Machine::new();
    machine.detach("r", &[], "echo first; \"$W\" ask 'go on?' && echo second");
    machine.until(|| machine.shown("r") == "needs_input");
    let mut attach = machine
        .command()
        .args(["jobs", "attach", "r"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What is typed before the question is shown is no answer.
    std::thread::sleep(Duration::from_millis(700));
    attach.stdin.as_mut().unwrap().write_all(b"yes\n").unwrap();
    let said: Said = attach.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.starts_with("first\n") && said.out.contains("second"), "{said:?}");
    assert!(said.err.contains("asks (q1): go on?") && said.err.contains("run r: complete"), "{said:?}");
}

#[test]
fn the_supervisor_killed_at_any_moment_leaves_a_run_that_goes_on() {
    for wait in [0, 10, 20, 40, 80, 160] {
        let machine = Machine::new();
        // Goes on until its recorder is gone: whenever the kill comes, it comes in the middle.
        let script = "i=0; while [ $i -lt 20 ] || [ -z \"$WAYBILL_RESUME\" ]; do \
                      i=$((i+1)); \"$W\" record --kind step.done --task t$i -q || exit 1; done";
        let mut command = machine.command();
        command.args(["run", "--id", "r", "--", "sh", "-c", script]).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        if !machine.file("r", "record.json").exists() {
            continue;
        }
        // Without its recorder the command fails and ends by itself.
        machine.until(|| machine.shown("r") != "orphaned");
        let decision = machine.sweep(&[])["r"].0.clone();
        match decision.as_str() {
            "continue" => {
                machine.ended("r");
                assert_eq!(machine.status("r"), "complete");
                machine.ok(["verify", "r"]);
                machine.ok(["journal", "verify", "r"]);
            }
            "no resume point" => assert!(machine.entries("r").len() < 4),
            other => panic!("{other} after {wait} ms"),
        }
    }
}

/// How an anchor comes from the remote to a machine.
const FETCHES: [(&str, &[&str]); 2] = [
    ("ledger and anchor", &["ledger", "fetch", "r"]),
    ("only the anchor", &["fetch", "-q", "origin", "refs/bernstein/*:refs/bernstein/*"]),
];

#[test]
fn a_command_is_started_on_a_ledger_that_comes_from_an_anchor() {
    for (what, fetch) in FETCHES {
        let remote = tempfile::TempDir::new().unwrap();
        git(remote.path(), &["init", "-q", "--bare"]);
        let host = || {
            let machine = Machine::new();
            git(&machine.project(), &["init", "-q"]);
            git(&machine.project(), &["remote", "add", "origin", remote.path().to_str().unwrap()]);
            machine
        };
        let fetched = |machine: &Machine| match fetch[0] {
            "ledger" => drop(machine.ok(fetch)),
            _ => drop(git(&machine.project(), fetch)),
        };
        // On the first machine a run dies.
        let first = host();
        let script = "for t in a b; do \"$W\" record --kind task.scheduled --task $t -q; done; \
                      for k in started completed; do \"$W\" record --kind task.$k --task a -q; done; kill -9 $$";
        first.script("r", &[], script);
        first.ok(["ledger", "anchor", "r"]);
        first.ok(["ledger", "push", "r"]);
        let before = first.entries("r");

        // On the second nothing is known of it but what was pushed.
        let second = host();
        let script = "\"$W\" record --kind task.completed --task b -q; cat \"$WAYBILL_STATE\"";
        let resume = ["run", "--resume", "r", "--", "sh", "-c", script];
        assert_eq!(second.run(resume).code, Some(125), "{what}");
        assert!(!second.project().join(".sdd").exists(), "nothing is begun");
        fetched(&second);
        let said = second.ok(resume);
        let state: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(state["completed_tasks"], serde_json::json!(["a"]), "{what}: {said:?}");
        assert_eq!(state["resume_frontier"], serde_json::json!(["main", "b"]), "{what}: {said:?}");
        let after = second.entries("r");
        assert_eq!(after[..before.len()], before, "{what}");
        let more =
            ["run.resumed", "task.resumed main", "task.completed b", "task.completed main", "run.closed"];
        assert_eq!(after[before.len()..], more, "{what}");
        assert_eq!(second.status("r"), "complete");
        second.ok(["ledger", "anchor", "r"]);
        second.ok(["ledger", "push", "r"]);

        // The first comes back, and learns that the run went on elsewhere.
        fetched(&first);
        let ledger = first.entries("r");
        let said = first.run(["jobs", "resume", "r"]);
        assert_eq!(said.code, Some(2), "{what}: {said:?}");
        let decision = first.sweep(&[])["r"].clone();
        if fetch[0] == "ledger" {
            assert!(said.err.contains("is closed in its ledger"), "{said:?}");
            assert_eq!(decision.0, "ended deliberately");
        } else {
            assert!(said.err.contains("claims 12 entries, the ledger here has 7 entries"), "{said:?}");
            assert_eq!((decision.0.as_str(), said.err.contains(&decision.1)), ("no resume point", true));
        }
        assert_eq!(first.entries("r"), ledger, "{what}: nothing is added");
        // The advice leads somewhere.
        first.ok(["ledger", "verify", "r", "--anchored"]);
        first.ok(["ledger", "resume", "r"]);
        assert_eq!(first.entries("r"), after, "{what}");
        first.decided("r", "ended deliberately");
    }
}

#[test]
fn a_run_is_not_continued_beside_an_anchor_of_another_lineage() {
    let machine = Machine::new();
    git(&machine.project(), &["init", "-q"]);
    machine.script("r", &[], "kill -9 $$");
    machine.ok(["ledger", "anchor", "r"]);
    // Somewhere else it went on from the same entries, and this machine heard of it.
    let ledger = machine.project().join(".sdd/runtime/ledger/r/000000.jsonl");
    let before = fs::read(&ledger).unwrap();
    for task in ["theirs", "ours"] {
        fs::write(&ledger, &before).unwrap();
        machine.ok(["ledger", "append", "r", "--kind", "task.scheduled", "--task", task, "--accept-loss"]);
        if task == "theirs" {
            machine.ok(["ledger", "anchor", "r"]);
        }
    }
    let entries = machine.entries("r");
    let said = machine.run(["jobs", "resume", "r"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("of another lineage") && said.err.contains("ledger diff r"), "{said:?}");
    machine.decided("r", "no resume point");
    assert_eq!(machine.attempts("r"), 0, "no attempt is spent");
    assert_eq!(machine.entries("r"), entries);
    // Once somebody has settled it, it goes on.
    machine.ok(["ledger", "diff", "r", "--keep", "local"]);
    machine.decided("r", "continue");
}
