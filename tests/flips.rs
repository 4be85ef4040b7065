//! Every single-bit flip in a ledger is a fault named at its entry, or is what the report says
//! it is: not covered and listed, or another form of the same value and warned.

use waybill_verifier::chain::{LastLine, Walk};
use waybill_verifier::ledger::{self, Expect, LedgerRows, Row};
use waybill_verifier::report::{Report, Status, Verdict};

use crate::help::Project;

fn verify(bytes: &[u8]) -> Report {
    let mut walk = Walk::new(LedgerRows::unvisited(None));
    walk.push(bytes);
    ledger::report("run", "ledger", &walk.finish(LastLine::Settled), &Expect::default())
}

/// For each row, the range of the file where its `redactions` and `ts` values stand.
fn uncovered(bytes: &[u8]) -> Vec<[std::ops::Range<usize>; 2]> {
    let mut ranges = Vec::new();
    let mut walk = Walk::new(LedgerRows::new(None, |row: &Row<'_>, place| {
        let start = usize::try_from(place.byte).unwrap();
        let range = |part: &str| {
            let from = start + (part.as_ptr().addr() - row.text.as_ptr().addr());
            from..from + part.len()
        };
        ranges.push([range(row.redactions), range(row.ts)]);
    }));
    walk.push(bytes);
    drop(walk.finish(LastLine::Settled));
    ranges
}

#[test]
fn every_single_bit_flip_in_a_ledger_of_twenty_entries_is_named_or_listed() {
    let project = Project::opened();
    let lines: String = (1..20)
        .map(|n| format!("{{\"kind\":\"task.started\",\"task_id\":\"t{n}\",\"payload\":{{\"text\":\"n\u{e9} {n}\",\"f\":1e{n}}}}}\n"))
        .collect();
    project.feed(&lines, "group");
    let good = project.bytes();
    assert_eq!(verify(&good).verdict, Verdict::Consistent);
    let uncovered = uncovered(&good);
    assert_eq!(uncovered.len(), 20);
    let (mut named, mut listed, mut warned) = (0, 0, 0);
    let mut bytes = good.clone();
    for at in 0..good.len() {
        let entry = good[..at].iter().filter(|&&byte| byte == b'\n').count();
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            let report = verify(&bytes);
            bytes[at] = good[at];
            let failure = report.checks.iter().find(|check| check.status == Status::Fail);
            if let Some(failure) = failure {
                let place = failure.at.as_ref().unwrap().place.unwrap();
                assert_eq!(place.entry, u64::try_from(entry).unwrap(), "byte {at} bit {bit}: {failure:?}");
                assert!(failure.fault.is_some());
                named += 1;
                continue;
            }
            let field = uncovered[entry].iter().position(|range| range.contains(&at));
            let canonical = report.checks.iter().find(|check| check.id == "ledger.canonical").unwrap();
            match field {
                Some(field) => {
                    let name = ["`redactions`", "`ts`"][field];
                    assert!(report.does_not_establish.iter().any(|line| line.contains(name)));
                    listed += 1;
                }
                None => {
                    assert_eq!(canonical.status, Status::Warn, "byte {at} bit {bit}: {report:?}");
                    let place = canonical.at.as_ref().unwrap().place.unwrap();
                    assert_eq!(place.entry, u64::try_from(entry).unwrap());
                    warned += 1;
                }
            }
        }
    }
    assert!(named > 30_000 && listed > 100 && warned > 10, "{named} named, {listed} listed, {warned} warned");
}
