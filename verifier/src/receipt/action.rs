//! Why a worker counts as stalled, and what is recommended: the first rule that fits.
//!
//! | | then |
//! | --- | --- |
//! | `respawn_budget_exhausted` | `park` |
//! | an event's type contains `auth`, `credential`, `permission`, `policy`, `denied`, `forbidden` | `escalate` |
//! | `watchdog_model_question`, `manager_no_children` | `escalate` |
//! | `heartbeat_stale`, `no_progress`, `artefact_no_progress`, `repeated_command`, budget left, fewer than two events end in `.failed`, `.error`, `.errored` | `respawn` |
//! | the same otherwise | `escalate` |
//! | everything else | `inspect` |
//!
//! `cohort_laggard` is among the rest.
//!
//! Types are compared case folded. Two readers disagree on what a type is: ours takes `event_type`
//! and, where a row has none, `event`; the reference only `event_type`, which run journals don't
//! have. A receipt may follow either.

use alloc::string::String;
use core::fmt;

use crate::find::has;
use crate::journal::Event;
use crate::json::{Text, Value};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The name, as in receipts.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The one with a name.
            #[must_use]
            pub fn named(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|known| known.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names! {
    /// Why a worker counts as stalled.
    StallReason {
        /// A manager has no children to wait for.
        ManagerNoChildren = "manager_no_children",
        /// It waits for an answer to a question of its model.
        WatchdogModelQuestion = "watchdog_model_question",
        /// It was started again as often as was allowed.
        RespawnBudgetExhausted = "respawn_budget_exhausted",
        /// It gave no sign of life.
        HeartbeatStale = "heartbeat_stale",
        /// It lives, and nothing moves.
        NoProgress = "no_progress",
        /// It lives, and what it makes does not grow.
        ArtefactNoProgress = "artefact_no_progress",
        /// It does the same again and again.
        RepeatedCommand = "repeated_command",
        /// It is far behind the others that do the same.
        CohortLaggard = "cohort_laggard",
        /// It does something else than it was asked to.
        IntentDrift = "intent_drift",
        /// Something else.
        Unknown = "unknown",
    }
}

names! {
    /// What a receipt recommends.
    Action {
        /// Leave it, and look at it later.
        Park = "park",
        /// Ask a person.
        Escalate = "escalate",
        /// Start it again.
        Respawn = "respawn",
        /// Look at it.
        Inspect = "inspect",
    }
}

/// What a reader takes for an event's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// `event_type`, else `event`.
    Ours,
    /// `event_type` only.
    Reference,
}

impl Reading {
    /// How a sentence calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reading::Ours => "event_type, else event",
            Reading::Reference => "event_type only",
        }
    }
}

/// What an event's type says to the rules, in both readings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventType {
    ours: Signs,
    reference: Signs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Signs {
    sensitive: bool,
    failure: bool,
}

impl EventType {
    /// Of an event.
    #[must_use]
    pub fn of(event: &Event) -> EventType {
        match event.fields.get("event_type") {
            Some(Value::String(text)) => {
                let signs = Signs::of(text);
                EventType { ours: signs, reference: signs }
            }
            Some(_) => EventType::default(),
            None => EventType { ours: Signs::of(&event.event), reference: Signs::default() },
        }
    }

    fn signs(self, reading: Reading) -> Signs {
        match reading {
            Reading::Ours => self.ours,
            Reading::Reference => self.reference,
        }
    }
}

impl Signs {
    fn of(text: &Text) -> Signs {
        const SENSITIVE: [&str; 6] = ["auth", "credential", "permission", "policy", "denied", "forbidden"];
        const FAILURES: [&str; 3] = [".failed", ".error", ".errored"];
        let folded = folded(&String::from_utf8_lossy(text.as_wtf8()));
        Signs {
            sensitive: SENSITIVE.iter().any(|word| has(&folded, word)),
            failure: FAILURES.iter().any(|end| folded.ends_with(end)),
        }
    }
}

/// Case folded as far as the rules' words can tell: all letters that fold to ASCII ones. What folds
/// to others is left as it is, for which no table of all letters is needed.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{17f}' => folded.push('s'),
            '\u{df}' | '\u{1e9e}' => folded.push_str("ss"),
            '\u{212a}' => folded.push('k'),
            '\u{130}' => folded.push_str("i\u{307}"),
            _ => folded.push(character.to_ascii_lowercase()),
        }
    }
    folded
}

