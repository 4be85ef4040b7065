//! Stalls: who hangs is found, what is recorded of it holds, and nobody else is harmed.

use std::fs;
use std::time::{Duration, Instant};

use crate::help::{Machine, alive};

/// Receipts of a machine's project, by id.
fn receipts(machine: &Machine) -> Vec<String> {
    let folder = machine.project().join(".sdd/escalation/receipts");
    let names = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_str().unwrap().trim_end_matches(".json").to_owned()).collect()
}

fn signing() -> Machine {
    let machine = Machine::new();
    machine.ok(["keys", "init"]);
    machine
}

/// What a receipt says, once it was verified.
#[track_caller]
fn verified(machine: &Machine, id: &str) -> serde_json::Value {
    let said = machine.ok(["escalation", "verify", id, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["verdict"], "consistent", "{said:?}");
    machine.ok(["escalation", "show", id]);
    let path = machine.project().join(".sdd/escalation/receipts").join(format!("{id}.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_worker_that_hangs_is_found_within_its_limit_and_its_receipt_holds() {
    // It sleeps, it spins, it stops itself.
    for hang in ["exec sleep 100", "while :; do :; done", "kill -STOP $$"] {
        let machine = signing();
        let script = format!("\"$W\" record --event tool.called --worker w1 -q; {hang}");
        let start = Instant::now();
        let said =
            machine.script("r", &["--stall-after", "1s", "--on-stall", "stop", "--grace", "500ms"], &script);
        assert_eq!(said.code, Some(3), "{said:?}");
        assert!(start.elapsed() < Duration::from_secs(20));
        let [id] = receipts(&machine).try_into().unwrap();
        let receipt = verified(&machine, &id);
        assert_eq!((&receipt["worker_id"], &receipt["stall_reason"]), (&"w1".into(), &"no_progress".into()));
        // The window ends with the verdict, behind the last event before the hang; the end comes later.
        let events = machine.events("r");
        let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!(names, ["run.started", "tool.called", "stall.verdict", "run.exit"]);
        assert_eq!(receipt["journal_head_at_stall"], events[2]["event_hash"]);
        let silent = events[2]["silent_s"].as_f64().unwrap();
        assert!((1.0..3.0).contains(&silent), "{silent}");
    }
}

#[test]
fn a_report_harms_nothing_and_is_made_once_for_a_silence() {
    let machine = signing();
    let said = machine.script("r", &["--stall-after", "300ms"], "sleep 1.5; echo again; sleep 0.8; exit 5");
    assert_eq!(said.code, Some(5), "{said:?}");
    assert_eq!(machine.count("r", "stall.verdict"), 2, "two silences");
    assert_eq!(receipts(&machine).len(), 2);
    for id in receipts(&machine) {
        assert_eq!(verified(&machine, &id)["worker_id"], "main");
    }
    assert_eq!(machine.status("r"), "error", "the child's own end");
}

#[test]
fn one_worker_s_stall_is_seen_beside_another_s_work_and_output() {
    let machine = signing();
    let script = r#"
        "$W" record --heartbeat --worker slow --session s1 --worktree /w -q
        for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            echo line; "$W" record --event step --worker quick -q; sleep 0.1
        done
        "$W" record --done --worker quick -q
    "#;
    let said = machine.script("r", &["--stall-after", "1s"], script);
    assert_eq!(said.code, Some(0), "{said:?}");
    let verdicts: Vec<_> =
        machine.events("r").into_iter().filter(|event| event["event"] == "stall.verdict").collect();
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    assert_eq!((&verdicts[0]["worker"], &verdicts[0]["session"]), (&"slow".into(), &"s1".into()));
    assert_eq!(verdicts[0]["reason"], "heartbeat_stale");
    // The journal gets the last heartbeat, so that the window shows it.
    assert_eq!(machine.count("r", "worker.heartbeat"), 1);
    let receipt = verified(&machine, &receipts(&machine)[0]);
    assert_eq!((&receipt["worktree_id"], &receipt["recommended_action"]), (&"/w".into(), &"respawn".into()));
}

#[test]
fn signs_of_life_of_each_kind_keep_a_run_from_being_judged() {
    let machine = signing();
    for (run, sign) in [
        ("output", "echo x"),
        ("event", "\"$W\" record --event e -q"),
        ("transition", "\"$W\" record --kind step.done --task t -q"),
        ("heartbeat", "\"$W\" record --heartbeat -q"),
    ] {
        let script = format!("for i in 1 2 3 4 5 6 7 8; do {sign}; sleep 0.3; done");
        assert_eq!(machine.script(run, &["--stall-after", "1500ms"], &script).code, Some(0));
        assert_eq!(machine.count(run, "stall.verdict"), 0, "{run}");
    }
}

#[test]
fn a_quiet_build_under_the_default_is_let_alone() {
    let machine = signing();
    assert_eq!(machine.script("r", &[], "sleep 2").code, Some(0));
    assert_eq!(machine.count("r", "stall.verdict"), 0);
    // And one that is over its limit is reported, and goes on.
    machine.detach("s", &["--stall-after", "200ms"], "sleep 1; echo built; exec sleep 100");
    machine.until(|| machine.count("s", "stall.verdict") > 0);
    assert!(alive(machine.pid("s", "child")));
    machine.until(|| machine.ok(["jobs", "logs", "s"]).out.contains("built"));
    machine.ok(["jobs", "stop", "s"]);
}

#[test]
fn who_waits_for_an_answer_does_not_stall() {
    let machine = signing();
    machine.detach("r", &["--stall-after", "300ms"], "\"$W\" ask 'which?'");
    machine.until(|| machine.shown("r") == "needs_input");
    std::thread::sleep(Duration::from_secs(1));
    machine.ok(["jobs", "answer", "r", "this"]);
    machine.ended("r");
    assert_eq!((machine.status("r").as_str(), machine.count("r", "stall.verdict")), ("complete", 0));
}

#[test]
fn auto_respawns_within_its_budget_with_the_frontier_and_then_parks() {
    let machine = signing();
    let script = r#"
        echo "start $WAYBILL_RESUME"
        if [ -z "$WAYBILL_RESUME" ]; then
            "$W" record --kind task.started --task a -q; "$W" record --kind task.completed --task a -q
            "$W" record --kind task.started --task b -q
        else
            grep -q '"b"' "$WAYBILL_STATE" && echo "goes on with b"
        fi
        exec sleep 100
    "#;
    let said = machine.script(
        "r",
        &["--stall-after", "500ms", "--on-stall", "auto", "--respawns", "2", "--grace", "2s"],
        script,
    );
    assert_eq!(said.code, Some(143), "{said:?}");
    assert_eq!(said.out, "start \nstart 1\ngoes on with b\nstart 1\ngoes on with b\n");
    assert_eq!(machine.status("r"), "paused");
    assert!(machine.point("r"));
    let mut actions: Vec<_> = receipts(&machine)
        .iter()
        .map(|id| {
            let receipt = verified(&machine, id);
            (receipt["respawn_budget_remaining"].as_u64().unwrap(), receipt["recommended_action"].clone())
        })
        .collect();
    actions.sort_by_key(|(budget, _)| *budget);
    assert_eq!(actions, [(0, "park".into()), (1, "respawn".into()), (2, "respawn".into())]);
    let of_a = machine.entries("r").iter().filter(|entry| entry.ends_with(" a")).count();
    assert_eq!(of_a, 2, "completed work is not redone");
}

#[test]
fn auto_leaves_alone_what_a_person_must_look_at() {
    let machine = signing();
    let script = "\"$W\" record --event auth.denied -q; sleep 1.5; exit 0";
    let said = machine.script("r", &["--stall-after", "500ms", "--on-stall", "auto"], script);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(verified(&machine, &receipts(&machine)[0])["recommended_action"], "escalate");
    assert_eq!(machine.count("r", "run.respawned"), 0);
}

#[test]
fn a_stall_without_an_identity_is_recorded_and_says_what_is_missing() {
    let machine = Machine::new();
    let said = machine.script("r", &["--stall-after", "300ms"], "sleep 1");
    assert_eq!(said.code, Some(0));
    assert!(said.err.contains("keys init"), "{said:?}");
    assert_eq!(machine.count("r", "stall.verdict"), 1);
}

#[test]
fn a_held_up_supervisor_judges_nobody_for_its_own_pause() {
    use nix::sys::signal::Signal;
    let machine = signing();
    let script = "while :; do \"$W\" record --heartbeat --worker w1 -q || exit 1; sleep 0.1; done";
    machine.detach("r", &["--stall-after", "3s"], script);
    std::thread::sleep(Duration::from_millis(500));
    let supervisor = machine.pid("r", "supervisor");
    crate::help::kill(supervisor, Signal::SIGSTOP);
    std::thread::sleep(Duration::from_secs(6));
    crate::help::kill(supervisor, Signal::SIGCONT);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(machine.count("r", "stall.verdict"), 0);
    machine.ok(["jobs", "stop", "r"]);
}
