//! Where the value under a secret's name begins and ends.
//!
//! A quoted value is taken whole, whatever level of escaping its quotes have. An unquoted one ends at
//! white space, or at a separator behind which another name, a quote or nothing follows: `a&b;c` is one
//! password, `a&user=b` is not. Prose has colons too (`invalid token: expected a comma`): there a value
//! of letters only counts when it is all there is on a line that begins with the name.

use std::ops::Range;

use super::assign::{NAME_MAX, Name, Separator};
use super::names::{self, Noun};
use super::scan::{Quote, Scan};
use super::values;

/// How far a reference such as `${{ secrets.TOKEN }}` is followed.
const REFERENCE_MAX: usize = 160;
/// How far an array's strings are followed.
const ARRAY_MAX: usize = 4096;
/// Signs that part an unquoted value from what follows, if [`separates`] agrees.
const SIGNS: &[u8] = b",;&|)]}";

/// Redacts the value that begins at `at`, unless it tells nothing; says where it ends.
pub(super) fn redact_value(scan: &mut Scan<'_>, name: &Name, at: usize) -> usize {
    if name.separator == Separator::Tag {
        let end = scan.skip(at, |byte| !matches!(byte, b'<' | b'\n'));
        let closed = scan.starts(end, b"</") || scan.starts(end, br"<\/");
        return if closed { redact(scan, name, at..end) } else { at };
    }
    let at = beginning(scan, name, at);
    let prefixed = scan.byte(at).is_some_and(|byte| b"bBrRuUfF@L$".contains(&byte));
    if let Some(quote) = scan.quote(at + usize::from(prefixed)).or_else(|| scan.quote(at)) {
        // In "`password=`" and `"token=" + t` the quote ends what began before the name.
        let encloses = !name.quoted && scan.before(name.range.start) == Some(quote.mark);
        return if !encloses {
            quoted(scan, name, quote)
        } else if scan.byte(quote.after).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            unquoted(scan, name, quote.after)
        } else {
            quote.after
        };
    }
    match scan.byte(at) {
        _ if name.separator == Separator::Compares => at,
        Some(b'[') => array(scan, name, at + 1),
        Some(b'|' | b'>') if name.separator == Separator::Colon => block(scan, name, at),
        Some(b'{') if !scan.starts(at, b"{{") => at,
        Some(_) => unquoted(scan, name, at),
        None => at,
    }
}

/// Redacts `value` unless it tells nothing, and says where it ends.
pub(super) fn redact(scan: &mut Scan<'_>, name: &Name, value: Range<usize>) -> usize {
    let end = value.end;
    if !values::is_inert(name.noun, &scan.text[value.clone()]) {
        scan.add(value);
    }
    end
}

/// Passes over a type (`: str =`), an anchor or tag of YAML (`&a`, `!!str`), brackets and wrappers
/// (`Some("x")`).
fn beginning(scan: &Scan<'_>, name: &Name, mut at: usize) -> usize {
    if name.separator == Separator::Colon && !name.quoted {
        at = typed(scan, at).unwrap_or(at);
        if matches!(scan.byte(at), Some(b'&')) || scan.starts(at, b"!!") {
            let word = scan.skip(at, |byte| byte.is_ascii_alphanumeric() || b"&!_-".contains(&byte));
            at = if scan.byte(word) == Some(b' ') { scan.skip_blanks(word) } else { at };
        }
    }
    for _ in 0..4 {
        let wrapper = scan.text[at..].iter().take(NAME_MAX).take_while(|byte| byte.is_ascii_alphanumeric());
        let open = at + wrapper.count();
        let wraps = open == at || scan.byte(at).is_some_and(|byte| byte.is_ascii_uppercase());
        let inner = open + 1;
        let leads_on = scan.quote(inner).is_some()
            || scan.byte(inner).is_some_and(|byte| byte == b'(' || byte.is_ascii_uppercase());
        if !wraps || scan.byte(open) != Some(b'(') || !leads_on {
            break;
        }
        at = inner;
    }
    at
}

