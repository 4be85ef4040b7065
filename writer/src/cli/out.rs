//! What reaches the terminal: words before colours, and nothing raw from the evidence.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use waybill_verifier::report::{Report, Status, Verdict, is_hidden};

/// How results are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// Nothing on success.
    Quiet,
}

/// Writes to standard output; a closed pipe is no error, the verdict's code stays.
pub(crate) fn put(bytes: &[u8]) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a line about the work to standard error.
pub(crate) fn say(message: &str) {
    // If nobody can be told, nobody can be told that either.
    drop(writeln!(anstream::stderr().lock(), "waybill: {}", escape(message)));
}

/// Text from the evidence, safe to print: control characters, and those that reorder or hide
/// text, as `\u{…}`.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            escaped.push_str(&format!("\\u{{{:x}}}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// How wide a line may be.
pub(crate) fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let found = || clap_width().filter(|_| io::stdout().is_terminal());
    asked.or_else(found).unwrap_or(100).clamp(40, 200)
}

fn clap_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(terminal_size::Width(width), _)| usize::from(width))
}

/// Cuts a line that is too wide, and says so with `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) if width == 0 => String::new(),
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// A report's verdict, subject and summary: two lines.
pub(crate) fn headline(report: &Report) -> String {
    let style = verdict_style(report.verdict);
    let (kind, name) = &report.subject;
    let verdict = report.verdict.name().to_uppercase();
    format!("{style}{verdict}{style:#}  {kind} {}\n{}\n", escape(name), escape(&report.summary))
}

/// A report as text: the verdict, a line a check, what is not established.
pub(crate) fn report(report: &Report) -> String {
    let mut text = headline(report);
    if !report.checks.is_empty() {
        text.push('\n');
    }
    let wide = report.checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    for check in &report.checks {
        let style = status_style(check.status);
        let word = check.status.word();
        let sentence = escape(&check.sentence);
        text.push_str(&format!("{style}{word:<11}{style:#}  {:<wide$}  {sentence}\n", check.id));
    }
    if !report.does_not_establish.is_empty() {
        text.push_str("\nNot established:\n");
        for line in &report.does_not_establish {
            text.push_str(&format!("  - {}\n", escape(line)));
        }
    }
    for part in &report.parts {
        text.push('\n');
        text.push_str(&self::report(part));
    }
    text
}

pub(crate) fn verdict_style(verdict: Verdict) -> Style {
    let colour = match verdict {
        Verdict::Verified => AnsiColor::Green,
        Verdict::Consistent | Verdict::Empty => AnsiColor::Cyan,
        Verdict::Incomplete | Verdict::Degraded => AnsiColor::Yellow,
        Verdict::Absent | Verdict::Failed | Verdict::Diverged => AnsiColor::Red,
    };
    Style::new().bold().fg_color(Some(colour.into()))
}

pub(crate) fn status_style(status: Status) -> Style {
    let colour = match status {
        Status::Pass => AnsiColor::Green,
        Status::Fail => AnsiColor::Red,
        Status::Warn | Status::NotChecked => AnsiColor::Yellow,
        Status::NotApplicable => AnsiColor::BrightBlack,
    };
    Style::new().fg_color(Some(colour.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_or_reorder_text_is_escaped() {
        assert_eq!(escape("a\x1b[31m\u{202e}b\u{9b}é😀\n"), "a\\u{1b}[31m\\u{202e}b\\u{9b}é😀\\u{a}");
    }

    #[test]
    fn long_lines_are_cut_at_characters() {
        assert_eq!(cut("日本語です", 3), "日本…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
