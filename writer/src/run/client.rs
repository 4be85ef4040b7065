//! The other end of a run's socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use waybill_verifier::json::{self, Object, Value};

/// A connection to a run's supervisor.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects, if whoever listens is this very user.
    ///
    /// # Errors
    ///
    /// If nobody listens, or somebody else does.
    pub fn connect(path: &Path) -> io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        let peer = getsockopt(&stream, PeerCredentials)?;
        if peer.uid() != nix::unistd::getuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user listens there"));
        }
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// How long an answer is waited for; none is for ever.
    ///
    /// # Errors
    ///
    /// If the system says no.
    pub fn patience(&self, time: Option<Duration>) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(time)
    }

    /// Sends a line.
    ///
    /// # Errors
    ///
    /// If nobody takes it.
    pub fn send(&mut self, value: &Value) -> io::Result<()> {
        let mut line = json::ascii(value);
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)
    }

    /// Sends a line as it is.
    ///
    /// # Errors
    ///
    /// If nobody takes it.
    pub fn send_raw(&mut self, line: &[u8]) -> io::Result<()> {
        let mut line = line.to_vec();
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)
    }

    /// The next answer.
    ///
    /// # Errors
    ///
    /// If none comes any more.
    pub fn receive(&mut self) -> io::Result<Object> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the run's supervisor is gone"));
        }
        match json::parse(&line) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "an answer that is no JSON object")),
        }
    }

    /// Sends a line and waits for its answer.
    ///
    /// # Errors
    ///
    /// As the two.
    pub fn call(&mut self, value: &Value) -> io::Result<Object> {
        self.send(value)?;
        self.receive()
    }
}
