//! Text in HTML: whatever comes from a trace is escaped here.

use std::fmt::{self, Display, Formatter, Write};

use omptrace_analysis::answers::Place;
use omptrace_analysis::is_unprintable;

/// The most letters of a name that are shown.
const MAX_LETTERS: usize = 96;

/// A text, escaped for HTML, between tags and in attributes with quotation marks.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(letter)?,
                // Whatever turns the direction of writing, or cannot be seen, could feign other text.
                letter if is_unprintable(letter) => f.write_char('\u{fffd}')?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// A name without its middle where it is very long: names of one program begin alike, and their ends tell them apart.
pub(crate) fn short(name: &str) -> String {
    let name = spelled(name);
    let letters = name.chars().count();
    if letters <= MAX_LETTERS {
        return name;
    }
    let begin = MAX_LETTERS / 2;
    let end = MAX_LETTERS - 1 - begin;
    let begin = name.chars().take(begin);
    begin.chain(['\u{2026}']).chain(name.chars().skip(letters - end)).collect()
}

/// A construct's name as the language of its file has it: `parallel @a.c:7`, `!$omp parallel @a.f90:7`.
fn spelled(name: &str) -> String {
    match name.split_once('@') {
        _ if !name.starts_with("!$omp ") => name.to_owned(),
        Some((construct, place)) => {
            let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
            format!("{}@{place}", Place::at(construct, Some(file), None, None).construct_name())
        }
        None => Place::new(name).construct_name(),
    }
}

/// JSON that may be in a script element: `</script>` and `<!--` cannot be in it.
pub(crate) fn json(value: &serde_json::Value) -> String {
    let text = value.to_string();
    let text = text.replace('<', "\\u003c").replace('>', "\\u003e");
    // What JSON does not escape: line ends of JavaScript, too.
    text.replace(is_unprintable, "\u{fffd}")
}

/// A share, 0 to 1, as `24.1 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{}\u{a0}%", crate::text::table::percent(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_tags_attributes_or_scripts() {
        let escaped = Text("<b onclick='x'>\"&\u{0}\u{202e}").to_string();
        assert_eq!(escaped, "&lt;b onclick=&#39;x&#39;&gt;&quot;&amp;\u{fffd}\u{fffd}");
        let value = serde_json::json!({ "name": "</script><!--\n\u{202e}\u{2028}" });
        assert_eq!(json(&value), "{\"name\":\"\\u003c/script\\u003e\\u003c!--\\n\u{fffd}\u{fffd}\"}");
    }

    #[test]
    fn constructs_are_spelled_as_in_their_language() {
        assert_eq!(short("!$omp implicit barrier wait @a.c:3"), "implicit barrier wait @a.c:3");
        assert_eq!(short("!$omp parallel @a.f90:3"), "!$omp parallel @a.f90:3");
        assert_eq!(short("!$omp task"), "task");
        assert_eq!(short("worker @home"), "worker @home");
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(short("abc"), "abc");
        let name = format!("begin{}end", "\u{e4}".repeat(500));
        let shown = short(&name);
        assert_eq!(shown.chars().count(), MAX_LETTERS);
        assert!(
            shown.starts_with("begin") && shown.contains('\u{2026}') && shown.ends_with("end"),
            "{shown}"
        );
    }
}
