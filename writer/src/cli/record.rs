//! `waybill record`: inside a supervised run, a line to its recorder.

use std::path::PathBuf;

use waybill_verifier::id::{Kind, TaskId};
use waybill_verifier::json::{self, Object, Value};

use super::Global;
use super::exit::{Exit, Failure};
use super::out::Form;
use super::recording::{call, connect, each_line, event_name, named_payload, say_to_own};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
#[group(id = "what", required = true, multiple = false, args = ["kind", "event", "heartbeat", "done", "stdin"])]
pub(super) struct Args {
    /// Record a transition of this kind, as task.started
    #[arg(long)]
    kind: Option<Kind>,
    /// Of this task [default: the run itself]
    #[arg(long, requires = "kind")]
    task: Option<TaskId>,
    /// What goes with it: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", requires = "kind")]
    payload: Option<String>,
    /// Record an event of this type, as tool.called
    #[arg(long, value_parser = event_name)]
    event: Option<String>,
    /// What else is to be said of it: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", requires = "event")]
    data: Option<String>,
    /// Give a sign of life, which is not recorded
    #[arg(long)]
    heartbeat: bool,
    /// Say that the worker is done, and will be silent from now on
    #[arg(long, requires = "worker")]
    done: bool,
    /// Read one JSON line after the other, and answer each on standard output
    #[arg(long)]
    stdin: bool,
    #[command(flatten)]
    who: Who,
}

/// Who speaks.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Who {
    /// The worker, where the run has several
    #[arg(long)]
    worker: Option<String>,
    /// Its session
    #[arg(long, requires = "worker")]
    session: Option<String>,
    /// Its working tree
    #[arg(long, requires = "worker")]
    worktree: Option<String>,
}

impl Who {
    /// Adds who it is to what is said.
    pub(super) fn sign(&self, object: &mut Object) {
        for (name, value) in
            [("worker", &self.worker), ("session", &self.session), ("worktree", &self.worktree)]
        {
            if let Some(value) = value {
                object.insert(name.into(), Value::from(value.as_str()));
            }
        }
    }
}

const HELP: &str = "\
Only inside 'waybill run': the recorder is reached by WAYBILL_SOCKET. Any JSON line on that socket does
the same: {\"kind\":…,\"task_id\":…,\"payload\":{…}}, {\"event\":…, …}, {\"heartbeat\":true}, each with
\"worker\", \"session\" and \"worktree\" if need be; each is answered by a line, once it is on disk.

Examples:
  waybill record --kind task.completed --task build --payload @result.json
  waybill record --event tool.called --data '{\"tool\":\"make\",\"cost\":0.2}' --worker w1
  waybill record --heartbeat --worker w1
  my-agent | waybill record --stdin

Exit codes: 0 recorded, 64 wrong arguments, refused, or outside a run, 74 I/O";

/// The socket of the run that this process is in.
pub(super) fn socket() -> Result<PathBuf, Failure> {
    let socket = std::env::var_os("WAYBILL_SOCKET").filter(|path| !path.is_empty());
    socket.map(PathBuf::from).ok_or_else(|| {
        Failure::usage("this works inside a run only ('waybill run -- CMD'): WAYBILL_SOCKET is not set")
    })
}

pub(super) fn run(global: &Global, args: &Args) -> Result<Exit, Failure> {
    let socket = socket()?;
    if args.stdin {
        return lines(&socket);
    }
    let mut object = Object::default();
    if let Some(kind) = &args.kind {
        let payload =
            args.payload.as_deref().map(|payload| named_payload("--payload", payload)).transpose()?;
        object.insert("kind".into(), Value::from(kind.as_str()));
        object.insert("task_id".into(), Value::from(args.task.as_ref().map_or("", TaskId::as_str)));
        object.insert("payload".into(), Value::from(payload.unwrap_or_default()));
    } else if let Some(event) = &args.event {
        if let Some(data) = &args.data {
            object = named_payload("--data", data)?;
        }
        object.insert("event".into(), Value::from(event.as_str()));
    } else {
        object.insert("heartbeat".into(), Value::from(true));
        if args.done {
            object.insert("done".into(), Value::from(true));
        }
    }
    args.who.sign(&mut object);
    let answer = say_to_own(&socket, &Value::from(object))?;
    let text = match global.form() {
        Form::Quiet => String::new(),
        Form::Json => format!("{}\n", String::from_utf8_lossy(&json::ascii(&Value::from(answer)))),
        Form::Text => text(&answer),
    };
    super::put(text.as_bytes())?;
    Ok(Exit::Done)
}

/// An acknowledgement for people.
pub(super) fn text(answer: &Object) -> String {
    let field = |name: &str| answer.get(name);
    let hash = |name: &str| field(name).and_then(Value::as_str).unwrap_or_default();
    match (field("seq").and_then(Value::as_u64), field("index").and_then(Value::as_u64)) {
        (Some(seq), _) => format!("recorded entry {seq} ({})\n", hash("entry_hash")),
        (_, Some(index)) => format!("recorded event {index} ({})\n", hash("event_hash")),
        _ => String::new(),
    }
}

/// Passes lines on, and their answers back.
pub(super) fn lines(socket: &std::path::Path) -> Result<Exit, Failure> {
    let mut client = connect(socket)?;
    let mut refused: u64 = 0;
    each_line(|line| {
        let answer = call(&mut client, line)?;
        refused += u64::from(answer.get("error").is_some());
        let mut text = json::ascii(&Value::from(answer));
        text.push(b'\n');
        Ok(text)
    })?;
    match refused {
        0 => Ok(Exit::Done),
        1 => Err(Failure::usage("1 line was refused and not recorded; see its answer")),
        lines => {
            Err(Failure::usage(format!("{lines} lines were refused and not recorded; see their answers")))
        }
    }
}
