//! The prefilter: finds in one pass where a rule could begin, so that clean text costs about a
//! nanosecond a byte.
//!
//! Every rule has a needle, a literal of three bytes or more without which it can't match. The three
//! rarest bytes of each needle, five bits of each, are one of 32768 sets; a bit for each (4 KiB) is
//! asked at each byte of the text. Five bits fold the case of letters, so one walk serves `password`
//! and `PASSWORD`. A hit is compared byte for byte and then handed to its rule, which looks around it.
//! Nothing is compiled and nothing waits for a first use: building the index takes some ten
//! microseconds.

use std::borrow::Cow;
use std::ops::Range;

use super::scan::Scan;
use super::tokens::Token;

const PAIRS: usize = 1 << 10;

/// What a needle that was found stands for.
#[derive(Clone)]
pub(super) enum Action {
    /// A rule looks around the needle, and adds what it finds to the scan.
    Rule(fn(&mut Scan<'_>, Range<usize>)),
    /// A provider's token begins with the needle.
    Token(&'static Token),
    /// The needle itself is a secret.
    Literal,
    /// The needle is the home folder.
    Home,
}

#[derive(Clone)]
struct Needle {
    text: Cow<'static, [u8]>,
    /// Where in `text` its three rarest bytes are.
    window: usize,
    ignore_case: bool,
    action: Action,
    /// The next needle whose window has the same bits, plus one; 0 ends the chain.
    next: u32,
}

/// The needles of one scrubber, indexed.
#[derive(Clone)]
pub(super) struct Needles {
    /// For the first two bytes of a window, which third bytes can follow.
    thirds: Box<[u32; PAIRS]>,
    /// The first needle of each window, plus one.
    first: Vec<u32>,
    needles: Vec<Needle>,
}

impl Needles {
    pub(super) fn new() -> Self {
        Self { thirds: Box::new([0; PAIRS]), first: vec![0; PAIRS * 32], needles: Vec::with_capacity(512) }
    }

    /// Adds a needle compared byte for byte. One shorter than three bytes is left out.
    pub(super) fn exact(&mut self, text: impl Into<Cow<'static, [u8]>>, action: Action) {
        self.push(text.into(), false, action);
    }

    /// Adds a needle, given in lower case, that is found in any case.
    pub(super) fn folded(&mut self, text: &'static str, action: Action) {
        self.push(text.as_bytes().into(), true, action);
    }

    fn push(&mut self, text: Cow<'static, [u8]>, ignore_case: bool, action: Action) {
        let rarest = text
            .windows(3)
            .enumerate()
            .min_by_key(|(_, window)| window.iter().map(|byte| commonness(*byte)).sum::<u32>());
        let Some((window, bytes)) = rarest else { return };
        let (pair, third) = bits(bytes);
        let (Some(first), Ok(index)) =
            (self.first.get_mut(pair * 32 + third), u32::try_from(self.needles.len() + 1))
        else {
            return;
        };
        self.thirds[pair] |= 1 << third;
        self.needles.push(Needle { text, window, ignore_case, action, next: *first });
        *first = index;
    }

    /// Calls `hit` with each needle's action and place, in the order of the text.
    pub(super) fn each(&self, text: &[u8], mut hit: impl FnMut(&Action, Range<usize>)) {
        for (at, window) in text.windows(3).enumerate() {
            let (pair, third) = bits(window);
            if (self.thirds[pair] >> third) & 1 == 1 {
                self.confirm(text, pair * 32 + third, at, &mut hit);
            }
        }
    }

    #[inline(never)]
    fn confirm(&self, text: &[u8], set: usize, at: usize, hit: &mut impl FnMut(&Action, Range<usize>)) {
        let mut link = self.first[set];
        while let Some(needle) =
            usize::try_from(link).ok().and_then(|link| self.needles.get(link.checked_sub(1)?))
        {
            link = needle.next;
            let Some(start) = at.checked_sub(needle.window) else { continue };
            let range = start..start + needle.text.len();
            let Some(found) = text.get(range.clone()) else { continue };
            if found == &*needle.text || needle.ignore_case && found.eq_ignore_ascii_case(&needle.text) {
                hit(&needle.action, range);
            }
        }
    }
}

/// The low five bits of three bytes: of the first two together, and of the third.
fn bits(window: &[u8]) -> (usize, usize) {
    let low = |index: usize| usize::from(window[index] & 31);
    (low(0) << 5 | low(1), low(2))
}

/// How often a byte's low five bits occur in text, roughly: letters as in English, plus the digits and
/// signs that share them (a space counts as 0, `p` to `y` have the digits, `n` and `o` the dot and the
/// slash).
fn commonness(byte: u8) -> u32 {
    #[rustfmt::skip]
    const OF: [u32; 32] = [
        14, 8, 6, 4, 4, 11, 3, 3, 5, 7, 3, 2, 6, 5, 8, 8,
        6, 5, 8, 8, 11, 5, 4, 4, 4, 4, 5, 3, 2, 4, 1, 4,
    ];
    OF[usize::from(byte & 31)]
}
