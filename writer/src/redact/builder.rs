//! What a scrubber is made of: built-in rules, the home folder, secrets from the environment, the
//! user's patterns.

use std::fmt;

use regex::bytes::Regex;

use super::needles::{Action, Needles};
use super::scan::Scan;
use super::{MARKER, Scrubber, args, assign, header, keyblock, names, tokens, values, wire};

/// A shorter value is too likely to occur by chance.
const LITERAL_MIN: usize = 6;

/// Collects what a [`Scrubber`] needs to know; made by [`Scrubber::builder`].
pub struct Builder {
    needles: Needles,
    patterns: Vec<Regex>,
    home: Option<Vec<u8>>,
    literals: Vec<Vec<u8>>,
}

impl Builder {
    pub(super) fn new() -> Self {
        let mut needles = Needles::new();
        tokens::add_needles(&mut needles);
        assign::add_needles(&mut needles);
        header::add_needles(&mut needles);
        wire::add_needles(&mut needles);
        keyblock::add_needles(&mut needles);
        args::add_needles(&mut needles);
        Self { needles, patterns: Vec::new(), home: None, literals: Vec::new() }
    }

    /// The home folder, which becomes `~` where it stands whole: `/home/ann` and `/home/ann/x`, not
    /// `/home/anna`.
    ///
    /// An empty, relative or one-letter path, and `/`, are left out.
    #[must_use]
    pub fn home(mut self, home: Option<&str>) -> Self {
        let home = home
            .map(|home| home.trim_end_matches('/'))
            .filter(|home| home.starts_with('/') && home.len() > 2);
        self.home = home.map(|home| home.as_bytes().to_vec());
        self
    }

    /// Environment variables: the values of those named like secrets are redacted wherever they occur,
    /// and so is the password of a URL in any of them.
    ///
    /// A name counts if [`is_secret_name`](super::is_secret_name) says so, or if it ends in `_KEY`,
    /// `_PAT`, `_AUTH` or the like. A value is left out if it is shorter than 6 bytes, a number of up
    /// to 8 digits, a path, a yes or no, one letter again and again, a reference (`${X}`), or a word
    /// that settings often have (`production`): redacting these would hide other text and protect
    /// nothing. A value is also found as JSON and as a URL would escape it.
    #[must_use]
    pub fn env(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, value) in variables {
            if is_env_secret(&name) && !is_file(value.trim()) {
                self.literal(value.trim().as_bytes());
            }
            let mut scan = Scan::new(value.as_bytes());
            for (at, _) in value.match_indices("://") {
                wire::url(&mut scan, at..at + 3);
            }
            for span in scan.spans {
                self.literal(&value.as_bytes()[span]);
            }
        }
        self
    }

    /// A pattern in the `regex` crate's syntax: whatever it matches, whole, is redacted; its groups
    /// mean nothing.
    ///
    /// # Errors
    ///
    /// If it can't be read, compiles to too much, or matches the empty string. The error says which
    /// pattern, counted from 1, and never repeats it, as a pattern may hold a secret itself.
    pub fn pattern(mut self, pattern: &str) -> Result<Self, PatternError> {
        let number = self.patterns.len() + 1;
        let regex = Regex::new(pattern).map_err(|error| PatternError { number, reason: reason(&error) })?;
        // Word boundaries and repeats match nothing at different places; this text has some of each.
        let empty = regex.find_iter(" aA0_-\n.\u{e9}b".as_bytes()).any(|found| found.is_empty())
            || regex.is_match(b"");
        if empty {
            return Err(PatternError {
                number,
                reason: "matches the empty string; make it match at least one character".to_owned(),
            });
        }
        self.patterns.push(regex);
        Ok(self)
    }

    /// The scrubber.
    #[must_use]
    pub fn build(mut self) -> Scrubber {
        let literals = self.literals.len();
        for literal in self.literals {
            self.needles.exact(literal, Action::Literal);
        }
        if let Some(home) = self.home {
            self.needles.exact(home, Action::Home);
        }
        Scrubber { needles: self.needles, patterns: self.patterns, literals }
    }

    fn literal(&mut self, value: &[u8]) {
        if is_trivial(value) {
            return;
        }
        for form in [value.to_vec(), in_json(value), in_url(value)] {
            if !self.literals.contains(&form) {
                self.literals.push(form);
            }
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = (self.literals.len(), self.patterns.len());
        formatter
            .debug_struct("Builder")
            .field("literals", &counts.0)
            .field("patterns", &counts.1)
            .finish_non_exhaustive()
    }
}

