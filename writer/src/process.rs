//! Processes told apart for good: a number alone is given again, a number with its start time and
//! its boot is not.
//!
//! Read from `/proc/<pid>/stat` (proc(5): fields 3 state, 5 group, 6 session, 22 start time in
//! clock ticks since boot) and `/proc/sys/kernel/random/boot_id`. Signals go through a pidfd that
//! was opened first and compared then, so that a number that was given again is never signalled.

use std::fs;

use nix::sys::signal::Signal;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use waybill_verifier::json::{Object, Value};

/// One process, for as long as this boot lasts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// Which boot.
    pub boot: String,
}

/// What became of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It runs, or is stopped.
    Alive,
    /// It is gone, or was not waited for.
    Gone,
    /// Another process has its number.
    Reused,
}

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Copy, Debug)]
struct Stat {
    pid: u32,
    state: u8,
    group: u32,
    session: u32,
    started: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Stat> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything, so what follows its last bracket counts.
        let rest = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
        let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let small = |at: usize| u32::try_from(number(at)?).ok();
        Some(Stat {
            pid,
            state: *fields.first()?.as_bytes().first()?,
            group: small(2)?,
            session: small(3)?,
            started: number(19)?,
        })
    }

    fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// This boot's id.
#[must_use]
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

impl Process {
    /// The process that has a number now.
    #[must_use]
    pub fn of(pid: u32) -> Option<Process> {
        let stat = Stat::read(pid).filter(Stat::is_alive)?;
        Some(Process { pid, started: stat.started, boot: boot_id() })
    }

    /// This very process.
    #[must_use]
    pub fn own() -> Option<Process> {
        Process::of(std::process::id())
    }

    /// What became of it.
    #[must_use]
    pub fn fate(&self) -> Fate {
        if self.boot != boot_id() {
            return match Stat::read(self.pid) {
                Some(_) => Fate::Reused,
                None => Fate::Gone,
            };
        }
        match Stat::read(self.pid) {
            Some(stat) if stat.started != self.started => Fate::Reused,
            Some(stat) if stat.is_alive() => Fate::Alive,
            _ => Fate::Gone,
        }
    }

    /// Whether it runs, or is stopped.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.fate() == Fate::Alive
    }

    /// Sends it a signal, if it is still the one; says whether it did.
    #[must_use]
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return false };
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        // From here on the descriptor names one process: the one that is looked at now.
        if self.fate() != Fate::Alive {
            return false;
        }
        let Some(signal) = rustix::process::Signal::from_named_raw(number(signal)) else { return false };
        pidfd_send_signal(pidfd, signal).is_ok()
    }

    /// As JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::from(Object::of([
            ("pid", Value::from(u64::from(self.pid))),
            ("started", Value::from(self.started)),
            ("boot", Value::from(self.boot.as_str())),
        ]))
    }

    /// From JSON.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Process> {
        let object = value.as_object()?;
        Some(Process {
            pid: u32::try_from(object.get("pid")?.as_u64()?).ok()?,
            started: object.get("started")?.as_u64()?,
            boot: object.get("boot")?.as_str()?.to_owned(),
        })
    }
}

/// A signal's number, as `128 + n` has it.
#[must_use]
pub fn number(signal: Signal) -> i32 {
    i32::from(SIGNALS.iter().find(|(_, known)| *known == signal).map_or(0, |(number, _)| *number))
}

/// The signals that are sent here, by their numbers, which all Linux machines share.
const SIGNALS: [(u8, Signal); 8] = [
    (1, Signal::SIGHUP),
    (2, Signal::SIGINT),
    (3, Signal::SIGQUIT),
    (9, Signal::SIGKILL),
    (10, Signal::SIGUSR1),
    (15, Signal::SIGTERM),
    (18, Signal::SIGCONT),
    (19, Signal::SIGSTOP),
];

/// The processes of a moment, read once for many questions.
#[derive(Clone, Debug)]
pub struct Table {
    boot: String,
    stats: Vec<Stat>,
}

impl Table {
    /// Reads it.
    #[must_use]
    pub fn read() -> Table {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Table { boot: boot_id(), stats: pids.filter_map(Stat::read).collect() }
    }

    /// What is alive of the session and group that a process founded, itself among it.
    ///
    /// A number stays taken while a group or session has it, so whoever is in it belongs to it,
    /// unless the number's process is another now. Where the founder is gone, what remains is
    /// believed to be its own: better to wait for a stranger than to start a second copy.
    #[must_use]
    pub fn group_of(&self, founder: &Process) -> Vec<Process> {
        let reused = self.stats.iter().any(|stat| stat.pid == founder.pid && stat.started != founder.started);
        if founder.boot != self.boot || reused {
            return Vec::new();
        }
        let belongs = |stat: &&Stat| {
            (stat.session == founder.pid || stat.group == founder.pid)
                && stat.is_alive()
                && stat.started >= founder.started
        };
        let process = |stat: &Stat| Process { pid: stat.pid, started: stat.started, boot: self.boot.clone() };
        self.stats.iter().filter(belongs).map(process).collect()
    }
}

/// What a process calls itself, for people.
#[must_use]
pub fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| String::from("?"), |name| name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn this_process_is_alive_and_in_its_own_group_s_table() {
        let own = Process::own().unwrap();
        assert_eq!(own.fate(), Fate::Alive);
        assert_eq!(Process::from_value(&own.to_value()), Some(own));
    }

    #[test]
    fn a_number_with_another_start_or_boot_is_another_process_and_gets_no_signal() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        let other_start = Process { started: process.started + 1, ..process.clone() };
        let other_boot = Process { boot: String::from("another"), ..process.clone() };
        for other in [other_start, other_boot] {
            assert_eq!(other.fate(), Fate::Reused);
            assert!(!other.signal(Signal::SIGKILL));
            assert!(Table::read().group_of(&other).is_empty());
        }
        assert!(process.is_alive());
        assert!(process.signal(Signal::SIGKILL));
        child.wait().unwrap();
        assert_eq!(process.fate(), Fate::Gone);
        assert!(!process.signal(Signal::SIGKILL));
    }
}
