//! A report in the forms that CI systems read.
//!
//! What comes from evidence is data in all of them: it can't end a field, begin a command or
//! become markup. GitHub reads commands from lines that begin with `::`, and from `##[` anywhere
//! in a line; so every line here begins with words of ours, and `##[` is taken apart.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::hash::Digest;
use crate::json::{Object, Value, ascii_indented};
use crate::report::{Check, Report, Status, counted, is_hidden};

/// GitHub shows at most ten annotations a step: nine, and one that says how many more there are.
const MAX_ANNOTATIONS: usize = 9;
/// The longest sentence that is shown.
const MAX_SENTENCE: usize = 1000;
/// GitHub takes a job summary of at most 1 MiB.
const MAX_SUMMARY: usize = 900 << 10;
/// How many findings a file for a machine lists.
const MAX_LISTED: usize = 5000;

/// What can be said about lines for GitHub.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Annotations {
    /// The workflow commands, one a line.
    pub lines: String,
    /// How many findings there are in all.
    pub count: usize,
}

/// One check that did not pass, and whose it is.
struct Finding<'a> {
    subject: &'a str,
    check: &'a Check,
}

impl Finding<'_> {
    fn file(&self) -> Option<&str> {
        let at = self.check.at.as_ref()?;
        // Places in refs and archives are no files of the repository.
        at.file.starts_with('.').then_some(at.file.as_str())
    }

    fn line(&self) -> u64 {
        let place = self.check.at.as_ref().and_then(|at| at.place);
        place.map_or(1, |place| place.line.max(1))
    }

    /// The same finding has the same one in each run.
    fn fingerprint(&self) -> String {
        let text = format!("{}\0{}\0{}", self.subject, self.check.id, self.check.sentence);
        Digest::of(text.as_bytes()).to_hex()
    }
}

fn findings(report: &Report) -> Vec<Finding<'_>> {
    let mut found = Vec::new();
    let mut reports = vec![report];
    while let Some(report) = reports.pop() {
        found.extend(
            report
                .checks
                .iter()
                .filter(|check| matches!(check.status, Status::Fail | Status::NotChecked | Status::Warn))
                .map(|check| Finding { subject: &report.subject.1, check }),
        );
        reports.extend(report.parts.iter().rev());
    }
    found.sort_by_key(|finding| match finding.check.status {
        Status::Fail => 0,
        Status::NotChecked => 1,
        _ => 2,
    });
    found
}

/// A sentence for a line of a log: without control and bidi characters, cut, and no command.
#[must_use]
pub fn plain(text: &str) -> String {
    cut(text, MAX_SENTENCE)
}

/// Text without control and bidi characters, cut to `most` characters.
fn cut(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (count, found) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        if is_hidden(found) {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(found)));
        } else {
            out.push(found);
        }
    }
    out.replace("##[", "# #[")
}

/// Workflow commands for GitHub: at most nine annotations, and how many more there are.
#[must_use]
pub fn github(report: &Report) -> Annotations {
    let findings = findings(report);
    let mut lines = String::new();
    for finding in findings.iter().take(MAX_ANNOTATIONS) {
        let command = match finding.check.status {
            Status::Fail => "error",
            Status::NotChecked => "warning",
            _ => "notice",
        };
        let place = finding.file().map_or_else(String::new, |file| {
            format!("file={},line={},", property(&cut(file, 400)), finding.line())
        });
        let title = format!("{}: {}", finding.check.id, cut(finding.subject, 100));
        let said = cut(&finding.check.sentence, MAX_SENTENCE);
        lines.push_str(&format!("::{command} {place}title={}::{}\n", property(&title), data(&said)));
    }
    if findings.len() > MAX_ANNOTATIONS {
        let more = findings.len() - MAX_ANNOTATIONS;
        lines.push_str(&format!("::notice title=waybill::and {more} more: see the job summary\n"));
    }
    Annotations { lines, count: findings.len() }
}

