//! What a value under a secret's name is: the secret, or a stand-in for one that says nothing.

use super::MARKER;
use super::names::{self, Noun};

/// Says whether a value under a name of this kind tells nothing: empty, a stand-in, a yes or no, or a file's path.
pub(super) fn is_inert(noun: Noun, value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let value = match (noun, scheme(value)) {
        (Noun::Authorization | Noun::Token, Some(after)) => value[after..].trim_ascii(),
        _ => value,
    };
    is_stand_in(value)
        || says_nothing(value)
        || match noun {
            Noun::Password | Noun::Pass | Noun::Phrase => false,
            Noun::Pwd => {
                matches!(value.first(), Some(b'/' | b'~' | b'.'))
                    || matches!(value, [_, b':', b'\\' | b'/', ..])
            }
            Noun::Token | Noun::Key | Noun::Authorization | Noun::Cookie => is_path(value),
        }
}

/// The length of an authentication scheme's name with the blank after it.
pub(super) fn scheme(value: &[u8]) -> Option<usize> {
    let blank = value.iter().take(20).position(|byte| *byte == b' ')?;
    let known = [
        &b"bearer"[..],
        b"basic",
        b"token",
        b"apikey",
        b"api-key",
        b"key",
        b"jwt",
        b"negotiate",
        b"ntlm",
        b"bot",
        b"splunk",
        b"genie",
        b"genericapikey",
    ];
    known.iter().any(|name| name.eq_ignore_ascii_case(&value[..blank])).then_some(blank + 1)
}

/// A reference to a secret kept elsewhere, a mask, or what this scrubber left: `${TOKEN}`, `<token>`, `****`.
pub(super) fn is_stand_in(value: &[u8]) -> bool {
    let inner =
        |open: &[u8], close: &[u8]| value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let plain = |inner: &[u8]| {
        inner
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' ' | b':' | b'/'))
    };
    if value.is_empty() || is_mask(value) || is_marked(value) {
        return true;
    }
    match value[0] {
        b'$' => {
            let name = value.strip_prefix(b"$env:").unwrap_or(&value[1..]);
            let variable = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
            variable || inner(b"${", b"}").is_some_and(has_no_default) || inner(b"$(", b")").is_some()
        }
        b'{' => inner(b"{{", b"}}").is_some() || inner(b"{", b"}").is_some_and(plain),
        b'<' => inner(b"<", b">").is_some_and(|name| !name.contains(&b'<')),
        b'%' => inner(b"%", b"%").is_some_and(plain) || value.starts_with(b"%("),
        b'#' => inner(b"#{", b"}").is_some(),
        b'@' => inner(b"@{", b"}").is_some() || value.starts_with(b"@Microsoft.KeyVault("),
        b'(' => inner(b"((", b"))").is_some_and(plain),
        b'[' => inner(b"[", b"]").is_some_and(|name| {
            name.iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b' ' | b'-' | b'*'))
        }),
        b'!' => [&b"!vault"[..], b"!secret", b"!Ref", b"!Sub", b"!GetAtt", b"!ENV", b"!env_var"]
            .iter()
            .any(|tag| value.starts_with(tag)),
        _ => [
            &b"os.environ"[..],
            b"os.getenv",
            b"process.env",
            b"secrets.",
            b"env.",
            b"env:",
            b"ENV[",
            b"op://",
            b"vault:",
            b"ref+",
            b"ENC[",
            b"arn:aws:",
        ]
        .iter()
        .any(|start| value.starts_with(start)),
    }
}

/// `${NAME:-default}` tells the default.
fn has_no_default(inner: &[u8]) -> bool {
    let default = inner.windows(2).position(|pair| matches!(pair, b":-" | b":=" | b":+"));
    default.is_none_or(|at| matches!(inner.get(at + 2), None | Some(b'$')))
}

fn is_mask(value: &[u8]) -> bool {
    let first = value[0];
    matches!(first, b'*' | b'x' | b'X' | b'.' | b'-' | b'_' | b'#' | b'?')
        && value.len() > 1
        && value.iter().all(|byte| *byte == first)
        || value.chunks(3).all(|bullet| bullet == "•".as_bytes() || bullet == "…".as_bytes())
}

/// The marker, with no letter or digit around it.
fn is_marked(value: &[u8]) -> bool {
    let marker = MARKER.as_bytes();
    value.windows(marker.len()).position(|window| window == marker).is_some_and(|at| {
        let around = value[..at].iter().chain(&value[at + marker.len()..]);
        around.copied().all(|byte| byte.is_ascii_punctuation() || byte.is_ascii_whitespace())
    })
}

