//! Values beside a name that means a secret: `password=…` in a shell, INI, JSON (also escaped inside a string), YAML,
//! XML, a URL's query, a header or a flag.
//!
//! A needle is a part of such a name (`pass`, `token`, `key`). Around it the whole name is read and judged; then
//! what separates it from a value; then the value, by how it is quoted. A quoted value is taken whole. An unquoted one ends
//! at white space, or at a separator behind which another name, a quote or nothing follows, so that `a&b;c` stays one
//! password and `a&user=b` doesn't. Prose has colons too (`invalid token: expected a comma`): there a value of letters
//! only counts when it is all there is on a line that begins with the name.

use std::ops::Range;

use super::names::{self, Noun};
use super::needles::{Action, Needles};
use super::scan::{COOKIE, CREDENTIAL, Scan};
use super::values;

const NAME_MAX: usize = 64;
const REFERENCE_MAX: usize = 160;
/// How far an `Authorization` header of many parts is followed.
const HEADER_MAX: usize = 2048;

/// Adds the parts of names that mean secrets.
pub(super) fn add_needles(needles: &mut Needles) {
    let parts = [
        "pass",
        "pwd",
        "secret",
        "token",
        "key",
        "credential",
        "creds",
        "authorization",
        "_auth",
        "cookie",
        "dsn",
        "_pat",
        "-pat",
        "jwt",
        "bearer",
        "mnemonic",
        "phrase",
        "psk",
        "otp",
        "pw=",
        "pw:",
        "pw\"",
        "--pw",
        "kennwort",
        "contrase",
        "senha",
    ];
    for part in parts {
        needles.folded(part, Action::Rule(name));
    }
    needles.folded("sig=", Action::Rule(query_signature));
    needles.folded("-signature=", Action::Rule(query_signature));
    needles.folded("identified by", Action::Rule(sql));
}

/// What stands between a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Equals,
    Compares,
    Colon,
    /// A flag's blank, or `ENV NAME value`.
    Blank,
    /// `<password>x</password>`.
    Tag,
}

struct Name {
    range: Range<usize>,
    noun: Noun,
    quoted: bool,
    separator: Separator,
}

fn name(scan: &mut Scan<'_>, at: Range<usize>) {
    if at.start < scan.judged {
        return;
    }
    let range = name_around(scan, at);
    scan.judged = scan.judged.max(range.end);
    let Some((separator, quoted, value)) = separator(scan, &range) else { return };
    let Some(noun) = names::noun(&scan.text[range.clone()]) else { return };
    // A field's or constant's type, unless a string follows it.
    let declared = separator == Separator::Colon
        && !quoted
        && is_declared(scan, range.start)
        && typed(scan, value).is_none();
    let plain_pass = noun == Noun::Pass && separator == Separator::Colon && !quoted;
    // `arn:…:secret:name`, `src/password:12` and `https://x-access-token:…@host` are addresses.
    let address = separator == Separator::Colon && matches!(scan.before(range.start), Some(b':' | b'/'));
    // `Kind::Token => "token"` is a match, not a value.
    let path = scan.text[..range.start].ends_with(b"::");
    if declared || plain_pass || address || path {
        return;
    }
    let name = Name { range, noun, quoted, separator };
    let end = match noun {
        Noun::Authorization | Noun::Cookie if separator != Separator::Blank => header(scan, &name, value),
        _ => assigned(scan, &name, value),
    };
    scan.judged = scan.judged.max(end);
}

/// The whole name that a needle is part of.
fn name_around(scan: &Scan<'_>, at: Range<usize>) -> Range<usize> {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let mut start = at.start - scan.text[..at.start].iter().rev().take(NAME_MAX).take_while(part).count();
    let end = at.end + scan.text[at.end..].iter().take(NAME_MAX).take_while(part).count();
    // The letter of an escape such as `\n` before the name is none of it.
    if let Some(inside) = (start + 1..=(start + 5).min(at.start)).find(|inside| scan.escape_ends(*inside)) {
        start = inside;
    }
    let end =
        end - scan.text[at.start..end].iter().rev().take_while(|byte| matches!(byte, b'.' | b'-')).count();
    // A needle may end in a separator (`pw=`).
    let sign = scan.text[at.start..end].iter().position(|byte| matches!(byte, b'=' | b':' | b'"'));
    start..sign.map_or(end, |sign| at.start + sign)
}

