//! `top`: what it shows once, as JSON, and live in a terminal.

use std::process::Command;

use serde_json::Value;

use crate::help::Machine;

/// A machine with a run that works, one that stalled, one that asks, and a broken record.
fn busy() -> Machine {
    let machine = Machine::new();
    machine.ok(["keys", "init"]);
    let record = "\"$W\" record -q";
    machine.detach(
        "works",
        &[],
        &format!(
            "{record} --kind task.started --task a; {record} --kind task.completed --task b; {record} \
             --heartbeat --worker w1; exec sleep 100"
        ),
    );
    machine.detach(
        "hangs",
        &["--stall-after", "300ms"],
        &format!("{record} --event tool.called --worker w2; exec sleep 100"),
    );
    machine.detach("asks", &[], "\"$W\" ask \"$(printf 'go \\033[31mon?')\"");
    std::fs::create_dir(machine.data().join("runs/broken")).unwrap();
    machine.until(|| machine.project().join(".sdd/escalation/receipts").is_dir());
    machine.until(|| machine.shown("asks") == "needs_input" && machine.entries("works").len() == 5);
    machine.until(|| machine.ok(["top", "--once"]).out.contains("STALLED"));
    machine
}

#[test]
fn top_shows_runs_workers_questions_and_stalls_with_their_receipts() {
    let machine = busy();
    let text = machine.ok(["top", "--once"]).out;
    for word in [
        "works",
        "in_progress",
        "worker w1",
        "worker w2: STALLED",
        "asks (q1)",
        "no_progress -> respawn",
        "no fork point",
        "spine ",
        "broken  damaged",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
    let document: Value = serde_json::from_str(&machine.ok(["top", "--json"]).out).unwrap();
    let run = |name: &str| {
        let runs = document["runs"].as_array().unwrap();
        runs.iter().find(|run| run["run_id"] == name).unwrap().clone()
    };
    assert_eq!(
        (&run("works")["tasks"]["completed"], &run("works")["tasks"]["started"]),
        (&1.into(), &2.into())
    );
    let stall = &run("hangs")["stalls"][0];
    assert_eq!(
        (&stall["stall_reason"], &stall["recommended_action"]),
        (&"no_progress".into(), &"respawn".into())
    );
    assert!(
        stall.get("signature").is_none()
            && stall["journal_entry_hash"].as_str().unwrap().starts_with("sha256:")
    );
    assert!(run("hangs")["recorded_ms_ago"].is_u64());
    assert_eq!(document["damaged"][0]["run_id"], "broken");
    // Without a terminal it is printed once, too.
    assert!(machine.ok(["top"]).out.contains("works"));
}

#[test]
fn top_is_live_in_a_terminal_and_its_keys_work() {
    if Command::new("tmux").arg("-V").output().is_err() {
        return;
    }
    let machine = busy();
    let socket = machine.root().join("tmux");
    let tmux = |arguments: &[&str]| {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&socket)
            .args(["-f", "/dev/null"])
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let command = format!(
        "env WAYBILL_DATA_DIR='{}' HOME='{}' XDG_RUNTIME_DIR='{}' '{}' top --every 200ms; echo left; exec sleep 100",
        machine.data().display(),
        machine.root().join("home").display(),
        machine.root().join("rt").display(),
        env!("CARGO_BIN_EXE_waybill")
    );
    tmux(&["new-session", "-d", "-x", "110", "-y", "30", &command]);
    let screen = || tmux(&["capture-pane", "-p"]);
    machine.until(|| screen().contains("waybill top: 3 runs"));
    let choose = |run: &str| {
        for _ in 0..5 {
            tmux(&["send-keys", "k"]);
        }
        machine.until(|| {
            let chosen = screen().lines().any(|line| line.contains(&format!("> {run}")));
            if !chosen {
                tmux(&["send-keys", "j"]);
                std::thread::sleep(std::time::Duration::from_millis(200));
            }
            chosen
        });
    };
    choose("hangs");
    machine.until(|| screen().contains("worker w2: STALLED"));
    tmux(&["send-keys", "r"]);
    machine.until(|| screen().contains("journal_head_at_stall"));
    tmux(&["send-keys", "x"]);
    choose("works");
    tmux(&["send-keys", "s"]);
    machine.until(|| screen().contains("stop run works?"));
    tmux(&["send-keys", "n"]);
    assert_eq!(machine.shown("works"), "in_progress");
    tmux(&["send-keys", "s"]);
    machine.until(|| screen().contains("stop run works?"));
    tmux(&["send-keys", "y"]);
    machine.until(|| machine.shown("works") == "cancelled");
    choose("asks");
    tmux(&["send-keys", "a"]);
    machine.until(|| screen().contains("asks (q1)"));
    tmux(&["send-keys", "yes", "Enter"]);
    machine.until(|| machine.shown("asks") == "complete");
    machine.until(|| screen().contains("left"));
    tmux(&["kill-server"]);
}
