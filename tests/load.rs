//! Many runs at once: no event is lost, and nobody is taken for stalled.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::help::Machine;

const RUNS: usize = 100;
const EVENTS: usize = 50;

/// The child of a run in [`a_hundred_runs_lose_no_event`]: this very test, started with the run's
/// socket in its environment.
#[test]
fn child() {
    let (Some(socket), Some(_)) = (std::env::var_os("WAYBILL_SOCKET"), std::env::var_os("WAYBILL_TEST_LOAD"))
    else {
        return;
    };
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let start = Instant::now();
    for n in 0..EVENTS {
        let line = format!("{{\"event\":\"tick\",\"n\":{n},\"worker\":\"w\"}}\n");
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.contains("event_hash"), "{answer}");
        let due = Duration::from_millis(100) * u32::try_from(n + 1).unwrap();
        std::thread::sleep(due.saturating_sub(start.elapsed()));
    }
}

#[test]
fn a_hundred_runs_lose_no_event() {
    let machine = Machine::new();
    let test = std::env::current_exe().unwrap();
    let mut supervisors: Vec<_> = (0..RUNS)
        .map(|n| {
            let mut command = machine.command();
            command
                .env("WAYBILL_TEST_LOAD", "1")
                .args(["run", "--stall-after", "15s", "--id"])
                .arg(format!("r{n}"));
            command.arg("--").arg(&test).args(["load::child", "--exact", "--nocapture"]);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for supervisor in &mut supervisors {
        assert_eq!(supervisor.wait().unwrap().code(), Some(0));
    }
    for n in 0..RUNS {
        let run = format!("r{n}");
        let events = machine.events(&run);
        let ticks: Vec<_> = events
            .iter()
            .filter(|event| event["event"] == "tick")
            .map(|event| event["n"].as_u64().unwrap())
            .collect();
        assert_eq!(ticks, (0..u64::try_from(EVENTS).unwrap()).collect::<Vec<_>>());
        assert_eq!(machine.count(&run, "stall.verdict"), 0);
        assert_eq!(events.len(), EVENTS + 2);
    }
}
