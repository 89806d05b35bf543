//! What Perfetto's UI shows first: parameters of its address that all of its versions since 52 know.
//!
//! ```text
//! startupCommands   open the groups of tracks; pin tracks
//! visStart, visEnd  the time that is in sight
//! ts, dur           the slice that is selected
//! ```

use serde_json::json;

/// The groups of tracks that are opened: all but the runtime's own threads, and what the importer says of clocks.
const OPENED: &str = "^(?!(hidden helpers|System)$)";

/// What the UI shows first. By default all tracks but those of hidden helpers, and all of the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The names of tracks that are pinned above all others, from the top. Regular expressions.
    pub pinned: Vec<String>,
    /// The time in sight, as the trace has it. The UI wants both ends within the trace. Where a slice is selected, the UI puts it
    /// into the middle, and a fifth of the time is the slice's.
    pub visible: Option<(u64, u64)>,
    /// Time and duration of the slice that is selected.
    pub selected: Option<(u64, u64)>,
}

impl Start {
    /// The parameters, to be put behind `#!/?`.
    pub(super) fn parameters(&self) -> String {
        let command =
            |id: &str, pattern: &str| json!({"id": format!("dev.perfetto.{id}"), "args": [pattern]});
        // Folded, a process is one bar.
        let mut commands = vec![command("ExpandTracksByRegex", OPENED)];
        // One command for each: tracks of one command are pinned in the order of their names.
        let pins = self.pinned.iter().map(|name| command("PinTracksByRegex", &format!("^{name}$")));
        commands.extend(pins);
        let commands = serde_json::Value::from(commands).to_string();
        let mut parameters = format!("startupCommands={}", escaped(&commands));
        if let Some((begin, end)) = self.visible {
            parameters += &format!("&visStart={begin}&visEnd={end}");
        }
        if let Some((begin, duration)) = self.selected {
            parameters += &format!("&ts={begin}&dur={duration}");
        }
        parameters
    }
}

/// Text as a value in an address.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'*' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that an address has.
    fn commands(parameters: &str) -> serde_json::Value {
        let value = parameters.strip_prefix("startupCommands=").expect("commands");
        let value = value.split('&').next().expect("a value");
        let mut bytes = value.bytes();
        let mut text = Vec::new();
        while let Some(byte) = bytes.next() {
            text.push(match byte {
                b'%' => {
                    let digits: Vec<u8> = bytes.by_ref().take(2).collect();
                    let digits = String::from_utf8(digits).expect("digits");
                    u8::from_str_radix(&digits, 16).expect("a byte")
                }
                byte => byte,
            });
        }
        serde_json::from_slice(&text).expect("JSON")
    }

    #[test]
    fn commands_are_json_in_an_address() {
        let plain = Start::default().parameters();
        let open = json!({
            "id": "dev.perfetto.ExpandTracksByRegex",
            "args": ["^(?!(hidden helpers|System)$)"],
        });
        assert_eq!(commands(&plain), json!([open]));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%=-._*".contains(&byte);
        assert!(plain.bytes().all(is_plain), "{plain}");
    }

    #[test]
    fn tracks_are_pinned_and_a_slice_is_in_sight() {
        let start = Start {
            pinned: vec!["top finding".to_owned(), "critical path".to_owned()],
            visible: Some((5, 20)),
            selected: Some((10, 5)),
        };
        let parameters = start.parameters();
        let pin = |name: &str| json!({"id": "dev.perfetto.PinTracksByRegex", "args": [format!("^{name}$")]});
        let commands = commands(&parameters);
        assert_eq!(commands.as_array().expect("commands")[1..], [pin("top finding"), pin("critical path")]);
        assert!(parameters.ends_with("&visStart=5&visEnd=20&ts=10&dur=5"), "{parameters}");
    }
}
