//! The socket that a run's processes speak on: several clients, lines in, lines out, never blocking.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use waybill_verifier::chain::MAX_LINE;
use waybill_verifier::json::{self, Value};

use crate::durable;

/// How much is read of one client before the others have their turn, in bytes.
const TURN: usize = 1 << 20;
/// A client that leaves more unread answers than this is not read any further, in bytes.
const UNREAD: usize = 4 << 20;
/// More clients at once are not served.
const MAX_CLIENTS: usize = 1000;

/// A listening socket and who is connected.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    clients: BTreeMap<u64, Client>,
    next: u64,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    skips: bool,
    ended: bool,
}

/// What a client sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A line, without its end.
    Text(Vec<u8>),
    /// One that is longer than a line may be.
    TooLong,
}

impl Server {
    /// Listens at a path. What stands there is left over from a supervisor that died: the caller
    /// holds the run's lock.
    ///
    /// # Errors
    ///
    /// If it can't.
    pub fn bind(path: &Path) -> Result<Server, durable::Error> {
        let failed = |source| durable::Error::new("can't listen on", path, source);
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Server { listener, clients: BTreeMap::new(), next: 0 })
    }

    /// The listening descriptor.
    #[must_use]
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// The clients' descriptors; whether each is to be read, and has something to be written.
    pub fn clients(&self) -> impl Iterator<Item = (u64, BorrowedFd<'_>, bool, bool)> {
        self.clients.iter().map(|(id, client)| {
            let reads = !client.ended && client.output.len() < UNREAD;
            (*id, client.stream.as_fd(), reads, !client.output.is_empty())
        })
    }

    /// Accepts whoever waits, if it is this very user; gives who that is.
    pub fn accept(&mut self) -> Vec<u64> {
        let mut accepted = Vec::new();
        let uid = nix::unistd::getuid().as_raw();
        while let Ok((stream, _)) = self.listener.accept() {
            let own = getsockopt(&stream, PeerCredentials).is_ok_and(|peer| peer.uid() == uid);
            if !own || self.clients.len() >= MAX_CLIENTS || stream.set_nonblocking(true).is_err() {
                continue;
            }
            let client = Client { stream, input: Vec::new(), output: Vec::new(), skips: false, ended: false };
            self.clients.insert(self.next, client);
            accepted.push(self.next);
            self.next += 1;
        }
        accepted
    }

    /// The lines that a client has sent; empty if none is whole yet.
    pub fn read(&mut self, id: u64) -> Vec<Line> {
        let Some(client) = self.clients.get_mut(&id) else { return Vec::new() };
        let mut piece = [0; 16 << 10];
        let mut taken = 0;
        let mut lines = Vec::new();
        while taken < TURN && !client.ended {
            match client.stream.read(&mut piece) {
                Ok(0) => client.ended = true,
                Ok(count) => {
                    taken += count;
                    client.push(&piece[..count], &mut lines);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => client.ended = true,
            }
        }
        // A last line without its end is one.
        if client.ended && !client.input.is_empty() {
            lines.push(Line::Text(std::mem::take(&mut client.input)));
        }
        lines.retain(|line| !matches!(line, Line::Text(text) if text.iter().all(u8::is_ascii_whitespace)));
        lines
    }

    /// Answers a client, if it is still there.
    pub fn answer(&mut self, id: u64, value: &Value) {
        if let Some(client) = self.clients.get_mut(&id) {
            json::push_ascii(&mut client.output, value);
            client.output.push(b'\n');
        }
    }

    /// Whether a client is connected.
    #[must_use]
    pub fn is_there(&self, id: u64) -> bool {
        self.clients.get(&id).is_some_and(|client| !client.ended)
    }

    /// Writes what can be written, and forgets who is gone.
    pub fn flush(&mut self) {
        self.clients.retain(|_, client| {
            while !client.output.is_empty() {
                match client.stream.write(&client.output) {
                    Ok(count) if count > 0 => drop(client.output.drain(..count)),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                    _ => return false,
                }
            }
            !client.ended
        });
    }
}

impl Client {
    fn push(&mut self, mut bytes: &[u8], lines: &mut Vec<Line>) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            if std::mem::take(&mut self.skips) {
                self.input.clear();
            } else {
                self.input.extend_from_slice(&bytes[..end]);
                lines.push(Line::Text(std::mem::take(&mut self.input)));
            }
            bytes = &bytes[end + 1..];
        }
        if self.skips {
            return;
        }
        self.input.extend_from_slice(bytes);
        if self.input.len() > MAX_LINE {
            self.input = Vec::new();
            self.skips = true;
            lines.push(Line::TooLong);
        }
    }
}