/// What a workflow's log gets: the annotations, then a line of what came out.
#[must_use]
pub fn github_log(report: &Report) -> String {
    format!("{}waybill: {}: {}\n", github(report).lines, report.verdict.name(), plain(&report.summary))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The job summary for GitHub, as Markdown, less than 1 MiB.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut out = format!(
        "### waybill: {}\n\n{}\n\n",
        report.verdict.name(),
        cell(&cut(&report.summary, MAX_SENTENCE))
    );
    let findings = findings(report);
    if findings.is_empty() {
        let checked = counted(report.parts.len(), "subject");
        out.push_str(&format!("{checked} checked, nothing to report.\n"));
        return out;
    }
    out.push_str("| | check | subject | place | |\n| --- | --- | --- | --- | --- |\n");
    for (index, finding) in findings.iter().enumerate() {
        let place = finding.check.at.as_ref().map_or_else(String::new, |at| match at.place {
            Some(place) => format!("{}:{}", cut(&at.file, 200), place.line),
            None => cut(&at.file, 200),
        });
        let row = format!(
            "| {} | `{}` | {} | {} | {} |\n",
            finding.check.status.word(),
            finding.check.id,
            cell(&cut(finding.subject, 200)),
            cell(&place),
            cell(&cut(&finding.check.sentence, MAX_SENTENCE))
        );
        if out.len() + row.len() > MAX_SUMMARY {
            out.push_str(&format!("\nand {} more\n", findings.len() - index));
            break;
        }
        out.push_str(&row);
    }
    out
}

/// Text in a cell of a table: no markup, no link, no mention. GitHub links addresses and names in
/// plain text, too, also where they are written as entities: a comment takes those apart.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for found in text.chars() {
        match found {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;<!-- -->"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '#' | '~' | '!' | ':' | '.' | '$' => {
                out.push_str(&format!("&#{};", u32::from(found)));
            }
            found => out.push(found),
        }
    }
    out
}

/// JUnit XML, as Jenkins' schema has it: a suite a subject, a case a check.
#[must_use]
pub fn junit(report: &Report) -> String {
    let mut suites = String::new();
    let (mut tests, mut failures) = (0, 0);
    let mut listed = 0;
    // Where there are too many, what failed is listed.
    let mut reports = vec![report];
    reports.extend(report.parts.iter());
    reports.sort_by_key(|report| report.checks.iter().all(|check| check.status != Status::Fail));
    for report in reports {
        if listed > MAX_LISTED {
            break;
        }
        let failed = report.checks.iter().filter(|check| check.status == Status::Fail).count();
        let skipped = report.checks.iter().filter(|check| is_skipped(check)).count();
        tests += report.checks.len();
        failures += failed;
        let name = xml(&cut(&format!("{} {}", report.subject.0, report.subject.1), 300));
        suites.push_str(&format!(
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">\n",
            report.checks.len()
        ));
        for check in &report.checks {
            listed += 1;
            let said = xml(&cut(&check.sentence, MAX_SENTENCE));
            let case = format!("    <testcase name=\"{}\" classname=\"{name}\"", xml(check.id));
            let body = match check.status {
                Status::Fail => {
                    let kind = xml(check.fault.unwrap_or("failed"));
                    format!(">\n      <failure type=\"{kind}\" message=\"{said}\"/>\n    </testcase>\n")
                }
                _ if is_skipped(check) => {
                    format!(">\n      <skipped>{said}</skipped>\n    </testcase>\n")
                }
                _ => String::from("/>\n"),
            };
            suites.push_str(&case);
            suites.push_str(&body);
        }
        suites.push_str("  </testsuite>\n");
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"waybill\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">\n{suites}</testsuites>\n"
    )
}

fn is_skipped(check: &Check) -> bool {
    matches!(check.status, Status::NotChecked | Status::NotApplicable)
}

fn xml(text: &str) -> String {
    let mut out = String::new();
    for found in text.chars() {
        match found {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // No character of XML 1.0.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            found => out.push(found),
        }
    }
    out
}

