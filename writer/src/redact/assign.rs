//! Values beside a name that means a secret: `password=…` in a shell, INI, JSON (also escaped inside a
//! string), YAML, XML, a URL's query, a header or a flag.
//!
//! A needle is a part of such a name (`pass`, `token`, `key`). Around it the whole name is read and
//! judged, then what separates it from a value; `extent` and `header` read the value. A name is judged
//! only if a separator is there, as most such words are prose.

use std::ops::Range;

use super::names::{self, Noun};
use super::needles::{Action, Needles};
use super::scan::Scan;
use super::{extent, header};

/// No name is longer; it bounds each look around.
pub(super) const NAME_MAX: usize = 64;

/// Adds the parts of names that mean secrets.
pub(super) fn add_needles(needles: &mut Needles) {
    #[rustfmt::skip]
    let parts = [
        "pass", "pwd", "secret", "token", "key", "credential", "creds", "authorization", "_auth", "cookie", "dsn", "_pat", "-pat",
        "jwt", "bearer", "mnemonic", "phrase", "psk", "otp", "pw=", "pw:", "pw\"", "--pw", "kennwort", "contrase", "senha",
    ];
    for part in parts {
        needles.folded(part, Action::Rule(find));
    }
}

/// What stands between a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Equals,
    Compares,
    Colon,
    /// A flag's blank, or `ENV NAME value`.
    Blank,
    /// `<password>x</password>`.
    Tag,
}

/// A name that means a secret, and how it is written.
pub(super) struct Name {
    pub(super) range: Range<usize>,
    pub(super) noun: Noun,
    pub(super) quoted: bool,
    pub(super) separator: Separator,
}

fn find(scan: &mut Scan<'_>, at: Range<usize>) {
    if at.start < scan.judged {
        return;
    }
    let range = name_around(scan, at);
    scan.judged = scan.judged.max(range.end);
    let Some((separator, quoted, value)) = separator(scan, &range) else { return };
    let Some(noun) = names::noun(&scan.text[range.clone()]) else { return };
    let name = Name { range, noun, quoted, separator };
    if is_other(scan, &name, value) {
        return;
    }
    let end = match noun {
        Noun::Authorization | Noun::Cookie if separator != Separator::Blank => {
            header::find(scan, &name, value)
        }
        _ => extent::redact_value(scan, &name, value),
    };
    scan.judged = scan.judged.max(end);
}

/// What looks like a name and its separator is an address, code or a test's result.
fn is_other(scan: &Scan<'_>, name: &Name, value: usize) -> bool {
    let start = name.range.start;
    let colon = name.separator == Separator::Colon;
    // `PASS: tests/x.sh`
    let result = colon && name.noun == Noun::Pass && !name.quoted;
    // `arn:…:secret:name`, `src/password:12`, `https://x-access-token:…@host`
    let address = colon && matches!(scan.before(start), Some(b':' | b'/'));
    // `Kind::Token => "token"` is a match; `--prefix=$PWD=x` uses the folder.
    let used =
        scan.text[..start].ends_with(b"::") || name.noun == Noun::Pwd && scan.before(start) == Some(b'$');
    // `pub token: Token`, unless a string follows the type.
    let declared = colon && !name.quoted && is_declared(scan, start) && extent::typed(scan, value).is_none();
    result || address || used || declared
}

/// The word before a name declares it.
fn is_declared(scan: &Scan<'_>, name: usize) -> bool {
    let words =
        [&b"pub"[..], b"let", b"mut", b"const", b"static", b"pub(crate)", b"readonly", b"var", b"val"];
    let before = scan.text[name.saturating_sub(10)..name].trim_ascii_end();
    scan.before(name) == Some(b' ') && words.iter().any(|word| before.ends_with(word))
}

/// The whole name that a needle is part of.
pub(super) fn name_around(scan: &Scan<'_>, at: Range<usize>) -> Range<usize> {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let mut start = at.start - scan.text[..at.start].iter().rev().take(NAME_MAX).take_while(part).count();
    let end = at.end + scan.text[at.end..].iter().take(NAME_MAX).take_while(part).count();
    // The letter of an escape such as `\n` before the name is none of it.
    if let Some(inside) = (start + 1..=(start + 5).min(at.start)).find(|inside| scan.escape_ends(*inside)) {
        start = inside;
    }
    let end = end - scan.text[at.start..end].iter().rev().take_while(|byte| b".-".contains(byte)).count();
    // A needle may end in a separator (`pw=`).
    let sign = scan.text[at.start..end].iter().position(|byte| b"=:\"".contains(byte));
    let end = sign.map_or(end, |sign| at.start + sign);
    // "API key" is a name of two words.
    if scan.text[start..end].eq_ignore_ascii_case(b"key") && scan.before(start) == Some(b' ') {
        let word = scan.text[..start - 1].iter().rev().take(NAME_MAX);
        start -= 1 + word.take_while(|byte| byte.is_ascii_alphanumeric()).count();
    }
    start..end
}

