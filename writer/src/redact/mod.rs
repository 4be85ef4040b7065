//! Scrubs secrets from everything recorded, before it is hashed or written.
//!
//! What is hashed can't be taken back, so a secret must be gone before that. Five kinds of knowledge
//! find it:
//!
//! | module | what it knows |
//! | --- | --- |
//! | `tokens` | the shapes that providers gave their tokens: `ghp_…`, `AKIA…`, `xoxb-…` |
//! | `assign`, `names`, `extent`, `values`, `header` | names that mean secrets, how a value stands beside one, and what is no value |
//! | `wire` | URL credentials, authentication schemes, JSON Web Tokens |
//! | `keyblock` | private key blocks, whole, escaped or cut off |
//! | `args` | command lines, where a word's place tells what it is |
//!
//! To these come the values of the environment's secret variables, word for word, and the user's own
//! patterns. Each span found is replaced by [`MARKER`] whole: no part of it, no length, no hash is
//! kept. `$HOME` becomes `~`.
//!
//! Scrubbing is stable: what comes out passes unchanged, so an entry that is recorded again keeps its
//! bytes. It takes time linear in the text, and the text may be any bytes.
//!
//! It does not prove that a text is free of secrets. A password in plain prose ("it is hunter2"), a
//! token of a provider that gave it no shape and no name beside it, or a secret encoded again (base64
//! of a password) passes. Hashes, UUIDs, digests, public keys and paths are left alone on purpose: they
//! are what a ledger is about.

mod args;
mod assign;
mod builder;
mod extent;
mod header;
mod keyblock;
mod names;
mod needles;
mod scan;
#[cfg(test)]
mod tests;
mod tokens;
mod values;
mod wire;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use regex::bytes::Regex;

pub use self::builder::{Builder, PatternError};
pub use self::names::is_secret_name;
use self::needles::{Action, Needles};
use self::scan::Scan;

/// What stands where a secret was.
pub const MARKER: &str = "***REDACTED***";

/// More rounds than any text needs to come to rest; a user's pattern that feeds on its own output ends
/// here.
const ROUNDS: usize = 16;

/// Finds secrets and takes them out.
///
/// ```
/// # use waybill_writer::redact::Scrubber;
/// let scrubber = Scrubber::builder().home(Some("/home/ann")).build();
/// let (text, count) = scrubber.scrub("cd /home/ann/x && PGPASSWORD=hunter2 psql");
/// assert_eq!((&*text, count), ("cd ~/x && PGPASSWORD=***REDACTED*** psql", 1));
/// ```
#[derive(Clone)]
pub struct Scrubber {
    needles: Needles,
    patterns: Vec<Regex>,
    literals: usize,
}

