//! Credentials as they travel: in a URL's authority, behind an authentication scheme, in a JSON Web
//! Token.

use std::ops::Range;

use super::needles::{Action, Needles};
use super::scan::{BASE64, CREDENTIAL, Scan, WORD};
use super::values;

/// An unescaped password in a URL is followed this far over a `/`, `?` or `#`.
const AUTHORITY_MAX: usize = 256;

/// Adds the signs of URLs, schemes and tokens.
pub(super) fn add_needles(needles: &mut Needles) {
    needles.exact(&b"://"[..], Action::Rule(url));
    needles.exact(&br":\/\/"[..], Action::Rule(url));
    needles.exact(&b"@tcp("[..], Action::Rule(go_dsn));
    needles.exact(&b"@unix("[..], Action::Rule(go_dsn));
    needles.folded("bearer", Action::Rule(bearer));
    needles.folded("basic", Action::Rule(basic));
    needles.folded("token ", Action::Rule(token_scheme));
    needles.exact(&b"eyJ"[..], Action::Rule(jwt));
}

/// `scheme://user:password@host`: the password goes, and a user that is itself a token; the host stays.
///
/// A lone user goes only on the web's schemes and if it looks random: `ssh://git@host` stays.
pub(super) fn url(scan: &mut Scan<'_>, at: Range<usize>) {
    if !scan.before(at.start).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return;
    }
    let scheme = scan.text[at.start.saturating_sub(5)..at.start].to_ascii_lowercase();
    let web = [&b"http"[..], b"https", b"ws", b"wss", b"ftp"].iter().any(|name| scheme.ends_with(name));
    let Some(end) = userinfo_end(scan, at.end, web) else { return };
    let userinfo = &scan.text[at.end..end];
    let Some(colon) = userinfo.iter().position(|byte| *byte == b':') else {
        if web && is_token(userinfo) {
            scan.add(at.end..end);
        }
        return;
    };
    let (user, password) = (&userinfo[..colon], &userinfo[colon + 1..]);
    let start = if is_token(user) { at.end } else { at.end + colon + 1 };
    if start == at.end || !values::is_stand_in(password) {
        scan.add(start..end);
    }
}

/// Where the `@` is that ends the userinfo of the authority at `from`.
fn userinfo_end(scan: &Scan<'_>, from: usize, web: bool) -> Option<usize> {
    let ends = |byte: &u8| *byte <= b' ' || b"\"'<>`\\\x7f".contains(byte);
    let rest = &scan.text[from..];
    let stops = |byte: &u8| ends(byte) || matches!(byte, b'/' | b'?' | b'#');
    let authority = &rest[..rest.iter().position(stops).unwrap_or(rest.len())];
    if let Some(sign) = authority.iter().rposition(|byte| *byte == b'@') {
        return Some(from + sign);
    }
    // A `/`, `?` or `#` that should have been escaped: then what follows the colon is no port.
    let port = authority.iter().position(|byte| *byte == b':').map(|colon| &authority[colon + 1..])?;
    let stand_in = port.first().is_none_or(|byte| b"{$<%*".contains(byte));
    let named = web && port.iter().all(u8::is_ascii_alphabetic);
    if stand_in || named || port.iter().all(u8::is_ascii_digit) || authority.first() == Some(&b'[') {
        return None;
    }
    let near = &rest[..rest.len().min(AUTHORITY_MAX)];
    let wide = &near[..near.iter().position(ends).unwrap_or(near.len())];
    wide.iter().rposition(|byte| *byte == b'@').map(|sign| from + sign)
}

