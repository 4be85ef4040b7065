//! What a value under a secret's name is: the secret, or a stand-in for one that says nothing.

use super::MARKER;
use super::names::Noun;

/// Authentication schemes with one credential behind them.
const SCHEMES: &str =
    "bearer basic token apikey api-key key jwt negotiate ntlm bot splunk genie genericapikey";
/// How references to a secret kept elsewhere begin.
const REFERENCES: &str = "os.environ os.getenv process.env secrets. env. env: ENV[ op:// vault: ref+ ENC[ arn:aws: \
    !vault !secret !Ref !Sub !GetAtt !ENV !env_var @Microsoft.KeyVault( %(";
/// Words that answer yes, no or nothing, tell a fault, or name a type or scheme.
const WORDS: &str = "true false null none nil undefined yes no on off n/a unset empty required optional redacted \
    hidden masked omitted filtered inherit include omit same-origin string str bytes number boolean bool integer int \
    any object bearer basic digest missing invalid expired unauthorized forbidden incorrect ok todo nan %s %v %q %r";
const PUBLIC_KEYS: &str = "ssh- ecdsa-sha2- sk-ssh-";
/// Where a file's path begins; a base64 key may begin with a slash too.
const ROOTS: &str = "/home/ /etc/ /usr/ /var/ /tmp/ /opt/ /root/ /run/ /mnt/ /dev/ /srv/ /Users/ /private/ /app/ /proc/ \
    /work /secrets/ /lib/ /bin/ ./ ../ file:";
const FILE_ENDS: &str =
    ".pem .key .json .txt .crt .cer .pub .p12 .pfx .jks .yaml .yml .env .toml .ini .gpg .asc";
/// What code calls that which holds a secret.
const OWNERS: &str = "self. this. config. settings. args. var. local. opts. options. params. req. request.";
const KEYWORDS: &str = "await new async function lambda typeof self this *mut *const";

/// Says whether a value under a name of this kind tells nothing: empty, a stand-in, a yes or no, or a
/// file's path.
pub(super) fn is_inert(noun: Noun, value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let value = match (noun, scheme(value)) {
        (Noun::Authorization | Noun::Token, Some(after)) => value[after..].trim_ascii(),
        _ => value,
    };
    let file = match noun {
        Noun::Password | Noun::Pass | Noun::Phrase => false,
        Noun::Pwd => matches!(value, [b'/' | b'~' | b'.', ..] | [_, b':', b'\\' | b'/', ..]),
        Noun::Token | Noun::Key | Noun::Authorization | Noun::Cookie => is_path(value),
    };
    file || is_stand_in(value) || says_nothing(value)
}

/// The length of an authentication scheme's name with the blank after it.
pub(super) fn scheme(value: &[u8]) -> Option<usize> {
    let blank = value.iter().take(20).position(|byte| *byte == b' ')?;
    any(SCHEMES, |name| name.eq_ignore_ascii_case(&value[..blank])).then_some(blank + 1)
}

/// A reference to a secret kept elsewhere, a mask, or what this scrubber left: `${TOKEN}`, `<token>`,
/// `****`.
pub(super) fn is_stand_in(value: &[u8]) -> bool {
    let inside = |open: &str, close: &str| {
        value.strip_prefix(open.as_bytes()).and_then(|rest| rest.strip_suffix(close.as_bytes()))
    };
    let made_of = |inner: &[u8], signs: &[u8]| {
        inner.iter().all(|byte| byte.is_ascii_alphanumeric() || signs.contains(byte))
    };
    let plain = |inner: &[u8]| made_of(inner, b"_-. :/");
    let Some(first) = value.first() else { return true };
    let reference = match first {
        b'$' => {
            let name = value.strip_prefix(b"$env:").unwrap_or(&value[1..]);
            !name.is_empty() && made_of(name, b"_")
                || inside("${", "}").is_some_and(has_no_default)
                || inside("$(", ")").is_some()
        }
        b'{' => inside("{{", "}}").is_some() || inside("{", "}").is_some_and(plain),
        b'<' => inside("<", ">").is_some_and(|name| !name.contains(&b'<')),
        b'%' => inside("%", "%").is_some_and(plain),
        b'#' => inside("#{", "}").is_some(),
        b'@' => inside("@{", "}").is_some(),
        b'(' => inside("((", "))").is_some_and(plain),
        b'[' => inside("[", "]").is_some_and(|name| plain(name) && !name.iter().any(u8::is_ascii_digit)),
        _ => false,
    };
    reference || is_mask(value) || is_marked(value) || any(REFERENCES, |start| value.starts_with(start))
}

/// `${NAME:-default}` tells the default.
fn has_no_default(inner: &[u8]) -> bool {
    let default = inner.windows(2).position(|pair| matches!(pair, b":-" | b":=" | b":+"));
    default.is_none_or(|at| matches!(inner.get(at + 2), None | Some(b'$')))
}

/// One sign again and again, or bullets.
fn is_mask(value: &[u8]) -> bool {
    let one_sign = value.len() > 1 && value.iter().all(|byte| *byte == value[0]);
    one_sign && b"*xX.-_#?".contains(&value[0])
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

/// A word that tells nothing, a number of up to three digits, or a public key.
fn says_nothing(value: &[u8]) -> bool {
    let short = value.len() <= 3;
    short && (value.iter().all(u8::is_ascii_punctuation) || value.iter().all(u8::is_ascii_digit))
        || any(PUBLIC_KEYS, |start| value.starts_with(start))
        || any(WORDS, |word| value.eq_ignore_ascii_case(word))
        || [&b"-----BEGIN PUBLIC"[..], b"-----BEGIN CERT"].iter().any(|start| value.starts_with(start))
}

/// The path of a file, by where it begins or how it ends.
fn is_path(value: &[u8]) -> bool {
    let one_line = value.len() < 1024 && !value.iter().any(|byte| b"\n=".contains(byte));
    let drive = matches!(value, [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic());
    let home = value.first() == Some(&b'~') && value.get(1).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let begins = || any(ROOTS, |root| value.starts_with(root));
    let ends = || any(FILE_ENDS, |end| value.ends_with(end));
    one_line && (drive || home || begins() || ends())
}

/// An unquoted value that is code which yields the secret, not the secret: `get_token()`,
/// `config.password`.
pub(super) fn is_code(value: &[u8]) -> bool {
    let value = value.strip_suffix(b";").unwrap_or(value);
    let word = |value: &[u8]| value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let chain =
        value.iter().take_while(|byte| byte.is_ascii_alphabetic() || b"_.:$&?!".contains(byte)).count();
    let called = chain > 0 && matches!(value.get(chain), Some(b'(' | b'['));
    let member = chain == value.len() && any(OWNERS, |owner| value.starts_with(owner));
    let path = value.windows(2).any(|pair| pair == b"::") && value.split(|byte| *byte == b':').all(word);
    // Perl's and PHP's `$p->token`, cut at the arrow.
    let arrow = value.strip_prefix(b"$").and_then(|name| name.strip_suffix(b"-")).is_some_and(word);
    called || member || path || arrow || any(KEYWORDS, |keyword| value == keyword)
}

fn any(list: &str, test: impl FnMut(&[u8]) -> bool) -> bool {
    list.split_ascii_whitespace().map(str::as_bytes).any(test)
}
