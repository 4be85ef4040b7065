//! Starting a command as the founder of a session and group of its own.
//!
//! The supervisor starts this very program as `waybill __exec CONTROL -- COMMAND…`. That one makes
//! its session, connects to the control socket, and waits. So the child's number and start time are
//! on disk before the command does anything, and if the supervisor dies before it says go, no
//! command runs that nobody knows of. It then becomes the command; the control socket closes by
//! that, or brings the reason why it can't be started.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitCode, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Error, system};
use crate::process::Process;

/// The hidden command that becomes a child.
pub const EXEC: &str = "__exec";

/// What to start.
#[derive(Debug)]
pub struct Spec<'a> {
    /// The command and its arguments.
    pub command: &'a [String],
    /// Where.
    pub folder: &'a Path,
    /// What is added to its environment.
    pub variables: Vec<(&'static str, OsString)>,
    /// Whether it reads what the supervisor's standard input has.
    pub stdin: bool,
    /// Where the control socket is made.
    pub control: &'a Path,
}

/// A child that waits for the word.
#[derive(Debug)]
pub struct Waiting {
    /// The process.
    pub child: Child,
    /// The same, told apart for good.
    pub process: Process,
    /// Its descriptor: readable once it ended.
    pub pidfd: OwnedFd,
    control: UnixStream,
}

/// Why a command can't be started, in `env`'s codes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unstartable {
    /// 127 if there is no such command, 126 otherwise.
    pub code: u8,
    /// Why.
    pub reason: String,
}

/// Variables of a run around this one, which don't reach its child.
const OURS: [&str; 5] =
    ["WAYBILL_RUN_ID", "WAYBILL_SOCKET", "WAYBILL_RESUME", "WAYBILL_STATE", "WAYBILL_SUPERVISE"];

/// Starts a child, which then waits.
///
/// # Errors
///
/// If it can't be started, or does not answer.
pub fn launch(spec: &Spec<'_>) -> Result<Waiting, Error> {
    drop(std::fs::remove_file(spec.control));
    let listener = UnixListener::bind(spec.control).map_err(system("can't make the control socket"))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("waybill").arg(EXEC).arg(spec.control).arg("--").args(spec.command);
    command.current_dir(spec.folder);
    for name in OURS {
        command.env_remove(name);
    }
    command.envs(spec.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(if spec.stdin { Stdio::inherit() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(system("can't start the command's process"))?;
    let founded = found(&listener, &child);
    drop(std::fs::remove_file(spec.control));
    match founded {
        Ok((process, pidfd, control)) => Ok(Waiting { child, process, pidfd, control }),
        Err(error) => {
            drop(child.kill());
            drop(child.wait());
            Err(error)
        }
    }
}

/// Waits until the child has its session.
fn found(listener: &UnixListener, child: &Child) -> Result<(Process, OwnedFd, UnixStream), Error> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Error::Refused(String::from("the child has no number")))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(system("can't watch the child"))?;
    let timeout = PollTimeout::try_from(10_000).unwrap_or(PollTimeout::MAX);
    loop {
        let mut fds =
            [PollFd::new(listener.as_fd(), PollFlags::POLLIN), PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut fds, timeout).map_err(system("can't wait for the child"))?;
        if ready == 0 || !fds[0].any().unwrap_or(false) {
            return Err(Error::Refused(String::from("the command's process did not get ready")));
        }
        let (stream, _) = listener.accept().map_err(system("can't hear the child"))?;
        let peer = getsockopt(&stream, PeerCredentials).map_err(system("can't tell who connected"))?;
        if u32::try_from(peer.pid()).ok() != Some(child.id()) {
            continue;
        }
        let process = Process::of(child.id())
            .ok_or_else(|| Error::Refused(String::from("the command's process died at once")))?;
        return Ok((process, pidfd, stream));
    }
}

impl Waiting {
    /// Says go, and waits until the command runs.
    ///
    /// # Errors
    ///
    /// If there is no such command, or it can't be executed.
    pub fn go(mut self) -> Result<(Child, Process, OwnedFd, Streams), Unstartable> {
        let mut said = String::new();
        let heard = self.control.write_all(b"go\n").and_then(|()| self.control.read_to_string(&mut said));
        let gone = || Unstartable { code: 126, reason: String::from("the command's process died at once") };
        if heard.is_err() {
            drop(self.child.wait());
            return Err(gone());
        }
        if let Some((code, reason)) = said.trim_end().split_once(' ') {
            drop(self.child.wait());
            return Err(Unstartable { code: code.parse().unwrap_or(126), reason: reason.to_owned() });
        }
        let (Some(stdout), Some(stderr)) = (self.child.stdout.take(), self.child.stderr.take()) else {
            return Err(gone());
        };
        Ok((self.child, self.process, self.pidfd, Streams { stdout, stderr }))
    }

    /// Ends it before it became anything.
    pub fn abandon(mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What a child prints.
#[derive(Debug)]
pub struct Streams {
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub stderr: ChildStderr,
}

/// The child's side: makes the session, waits for the word, becomes the command.
#[must_use]
pub fn exec(arguments: &[OsString]) -> ExitCode {
    let unused = ExitCode::from(125);
    let [control, dashes, program, rest @ ..] = arguments else { return unused };
    if dashes.as_os_str() != OsStr::new("--") || nix::unistd::setsid().is_err() {
        return unused;
    }
    let Ok(mut stream) = UnixStream::connect(control) else { return unused };
    let mut word = String::new();
    let Ok(copy) = stream.try_clone() else { return unused };
    // A supervisor that dies before it says go has no child.
    if BufReader::new(copy).read_line(&mut word).is_err() || word != "go\n" {
        return unused;
    }
    // The supervisor waits for its signals by descriptor, and keeps them blocked for that.
    if nix::sys::signal::SigSet::empty().thread_set_mask().is_err() {
        return unused;
    }
    let error = Command::new(program).args(rest).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    let name = program.to_string_lossy();
    // If nobody hears it, the code says it, too.
    drop(write!(stream, "{code} can't start {name}: {error}"));
    ExitCode::from(code)
}