/// The separator behind a name, whether the name was quoted, and where the value begins.
fn separator(scan: &Scan<'_>, name: &Range<usize>) -> Option<(Separator, bool, usize)> {
    let closing = scan.quote(name.end);
    let mut at = closing.as_ref().map_or(name.end, |quote| quote.after);
    let quoted = closing.is_some();
    at = scan.skip(at, |byte| byte == b']');
    if matches!(scan.byte(at), Some(b'?')) {
        at += 1;
    }
    let sign = scan.skip_blanks(at);
    let next = scan.byte(sign + 1);
    let (separator, width) = match scan.byte(sign)? {
        b'=' if next == Some(b'=') => {
            (Separator::Compares, 2 + usize::from(scan.byte(sign + 2) == Some(b'=')))
        }
        b'!' if next == Some(b'=') => {
            (Separator::Compares, 2 + usize::from(scan.byte(sign + 2) == Some(b'=')))
        }
        b'=' if next == Some(b'>') => (Separator::Equals, 2),
        b'=' => (Separator::Equals, 1),
        b':' | b'?' | b'+' if next == Some(b'=') => (Separator::Equals, 2),
        b':' if next != Some(b':') => (Separator::Colon, 1),
        b'%' if scan.starts(sign, b"%3D") || scan.starts(sign, b"%3d") => (Separator::Equals, 3),
        b'>' if scan.before(name.start) == Some(b'<') => return Some((Separator::Tag, quoted, sign + 1)),
        _ => {
            return blank(scan, name, quoted, at)
                .or_else(|| sibling(scan, at, quoted))
                .map(|value| (Separator::Blank, quoted, value));
        }
    };
    let mut value = scan.skip_blanks(sign + width);
    // Only a quoted key is surely a key: its value may be on the next line.
    if quoted && matches!(scan.byte(value), Some(b'\n' | b'\r')) {
        value = scan.skip(value, |byte| byte.is_ascii_whitespace());
    }
    Some((separator, quoted, value))
}

/// The value of `--password x`, `["--password", "x"]`, `ENV PASSWORD x`, `password 'x'` and `login u password x`.
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
        let word = scan.skip(value, |byte| byte > b' ');
        let next_flag = scan.byte(value) == Some(b'-')
            && scan.byte(value + 1).is_some_and(|b| b == b'-' || b.is_ascii_alphabetic());
        return (!next_flag && !is_prose(&scan.text[value..word])).then_some(value);
    }
    let text = &scan.text[name.start.saturating_sub(80)..name.start];
    let words = text
        .rsplit(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty() && !word.starts_with(b"//"));
    let mut words = words.take(2);
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
    let between = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'\\' | b'"' | b'\'');
    let key = scan.skip(at, between);
    // `for token, value = next()` has none of the structure.
    let structured = quoted || scan.text[at..key].contains(&b'\n');
    if !structured
        || key == at
        || key - at > 80
        || !scan.text.get(key..key + 5)?.eq_ignore_ascii_case(b"value")
    {
        return None;
    }
    let sign = scan.skip(key + 5, |byte| matches!(byte, b'\\' | b'"' | b'\'' | b' '));
    matches!(scan.byte(sign), Some(b':' | b'=')).then(|| scan.skip_blanks(sign + 1))
}

/// Words that follow a flag when it is talked about: "use --token to log in".
fn is_prose(word: &[u8]) -> bool {
    matches!(
        word,
        b"to"
            | b"for"
            | b"is"
            | b"or"
            | b"and"
            | b"flag"
            | b"flags"
            | b"option"
            | b"options"
            | b"argument"
            | b"with"
            | b"in"
            | b"if"
            | b"from"
            | b"as"
            | b"the"
            | b"a"
            | b"on"
            | b"was"
            | b"must"
            | b"should"
            | b"can"
            | b"not"
            | b"has"
            | b"when"
            | b"value"
            | b"parameter"
            | b"instead"
            | b"via"
            | b"by"
            | b"are"
            | b"will"
            | b"requires"
            | b"takes"
            | b"you"
            | b"we"
            | b"it"
            | b"that"
            | b"which"
            | b"|"
            | b"&&"
            | b";"
            | b"||"
    )
}

