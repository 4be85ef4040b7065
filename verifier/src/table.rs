//! A table of values by their names, sorted.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Values by name: a sorted map that only grows.
///
/// The map inside is the same for all kinds of values, so that there is one copy of its code: a
/// [`BTreeMap`] of each kind of its own makes the WebAssembly module a fifth larger.
#[derive(Clone)]
pub struct Table<V> {
    places: BTreeMap<String, usize>,
    values: Vec<V>,
    recent: Recent,
}

impl<V> Table<V> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Table<V> {
        Table { places: BTreeMap::new(), values: Vec::new(), recent: Recent(Vec::new()) }
    }

    /// The value of a name that comes again and again: mostly one comparison finds it. If it is
    /// not there yet, it is `first`.
    pub fn again(&mut self, name: &str, first: V) -> &mut V {
        let next = self.values.len();
        let place = self.recent.place(&mut self.places, name, next);
        if place == next {
            self.values.push(first);
        }
        &mut self.values[place]
    }

    /// Sets a value, and gives back the one that the name had.
    pub fn insert(&mut self, name: &str, value: V) -> Option<V> {
        match place(&mut self.places, name, self.values.len()) {
            Some(place) => Some(core::mem::replace(&mut self.values[place], value)),
            None => {
                self.values.push(value);
                None
            }
        }
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&V> {
        find(&self.places, name).map(|place| &self.values[place])
    }

    /// The value of a name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        find(&self.places, name).map(|place| &mut self.values[place])
    }

    /// The value of a name, to be changed; one that is not there yet is made.
    pub fn get_or_default(&mut self, name: &str) -> &mut V
    where
        V: Default,
    {
        let next = self.values.len();
        let place = place(&mut self.places, name, next).unwrap_or_else(|| {
            self.values.push(V::default());
            next
        });
        &mut self.values[place]
    }

    /// Whether a name is there.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        find(&self.places, name).is_some()
    }

    /// The names and values, by name.
    pub fn iter(&self) -> Iter<'_, V> {
        Iter { places: self.places.iter(), values: &self.values }
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The names and values of a [`Table`], by name.
#[derive(Clone, Debug)]
pub struct Iter<'a, V> {
    places: alloc::collections::btree_map::Iter<'a, String, usize>,
    values: &'a [V],
}

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (&'a str, &'a V);

    fn next(&mut self) -> Option<(&'a str, &'a V)> {
        let (name, place) = self.places.next()?;
        Some((name, &self.values[*place]))
    }
}

/// The places of names that were asked for lately, each in the slot that its last bytes choose.
///
/// Who chooses names so that they share a slot makes this as slow as the map is, and not slower.
#[derive(Clone, Default)]
struct Recent(Vec<(String, usize)>);

impl Recent {
    const SLOTS: usize = 1024;

    /// The place of a name; if it has none, it gets the next one.
    fn place(&mut self, places: &mut BTreeMap<String, usize>, name: &str, next: usize) -> usize {
        if self.0.is_empty() {
            self.0.resize(Recent::SLOTS, (String::new(), usize::MAX));
        }
        let mut end = [0; 8];
        for (byte, of_name) in end.iter_mut().zip(name.bytes().rev()) {
            *byte = of_name;
        }
        let mixed = u64::from_le_bytes(end).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let slot = &mut self.0[usize::try_from(mixed).unwrap_or(0)];
        if slot.1 == usize::MAX || slot.0 != name {
            slot.0.clear();
            slot.0.push_str(name);
            slot.1 = place(places, name, next).unwrap_or(next);
        }
        slot.1
    }
}

fn find(places: &BTreeMap<String, usize>, name: &str) -> Option<usize> {
    places.get(name).copied()
}

/// The place of a name; if it has none, it gets the next one.
fn place(places: &mut BTreeMap<String, usize>, name: &str, next: usize) -> Option<usize> {
    let place = find(places, name);
    if place.is_none() {
        places.insert(name.to_string(), next);
    }
    place
}

impl<V> Default for Table<V> {
    fn default() -> Table<V> {
        Table::new()
    }
}

impl<V: PartialEq> PartialEq for Table<V> {
    fn eq(&self, other: &Table<V>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for Table<V> {}

impl<V: fmt::Debug> fmt::Debug for Table<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<'a, V> IntoIterator for &'a Table<V> {
    type Item = (&'a str, &'a V);
    type IntoIter = Iter<'a, V>;

    fn into_iter(self) -> Iter<'a, V> {
        self.iter()
    }
}

impl<V> IntoIterator for Table<V> {
    type Item = (String, V);
    type IntoIter = alloc::vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        let mut values: Vec<_> = self.values.into_iter().map(Some).collect();
        let taken = |(name, place): (String, usize)| Some((name, values[place].take()?));
        self.places.into_iter().filter_map(taken).collect::<Vec<_>>().into_iter()
    }
}

impl<N: AsRef<str>, V> FromIterator<(N, V)> for Table<V> {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(items: I) -> Table<V> {
        let mut table = Table::new();
        for (name, value) in items {
            table.insert(name.as_ref(), value);
        }
        table
    }
}

impl<N: AsRef<str>, V, const COUNT: usize> From<[(N, V); COUNT]> for Table<V> {
    fn from(items: [(N, V); COUNT]) -> Table<V> {
        items.into_iter().collect()
    }
}

impl<V> core::ops::Index<&str> for Table<V> {
    type Output = V;

    /// # Panics
    ///
    /// If the name is not there.
    fn index(&self, name: &str) -> &V {
        self.get(name).expect("the name is in the table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_sorted_and_keep_their_last_value() {
        let mut table = Table::from([("b", 1), ("c", 2)]);
        assert_eq!(table.insert("a", 3), None);
        assert_eq!(table.insert("b", 4), Some(1));
        *table.get_or_default("d") += 5;
        *table.get_or_default("c") += 5;
        let expected = [("a", 3), ("b", 4), ("c", 7), ("d", 5)];
        assert!(table.iter().eq(expected.iter().map(|(name, value)| (*name, value))));
        assert_eq!(table, expected.into_iter().rev().collect());
        assert_eq!((table.get("e"), table.len(), table["a"]), (None, 4, 3));
        assert!(table.into_iter().eq(expected.map(|(name, value)| (name.to_string(), value))));
    }

    #[test]
    fn names_that_come_again_have_the_value_that_they_had() {
        // More names than slots, names that share one, and all lengths around a slot's last bytes.
        let names: Vec<String> = (0..3000)
            .map(|n| alloc::format!("task-{n}"))
            .chain((0..40).map(|n| alloc::format!("{n}-the-same-end")))
            .chain((0..20).map(|length| "x".repeat(length)))
            .collect();
        let (mut table, mut plain) = (Table::new(), BTreeMap::new());
        for round in 0..4_usize {
            for (index, name) in names.iter().enumerate().filter(|(index, _)| index % 3 != round) {
                *table.again(name, index) += round;
                *plain.entry(name.as_str()).or_insert(index) += round;
                if index % 7 == 0 {
                    let other = alloc::format!("{name}.{round}");
                    table.insert(&other, index);
                    *table.again(&other, 0) += 1;
                    assert_eq!(table.get(&other), Some(&(index + 1)));
                }
            }
            let ours = table.iter().filter(|(name, _)| plain.contains_key(name));
            assert!(
                ours.map(|(name, value)| (name, *value))
                    .eq(plain.iter().map(|(name, value)| (*name, *value)))
            );
        }
        assert_eq!(table.clone(), table);
    }
}
