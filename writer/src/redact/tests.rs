//! Tables of what is caught and what is left. A row marks what must go with `«…»`; the rest of it must
//! stay.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod caught;
mod left;
mod whole;

use std::borrow::Cow;

use super::{MARKER, Scrubber};

fn scrubber() -> Scrubber {
    Scrubber::builder().build()
}

/// Scrubs marked rows and checks that exactly the marked spans were replaced, and that a second time
/// changes nothing. All rows that fail are shown.
fn check<Row: AsRef<str>>(scrubber: &Scrubber, rows: impl IntoIterator<Item = Row>) {
    let faults: Vec<String> = rows.into_iter().filter_map(|row| fault(scrubber, row.as_ref())).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn fault(scrubber: &Scrubber, row: &str) -> Option<String> {
    let (mut input, mut expect, mut count, mut secrets) = (String::new(), String::new(), 0, Vec::new());
    let mut rest = row;
    while let Some((before, after)) = rest.split_once('«') {
        let (secret, behind) = after.split_once('»').unwrap();
        input += before;
        input += secret;
        expect += before;
        expect += MARKER;
        count += 1;
        secrets.push(secret);
        rest = behind;
    }
    input += rest;
    expect += rest;
    let (output, found) = scrubber.scrub(&input);
    if (&*output, found) != (&*expect, count) {
        return Some(format!(
            "scrubbing {input:?}\n     gave {output:?} ({found})\n     want {expect:?} ({count})"
        ));
    }
    let survives = secrets.iter().any(|secret| {
        let tail: String = secret.chars().skip(secret.chars().count().saturating_sub(6)).collect();
        output.contains(secret) && secret.len() > 2 || tail.len() >= 6 && output.contains(&tail)
    });
    let stable = scrubber.scrub(&output) == (Cow::Borrowed(&*output), 0);
    let same = *scrubber.scrub_bytes(input.as_bytes()).0 == *expect.as_bytes();
    (survives || !stable || !same)
        .then(|| format!("{input:?}: survives {survives}, stable {stable}, as bytes {same}"))
}

/// `length` letters and digits that look random; the same for the same length.
fn body(alphabet: &[u8], length: usize) -> String {
    let mut state = 0x2545_f491_u32;
    let letters = (0..length).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(alphabet[usize::try_from(state >> 16).unwrap() % alphabet.len()])
    });
    letters.collect()
}
