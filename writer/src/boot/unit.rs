//! What starts a sweep at boot: a systemd user unit, or a launchd property list. Pure text.
//!
//! systemd (systemd.syntax(7), systemd.service(5) "COMMAND LINES"): an argument stands in double
//! quotes; `\` and `"` are escaped by `\`, `%` is doubled against specifiers, `$` against variables.
//! launchd (launchd.plist(5)): arguments are strings of XML, no shell reads them.

/// The name of the systemd unit.
pub const UNIT: &str = "waybill-resume.service";
/// The label of the launchd job; its file has the same name and `.plist`.
pub const LABEL: &str = "waybill.resume";

/// A systemd user unit that runs a command once, at boot.
///
/// Only the sweep is ended with the unit (`KillMode=process`): the runs that it started are not its.
/// The unit stays active after the sweep, so that they are not cleaned up behind it.
#[must_use]
pub fn systemd(command: &[String]) -> String {
    let command: Vec<String> = command.iter().map(|argument| quote(argument)).collect();
    format!(
        "[Unit]\n\
         Description=Resume the waybill runs that a reboot interrupted\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={}\n\
         RemainAfterExit=yes\n\
         KillMode=process\n\
         TimeoutStartSec=infinity\n\
         EnvironmentFile=-%E/waybill/boot.env\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        command.join(" ")
    )
}

/// An argument of a systemd command line.
#[must_use]
pub fn quote(argument: &str) -> String {
    let mut quoted = String::from("\"");
    for character in argument.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            '%' => quoted.push_str("%%"),
            '$' => quoted.push_str("$$"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => {
                for byte in control.to_string().bytes() {
                    quoted.push_str(&format!("\\x{byte:02x}"));
                }
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A launchd job that runs a command once, when the user's session starts.
#[must_use]
pub fn launchd(command: &[String]) -> String {
    let arguments: String =
        command.iter().map(|argument| format!("        <string>{}</string>\n", xml(argument))).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n\
         <dict>\n    <key>Label</key>\n    <string>{LABEL}</string>\n    <key>ProgramArguments</key>\n    \
         <array>\n{arguments}    </array>\n    <key>RunAtLoad</key>\n    <true/>\n    \
         <key>AbandonProcessGroup</key>\n    <true/>\n</dict>\n</plist>\n"
    )
}

/// Text of an XML element; what XML can't say at all becomes `?`.
fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\t' | '\n' => escaped.push(character),
            control if control.is_control() => escaped.push('?'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_would_read_as_something_else_is_quoted() {
        for (argument, quoted) in [
            ("plain", r#""plain""#),
            ("two words", r#""two words""#),
            ("$HOME ${X}", r#""$$HOME $${X}""#),
            ("100%h", r#""100%%h""#),
            (r#"a"b\c'd"#, r#""a\"b\\c'd""#),
            ("a\nb\tc\u{1}", r#""a\nb\tc\x01""#),
            ("", r#""""#),
            (";", r#"";""#),
        ] {
            assert_eq!(quote(argument), quoted);
        }
    }

    #[test]
    fn what_xml_would_read_as_markup_is_escaped() {
        let text = launchd(&[String::from("/opt/a & b"), String::from("<\"$%'>")]);
        assert!(text.contains("<string>/opt/a &amp; b</string>"));
        assert!(text.contains("<string>&lt;\"$%'&gt;</string>"));
    }
}
