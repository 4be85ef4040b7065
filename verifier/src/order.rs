//! One stable sort for all kinds of items.
//!
//! The standard library's is compiled anew, at some 5 KB, for each type that it sorts. Here only
//! the comparison and the swap are, which is what keeps the WebAssembly module small. It is for
//! what is sorted once, as names and indexes are.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Sorts items; equal ones stay as they stand to each other. Takes `n log n` comparisons at most.
pub(crate) fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut places = places(items.len(), &|left, right| compare(&items[left], &items[right]));
    for at in 0..items.len() {
        while places[at] != at {
            let place = places[at];
            items.swap(at, place);
            places.swap(at, place);
        }
    }
}

/// Sorts items by their own order.
pub(crate) fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Where each of `len` items belongs: a merge of ever longer runs.
fn places(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    let mut merged = Vec::with_capacity(len);
    let mut width = 1;
    while width < len {
        for pair in order.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
                if compare(*first, *second) == Ordering::Greater {
                    merged.push(*second);
                    right = right_rest;
                } else {
                    merged.push(*first);
                    left = left_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        core::mem::swap(&mut order, &mut merged);
        merged.clear();
        width *= 2;
    }
    let mut places = vec![0; len];
    for (place, index) in order.into_iter().enumerate() {
        places[index] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sorts_as_the_standard_library_does() {
        let mut state = 1_u32;
        for len in (0..70).chain([255, 256, 1000]) {
            let mut items: Vec<(u32, usize)> = (0..len)
                .map(|index| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 27, index)
                })
                .collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_by(&mut items, |left, right| left.0.cmp(&right.0));
            assert_eq!(items, expected);
            items.reverse();
            sort(&mut items);
            assert_eq!(items, expected);
        }
    }
}