/// The separator behind a name, whether the name was quoted, and where the value begins.
pub(super) fn separator(scan: &Scan<'_>, name: &Range<usize>) -> Option<(Separator, bool, usize)> {
    let closing = scan.quote(name.end);
    let at = scan.skip(closing.as_ref().map_or(name.end, |quote| quote.after), |byte| byte == b']');
    // A backtick is how prose quotes a name.
    let quoted = closing.is_some_and(|quote| quote.mark != b'`');
    let sign = scan.skip_blanks(at + usize::from(scan.byte(at) == Some(b'?')));
    let behind = scan.text.get(sign..).unwrap_or_default();
    let (separator, width) = match behind {
        [b'=' | b'!', b'=', b'=', ..] => (Separator::Compares, 3),
        [b'=' | b'!', b'=', ..] => (Separator::Compares, 2),
        [b'=', b'>', ..] | [b':' | b'?' | b'+', b'=', ..] => (Separator::Equals, 2),
        [b'=', ..] => (Separator::Equals, 1),
        [b':', b':', ..] => return None,
        [b':', ..] => (Separator::Colon, 1),
        [b'%', b'3', b'D' | b'd', ..] => (Separator::Equals, 3),
        [b'%', b'3', b'A' | b'a', ..] => (Separator::Colon, 3),
        [b'>', ..] if scan.before(name.start) == Some(b'<') => {
            return Some((Separator::Tag, quoted, sign + 1));
        }
        [] => return None,
        _ => {
            let value = blank(scan, name, quoted, at).or_else(|| sibling(scan, at, quoted))?;
            return Some((Separator::Blank, quoted, value));
        }
    };
    let value = scan.skip_blanks(sign + width);
    // Only a quoted key is surely a key: its value may be on the next line.
    let next = match scan.byte(value) {
        Some(b'\n' | b'\r') if quoted => scan.skip(value, |byte| byte.is_ascii_whitespace()),
        _ => value,
    };
    Some((separator, quoted, if scan.quote(next).is_some() { next } else { value }))
}

/// The value of `--password x`, `["--password", "x"]`, `ENV PASSWORD x`, `password 'x'` and `login u
/// password x`.
fn blank(scan: &Scan<'_>, name: &Range<usize>, quoted: bool, at: usize) -> Option<usize> {
    let flag = scan.byte(name.start) == Some(b'-');
    let value = scan.skip_blanks(at);
    if quoted {
        let comma = flag && scan.byte(value) == Some(b',');
        let next = scan.skip(value + 1, |byte| byte.is_ascii_whitespace());
        return (comma && scan.quote(next).is_some()).then_some(next);
    }
    if value == at {
        return None;
    }
    if flag {
        let word = &scan.text[value..scan.skip(value, |byte| byte > b' ')];
        let next_flag = matches!(word, [b'-', second, ..] if *second == b'-' || second.is_ascii_alphabetic());
        return (!next_flag && !is_prose(word)).then_some(value);
    }
    let text = &scan.text[name.start.saturating_sub(80)..name.start];
    let words = text.rsplit(|byte| byte.is_ascii_whitespace());
    let mut words = words.filter(|word| !word.is_empty() && !word.starts_with(b"//"));
    let (before, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let sets = matches!(before, b"ENV" | b"setenv" | b"-gx" | b"-x")
        || before == b"set" && matches!(second, b"config" | b"configure");
    let netrc = second.ends_with(b"login");
    let spoken = scan.quote(value).is_some_and(|quote| quote.escapes < 2)
        && names::noun(&scan.text[name.clone()]) == Some(Noun::Password);
    (sets || netrc || spoken).then_some(value)
}

/// The value of `{"name": "DB_PASSWORD", "value": "x"}`, and of the same in YAML and XML.
fn sibling(scan: &Scan<'_>, at: usize, quoted: bool) -> Option<usize> {
    let key = scan.skip(at, |byte| byte.is_ascii_whitespace() || b",\\\"'".contains(&byte));
    // `for token, value = next()` has none of the structure.
    let structured = quoted || scan.text[at..key].contains(&b'\n');
    let near = key > at && key - at <= 80;
    if !structured || !near || !scan.text.get(key..key + 5)?.eq_ignore_ascii_case(b"value") {
        return None;
    }
    let sign = scan.skip(key + 5, |byte| b"\\\"' ".contains(&byte));
    matches!(scan.byte(sign), Some(b':' | b'=')).then(|| scan.skip_blanks(sign + 1))
}

/// Words that follow a flag when it is talked about: "use --token to log in".
#[rustfmt::skip]
fn is_prose(word: &[u8]) -> bool {
    matches!(
        word,
        b"to" | b"for" | b"is" | b"or" | b"and" | b"flag" | b"flags" | b"option" | b"options" | b"argument" | b"with" | b"in"
            | b"if" | b"from" | b"as" | b"the" | b"a" | b"on" | b"was" | b"must" | b"should" | b"can" | b"not" | b"has" | b"when"
            | b"value" | b"parameter" | b"instead" | b"via" | b"by" | b"are" | b"will" | b"requires" | b"takes" | b"you"
            | b"we" | b"it" | b"that" | b"which" | b"|" | b"&&" | b";" | b"||"
    )
}
