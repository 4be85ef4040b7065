//! One check, from the first file to the report: what the bindings wrap, without JavaScript.

use std::fmt;

use waybill_verifier::chain::{LastLine, MAX_LINE};
use waybill_verifier::evidence;
use waybill_verifier::json;
use waybill_verifier::tag::MasterKey;

use crate::options::{self, Error};

/// From here on a line is long: memory is taken in large steps for it.
const LONG_LINE: usize = 1 << 20;

/// A check of some files, under way or finished.
pub(crate) struct Session {
    check: Option<evidence::Session>,
    shown: bool,
    view: Option<Vec<u8>>,
    headroom: Headroom,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("check", &self.check).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(name: &str, options: Option<&str>) -> Result<Session, Error> {
        let options = options::read(options)?;
        let shown = options.shown;
        let check = Some(evidence::Session::new(name, options));
        Ok(Session { check, shown, view: None, headroom: Headroom::default() })
    }

    pub(crate) fn key(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let key = MasterKey::from_file(bytes).map_err(|error| Error::Key(error.to_string()))?;
        self.under_way()?.key(key);
        Ok(())
    }

    pub(crate) fn open(&mut self, path: &str) -> Result<(), Error> {
        self.headroom = Headroom::default();
        self.under_way()?.open(path);
        Ok(())
    }

    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.headroom.before(piece);
        self.under_way()?.push(piece);
        Ok(())
    }

    pub(crate) fn close(&mut self) -> Result<(), Error> {
        self.under_way()?.close(LastLine::Settled);
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<Vec<u8>, Error> {
        let finished = self.check.take().ok_or(Error::Finished)?.finish();
        self.view = finished.view.as_ref().map(json::ascii);
        Ok(finished.report.to_json())
    }

    pub(crate) fn view(&self) -> Result<Vec<u8>, Error> {
        match &self.view {
            Some(view) => Ok(view.clone()),
            None if self.check.is_some() => Err(Error::NotFinished),
            None if self.shown => Err(Error::Finished),
            None => Err(Error::NotShown),
        }
    }

    fn under_way(&mut self) -> Result<&mut evidence::Session, Error> {
        self.check.as_mut().ok_or(Error::Finished)
    }
}

/// Takes memory in large steps before a long line is read, up to 16 bytes a byte of it.
///
/// A WebAssembly memory grows by 64 KiB when nothing more is asked for, and each growth costs
/// the engine as much as reading a megabyte: a hostile line of 60 MB took minutes.
#[derive(Debug, Default)]
struct Headroom {
    /// How much there is of the line that is under way.
    line: usize,
    /// The length up to which there is room.
    ready: usize,
}

impl Headroom {
    fn before(&mut self, piece: &[u8]) {
        self.make(self.line.saturating_add(piece.len()).min(MAX_LINE));
        self.line = match piece.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => piece.len() - end - 1,
            None => self.line.saturating_add(piece.len()),
        };
    }

    fn make(&mut self, line: usize) {
        if line <= LONG_LINE || line <= self.ready {
            return;
        }
        self.ready = line.next_power_of_two();
        // Freed at once, and kept by the allocator. Where there is not as much, fewer may do.
        let mut room = Vec::<u8>::new();
        drop(room.try_reserve_exact(self.ready.saturating_mul(16)));
        drop(std::hint::black_box(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TORN: &[u8] = include_bytes!("../../tests/vectors/ledger/torn-tail/000000.jsonl");

    fn session(options: &str) -> Session {
        let mut session = Session::new("f", Some(options)).expect("known options");
        session.open("f").expect("under way");
        session.push(TORN).expect("under way");
        session
    }

    #[test]
    fn a_finished_check_takes_nothing_more() {
        let mut session = session("{}");
        assert_eq!(session.view(), Err(Error::NotFinished));
        session.close().expect("under way");
        session.finish().expect("under way");
        assert_eq!(session.push(b"{}"), Err(Error::Finished));
        assert_eq!(session.open("g"), Err(Error::Finished));
        assert_eq!(session.finish(), Err(Error::Finished));
        assert_eq!(session.view(), Err(Error::NotShown));
    }

    #[test]
    fn what_is_shown_is_there_behind_the_end() {
        let mut session = session(r#"{"shown":true}"#);
        session.finish().expect("under way");
        let view = session.view().expect("asked for");
        assert!(view.starts_with(b"{\"forks\":[],\"journals\":[],\"ledgers\":[{\"board\":"));
    }

    #[test]
    fn short_keys_are_refused() {
        assert!(matches!(session("{}").key(b"short"), Err(Error::Key(_))));
    }
}