/// The string behind a type: `password: str = "x"`.
pub(super) fn typed(scan: &Scan<'_>, at: usize) -> Option<usize> {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_&[]<>.' :".contains(byte);
    let end = at + scan.text[at..].iter().take(NAME_MAX).take_while(part).count();
    let value = scan.skip_blanks(end + 1);
    (scan.byte(end) == Some(b'=') && scan.quote(value).is_some()).then_some(value)
}

/// A quoted value, with what a shell or SQL would join to it (`'it'\''s'`, `'it''s'`).
fn quoted(scan: &mut Scan<'_>, name: &Name, quote: Quote) -> usize {
    let start = quote.after;
    let (mut end, mut next) = scan.content(&quote);
    while let (Some(joined), 0, None) = (next, quote.escapes, quote.spelled) {
        let escaped = scan.starts(joined, br"\''");
        if !escaped && scan.byte(joined) != Some(quote.mark) {
            break;
        }
        let after = joined + if escaped { 3 } else { 1 };
        (end, next) = scan.content(&Quote { after, ..quote });
    }
    redact(scan, name, start..end)
}

/// `["a", "b"]`: each string up to the closing bracket, keys of objects inside left out.
fn array(scan: &mut Scan<'_>, name: &Name, from: usize) -> usize {
    let limit = scan.text.len().min(from + ARRAY_MAX);
    let (mut at, mut depth) = (from, 1);
    while at < limit {
        if let Some(quote) = scan.quote(at) {
            let (end, next) = scan.content(&quote);
            at = next.unwrap_or(end).max(at + 1);
            if scan.byte(scan.skip_blanks(at)) != Some(b':') {
                redact(scan, name, quote.after..end);
            }
            continue;
        }
        match scan.byte(at) {
            Some(b'[') => depth += 1,
            Some(b']') if depth == 1 => return at,
            Some(b']') => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    at.min(scan.text.len())
}

/// A YAML block scalar: the lines below that are indented deeper than the name's.
fn block(scan: &mut Scan<'_>, name: &Name, at: usize) -> usize {
    let header = scan.skip(at, |byte| b"|>-+ 0123456789".contains(&byte));
    if !matches!(scan.byte(header), Some(b'\n' | b'\r')) {
        return unquoted(scan, name, at);
    }
    let before = scan.text[..name.range.start].iter().rposition(|byte| *byte == b'\n');
    let line = before.map_or(0, |newline| newline + 1);
    let indent = scan.skip_blanks(line) - line;
    let first = scan.skip(header, |byte| byte.is_ascii_whitespace());
    let (mut start, mut end) = (header, header);
    while let Some(b'\n' | b'\r') = scan.byte(end) {
        let next = scan.skip(end, |byte| matches!(byte, b'\n' | b'\r'));
        let content = scan.skip_blanks(next);
        if content - next <= indent || content == scan.text.len() {
            break;
        }
        start = first;
        end = scan.skip(content, |byte| !matches!(byte, b'\n' | b'\r'));
    }
    // Lines of blanks alone are no value.
    redact(scan, name, start..end.max(start))
}

fn unquoted(scan: &mut Scan<'_>, name: &Name, at: usize) -> usize {
    if let Some(end) = reference_end(scan, at) {
        // `${PREFIX}hunter2` is more than a reference.
        let joined = scan.byte(end).is_some_and(|byte| byte.is_ascii_alphanumeric());
        let end = if joined { unquoted_end(scan, end, false) } else { end };
        return redact(scan, name, at..end);
    }
    let in_query = matches!(scan.before(name.range.start), Some(b'?' | b'&'));
    let end = match name.noun {
        Noun::Phrase => scan.line_end(at),
        _ => unquoted_end(scan, at, in_query),
    };
    let value = &scan.text[at..end];
    let argument = matches!(scan.byte(end), Some(b',' | b')'));
    let code = values::is_code(value) || argument && is_variable(&scan.text[name.range.clone()], value);
    let prose = name.separator == Separator::Colon && !stands_out(scan, name, at..end);
    if code && name.separator != Separator::Blank || prose {
        return end;
    }
    redact(scan, name, at..end)
}

/// A variable passed on, as in `login(password=db_password)`.
fn is_variable(name: &[u8], value: &[u8]) -> bool {
    let named = value.iter().all(|byte| byte.is_ascii_alphabetic() || b"_.".contains(byte));
    let joined = value.contains(&b'_') || value.iter().any(u8::is_ascii_uppercase);
    named && (value == name || joined) && names::noun(value).is_some()
}

/// The end of a reference or stand-in, which may hold blanks.
fn reference_end(scan: &Scan<'_>, at: usize) -> Option<usize> {
    let kinds = [(&b"${{"[..], &b"}}"[..]), (b"{{", b"}}"), (b"${", b"}"), (b"$(", b")"), (b"<", b">")];
    let (_, close) = kinds.iter().find(|(open, _)| scan.starts(at, open))?;
    let near = &scan.text[at..scan.text.len().min(at + REFERENCE_MAX)];
    let line = &near[..near.iter().position(|byte| *byte == b'\n').unwrap_or(near.len())];
    line.windows(close.len()).position(|window| window == *close).map(|length| at + length + close.len())
}

/// A value behind a colon is no prose: it isn't letters only, or it is alone on a line that the name
/// begins.
fn stands_out(scan: &Scan<'_>, name: &Name, value: Range<usize>) -> bool {
    let letters = |byte: &u8| byte.is_ascii_alphabetic() || b"_'/&".contains(byte);
    if name.quoted || !scan.text[value.clone()].iter().all(letters) {
        return true;
    }
    let lead = scan.text[..name.range.start].iter().rposition(|byte| !b" \t-".contains(byte));
    let lead = lead.map_or(0, |last| last + 1);
    let begins = scan.starts_line(lead) || scan.before(lead).is_some_and(|byte| b"{,\"'".contains(&byte));
    let rest = scan.skip(value.end, |byte| b" \t,}\"'".contains(&byte));
    begins && (scan.byte(rest) == Some(b'#') || scan.ends_line(rest))
}

/// Where an unquoted value ends.
fn unquoted_end(scan: &Scan<'_>, from: usize, in_query: bool) -> usize {
    let stops = |byte: u8| byte <= b' ' || in_query && byte == b'#' || b"\"'`<>\\\x7f".contains(&byte);
    let mut at = from;
    loop {
        at = scan.skip(at, |byte| !stops(byte) && !SIGNS.contains(&byte));
        match scan.byte(at) {
            Some(b'\\') => {
                let after = scan.skip(at, |byte| byte == b'\\');
                if scan.byte(after).is_none_or(|byte| b"nrtux\"' \n".contains(&byte)) {
                    break;
                }
                at = after;
            }
            Some(byte) if SIGNS.contains(&byte) && !separates(scan, at) => at += 1,
            _ => break,
        }
    }
    // The full stop of a sentence.
    let dots = scan.text[from..at].iter().rev().take_while(|byte| **byte == b'.').count();
    at - dots
}

/// The sign at `at` ends a value: nothing, a blank, a quote, another sign, or another name follows.
fn separates(scan: &Scan<'_>, at: usize) -> bool {
    let Some(next) = scan.byte(at + 1) else { return true };
    if next <= b' ' || SIGNS.contains(&next) || b"\"'`<\\.:".contains(&next) {
        return true;
    }
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.[]%".contains(byte);
    let length = scan.text[at + 1..].iter().take(NAME_MAX).take_while(part).count();
    length > 0 && matches!(scan.byte(at + 1 + length), Some(b'=' | b':'))
}
