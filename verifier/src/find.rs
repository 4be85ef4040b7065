//! Looking for a few bytes in many, and holding bytes against others.

/// Where a part first stands. It is looked for place by place: what serves longer parts better
/// (`memmem`, `str::find`) is 10 KB of code, and here the parts are words.
pub(crate) fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let (first, rest) = part.split_first()?;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr(*first, bytes.get(from..)?)?;
        from = at + 1;
        if bytes.get(from..)?.starts_with(rest) {
            return Some(at);
        }
    }
}

/// Whether a text has a part.
pub(crate) fn has(text: &str, part: &str) -> bool {
    find(text.as_bytes(), part.as_bytes()).is_some()
}

/// Whether two texts of one length are the same.
///
/// On WebAssembly `==` compares byte by byte in a function of the library, and what holds a row
/// against what it must be takes a tenth of the whole check; so there it is word by word.
#[inline]
pub(crate) fn same<const N: usize>(a: &[u8; N], b: &[u8; N]) -> bool {
    if cfg!(target_arch = "wasm32") { same_words(a, b) } else { a == b }
}

#[inline(never)]
fn same_words(a: &[u8], b: &[u8]) -> bool {
    let word = |a: &[u8; 8], b: &[u8; 8]| u64::from_ne_bytes(*a) == u64::from_ne_bytes(*b);
    // The last word may hold bytes of the one before.
    let last = match (a.last_chunk(), b.last_chunk()) {
        (Some(a), Some(b)) => word(a, b),
        _ => a == b,
    };
    let mut words = a.as_chunks().0.iter().zip(b.as_chunks().0);
    last && a.len() == b.len() && words.all(|(a, b)| word(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_texts_are_the_same_where_every_byte_is() {
        let text: [u8; 70] = core::array::from_fn(|at| u8::try_from(at).expect("below 70"));
        for length in 0..text.len() {
            let text = &text[..length];
            assert!(same_words(text, text), "{length}");
            for at in 0..length {
                let mut other = text.to_vec();
                other[at] ^= 0x10;
                assert!(!same_words(text, &other), "{at} of {length}");
            }
            assert!(!same_words(text, &[text, b"x"].concat()));
            assert!(!same_words(&[text, b"x"].concat(), text));
        }
    }

    #[test]
    fn a_part_is_found_where_it_first_stands() {
        for text in ["", "a", "ab", "aab", "aaab", "abab", "bbaabaab"] {
            for part in ["a", "ab", "aab", "b", "ba", "abc"] {
                assert_eq!(find(text.as_bytes(), part.as_bytes()), text.find(part), "{part} in {text}");
                assert_eq!(has(text, part), text.contains(part));
            }
        }
    }
}