/// Why a pattern can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    number: usize,
    reason: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "redact pattern {}: {}", self.number, self.reason)
    }
}

impl std::error::Error for PatternError {}

/// One line of what `regex` says in many: the fault and its column.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::Syntax(text) => {
            let fault =
                text.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or("can't be read");
            let carets =
                text.lines().find(|line| line.contains('^') && line.trim_matches([' ', '^']).is_empty());
            match carets.and_then(|line| line.find('^')) {
                Some(column) if column >= 4 => format!("{fault} at column {}", column - 3),
                _ => fault.to_owned(),
            }
        }
        regex::Error::CompiledTooBig(limit) => {
            format!("compiles to more than {limit} bytes; make it shorter")
        }
        _ => "can't be compiled".to_owned(),
    }
}

/// Names that the house of environment variables adds to [`names::noun`]'s.
fn is_env_secret(name: &str) -> bool {
    if names::noun(name.as_bytes()).is_some() {
        return true;
    }
    let name = name.to_ascii_uppercase();
    let public = [
        "PUBLIC_KEY",
        "PUB_KEY",
        "GPG_KEY",
        "SORT_KEY",
        "PRIMARY_KEY",
        "PARTITION_KEY",
        "CACHE_KEY",
        "FOREIGN_KEY",
        "HOST_KEY",
        "TASK_KEY",
    ];
    let ends = [
        "_KEY",
        "_PAT",
        "_PASS",
        "_PWD",
        "_AUTH",
        "_PASSWORD",
        "_SECRETS",
        "_TOKENS",
        "_KEYS",
        "_CREDENTIAL",
        "_CREDENTIALS",
        "_DSN",
    ];
    ends.iter().any(|end| name.ends_with(end)) && !public.iter().any(|end| name.ends_with(end))
}

/// A variable such as `PWD` or `TLS_KEY` often names a file; a key of AWS may begin with a slash, but
/// has 40 letters.
fn is_file(value: &str) -> bool {
    let base64 = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| value.starts_with(root));
    rooted && !(base64 && value.len() >= 40)
}

fn is_trivial(value: &[u8]) -> bool {
    const COMMON: [&str; 29] = [
        "development",
        "production",
        "staging",
        "testing",
        "default",
        "localhost",
        "enabled",
        "disabled",
        "example",
        "password",
        "secret",
        "changeme",
        "unknown",
        "public",
        "private",
        "github",
        "gitlab",
        "google",
        "master",
        "docker",
        "server",
        "client",
        "username",
        "develop",
        "release",
        "waybill",
        "basic_auth",
        "anonymous",
        "postgres",
    ];
    let digits = value.len() <= 8 && value.iter().all(u8::is_ascii_digit);
    let repeated = value.iter().all(|byte| Some(byte) == value.first());
    let marked = value.windows(MARKER.len()).any(|window| window == MARKER.as_bytes());
    value.len() < LITERAL_MIN
        || digits
        || repeated
        || marked
        || values::is_inert(names::Noun::Key, value)
        || COMMON.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// As JSON would escape it inside a string.
fn in_json(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(br"\n"),
            b'\r' => out.extend(br"\r"),
            b'\t' => out.extend(br"\t"),
            _ => out.push(*byte),
        }
    }
    out
}

/// As a URL would escape it.
fn in_url(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for byte in value {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(*byte);
        } else {
            out.extend(format!("%{byte:02X}").bytes());
        }
    }
    out
}