/// Redacts the value at `at`, and says where it ends.
fn assigned(scan: &mut Scan<'_>, name: &Name, mut at: usize) -> usize {
    if name.separator == Separator::Colon && !name.quoted {
        at = typed(scan, at).unwrap_or(at);
    }
    if name.separator == Separator::Tag {
        let end = scan.skip(at, |byte| !matches!(byte, b'<' | b'\n'));
        return redact(scan, name, at..end);
    }
    while scan.byte(at) == Some(b'(') {
        at += 1;
    }
    let prefixed = matches!(
        scan.byte(at),
        Some(b'b' | b'B' | b'r' | b'R' | b'u' | b'U' | b'f' | b'F' | b'@' | b'L' | b'$')
    );
    if let Some(quote) = scan.quote(at + usize::from(prefixed)).or_else(|| scan.quote(at)) {
        // In "`password=`" and `"token=" + t` the quote ends what began before the name.
        let encloses = !name.quoted
            && scan.before(name.range.start) == Some(quote.mark)
            && scan.before(at).is_some_and(|b| b > b' ');
        return if !encloses {
            quoted(scan, name, quote.after)
        } else if scan.byte(quote.after).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            unquoted(scan, name, quote.after)
        } else {
            quote.after
        };
    }
    if name.separator == Separator::Compares {
        return at;
    }
    match scan.byte(at) {
        Some(b'[') => array(scan, name, at + 1),
        Some(b'|' | b'>') if name.separator == Separator::Colon => block(scan, name, at),
        Some(b'{') if !scan.starts(at, b"{{") => at,
        Some(_) => unquoted(scan, name, at),
        None => at,
    }
}

/// The string behind a type: `password: str = "x"`.
fn typed(scan: &Scan<'_>, at: usize) -> Option<usize> {
    let part = |b: &&u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'_' | b'&' | b'[' | b']' | b'<' | b'>' | b'.' | b'\'' | b' ' | b':')
    };
    let end = at + scan.text[at..].iter().take(NAME_MAX).take_while(part).count();
    let value = scan.skip_blanks(end + 1);
    (scan.byte(end) == Some(b'=') && scan.quote(value).is_some()).then_some(value)
}

/// The word before a name declares it: `pub token: …`, `let key: …`.
fn is_declared(scan: &Scan<'_>, name: usize) -> bool {
    let before = scan.text[name.saturating_sub(10)..name].trim_ascii_end();
    scan.before(name) == Some(b' ')
        && [&b"pub"[..], b"let", b"mut", b"const", b"static", b"pub(crate)", b"readonly", b"var", b"val"]
            .iter()
            .any(|word| before.ends_with(word))
}

/// A quoted value, with what a shell or SQL would join to it (`'it'\''s'`, `'it''s'`).
fn quoted(scan: &mut Scan<'_>, name: &Name, after: usize) -> usize {
    let mark = after - 1;
    let escapes = scan.text[..mark].iter().rev().take(16).take_while(|byte| **byte == b'\\').count();
    let Some(quote) = scan.quote(mark - escapes) else { return after };
    let (mut end, mut closed) = scan.content_end(&quote);
    while closed && quote.escapes == 0 {
        let joined = end + 1;
        let next = if scan.starts(joined, br"\''") { joined + 3 } else { joined + 1 };
        if next == joined + 1 && scan.byte(joined) != Some(quote.mark) {
            break;
        }
        (end, closed) = scan.content_end(&super::scan::Quote { after: next, ..quote });
    }
    redact(scan, name, after..end)
}

/// Redacts `value` unless it is a stand-in, and says where it ends.
fn redact(scan: &mut Scan<'_>, name: &Name, value: Range<usize>) -> usize {
    let end = value.end;
    if !values::is_inert(name.noun, &scan.text[value.clone()]) {
        scan.add(value);
    }
    end
}