/// SARIF 2.1.0.
#[must_use]
pub fn sarif(report: &Report, version: &str) -> Vec<u8> {
    let findings = findings(report);
    let mut ids: Vec<&str> = findings.iter().map(|finding| finding.check.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let text = |text: &str| Value::from(Object::of([("text", Value::from(text))]));
    let rules = ids.iter().map(|id| {
        Value::from(Object::of([
            ("id", Value::from(*id)),
            ("shortDescription", text(&format!("'waybill explain {id}' says what it means"))),
        ]))
    });
    let results = findings.iter().take(MAX_LISTED).map(|finding| {
        let level = match finding.check.status {
            Status::Fail => "error",
            Status::NotChecked => "warning",
            _ => "note",
        };
        let said = format!("{}: {}", cut(finding.subject, 200), cut(&finding.check.sentence, MAX_SENTENCE));
        let uri = finding.file().unwrap_or(super::HEADS);
        let region = Object::of([("startLine", Value::from(finding.line()))]);
        let physical = Object::of([
            ("artifactLocation", Value::from(Object::of([("uri", Value::from(uri_of(uri)))]))),
            ("region", Value::from(region)),
        ]);
        let location = Object::of([("physicalLocation", Value::from(physical))]);
        let print = Object::of([("waybill/v1", Value::from(finding.fingerprint()))]);
        Value::from(Object::of([
            ("ruleId", Value::from(finding.check.id)),
            ("level", Value::from(level)),
            ("message", text(&said)),
            ("locations", Value::from(vec![Value::from(location)])),
            ("partialFingerprints", Value::from(print)),
        ]))
    });
    let driver = Object::of([
        ("name", Value::from("waybill")),
        ("version", Value::from(version)),
        ("rules", Value::from(rules.collect::<Vec<_>>())),
    ]);
    let run = Object::of([
        ("tool", Value::from(Object::of([("driver", Value::from(driver))]))),
        ("results", Value::from(results.collect::<Vec<_>>())),
    ]);
    lines(&Value::from(Object::of([
        ("$schema", Value::from("https://json.schemastore.org/sarif-2.1.0.json")),
        ("version", Value::from("2.1.0")),
        ("runs", Value::from(vec![Value::from(run)])),
    ])))
}

/// A path as a relative URI.
fn uri_of(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(char::from(byte))
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// GitLab's code quality report.
#[must_use]
pub fn codequality(report: &Report) -> Vec<u8> {
    let findings = findings(report);
    let issues = findings.iter().take(MAX_LISTED).map(|finding| {
        let severity = match finding.check.status {
            Status::Fail => "blocker",
            Status::NotChecked => "major",
            _ => "info",
        };
        let path = finding.file().unwrap_or(super::HEADS);
        let begin = Object::of([("begin", Value::from(finding.line()))]);
        let location = Object::of([("path", Value::from(cut(path, 400))), ("lines", Value::from(begin))]);
        let said = format!("{}: {}", cut(finding.subject, 200), cut(&finding.check.sentence, MAX_SENTENCE));
        Value::from(Object::of([
            ("description", Value::from(said)),
            ("check_name", Value::from(finding.check.id)),
            ("fingerprint", Value::from(finding.fingerprint())),
            ("severity", Value::from(severity)),
            ("location", Value::from(location)),
        ]))
    });
    lines(&Value::from(issues.collect::<Vec<_>>()))
}

fn lines(value: &Value) -> Vec<u8> {
    let mut text = ascii_indented(value);
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::report::Verdict;

    fn report(sentence: &str, count: usize) -> Report {
        let check = Check::new("ledger.chain", Status::Fail, sentence).at(
            ".sdd/runtime/ledger/r/000000.jsonl",
            Some(crate::chain::Place { entry: 1, line: 2, byte: 3 }),
        );
        Report {
            subject: ("ledger", String::from("r")),
            verdict: Verdict::Failed,
            summary: sentence.to_string(),
            checks: vec![check; count],
            facts: Object::default(),
            does_not_establish: Vec::new(),
            parts: Vec::new(),
        }
    }

    #[test]
    fn evidence_becomes_no_command() {
        let hostile = "x\n::error::y ##[error]z %0A::warning::\r\u{202e}";
        let said = github(&report(hostile, 1)).lines;
        assert_eq!(said.lines().count(), 1);
        assert!(said.starts_with(
            "::error file=.sdd/runtime/ledger/r/000000.jsonl,line=2,title=ledger.chain%3A r::x"
        ));
        assert!(!said.contains("##[") && !said.contains("%0A::w") && !said.contains('\u{202e}'));
        let summary = markdown(&report("<img src=x> [a](b) | `c` @d https://e www.f.g", 1));
        for raw in ["<img", "[a](", "@d", "https://", "www."] {
            assert!(!summary.contains(raw), "{raw} in {summary}");
        }
        let xml = junit(&report("a\"b<c>&\u{0}", 1));
        assert!(xml.contains("a&quot;b&lt;c&gt;&amp;\\u{0}"), "{xml}");
    }

    #[test]
    fn there_are_nine_annotations_and_a_count() {
        let said = github(&report("x", 30));
        assert_eq!((said.lines.lines().count(), said.count), (10, 30));
        assert!(said.lines.contains("and 21 more"));
        assert_eq!(github(&report("x", 9)).lines.lines().count(), 9);
        assert!(markdown(&report(&"y".repeat(5000), 3000)).len() < 1 << 20);
    }
}
