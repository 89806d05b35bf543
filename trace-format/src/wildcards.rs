//! Patterns with which users select domains and phases.

/// Whether a name matches a pattern with `*` and `?`.
pub fn match_name(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Position of the last star in the pattern, and the end of what it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((place, until)) => {
                    star = Some((place, until + 1));
                    at = place + 1;
                    from = until + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::match_name;

    #[test]
    fn stars_stand_for_any_letters_and_question_marks_for_one() {
        let is = |pattern: &str, name: &str| match_name(pattern.as_bytes(), name.as_bytes());
        assert!(is("", "") && is("*", "") && is("*", "abc") && is("a?c", "abc") && is("a*c*", "abcbc"));
        assert!(is("*b*d", "abcbcd") && is("**", "a"));
        assert!(!is("", "a") && !is("?", "") && !is("a*d", "abc") && !is("ab", "abc"));
    }
}