/// `["a", "b"]`, from the first quote to the last.
fn array(scan: &mut Scan<'_>, name: &Name, at: usize) -> usize {
    let line = scan.line_end(at);
    let close = at + scan.text[at..line].iter().position(|byte| *byte == b']').unwrap_or(line - at);
    let items = &scan.text[at..close];
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
    match (items.iter().position(is_quote), items.iter().rposition(is_quote)) {
        (Some(first), Some(last)) if first < last => {
            let last = last - items[..last].iter().rev().take_while(|byte| **byte == b'\\').count();
            redact(scan, name, at + first + 1..at + last.max(first + 1))
        }
        _ => close,
    }
}

/// A YAML block scalar: the lines below that are indented deeper than the name's.
fn block(scan: &mut Scan<'_>, name: &Name, at: usize) -> usize {
    let header = scan.skip(at, |byte| matches!(byte, b'|' | b'>' | b'-' | b'+' | b'0'..=b'9' | b' '));
    if !matches!(scan.byte(header), Some(b'\n' | b'\r')) {
        return unquoted(scan, name, at);
    }
    let line = scan.text[..name.range.start]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |newline| newline + 1);
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
    let end = match name.noun {
        Noun::Phrase => scan.line_end(at),
        _ => unquoted_end(scan, at, matches!(scan.before(name.range.start), Some(b'?' | b'&'))),
    };
    let value = &scan.text[at..end];
    let spaced = name.separator != Separator::Blank;
    let passed_on = matches!(scan.byte(end), Some(b',' | b')'))
        && values::is_variable(&scan.text[name.range.clone()], value);
    if spaced && (values::is_code(value) || passed_on)
        || name.separator == Separator::Colon && !stands_out(scan, name, at..end)
    {
        return end;
    }
    redact(scan, name, at..end)
}

/// The end of a reference or stand-in, which may hold blanks: `${{ secrets.TOKEN }}`.
fn reference_end(scan: &Scan<'_>, at: usize) -> Option<usize> {
    let kinds = [(&b"${{"[..], &b"}}"[..]), (b"{{", b"}}"), (b"${", b"}"), (b"$(", b")"), (b"<", b">")];
    let (_, close) = kinds.iter().find(|(open, _)| scan.starts(at, open))?;
    let near = &scan.text[at..scan.text.len().min(at + REFERENCE_MAX)];
    let line = &near[..near.iter().position(|byte| *byte == b'\n').unwrap_or(near.len())];
    line.windows(close.len()).position(|window| window == *close).map(|length| at + length + close.len())
}

/// An unquoted value behind a colon is no prose: it isn't letters only, or it is alone on a line that the name begins.
fn stands_out(scan: &Scan<'_>, name: &Name, value: Range<usize>) -> bool {
    let text = &scan.text[value.clone()];
    if name.quoted || !text.iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'\'' | b'/' | b'&'))
    {
        return true;
    }
    let lead = scan.text[..name.range.start]
        .iter()
        .rposition(|byte| !matches!(byte, b' ' | b'\t' | b'-'))
        .map_or(0, |last| last + 1);
    let begins = scan.starts_line(lead) || matches!(scan.before(lead), Some(b'{' | b',' | b'"' | b'\''));
    let rest = scan.skip(value.end, |byte| matches!(byte, b' ' | b'\t' | b',' | b'}' | b'"' | b'\''));
    begins && (scan.byte(rest) == Some(b'#') || scan.ends_line(rest))
}

/// Where an unquoted value ends.
fn unquoted_end(scan: &Scan<'_>, from: usize, in_query: bool) -> usize {
    let mut at = from;
    loop {
        at = scan.skip(at, |b| {
            !(b <= b' '
                || in_query && b == b'#'
                || matches!(
                    b,
                    b'"' | b'\''
                        | b'`'
                        | b'<'
                        | b'>'
                        | b'\\'
                        | b','
                        | b';'
                        | b'&'
                        | b'|'
                        | b')'
                        | b']'
                        | b'}'
                        | 0x7f
                ))
        });
        match scan.byte(at) {
            Some(b'\\') => {
                let after = scan.skip(at, |byte| byte == b'\\');
                if matches!(
                    scan.byte(after),
                    None | Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'u' | b' ' | b'\n')
                ) {
                    break;
                }
                at = after;
            }
            Some(b',' | b';' | b'&' | b'|' | b')' | b']' | b'}') if !separates(scan, at) => at += 1,
            _ => break,
        }
    }
    // The full stop of a sentence.
    let dots = scan.text[from..at].iter().rev().take_while(|byte| **byte == b'.').count();
    at - dots
}

