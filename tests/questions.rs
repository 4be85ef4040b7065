//! Questions: who asks waits, who answers is heard, and no answer goes to another question.

use std::fs;

use nix::sys::signal::Signal;

use crate::help::{Machine, alive, kill};

#[test]
fn ask_parks_the_run_until_it_is_answered() {
    let machine = Machine::new();
    for (answer, code) in [("yes", 0), ("no", 1), ("the second one", 0)] {
        let run = answer.replace(' ', "-");
        machine.detach(&run, &[], "\"$W\" ask 'deploy?'; echo \"code $?\"");
        machine.until(|| machine.shown(&run) == "needs_input");
        assert_eq!(machine.status(&run), "needs_input");
        assert!(machine.ok(["jobs", "list"]).out.contains("asks (q1): deploy?"));
        machine.decided(&run, "still running");
        machine.ok(["jobs", "answer", &run, answer]);
        machine.ended(&run);
        assert_eq!(machine.ok(["jobs", "logs", &run]).out, format!("{answer}\ncode {code}\n"));
        assert_eq!(machine.status(&run), "complete");
        assert_eq!((machine.count(&run, "run.asked"), machine.count(&run, "run.answered")), (1, 1));
    }
}

/// A run that asks, killed while it waits.
fn killed_while_it_waits() -> Machine {
    let machine = Machine::new();
    machine.detach(
        "r",
        &[],
        "a=$(\"$W\" ask 'which?'); echo \"got $a\"; [ \"$a\" = this ] && \"$W\" ask 'more?'",
    );
    machine.until(|| machine.shown("r") == "needs_input");
    let (supervisor, child) = (machine.pid("r", "supervisor"), machine.pid("r", "child"));
    kill(supervisor, Signal::SIGKILL);
    kill(child, Signal::SIGKILL);
    machine.until(|| !alive(supervisor) && machine.sweep(&["--dry-run"])["r"].0 != "still running");
    machine
}

#[test]
fn a_dead_run_s_question_is_answered_and_makes_it_resumable() {
    let machine = killed_while_it_waits();
    assert_eq!(machine.shown("r"), "needs_input");
    machine.decided("r", "needs input");
    assert_eq!(machine.attempts("r"), 0);
    let said = machine.ok(["jobs", "answer", "r", "this"]);
    assert!(said.out.contains("is not running"), "{said:?}");
    machine.decided("r", "continue");
    // The same question gets its answer at once; the next one does not.
    machine.until(|| machine.ok(["jobs", "logs", "r"]).out.contains("got this"));
    machine.until(|| machine.shown("r") == "needs_input");
    assert!(machine.ok(["jobs", "list"]).out.contains("asks (q2): more?"));
    machine.ok(["jobs", "answer", "r", "yes"]);
    machine.ended("r");
    assert_eq!(machine.status("r"), "complete");
    machine.ok(["journal", "verify", "r"]);
}

#[test]
fn a_stale_answer_never_answers_a_new_question() {
    let machine = Machine::new();
    machine.detach("r", &[], "\"$W\" ask 'first?'; \"$W\" ask 'second?'; echo done");
    machine.until(|| machine.shown("r") == "needs_input");
    machine.ok(["jobs", "answer", "r", "--question", "q1", "yes"]);
    machine.until(|| machine.ok(["jobs", "list"]).out.contains("q2"));
    let said = machine.run(["jobs", "answer", "r", "--question", "q1", "yes"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("not open (any more)"), "{said:?}");
    assert_eq!(machine.shown("r"), "needs_input");
    machine.ok(["jobs", "answer", "r", "no"]);
    machine.ended("r");
    assert_eq!(machine.run(["jobs", "answer", "r", "late"]).code, Some(2));
}

#[test]
fn an_answer_to_a_dead_run_is_not_for_another_question() {
    let machine = Machine::new();
    let script = "if [ -z \"$WAYBILL_RESUME\" ]; then \"$W\" ask 'old?'; else \"$W\" ask 'new?'; fi";
    machine.detach("r", &[], script);
    machine.until(|| machine.shown("r") == "needs_input");
    let (supervisor, child) = (machine.pid("r", "supervisor"), machine.pid("r", "child"));
    kill(supervisor, Signal::SIGKILL);
    kill(child, Signal::SIGKILL);
    machine.until(|| !alive(supervisor) && machine.sweep(&["--dry-run"])["r"].0 == "needs input");
    machine.ok(["jobs", "answer", "r", "yes"]);
    machine.decided("r", "continue");
    machine.until(|| machine.shown("r") == "needs_input");
    assert!(machine.ok(["jobs", "list"]).out.contains("asks (q2): new?"));
    machine.ok(["jobs", "stop", "r"]);
}

#[test]
fn a_question_whose_asker_is_gone_is_withdrawn_while_the_run_goes_on() {
    let machine = Machine::new();
    machine.detach("r", &[], "\"$W\" ask 'which?' & sleep 0.5; kill -9 $!; exec sleep 100");
    machine.until(|| machine.count("r", "run.asked") == 1);
    machine
        .until(|| machine.shown("r") == "in_progress" && machine.count("r", "run.question_withdrawn") == 1);
    assert_eq!(machine.run(["jobs", "answer", "r", "yes"]).code, Some(2));
    machine.ok(["jobs", "stop", "r"]);
}

#[test]
fn of_several_questions_one_must_be_named() {
    let machine = Machine::new();
    machine.detach("r", &[], "\"$W\" ask 'a?' --worker a & \"$W\" ask 'b?' --worker b & wait; echo done");
    let open = || {
        fs::read_to_string(machine.file("r", "questions.json")).unwrap_or_default().matches("null").count()
    };
    machine.until(|| open() == 2);
    let said = machine.run(["jobs", "answer", "r", "yes"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("several open questions"), "{said:?}");
    machine.ok(["jobs", "answer", "r", "--question", "q2", "yes"]);
    assert_eq!(machine.shown("r"), "needs_input");
    machine.ok(["jobs", "answer", "r", "yes"]);
    machine.ended("r");
    assert_eq!(machine.status("r"), "complete");
}
