//! Finding the end of a run of ordinary string bytes, eight at a time.
//!
//! The classic word tricks: a byte test done on all eight bytes of a word, whose lowest hit is
//! exact (a borrow can only make false hits above a true one). Portable, and as fast in WASM.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// How many bytes from the start are neither `"`, `\` nor a control character below U+0020:
/// the part of a JSON string that stands for itself.
pub(super) fn text_run(bytes: &[u8]) -> usize {
    run(bytes, |word| below_space(word) | equal(word, b'"') | equal(word, b'\\'))
}

/// The same, and also not outside ASCII nor U+007F: the part of an `ascii` canonical string that
/// has no escape.
#[inline]
pub(super) fn ascii_run(bytes: &[u8]) -> usize {
    run(bytes, |word| {
        // Turning the second bit moves the quote to U+0020, next to the control characters. A high
        // bit, here or in `above`, is a hit anyhow, so none needs to be masked.
        let control_or_quote = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
        let backslash = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
        let above = word | word.wrapping_add(ONES);
        (control_or_quote | backslash | above) & HIGH
    })
}

#[inline]
fn run(bytes: &[u8], special: impl Fn(u64) -> u64) -> usize {
    let mut length = 0;
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let hits = special(u64::from_le_bytes(*word));
        if hits != 0 {
            return length + lowest(hits);
        }
        length += 8;
        rest = behind;
    }
    // Pad with quotes: a hit at or behind the end means that the rest is ordinary.
    length + lowest(special(padded(rest)))
}

/// The last word, if it is no whole one: apart, since in a line hardly anything ends there.
#[cold]
#[inline(never)]
fn padded(rest: &[u8]) -> u64 {
    let mut word = [b'"'; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

fn below_space(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & HIGH
}

fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * u64::from(byte));
    difference.wrapping_sub(ONES) & !difference & HIGH
}

fn lowest(hits: u64) -> usize {
    usize::try_from(hits.trailing_zeros() / 8).unwrap_or(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_judged_as_a_byte_loop_judges_it() {
        for length in 0..20 {
            for place in 0..length {
                for byte in 0..=255 {
                    let mut bytes = alloc::vec![b'a'; length];
                    bytes[place] = byte;
                    let text_stops = byte < 0x20 || byte == b'"' || byte == b'\\';
                    let ascii_stops = text_stops || byte > 0x7e;
                    assert_eq!(text_run(&bytes), if text_stops { place } else { length });
                    assert_eq!(ascii_run(&bytes), if ascii_stops { place } else { length });
                }
            }
        }
    }

    #[test]
    fn the_first_of_several_hits_counts() {
        assert_eq!(ascii_run(b"ab\xff\"\\\x01\x7f"), 2);
        assert_eq!(ascii_run(b"abcdefgh\x7f\xff"), 8);
        assert_eq!(text_run(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\""), 9);
    }
}
