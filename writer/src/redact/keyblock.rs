//! Private keys: PEM and OpenPGP blocks, on many lines, on one, or with escaped line ends; PuTTY's
//! lines.
//!
//! A whole block goes, its first and last line too. When the other end is missing, because a log was
//! cut, what reads as base64 next to the end that is there goes.

use std::ops::Range;

use super::needles::{Action, Needles};
use super::scan::Scan;

/// A longer block than this has lost its end.
const BLOCK_MAX: usize = 128 * 1024;
const LABEL_MAX: usize = 64;
const HEADERS_MAX: usize = 6;
const HEADER_MAX: usize = 200;
/// A whole line of base64 is no shorter.
const LINE_MIN: usize = 20;

/// Adds the signs of key blocks.
pub(super) fn add_needles(needles: &mut Needles) {
    needles.exact(&b"BEGIN "[..], Action::Rule(begin));
    needles.exact(&b"END "[..], Action::Rule(end));
    needles.exact(&b"Private-Lines:"[..], Action::Rule(putty));
}

fn begin(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some((start, body)) = line(scan, &at) else { return };
    let end = closing(scan, body).unwrap_or_else(|| words_after(scan, body));
    if end > body {
        scan.add(start..end);
    }
}

/// Where the line around a `BEGIN ` or `END ` begins and ends, if it frames a private key.
fn line(scan: &Scan<'_>, at: &Range<usize>) -> Option<(usize, usize)> {
    let is_label = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ';
    let label = scan.text[at.end..].iter().take(LABEL_MAX).take_while(is_label).count();
    let label = at.end..at.end + label;
    let text = &scan.text[label.clone()];
    let private = text.windows(11).any(|part| part == b"PRIVATE KEY")
        || text.windows(10).any(|part| part == b"SECRET KEY");
    let blank = usize::from(scan.before(at.start) == Some(b' '));
    let before = scan.text[..at.start - blank].iter().rev().take(8).take_while(|byte| **byte == b'-').count();
    let after = scan.text[label.end..].iter().take(8).take_while(|byte| **byte == b'-').count();
    (private && before >= 4 && after >= 4).then(|| (at.start - blank - before, label.end + after))
}

/// The end of the block's last line, if that is the next line of dashes.
fn closing(scan: &Scan<'_>, body: usize) -> Option<usize> {
    let rest = &scan.text[body..scan.text.len().min(body + BLOCK_MAX)];
    let dashes = body + rest.windows(4).position(|window| window == b"----")?;
    let sign = scan.skip(dashes, |byte| matches!(byte, b'-' | b' '));
    if !scan.starts(sign, b"END ") {
        return None;
    }
    line(scan, &(sign..sign + 4)).map(|(_, end)| end)
}

/// The end of the base64 that follows `body`; a short last word counts when the text stops there.
fn words_after(scan: &Scan<'_>, body: usize) -> usize {
    let (mut at, mut end) = (body, body);
    let mut headers = 0;
    loop {
        at = skip_breaks(scan, at);
        let word = scan.skip(at, is_base64);
        let length = word - at;
        if length > 0 && matches!(scan.byte(word), Some(b':' | b'-')) && headers < HEADERS_MAX {
            // A header, such as `DEK-Info: AES-256-CBC,…`.
            headers += 1;
            at = scan.line_end_within(word, HEADER_MAX);
            continue;
        }
        let next = scan.byte(word);
        let stops = next.is_none_or(|byte| b"\"'`.\\<*[".contains(&byte)) || scan.ends_line(word);
        if length >= LINE_MIN || length > 0 && (stops || scan.before(word) == Some(b'=')) {
            end = word;
        }
        if length < LINE_MIN {
            return end;
        }
        at = word;
    }
}

/// The other way round: the key's first lines were cut off.
fn end(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some((start, end)) = line(scan, &at) else { return };
    if scan.spans.iter().rev().take(8).any(|span| span.start <= start && end <= span.end) {
        return;
    }
    let (mut from, mut before) = (start, start);
    loop {
        while before > 0 && (scan.text[before - 1].is_ascii_whitespace() || scan.escape_ends(before)) {
            before -= if scan.text[before - 1].is_ascii_whitespace() { 1 } else { 2 };
        }
        let mut word = before - scan.text[..before].iter().rev().take_while(|byte| is_base64(**byte)).count();
        if word > 0 && scan.text[word - 1] == b'\\' && matches!(scan.byte(word), Some(b'n' | b'r')) {
            word += 1;
        }
        // The last line of a key may be short, the ones above it are not.
        let shortest = if from == start { 1 } else { LINE_MIN };
        if before - word < shortest {
            break;
        }
        from = word;
        before = word;
    }
    if from < start && start - from >= 8 {
        scan.add(from..end);
    }
}

/// `Private-Lines: 14`, then that many lines of base64.
fn putty(scan: &mut Scan<'_>, at: Range<usize>) {
    let number = scan.skip_blanks(at.end);
    let body = scan.skip(number, |byte| byte.is_ascii_digit());
    let end = words_after(scan, body);
    scan.add(body..end);
}

/// White space, and escaped line ends (`\n`, `\\r\\n`).
fn skip_breaks(scan: &Scan<'_>, from: usize) -> usize {
    let mut at = from;
    loop {
        at = scan.skip(at, |byte| byte.is_ascii_whitespace());
        let after = scan.skip(at, |byte| byte == b'\\');
        if after == at || !matches!(scan.byte(after), Some(b'n' | b'r' | b't')) {
            return at;
        }
        at = after + 1;
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
