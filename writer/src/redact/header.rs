//! Values whose form their name tells: `Authorization:` and `Cookie:` headers, signatures in a query,
//! SQL, Docker's logins.

use std::ops::Range;

use super::assign::{self, Name, Separator};
use super::extent::{self, redact};
use super::names::Noun;
use super::needles::{Action, Needles};
use super::scan::{COOKIE, CREDENTIAL, Scan};
use super::{values, wire};

/// No scheme's name is longer.
const SCHEME_MAX: usize = 32;

/// Adds the names and words that these values follow.
pub(super) fn add_needles(needles: &mut Needles) {
    needles.folded("sig=", Action::Rule(query_signature));
    needles.folded("-signature=", Action::Rule(query_signature));
    needles.folded("identified by", Action::Rule(quoted_after));
    needles.folded("convertto-securestring", Action::Rule(quoted_after));
    needles.exact(&b"\"auth\""[..], Action::Rule(docker_login));
    needles.exact(&b"\"auth\\"[..], Action::Rule(docker_login));
}

/// Redacts a header's credentials; the scheme before them stays. Says where they end.
pub(super) fn find(scan: &mut Scan<'_>, name: &Name, at: usize) -> usize {
    if scan.quote(at).is_some() || name.separator == Separator::Tag || scan.byte(at) == Some(b'[') {
        return extent::redact_value(scan, name, at);
    }
    if name.noun == Noun::Cookie {
        let end = header_end(scan, name, at);
        return if scan.text[at..end].contains(&b'=') { redact(scan, name, at..end) } else { end };
    }
    let value = &scan.text[at..scan.text.len().min(at + SCHEME_MAX)];
    if has_many_parts(value) {
        let blank = value.iter().position(|byte| *byte == b' ').map_or(0, |blank| blank + 1);
        let end = header_end(scan, name, at + blank);
        return redact(scan, name, at + blank..end);
    }
    let scheme = values::scheme(value);
    let start = scan.skip_blanks(at + scheme.unwrap_or_default());
    let run = scan.run(&CREDENTIAL, start);
    let token = &scan.text[start..run];
    // "Authorization: required" is prose.
    let word =
        token.len() < 20 && token.iter().all(|byte| byte.is_ascii_alphabetic() || b".:-".contains(byte));
    if run == start || scheme.is_none() && word {
        return run;
    }
    redact(scan, name, start..run)
}

/// Where a header ends: at the quote that encloses it, or with its line. Parameters have quotes of
/// their own.
fn header_end(scan: &Scan<'_>, name: &Name, at: usize) -> usize {
    let enclosing = scan.before(name.range.start).filter(|byte| b"\"'`".contains(byte));
    let is_quote = |byte: u8| match enclosing {
        Some(mark) => byte == mark,
        None => name.noun == Noun::Cookie && b"\"'`".contains(&byte),
    };
    let ends = |index: &usize| is_quote(scan.text[*index]) || scan.ends_line(*index);
    let end = (at..scan.text.len()).find(ends).unwrap_or(scan.text.len());
    end - scan.text[at..end].iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// Schemes whose credentials are a list of parameters.
fn has_many_parts(value: &[u8]) -> bool {
    #[rustfmt::skip]
    let schemes = [
        &b"digest "[..], b"oauth ", b"aws4", b"aws ", b"hawk ", b"hmac", b"signature ", b"mac ", b"sharedkey",
        b"sharedaccesssignature", b"gnap", b"dpop",
    ];
    let starts =
        |scheme: &&[u8]| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    schemes.iter().any(starts)
}

/// `?sig=…` makes a shared-access URL, `X-Amz-Signature` a presigned one.
fn query_signature(scan: &mut Scan<'_>, at: Range<usize>) {
    let name = assign::name_around(scan, at.start..at.end - 1);
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

/// SQL's `IDENTIFIED BY 'x'`, PowerShell's `ConvertTo-SecureString "x"`.
fn quoted_after(scan: &mut Scan<'_>, at: Range<usize>) {
    let mut value = scan.skip_blanks(at.end);
    if scan.text.get(value..value + 8).is_some_and(|flag| flag.eq_ignore_ascii_case(b"-String ")) {
        value = scan.skip_blanks(value + 8);
    }
    if matches!(scan.byte(value), Some(b'"' | b'\'')) {
        let name = Name { range: at, noun: Noun::Password, quoted: true, separator: Separator::Equals };
        extent::redact_value(scan, &name, value);
    }
}

/// Docker's `"auth": "…"` is `user:password` in base64.
fn docker_login(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some((_, _, value)) = assign::separator(scan, &(at.start + 1..at.start + 5)) else { return };
    let Some(quote) = scan.quote(value) else { return };
    let (end, _) = scan.content(&quote);
    if wire::is_userpass(&scan.text[quote.after..end]) {
        scan.add(quote.after..end);
    }
}
