//! `waybill ask`: inside a supervised run, a question that parks it.

use waybill_verifier::json::{self, Object, Value};

use super::Global;
use super::exit::{Exit, Failure};
use super::out::{self, Form};
use super::record::{Who, socket};
use super::recording::connect;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The question
    question: String,
    #[command(flatten)]
    who: Who,
}

const HELP: &str = "\
The run is parked until somebody answers ('waybill jobs answer RUN yes', or 'waybill jobs attach RUN');
the answer is printed. If the run dies before, the question stays: answered then, it is answered at once
when the resumed run asks the same again.

Example:
  waybill ask 'deploy to production?' && ./deploy

Exit codes: 0 answered, 1 the answer is no, 64 wrong arguments, or outside a run, 74 the recorder is gone";

pub(super) fn run(global: &Global, args: &Args) -> Result<Exit, Failure> {
    let mut client = connect(&socket()?)?;
    let mut object = Object::of([("ask", Value::from(args.question.as_str()))]);
    args.who.sign(&mut object);
    let gone = |error: std::io::Error| Failure {
        exit: Exit::Io,
        message: format!("the run's recorder did not answer: {error}"),
    };
    client.send(&Value::from(object)).map_err(gone)?;
    loop {
        let answer = client.receive().map_err(gone)?;
        if let Some(reason) = answer.get("error").and_then(Value::as_str) {
            return Err(Failure::usage(reason));
        }
        let Some(text) = answer.get("answer").and_then(Value::as_str) else { continue };
        let no = matches!(text.trim().to_lowercase().as_str(), "no" | "n");
        let line = match global.form() {
            Form::Quiet => String::new(),
            Form::Text => format!("{}\n", out::escape(text)),
            Form::Json => {
                format!("{}\n", String::from_utf8_lossy(&json::ascii(&Value::from(answer.clone()))))
            }
        };
        super::put(line.as_bytes())?;
        return Ok(if no { Exit::Code(1) } else { Exit::Done });
    }
}
