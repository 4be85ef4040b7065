//! Looking for a few bytes in many.

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

#[cfg(test)]
mod tests {
    use super::*;

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
