//! Making receipts: windows, degraded ones, the same one again, crashes in between, several at
//! once, secrets; and journals.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::help::{Home, Said, report};

fn events(home: &Home, count: usize) -> Said {
    let lines: String =
        (0..count).map(|n| format!("{{\"event\":\"tool.called\",\"n\":{n},\"é\":\"日本 {n}\"}}\n")).collect();
    feed(home, &lines)
}

fn feed(home: &Home, lines: &str) -> Said {
    let mut child = home
        .command()
        .args(["journal", "record", "r", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = lines.to_owned();
    let feeder = std::thread::spawn(move || drop(input.write_all(lines.as_bytes())));
    let said = child.wait_with_output().unwrap().into();
    feeder.join().unwrap();
    said
}

fn journal(home: &Home) -> PathBuf {
    home.path().join(".sdd/runs/r/journal.jsonl")
}

const EMIT: [&str; 10] = [
    "escalation",
    "emit",
    "r",
    "--worker",
    "w1",
    "--reason",
    "heartbeat_stale",
    "--budget",
    "2",
    "--timestamp=1795977009",
];

#[test]
fn a_receipt_holds_also_after_its_run_went_on() {
    let home = Home::signing();
    assert_eq!(events(&home, 20).code, Some(0));
    home.ok(EMIT);
    let id = home.receipts().pop().unwrap();
    let at_once = home.verify_receipt(&id);
    assert_eq!(at_once.verdict(), "consistent", "{at_once:?}");
    assert_eq!(at_once.0["facts"]["from_step"], 4);
    assert_eq!(at_once.0["facts"]["window_size"], 16);
    assert_eq!(at_once.0["facts"]["recommended_action"], "respawn");
    assert_eq!(at_once.check("audit.mirror")["status"], "pass");
    assert_eq!(events(&home, 30).code, Some(0));
    assert_eq!(home.verify_receipt(&id).verdict(), "consistent");
    // A crash behind the window warns, and changes no verdict.
    let mut bytes = fs::read(journal(&home)).unwrap();
    bytes.extend_from_slice(b"{\"event\":\"to");
    fs::write(journal(&home), bytes).unwrap();
    let torn = home.verify_receipt(&id);
    assert_eq!(
        (torn.verdict(), &torn.check("journal.chain")["status"]),
        ("consistent", &Value::from("warn"))
    );
    // And the next receipt's window ends before it.
    home.ok([&EMIT[..4], &["w2"], &EMIT[5..]].concat());
    for id in home.receipts() {
        assert_eq!(home.verify_receipt(&id).verdict(), "consistent");
    }
}

#[test]
fn the_same_receipt_again_is_there_already_and_changes_nothing() {
    let home = Home::signing();
    events(&home, 3);
    home.ok(EMIT);
    let tree = |home: &Home| {
        let mut files: Vec<_> = [".sdd/escalation/receipts", ".sdd/lineage/escalations", ".sdd/audit"]
            .iter()
            .flat_map(|folder| fs::read_dir(home.path().join(folder)).unwrap())
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = tree(&home);
    let said = home.ok(EMIT);
    assert!(said.out.contains("is there already"), "{said:?}");
    assert_eq!(tree(&home), before);
}

#[test]
fn an_interrupted_receipt_is_completed_from_any_of_its_steps() {
    // What is there after each step: the row, the head file, the receipt; the mirror comes last.
    let spine = ".sdd/lineage/escalations/spine.jsonl";
    let head = ".sdd/lineage/escalations/spine.head";
    for missing in [&["head", "receipt", "mirror"][..], &["receipt", "mirror"], &["mirror"]] {
        let home = Home::signing();
        events(&home, 3);
        home.ok(["escalation", "emit", "r", "--worker", "w0", "--reason", "unknown", "--timestamp", "5"]);
        let early_head = fs::read(home.path().join(head)).unwrap();
        let audit: Vec<_> = fs::read_dir(home.path().join(".sdd/audit"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        home.ok(EMIT);
        let rows = fs::read(home.path().join(spine)).unwrap();
        let id = home.receipts().into_iter().find(|id| {
            fs::read_to_string(home.path().join(format!(".sdd/escalation/receipts/{id}.json")))
                .unwrap()
                .contains("heartbeat_stale")
        });
        let id = id.unwrap();
        for what in missing {
            match *what {
                "head" => fs::write(home.path().join(head), &early_head).unwrap(),
                "receipt" => {
                    fs::remove_file(home.path().join(format!(".sdd/escalation/receipts/{id}.json"))).unwrap();
                }
                _ => audit.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap()),
            }
        }
        home.ok(EMIT);
        assert_eq!(fs::read(home.path().join(spine)).unwrap(), rows, "no second row: {missing:?}");
        let whole = home.verify_receipt(&id);
        assert_eq!(whole.verdict(), "consistent", "{missing:?}: {whole:?}");
        for check in ["spine.head", "audit.mirror"] {
            assert_eq!(whole.check(check)["status"], "pass", "{missing:?}: {check}");
        }
    }
}

#[test]
fn degraded_receipts_say_what_there_was_and_fail_when_events_come() {
    for state in ["missing", "empty"] {
        let home = Home::signing();
        if state == "empty" {
            fs::create_dir_all(journal(&home).parent().unwrap()).unwrap();
            fs::write(journal(&home), "").unwrap();
        }
        home.ok(EMIT);
        let id = home.receipts().pop().unwrap();
        let report = home.verify_receipt(&id);
        assert_eq!(report.verdict(), "degraded", "{report:?}");
        assert_eq!(report.0["facts"]["journal_state"], state);
        events(&home, 1);
        let report = home.verify_receipt(&id);
        assert_eq!(report.first_failure().unwrap()["id"], "receipt.window");
    }
}

#[test]
fn the_same_window_signed_by_two_from_copies_is_the_same_receipt() {
    let one = Home::signing();
    events(&one, 5);
    let other = Home::new();
    crate::help::copy(one.path(), other.path());
    one.ok(EMIT);
    other.ok(EMIT);
    assert_eq!(one.receipts(), other.receipts());
    // As another worker of another signer: another receipt, the same action and window.
    let third = Home::signing();
    fs::create_dir_all(journal(&third).parent().unwrap()).unwrap();
    fs::copy(journal(&one), journal(&third)).unwrap();
    third.ok([&EMIT[..4], &["w9"], &EMIT[5..]].concat());
    assert_ne!(one.receipts(), third.receipts());
    let facts = |home: &Home| home.verify_receipt(&home.receipts()[0]).0["facts"].clone();
    for name in ["recommended_action", "journal_head_at_stall", "from_step", "window_size"] {
        assert_eq!(facts(&one)[name], facts(&third)[name]);
    }
}

#[test]
fn damaged_journals_and_spines_are_not_signed_or_extended() {
    let home = Home::signing();
    events(&home, 3);
    home.ok(EMIT);
    let whole = fs::read_to_string(journal(&home)).unwrap();
    fs::write(journal(&home), whole.replacen("\"n\":1", "\"n\":7", 1)).unwrap();
    home.fails(2, &["damaged", "payload_hash_mismatch"], [&EMIT[..4], &["w2"], &EMIT[5..]].concat());
    home.fails(2, &["damaged"], ["journal", "record", "r", "--event", "a.b"]);
    fs::write(journal(&home), &whole).unwrap();
    let spine = home.path().join(".sdd/lineage/escalations/spine.jsonl");
    let row = fs::read_to_string(&spine).unwrap();
    fs::write(&spine, row.replacen("none", "nine", 1)).unwrap();
    home.fails(2, &["spine is damaged"], [&EMIT[..4], &["w2"], &EMIT[5..]].concat());
    // Rows that the head file counts and that are gone: not a crash's work.
    fs::write(&spine, "").unwrap();
    home.fails(2, &["spine is damaged", "missing"], [&EMIT[..4], &["w2"], &EMIT[5..]].concat());
    // Half a row is.
    fs::write(&spine, format!("{row}{}", &row[..40])).unwrap();
    home.ok([&EMIT[..4], &["w2"], &EMIT[5..]].concat());
    for id in home.receipts() {
        assert_eq!(home.verify_receipt(&id).verdict(), "consistent");
    }
    assert!(home.path().join(".sdd/lineage/escalations/.torn-1").exists());
}

#[test]
fn many_at_once_make_one_spine_and_one_audit_log() {
    let home = Home::signing();
    events(&home, 2);
    home.ok([&EMIT[..4], &["w0"], &EMIT[5..]].concat());
    std::thread::scope(|scope| {
        for process in 0..6 {
            let home = &home;
            scope.spawn(move || {
                for n in 0..3 {
                    home.ok([&EMIT[..4], &[&format!("p{process}-{n}")], &EMIT[5..]].concat());
                    home.ok(["journal", "record", "r", "--event", "beat"]);
                }
            });
        }
    });
    assert_eq!(home.receipts().len(), 19);
    for id in home.receipts() {
        assert_eq!(home.verify_receipt(&id).verdict(), "consistent");
    }
    assert_eq!(report(&home.run(["audit", "verify", "--json"])).entries(), 19);
    let spine = report(&home.run(["verify", ".sdd/lineage/escalations", "--json"]));
    assert_eq!((spine.verdict(), spine.entries()), ("consistent", 19));
    let journal = report(&home.run(["journal", "verify", "r", "--json"]));
    assert_eq!((journal.verdict(), journal.entries()), ("consistent", 20));
}

#[test]
fn an_event_cut_at_any_byte_is_set_aside_and_the_journal_goes_on() {
    let home = Home::signing();
    events(&home, 3);
    let whole = fs::read(journal(&home)).unwrap();
    let third = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    for cut in third..whole.len() {
        fs::write(journal(&home), &whole[..cut]).unwrap();
        home.ok(["journal", "record", "r", "--event", "a.b"]);
        let report = report(&home.run(["journal", "verify", "r", "--json"]));
        let events = if cut + 1 < whole.len() { 3 } else { 4 };
        assert_eq!((report.verdict(), report.entries()), ("consistent", events), "{cut}");
        for entry in fs::read_dir(journal(&home).parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with(".torn") {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

#[test]
fn both_profiles_are_recorded_and_kept() {
    for (profile, name) in [("py-json-v1", "py-json-v1"), ("jcs-v2", "jcs-v2")] {
        let home = Home::new();
        let record = |more: &[&str]| {
            home.ok([
                &[
                    "journal",
                    "record",
                    "r",
                    "--event",
                    "a.b",
                    "--data",
                    "{\"x\":1e30,\"é\":\"\\ud83d\\ude00\"}",
                ],
                more,
            ]
            .concat())
        };
        record(&["--hash-profile", profile]);
        record(&[]);
        let report = report(&home.run(["journal", "verify", "r", "--json"]));
        assert_eq!(report.verdict(), "consistent");
        assert_eq!(report.0["facts"]["hash_profile"], name);
    }
}

#[test]
fn what_can_t_be_an_event_is_refused_and_the_rest_recorded() {
    let home = Home::new();
    let said = feed(
        &home,
        "{\"event\":\"a\"}\n{\"n\":1}\n{\"event\":\"a\",\"index\":9}\nnot json\n{\"event\":\"a b\"}\n{\"event\":\"z\"}\n",
    );
    assert_eq!(said.code, Some(64), "{said:?}");
    let answers: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let recorded: Vec<_> = answers.iter().map(|answer| answer["index"].as_u64()).collect();
    assert_eq!(recorded, [Some(0), None, None, None, None, Some(1)]);
    assert_eq!(report(&home.run(["journal", "verify", "r", "--json"])).entries(), 2);
}

#[test]
fn secrets_reach_neither_journal_nor_receipt() {
    let home = Home::signing();
    let token = ["ghp", "_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let data = format!("{{\"{token}\":\"see {token}\",\"password\":\"hunter2\"}}");
    home.ok(["journal", "record", "r", "--event", "a.b", "--data", &data]);
    home.ok([&EMIT[..], &["--session", &token, "--extra", &data]].concat());
    home.fails(64, &["looks like a secret"], ["journal", "record", "r", "--event", &token]);
    let mut folders = vec![home.path().join(".sdd")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(&token) && !text.contains("hunter2"), "{}", path.display());
        }
    }
    let id = home.receipts().pop().unwrap();
    assert_eq!(home.verify_receipt(&id).verdict(), "consistent");
}

#[test]
fn required_assurances_are_insisted_on() {
    let home = Home::signing();
    events(&home, 2);
    home.ok(EMIT);
    let id = home.receipts().pop().unwrap();
    let with =
        |requirement: &str| home.run(["escalation", "verify", &id, "--json", "--require", requirement]).code;
    assert_eq!((with("hmac"), with("complete"), with("pinned")), (Some(0), Some(0), Some(2)));
    fs::remove_file(home.key()).unwrap();
    assert_eq!((with("hmac"), with("complete")), (Some(2), Some(2)));
}

#[test]
fn killed_at_any_moment_and_run_again_it_is_whole() {
    let home = Home::signing();
    events(&home, 4);
    home.ok([&EMIT[..4], &["first"], &EMIT[5..]].concat());
    for (round, wait) in (0..24u64).map(|round| (round, round * 700)) {
        let worker = format!("w{round}");
        let arguments = [&EMIT[..4], &[worker.as_str()], &EMIT[5..]].concat();
        let mut child =
            home.command().args(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 2 == 0 {
            home.ok(&arguments);
        }
    }
    // What was never run again may be in the spine alone; what was is whole.
    assert!(home.receipts().len() >= 13);
    let receipts: Vec<_> = home.receipts().iter().map(|id| home.verify_receipt(id)).collect();
    assert!(receipts.iter().all(|receipt| receipt.verdict() == "consistent"), "{receipts:?}");
    let mirrored =
        receipts.iter().filter(|receipt| receipt.check("audit.mirror")["status"] == "pass").count();
    assert!(mirrored >= 13);
    assert_eq!(report(&home.run(["audit", "verify", "--json"])).verdict(), "consistent");
}

#[test]
fn a_disk_that_fails_in_between_is_said_and_the_next_time_completes_it() {
    let home = Home::signing();
    events(&home, 4);
    home.ok([&EMIT[..4], &["first"], &EMIT[5..]].concat());
    let day = fs::read_dir(home.path().join(".sdd/audit")).unwrap().map(|entry| entry.unwrap().file_name());
    let day = day.map(|name| name.into_string().unwrap()).find(|name| name.ends_with(".jsonl")).unwrap();
    let failing = |variable: &str, name: &str, arguments: &[&str]| -> Said {
        let mut command = home.command();
        command.env("LD_PRELOAD", crate::crash::failing_calls()).env(variable, name).args(arguments);
        command.output().unwrap().into()
    };
    for variable in ["FAIL_SYNC", "FAIL_WRITE", "FAIL_SHORT_WRITE"] {
        for name in ["spine.jsonl", &day] {
            let worker = format!("{variable} {name}");
            let arguments = [&EMIT[..4], &[worker.as_str()], &EMIT[5..]].concat();
            let said = failing(variable, name, &arguments);
            assert_eq!(said.code, Some(74), "{worker}: {said:?}");
            assert!(said.out.is_empty() && said.err.contains(name), "{worker}: {said:?}");
            home.ok(&arguments);
        }
        let record = ["journal", "record", "other", "--event", "a.b"];
        home.ok(record);
        let said = failing(variable, "other/journal.jsonl", &record);
        assert_eq!(said.code, Some(74), "{said:?}");
        assert!(said.out.is_empty() && said.err.contains("journal.jsonl"), "{said:?}");
    }
    for id in home.receipts() {
        let report = home.verify_receipt(&id);
        assert_eq!(report.verdict(), "consistent", "{report:?}");
        assert_eq!(report.check("audit.mirror")["status"], "pass");
    }
    assert_eq!(home.receipts().len(), 7);
    assert_eq!(report(&home.run(["audit", "verify", "--json"])).entries(), 7);
    assert_eq!(report(&home.run(["journal", "verify", "other", "--json"])).entries(), 3);
}

#[test]
fn the_first_digits_of_an_id_are_enough_where_they_name_one_receipt() {
    let home = Home::of_vector("receipt", "ok-full-window");
    let id = home.receipts().pop().unwrap();
    let whole = home.verify_receipt(&id);
    assert_eq!(home.verify_receipt(&id[..4]).0, whole.0);
    assert_eq!(home.ok(["escalation", "show", &id[..9]]).out, home.ok(["escalation", "show", &id]).out);
    let file = |id: &str| home.path().join(format!(".sdd/escalation/receipts/{id}.json"));
    let others: Vec<_> = ["0", "1"].iter().map(|digit| format!("{}{}", &id[..6], digit.repeat(26))).collect();
    for (count, other) in others.iter().enumerate() {
        fs::copy(file(&id), file(other)).unwrap();
        for command in ["show", "verify"] {
            let said = home.fails(64, &[&id[..6], &others[0]], ["escalation", command, &id[..6]]);
            assert_eq!(said.err.lines().count(), 1, "{said:?}");
            assert!(said.err.contains(["more of its digits", "and 1 more"][count]), "{said:?}");
            // What is exact, or goes on, is no other's.
            assert!(home.run(["escalation", command, &id]).out.contains(&id));
            assert!(home.run(["escalation", command, &id[..8]]).out.contains(&id));
        }
    }
    home.fails(1, &["no receipt 0000 here"], ["escalation", "verify", "0000"]);
    for wrong in [&id[..3], "", "793C8E6B", &format!("{id}0"), "793c…"] {
        home.fails(64, &["32 lowercase hex"], ["escalation", "show", wrong]);
    }
}

#[test]
fn what_is_empty_is_shown_as_such_and_an_unknown_end_with_its_mend() {
    let home = Home::signing();
    events(&home, 1);
    home.ok(EMIT);
    let shown = home.ok(["escalation", "show", &home.receipts()[0]]).out;
    let session = shown.lines().find(|line| line.starts_with("session_id")).unwrap();
    assert_eq!(session.split_whitespace().collect::<Vec<_>>(), ["session_id", "-"]);
    let text = home.ok(["journal", "verify", "r"]).out;
    assert!(text.contains("cut off at the end: give --expected-head where it is known"), "{text}");
}
