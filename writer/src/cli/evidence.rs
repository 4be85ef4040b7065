//! `waybill evidence`: what there is of a run or a receipt, in one file to hand on.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use waybill_verifier::chain::LastLine;
use waybill_verifier::evidence::{Options, Session};
use waybill_verifier::json::{Object, Value};
use waybill_verifier::report::Report;

use super::Global;
use super::exit::{Exit, Failure, chain};
use super::out::{self, Form};
use super::verify::{PIECE, feed_file};
use crate::durable;
use crate::evidence::{Error, Evidence, Written};
use crate::master::KeyFile;

const HELP: &str = "\
Takes along: ledger, anchors (a git bundle), journal, spines, receipts, public key, and the days of
the audit log from the first that speaks of it, each with its SHA-256 in MANIFEST.json. Never a
private key or the HMAC key. Whole days and the whole spine of receipts speak of other runs, too.
Evidence that does not hold is exported all the same, and said to be so. The same evidence gives
the same bytes.

Examples:
  waybill evidence export goal-42 -o goal-42.tar
  waybill evidence export 793c8e6b00d8adfc2cc9de582bd4df55 -o receipt.tar
  waybill verify goal-42.tar

Exit codes: 0 written, whatever it is worth; 1 no such run or receipt, 64 wrong arguments, 74 I/O";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a run's or a receipt's evidence into one tar
    #[command(after_help = HELP)]
    Export {
        /// The run, or the receipt's id
        #[arg(value_name = "RUN|RECEIPT")]
        name: String,
        /// The file to write
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
}

pub(super) fn run(global: &Global, command: &Command) -> Result<Exit, Failure> {
    let Command::Export { name, output } = command;
    let evidence = Evidence::of(&global.project()?, name)?;
    let mut written = None;
    let mut failure = None;
    durable::replace(output, |file: &mut File| match evidence.write(std::io::BufWriter::new(file)) {
        Ok(done) => {
            written = Some(done);
            Ok(())
        }
        Err(error) => {
            failure = Some(error);
            Err(std::io::Error::other("the evidence could not be read"))
        }
    })
    .map_err(|error| failure.take().map_or_else(|| Failure::from(error), Failure::from))?;
    let Some(written) = written else {
        return Err(Failure { exit: Exit::Internal, message: String::from("nothing was written") });
    };
    let report = read_back(output)?;
    say(global, output, &written, &report)?;
    Ok(Exit::Done)
}

/// The report on what was written, read again.
fn read_back(path: &Path) -> Result<Report, Failure> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut session = Session::new(&name, Options::default());
    if let Ok(Some(key)) = KeyFile::of_environment().read() {
        session.key(key);
    }
    feed_file(&mut session, path, &name, LastLine::Settled, &mut vec![0; PIECE])?;
    Ok(session.finish().report)
}

fn say(global: &Global, path: &Path, written: &Written, report: &Report) -> Result<(), Failure> {
    let Written { files, bytes, sha256 } = written;
    match global.form() {
        Form::Quiet => Ok(()),
        Form::Json => super::put_document(Object::of([
            ("file", Value::from(path.to_string_lossy().into_owned())),
            ("files", Value::from(u64::try_from(*files).unwrap_or(u64::MAX))),
            ("bytes", Value::from(*bytes)),
            ("sha256", Value::from(sha256.to_hex())),
            ("verdict", Value::from(report.verdict.name())),
            ("summary", Value::from(report.summary.as_str())),
        ])),
        Form::Text => {
            let shown = out::escape(&path.to_string_lossy());
            let text = format!(
                "wrote {shown}: {files} files, {bytes} bytes\nsha256 {sha256}\nwhat is in it: {}: {}\n",
                report.verdict.name(),
                out::escape(&report.summary)
            );
            super::put(text.as_bytes())
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let exit = match &error {
            Error::Absent(_) => Exit::Absent,
            _ => Exit::Io,
        };
        match error {
            Error::File(error) => error.into(),
            Error::Anchor(error) => (*error).into(),
            error => Failure { exit, message: chain(&error) },
        }
    }
}