/// A word that answers yes, no or nothing, names a type, or is a small number.
fn says_nothing(value: &[u8]) -> bool {
    const WORDS: [&str; 46] = [
        "true",
        "false",
        "null",
        "none",
        "nil",
        "undefined",
        "yes",
        "no",
        "on",
        "off",
        "n/a",
        "unset",
        "empty",
        "required",
        "optional",
        "redacted",
        "hidden",
        "masked",
        "omitted",
        "filtered",
        "inherit",
        "include",
        "omit",
        "same-origin",
        "string",
        "str",
        "bytes",
        "number",
        "boolean",
        "bool",
        "integer",
        "int",
        "any",
        "object",
        "bearer",
        "basic",
        "digest",
        "missing",
        "invalid",
        "expired",
        "unauthorized",
        "forbidden",
        "incorrect",
        "ok",
        "todo",
        "nan",
    ];
    let punctuation = value.len() <= 3 && value.iter().all(u8::is_ascii_punctuation);
    let number = value.len() <= 3 && value.iter().all(u8::is_ascii_digit);
    let public = [&b"ssh-"[..], b"ecdsa-sha2-", b"sk-ssh-", b"-----BEGIN PUBLIC", b"-----BEGIN CERT"]
        .iter()
        .any(|start| value.starts_with(start));
    punctuation || number || public || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// The path of a file, by where it begins or how it ends; a base64 key may begin with a slash too.
pub(super) fn is_path(value: &[u8]) -> bool {
    const ROOTS: [&str; 22] = [
        "/home/",
        "/etc/",
        "/usr/",
        "/var/",
        "/tmp/",
        "/opt/",
        "/root/",
        "/run/",
        "/mnt/",
        "/dev/",
        "/srv/",
        "/Users/",
        "/private/",
        "/app/",
        "/proc/",
        "/work",
        "/secrets/",
        "/lib/",
        "/bin/",
        "./",
        "../",
        "file:",
    ];
    const ENDS: [&str; 17] = [
        ".pem", ".key", ".json", ".txt", ".crt", ".cer", ".pub", ".p12", ".pfx", ".jks", ".yaml", ".yml",
        ".env", ".toml", ".ini", ".gpg", ".asc",
    ];
    let one_line = value.len() < 1024 && !value.iter().any(|byte| matches!(byte, b'\n' | b'='));
    let drive = matches!(value, [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic());
    let home = value.first() == Some(&b'~') && value.get(1).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    one_line
        && (drive
            || home
            || ROOTS.iter().any(|root| value.starts_with(root.as_bytes()))
            || ENDS.iter().any(|end| value.ends_with(end.as_bytes())))
}

/// An unquoted value that is code which yields the secret, not the secret: `get_token()`, `config.password`.
pub(super) fn is_code(value: &[u8]) -> bool {
    const OWNERS: [&[u8]; 12] = [
        b"self.",
        b"this.",
        b"config.",
        b"settings.",
        b"args.",
        b"var.",
        b"local.",
        b"opts.",
        b"options.",
        b"params.",
        b"req.",
        b"request.",
    ];
    let value = value.strip_suffix(b";").unwrap_or(value);
    let chain = value
        .iter()
        .take_while(|b| {
            b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b':' | b'$' | b'&' | b'?' | b'!')
        })
        .count();
    let called = chain > 0 && matches!(value.get(chain), Some(b'(' | b'['));
    let keyword = matches!(
        value,
        b"await" | b"new" | b"async" | b"function" | b"lambda" | b"typeof" | b"self" | b"this"
    );
    let path = value.windows(2).any(|pair| pair == b"::")
        && value.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':'));
    let pointer = matches!(value, b"*mut" | b"*const") || value.starts_with(b"Token![");
    // Perl's and PHP's `$p->token`, cut at the arrow.
    let arrow = value.strip_prefix(b"$").and_then(|name| name.strip_suffix(b"-"));
    let arrow = arrow.is_some_and(|name| name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_'));
    let member = chain == value.len() && OWNERS.iter().any(|owner| value.starts_with(owner));
    called || keyword || member || path || pointer || arrow
}

/// A variable passed on, as in `login(password=db_password)`.
pub(super) fn is_variable(name: &[u8], value: &[u8]) -> bool {
    let letters = value.iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.'));
    letters
        && (value == name || value.contains(&b'_') || value.iter().any(u8::is_ascii_uppercase))
        && names::noun(value).is_some()
}