impl Scrubber {
    /// Starts with the built-in rules alone. Nothing is read from the process's environment.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The text without secrets, and how many were replaced. A home folder that became `~` doesn't
    /// count.
    #[must_use]
    pub fn scrub<'a>(&self, text: &'a str) -> (Cow<'a, str>, u64) {
        match self.scrub_bytes(text.as_bytes()) {
            (Cow::Borrowed(_), count) => (Cow::Borrowed(text), count),
            // Spans end between characters, so this takes the bytes as they are.
            (Cow::Owned(bytes), count) => {
                let text = String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                (Cow::Owned(text), count)
            }
        }
    }

    /// [`Self::scrub`] over bytes that need not be UTF-8, such as a console's or WTF-8 with lone
    /// surrogates.
    #[must_use]
    pub fn scrub_bytes<'a>(&self, text: &'a [u8]) -> (Cow<'a, [u8]>, u64) {
        let mut text = Cow::Borrowed(text);
        let mut count = 0;
        for _ in 0..ROUNDS {
            let (spans, homes) = self.find(&text);
            let fresh = fresh_spans(&text, spans);
            let (spans, with) = if fresh.is_empty() { (homes, "~") } else { (fresh, MARKER) };
            if spans.is_empty() {
                break;
            }
            if with == MARKER {
                count += u64::try_from(spans.len()).unwrap_or(u64::MAX);
            }
            text = Cow::Owned(replace(&text, &spans, with));
        }
        (text, count)
    }

    /// A command line without secrets, those included that are split over two arguments: `--password
    /// hunter2`, `-H "Authorization: Bearer x"`, `curl -u user:pass`, `sshpass -p x`; and how many were
    /// replaced.
    #[must_use]
    pub fn scrub_args(&self, args: &[String]) -> (Vec<String>, u64) {
        let mut args = args.to_vec();
        let mut count = 0;
        // What one argument became may change what the next one means.
        for _ in 0..ROUNDS {
            let (scrubbed, found) = self.scrub_args_once(&args);
            count += found;
            if scrubbed == args {
                break;
            }
            args = scrubbed;
        }
        (args, count)
    }

    /// Says whether a string value under this key is to be replaced whole: the key's name means a
    /// secret, and the value isn't empty, a mask, a reference (`${TOKEN}`), a type or yes or no, a
    /// number below 1000, already redacted, or, unless the key is a password's, the path of a file.
    ///
    /// A hash under `commit` or `key_hash` is left, as those names don't mean secrets; one under
    /// `token` is a token. Docker's `auth`, which is `user:password` in base64, counts by its value.
    #[must_use]
    pub fn value_for_key_is_secret(&self, key: &str, value: &str) -> bool {
        let value = value.as_bytes();
        match names::noun(key.as_bytes()) {
            Some(noun) => !values::is_inert(noun, value),
            None => key.eq_ignore_ascii_case("auth") && wire::is_userpass(value),
        }
    }

    fn scrub_args_once(&self, args: &[String]) -> (Vec<String>, u64) {
        let mut reader = args::Reader::default();
        let mut count = 0;
        let scrubbed = args.iter().map(|arg| {
            let secret = reader.next(arg.as_bytes()).and_then(|start| arg.get(..start));
            let shortened = secret.map(|kept| format!("{kept}{MARKER}"));
            let (text, found) = self.scrub(shortened.as_deref().unwrap_or(arg));
            count += found + u64::from(secret.is_some());
            text.into_owned()
        });
        (scrubbed.collect(), count)
    }

    /// Everything that a rule, literal or pattern matches, and the home folders.
    fn find(&self, text: &[u8]) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
        let mut scan = Scan::new(text);
        self.needles.each(text, |action, at| match action {
            Action::Rule(rule) => rule(&mut scan, at),
            Action::Token(token) => tokens::find(&mut scan, token, at),
            Action::Literal => scan.add(at),
            Action::Home => scan.home(at),
        });
        for pattern in &self.patterns {
            pattern.find_iter(text).for_each(|found| scan.add(found.range()));
        }
        (scan.spans, scan.homes)
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Scrubber")
            .field("literals", &self.literals)
            .field("patterns", &self.patterns.len())
            .finish_non_exhaustive()
    }
}

/// Joins spans that touch, widens them to whole characters and whole markers, and drops those inside a
/// marker.
fn fresh_spans(text: &[u8], mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if spans.is_empty() {
        return spans;
    }
    let markers = markers(text);
    for span in &mut spans {
        let start =
            text[..=span.start].iter().rev().take(3).take_while(|byte| is_continuation(**byte)).count();
        let end = text[span.end..].iter().take(3).take_while(|byte| is_continuation(**byte)).count();
        *span = span.start - start..span.end + end;
        let cut = |at: usize| {
            let index = markers.partition_point(|marker| marker.end <= at);
            markers.get(index).filter(|marker| marker.start < at)
        };
        *span = cut(span.start).map_or(span.start, |marker| marker.start)
            ..cut(span.end).map_or(span.end, |marker| marker.end);
    }
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        if markers
            .binary_search_by_key(&span.start, |marker| marker.start)
            .is_ok_and(|index| markers[index].end >= span.end)
        {
            continue;
        }
        match joined.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => joined.push(span),
        }
    }
    joined
}

fn markers(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(star) = text[at..].iter().position(|byte| *byte == b'*') {
        let start = at + star;
        let marked = text[start..].starts_with(MARKER.as_bytes());
        at = start + if marked { MARKER.len() } else { 1 };
        if marked {
            found.push(start..at);
        }
    }
    found
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn replace(text: &[u8], spans: &[Range<usize>], with: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        out.extend_from_slice(&text[at..span.start]);
        out.extend_from_slice(with.as_bytes());
        at = span.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}