/// The sign at `at` ends a value: nothing, a blank, a quote, another sign, or another name follows.
fn separates(scan: &Scan<'_>, at: usize) -> bool {
    match scan.byte(at + 1) {
        None => true,
        Some(b)
            if b <= b' '
                || matches!(
                    b,
                    b'"' | b'\''
                        | b'`'
                        | b'<'
                        | b'\\'
                        | b','
                        | b';'
                        | b'&'
                        | b'|'
                        | b')'
                        | b']'
                        | b'}'
                        | b'.'
                        | b':'
                ) =>
        {
            true
        }
        Some(_) => {
            let name = scan.text[at + 1..].iter().take(NAME_MAX);
            let length = name
                .take_while(|b| {
                    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'[' | b']' | b'%')
                })
                .count();
            length > 0 && matches!(scan.byte(at + 1 + length), Some(b'=' | b':'))
        }
    }
}

/// `Authorization:` and `Cookie:`: the scheme stays, the credentials go.
fn header(scan: &mut Scan<'_>, name: &Name, at: usize) -> usize {
    if scan.quote(at).is_some() || name.separator == Separator::Tag || matches!(scan.byte(at), Some(b'[')) {
        return assigned(scan, name, at);
    }
    let enclosing = scan.before(name.range.start).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let line = match name.noun {
        Noun::Cookie => scan.line_end(at),
        _ => scan.line_end_within(at, HEADER_MAX),
    };
    let any_quote = |byte: &u8| enclosing.map_or(matches!(byte, b'"' | b'\'' | b'`'), |mark| *byte == mark);
    let quote = at + scan.text[at..line].iter().position(any_quote).unwrap_or(line - at);
    let end = quote - scan.text[at..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
    if name.noun == Noun::Cookie {
        return if scan.text[at..end].contains(&b'=') { redact(scan, name, at..end) } else { end };
    }
    let value = &scan.text[at..end];
    let many = [
        &b"digest "[..],
        b"oauth ",
        b"aws4",
        b"aws ",
        b"hawk ",
        b"hmac",
        b"signature ",
        b"mac ",
        b"sharedkey",
        b"sharedaccesssignature",
        b"gnap",
        b"dpop",
    ];
    if many
        .iter()
        .any(|scheme| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
    {
        let blank = value.iter().position(|byte| *byte == b' ').map_or(0, |blank| blank + 1);
        return redact(scan, name, at + blank..if enclosing.is_some() { end } else { line });
    }
    let scheme = values::scheme(value);
    let start = scan.skip_blanks(at + scheme.unwrap_or_default());
    let run = scan.run(&CREDENTIAL, start);
    let token = &scan.text[start..run];
    let letters_only =
        token.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b':' | b'-'));
    if run == start || scheme.is_none() && letters_only && token.len() < 20 {
        return run;
    }
    redact(scan, name, start..run)
}

/// The signature in a query: `?sig=…` makes a shared-access URL, `X-Amz-Signature` a presigned one.
fn query_signature(scan: &mut Scan<'_>, at: Range<usize>) {
    let name = name_around(scan, at.start..at.end - 1);
    let in_query =
        matches!(scan.before(name.start), Some(b'?' | b'&' | b';')) || scan.escape_ends(name.start);
    let known = [&b"sig"[..], b"x-amz-signature", b"x-goog-signature"];
    let end = scan.run(&COOKIE, at.end);
    if in_query
        && end - at.end >= 16
        && known.iter().any(|known| known.eq_ignore_ascii_case(&scan.text[name.clone()]))
    {
        scan.add(at.end..end);
    }
}

/// `IDENTIFIED BY 'x'`.
fn sql(scan: &mut Scan<'_>, at: Range<usize>) {
    let value = scan.skip_blanks(at.end);
    if matches!(scan.byte(value), Some(b'"' | b'\'')) {
        let name = Name { range: at, noun: Noun::Password, quoted: true, separator: Separator::Equals };
        assigned(scan, &name, value);
    }
}