/// What the rules recommend.
#[must_use]
pub fn recommend(reason: StallReason, budget: u64, window: &[EventType], reading: Reading) -> Action {
    let signs = || window.iter().map(|event| event.signs(reading));
    match reason {
        StallReason::RespawnBudgetExhausted => Action::Park,
        _ if signs().any(|signs| signs.sensitive) => Action::Escalate,
        StallReason::WatchdogModelQuestion | StallReason::ManagerNoChildren => Action::Escalate,
        StallReason::HeartbeatStale
        | StallReason::NoProgress
        | StallReason::ArtefactNoProgress
        | StallReason::RepeatedCommand => {
            let failures = signs().filter(|signs| signs.failure).count();
            if budget > 0 && failures < 2 { Action::Respawn } else { Action::Escalate }
        }
        StallReason::CohortLaggard | StallReason::IntentDrift | StallReason::Unknown => Action::Inspect,
    }
}

/// What the rules could recommend, whatever is in the window.
pub(super) fn possible(reason: StallReason, budget: u64) -> &'static [Action] {
    match reason {
        StallReason::RespawnBudgetExhausted => &[Action::Park],
        StallReason::WatchdogModelQuestion | StallReason::ManagerNoChildren => &[Action::Escalate],
        StallReason::HeartbeatStale
        | StallReason::NoProgress
        | StallReason::ArtefactNoProgress
        | StallReason::RepeatedCommand => match budget {
            0 => &[Action::Escalate],
            _ => &[Action::Respawn, Action::Escalate],
        },
        StallReason::CohortLaggard | StallReason::IntentDrift | StallReason::Unknown => {
            &[Action::Inspect, Action::Escalate]
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn window(types: &[&str]) -> Vec<EventType> {
        let signs = |text: &&str| Signs::of(&Text::from(*text));
        types.iter().map(|text| EventType { ours: signs(text), reference: Signs::default() }).collect()
    }

    #[track_caller]
    fn check(reason: StallReason, budget: u64, types: &[&str], ours: Action, reference: Action) {
        let window = window(types);
        assert_eq!(recommend(reason, budget, &window, Reading::Ours), ours);
        assert_eq!(recommend(reason, budget, &window, Reading::Reference), reference);
        assert!(possible(reason, budget).contains(&ours) && possible(reason, budget).contains(&reference));
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        use Action::{Escalate, Inspect, Park, Respawn};
        use StallReason as R;
        check(R::RespawnBudgetExhausted, 3, &["auth.denied"], Park, Park);
        check(R::IntentDrift, 3, &["auth.denied"], Escalate, Inspect);
        check(R::Unknown, 0, &["x"], Inspect, Inspect);
        check(R::CohortLaggard, 3, &["a.failed"], Inspect, Inspect);
        check(R::CohortLaggard, 3, &["auth"], Escalate, Inspect);
        check(R::ArtefactNoProgress, 1, &[], Respawn, Respawn);
        check(R::RepeatedCommand, 0, &[], Escalate, Escalate);
        check(R::WatchdogModelQuestion, 3, &[], Escalate, Escalate);
        check(R::ManagerNoChildren, 3, &[], Escalate, Escalate);
        check(R::HeartbeatStale, 1, &["a.failed"], Respawn, Respawn);
        check(R::HeartbeatStale, 0, &[], Escalate, Escalate);
        check(R::NoProgress, 1, &["a.failed", "b.ERROR"], Escalate, Respawn);
        check(R::NoProgress, 1, &["a.failed", "error", "x.errors", "errored"], Respawn, Respawn);
        check(R::NoProgress, 1, &["a.errored", "b.error"], Escalate, Respawn);
    }

    #[test]
    fn folding_leaves_out_no_letter_that_is_an_ascii_one_in_lower_case() {
        for character in '\0'..=char::MAX {
            let ascii = |text: &str| text.chars().filter(char::is_ascii).collect::<String>();
            let lower: String = character.to_lowercase().collect();
            let ours = folded(character.encode_utf8(&mut [0; 4]));
            if !matches!(character, '\u{17f}' | '\u{df}' | '\u{1e9e}') {
                assert_eq!(ascii(&ours), ascii(&lower), "{character:?}");
                assert_eq!(ours.is_ascii(), lower.is_ascii(), "{character:?}");
            }
        }
    }

    #[test]
    fn words_are_found_anywhere_and_case_folded() {
        for sensitive in [
            "reauthorize",
            "Credential.read",
            "POLICY",
            "perm\u{131}ssion.permi\u{17f}\u{17f}ion",
            "permi\u{df}ion",
            "x.FORBIDDEN",
        ] {
            assert!(Signs::of(&Text::from(sensitive)).sensitive, "{sensitive}");
        }
        for plain in ["aut.h", "police", "deni\u{e9}d", ""] {
            assert!(!Signs::of(&Text::from(plain)).sensitive, "{plain}");
        }
    }

    #[test]
    fn names_read_back() {
        for reason in StallReason::ALL {
            assert_eq!(StallReason::named(reason.name()), Some(*reason));
        }
        assert_eq!(StallReason::named("made_up"), None);
        assert_eq!(Action::named("celebrate"), None);
    }
}
