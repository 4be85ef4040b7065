//! Which files of an audit folder are days, and in which order they are one chain.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::order;
use crate::time::is_day;

/// What an archived day may unpack to: 4 GiB.
pub const MAX_DAY: u64 = 4 << 30;

/// The file of one day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DayFile<'a> {
    /// Not in the archive. The first field, since days of the archive sort first.
    live: bool,
    /// The day, `YYYY-MM-DD`.
    pub date: &'a str,
    /// Its name, relative to the audit folder.
    pub name: &'a str,
}

impl<'a> DayFile<'a> {
    /// Takes a name relative to the audit folder; `None` if it is no day's.
    #[must_use]
    pub fn of(name: &'a str) -> Option<DayFile<'a>> {
        let (date, live) = match name.strip_prefix("archive/") {
            Some(packed) => (packed.strip_suffix(".jsonl.gz")?, false),
            None => (name.strip_suffix(".jsonl")?, true),
        };
        is_day(date).then_some(DayFile { live, date, name })
    }

    /// Whether it is packed, in the archive.
    #[must_use]
    pub fn archived(&self) -> bool {
        !self.live
    }
}

/// What is wrong with a file as such.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileFault {
    /// Its name, relative to the audit folder.
    pub name: String,
    /// The fault's stable name.
    pub fault: &'static str,
    /// What it is.
    pub detail: String,
}

/// An audit folder, as it is to be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folder<'a> {
    /// The days in the order of the chain: archived ones first, by date.
    pub days: Vec<DayFile<'a>>,
    /// Files that no reader could place: `undated_file`, `day_twice`.
    pub faults: Vec<FileFault>,
}

/// Sorts out the names of all files in an audit folder, each relative to it (`archive/…` for
/// those in the archive). Names that are neither `*.jsonl` nor `archive/*.gz` are passed over:
/// locks, and what was set aside.
#[must_use]
pub fn arrange<'a>(names: impl IntoIterator<Item = &'a str>) -> Folder<'a> {
    let is_meant_as_one =
        |name: &&str| name.ends_with(".jsonl") || (name.starts_with("archive/") && name.ends_with(".gz"));
    arrange_days(names.into_iter().filter(is_meant_as_one))
}

/// As [`arrange`], of files that are days by what is in them: one whose name says nothing of the
/// kind is not passed over.
pub(crate) fn arrange_days<'a>(names: impl IntoIterator<Item = &'a str>) -> Folder<'a> {
    arrange_all(&mut names.into_iter())
}

fn arrange_all<'a>(names: &mut dyn Iterator<Item = &'a str>) -> Folder<'a> {
    let mut folder = Folder::default();
    for name in names {
        if let Some(day) = DayFile::of(name) {
            folder.days.push(day);
        } else {
            folder.faults.push(FileFault {
                name: name.to_string(),
                fault: "undated_file",
                detail: String::from("its name is no day's: rows in it are part of no chain"),
            });
        }
    }
    order::sort(&mut folder.days);
    let mut dates: Vec<_> = folder.days.iter().map(|day| (day.date, day.live, day.name)).collect();
    order::sort(&mut dates);
    for pair in dates.windows(2) {
        if pair[0].0 == pair[1].0 {
            folder.faults.push(FileFault {
                name: pair[1].2.to_string(),
                fault: "day_twice",
                detail: format!("{} is also {}: which of them counts can't be told", pair[1].0, pair[0].2),
            });
        }
    }
    order::sort_by(&mut folder.faults, |left, right| left.name.cmp(&right.name));
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_come_archived_first_and_by_date() {
        let folder = arrange([
            "2026-11-30.jsonl",
            "2026-11-29.jsonl",
            "archive/2026-11-28.jsonl.gz",
            "archive/2026-11-27.jsonl.gz",
            ".chain.lock",
            "2026-11-30.jsonl.torn-4",
        ]);
        let names: Vec<_> = folder.days.iter().map(|day| day.name).collect();
        assert_eq!(
            names,
            [
                "archive/2026-11-27.jsonl.gz",
                "archive/2026-11-28.jsonl.gz",
                "2026-11-29.jsonl",
                "2026-11-30.jsonl"
            ]
        );
        assert!(folder.days[0].archived() && !folder.days[2].archived());
        assert_eq!(folder.faults, []);
    }

    #[test]
    fn files_that_are_no_day_and_days_twice_are_faults() {
        for name in [
            "zz-notes.jsonl",
            "2026-02-30.jsonl",
            "archive/notes.gz",
            "archive/2026-11-27.jsonl",
            "x/2026-11-27.jsonl",
        ] {
            let folder = arrange([name]);
            assert_eq!(folder.faults[0].fault, "undated_file", "{name}");
        }
        let folder = arrange(["2026-11-27.jsonl", "archive/2026-11-27.jsonl.gz"]);
        assert_eq!(
            (folder.faults[0].fault, folder.faults[0].name.as_str()),
            ("day_twice", "2026-11-27.jsonl")
        );
    }
}
