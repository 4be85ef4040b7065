//! Git's deltas: an object as pieces of another.
//!
//! A delta is the base's size, the result's size, and steps. A size is in groups of seven bits,
//! lowest first, all but the last with the high bit. A step `0nnnnnnn` inserts the n bytes that
//! follow, and n is not 0. A step `1sssoooo` copies from the base: each bit of `oooo` and `sss`
//! says that a byte of the offset, then of the size, follows, lowest first; the others are 0, and
//! a size of 0 is 65536.
//!
//! Example: `06 07 90 03 01 58 91 03 03` makes `abcXdef` of `abcdef`.
//!
//! Source: gitformat-pack(5), "Deltified representation".

use alloc::vec::Vec;

use super::pack::MAX_OBJECT;

/// The object that a delta makes of its base; `None` if it does not fit it or is damaged.
pub(super) fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut rest = delta;
    if size(&mut rest)? != base.len() {
        return None;
    }
    let target = size(&mut rest)?;
    if target > MAX_OBJECT {
        return None;
    }
    let mut out = Vec::with_capacity(target.min(base.len().saturating_add(delta.len())));
    while let Some((&step, tail)) = rest.split_first() {
        rest = tail;
        if step & 0x80 == 0 {
            let (insert, tail) = rest.split_at_checked(usize::from(step))?;
            if insert.is_empty() {
                return None;
            }
            out.extend_from_slice(insert);
            rest = tail;
        } else {
            let mut number = |bits: core::ops::Range<u8>| {
                let mut value = 0;
                for (place, bit) in bits.enumerate() {
                    if step & 1 << bit != 0 {
                        let (&byte, tail) = rest.split_first()?;
                        rest = tail;
                        value |= usize::from(byte) << (8 * place);
                    }
                }
                Some(value)
            };
            let from = number(0..4)?;
            let count = match number(4..7)? {
                0 => 0x1_0000,
                count => count,
            };
            out.extend_from_slice(base.get(from..from.checked_add(count)?)?);
        }
        if out.len() > target {
            return None;
        }
    }
    (out.len() == target).then_some(out)
}

fn size(rest: &mut &[u8]) -> Option<usize> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        if shift > 28 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return usize::try_from(value).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const DELTA: &[u8] = &[6, 7, 0x90, 3, 1, b'X', 0x91, 3, 3];

    #[test]
    fn damaged_deltas_make_nothing() {
        assert_eq!(apply(b"abcdef", DELTA).as_deref(), Some(&b"abcXdef"[..]));
        for bad in [
            &[5, 7, 0x90, 3][..],
            &[6, 3, 0x90, 3, 0x90, 3],
            &[6, 9, 0x91, 3, 9],
            &[6, 9, 0x91, 0xff, 9],
            &[6, 1, 0],
            &[6, 1, 2, b'X'],
            &[6, 1, 0x90],
            &[6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
            &[6, 0xff, 0xff, 0xff, 0xff, 0x7f],
            &[6],
            &[],
            &[0x86],
            // A copy of size 0 is one of 65536.
            &[6, 0, 0x80],
        ] {
            assert_eq!(apply(b"abcdef", bad), None, "{bad:?}");
        }
        let long = vec![b'x'; 0x1_0000];
        assert_eq!(apply(&long, &[0x80, 0x80, 4, 0x80, 0x80, 4, 0x80]).as_deref(), Some(&long[..]));
    }
}