/// A user name no person has: long, with letters and digits, no dot.
fn is_token(user: &[u8]) -> bool {
    let letters = user.iter().any(u8::is_ascii_alphabetic);
    let digits = user.iter().any(u8::is_ascii_digit);
    let spelled = user.contains(&b'-');
    letters
        && digits
        && user.len() >= if spelled { 24 } else { 16 }
        && user.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// `user:password@tcp(host)/db`, as Go's MySQL driver has it.
fn go_dsn(scan: &mut Scan<'_>, at: Range<usize>) {
    let before = &scan.text[at.start.saturating_sub(AUTHORITY_MAX)..at.start];
    let edge = before.iter().rposition(|byte| *byte <= b' ' || b"\"'`=/".contains(byte));
    let userinfo = &before[edge.map_or(0, |edge| edge + 1)..];
    if let Some(colon) = userinfo.iter().position(|byte| *byte == b':') {
        let password = &userinfo[colon + 1..];
        if !values::is_stand_in(password) {
            scan.add(at.start - password.len()..at.start);
        }
    }
}

/// Where the credential begins behind a scheme's name: blanks (also `%20`), perhaps a quote.
fn behind(scan: &Scan<'_>, at: &Range<usize>) -> Option<usize> {
    let named = scan.before(at.start).is_some_and(|byte| matches!(byte, b'_' | b'-' | b'.' | b'/'));
    if named || !scan.bounded(at.start) {
        return None;
    }
    let mut start = scan.skip(at.end, |byte| matches!(byte, b' ' | b'\t' | b'+'));
    while scan.starts(start, b"%20") {
        start += 3;
    }
    if start == at.end {
        return None;
    }
    Some(scan.quote(start).map_or(start, |quote| quote.after))
}

fn bearer(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some(start) = behind(scan, &at) else { return };
    let run = scan.run(&CREDENTIAL, start);
    let token = without_stop(&scan.text[start..run]);
    if is_credential(token) && !values::is_stand_in(token) {
        scan.add(start..start + token.len());
    }
}

/// No word of prose: "bearer of bad news", "Bearer authentication", `Bearer realm="x"`.
fn is_credential(token: &[u8]) -> bool {
    let first = token.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_./+~-".contains(byte));
    let inner = &token[..token.len().min(512)];
    // A parameter, cut at its quote.
    if inner.strip_suffix(b"=").is_some_and(|name| name.iter().all(u8::is_ascii_lowercase)) {
        return false;
    }
    let digit = inner.iter().any(u8::is_ascii_digit);
    let signs = inner.iter().any(|byte| matches!(byte, b'+' | b'=' | b'|' | b'~'));
    let hump = inner.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let letters = inner.iter().all(u8::is_ascii_alphabetic);
    first
        && (digit && inner.len() >= 6
            || signs && inner.len() >= 8
            || hump && inner.len() >= 10
            || letters && inner.len() >= 20)
}

fn without_stop(token: &[u8]) -> &[u8] {
    let stops = token.iter().rev().take_while(|byte| matches!(byte, b'.' | b':' | b'!' | b'?')).count();
    &token[..token.len() - stops]
}

/// `Basic` and base64 that decodes to `user:password`.
fn basic(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some(start) = behind(scan, &at) else { return };
    let end = scan.run(&BASE64, start);
    if is_userpass(&scan.text[start..end]) {
        scan.add(start..end);
    }
}

/// Decodes to text with a colon in it.
pub(super) fn is_userpass(encoded: &[u8]) -> bool {
    let mut decoded = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in encoded.iter().take(4096).take_while(|byte| **byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            _ => 63,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    decoded.len() > 2
        && decoded.contains(&b':')
        && std::str::from_utf8(&decoded).is_ok_and(|text| !text.chars().any(char::is_control))
}

/// `Token 9944b0…`, outside a header only when it looks random and isn't a hash.
fn token_scheme(scan: &mut Scan<'_>, at: Range<usize>) {
    let Some(start) = behind(scan, &(at.start..at.end - 1)) else { return };
    let end = scan.run(&WORD, start);
    let token = &scan.text[start..end];
    let hex = token.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let mixed = token.iter().any(u8::is_ascii_digit) && token.iter().any(u8::is_ascii_alphabetic);
    let unbroken = token.split(|byte| !byte.is_ascii_alphanumeric()).any(|part| part.len() >= 16);
    if mixed && unbroken && token.len() >= 20 && !hex {
        scan.add(start..end);
    }
}

/// A JSON Web Token: three parts (the last empty or cut off), or five when encrypted; the first is
/// `{"…` in base64url.
fn jwt(scan: &mut Scan<'_>, at: Range<usize>) {
    let joined = matches!(scan.before(at.start), Some(b'_' | b'-'));
    if joined || !scan.bounded(at.start) {
        return;
    }
    let mut end = scan.run(&WORD, at.start);
    if end - at.start < 10 {
        return;
    }
    let signed = scan.starts(end, b".eyJ");
    let mut parts = 1;
    while parts < 5 && scan.byte(end) == Some(b'.') {
        let next = scan.run(&WORD, end + 1);
        // An encrypted token may have an empty second part.
        if next == end + 1 && (parts != 1 || scan.byte(next) != Some(b'.')) {
            break;
        }
        end = next;
        parts += 1;
    }
    if parts >= 3 || signed {
        scan.add(at.start..end);
    }
}
