//! Places: a construct and its source location, as data.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::path::Path;

use omptrace_symbols::FileNames;
use omptrace_timeline::model::{self, Construct, Region, plain_name, split_place};
use serde::{Deserialize, Serialize};

/// Prefix of the names of code outside of parallel regions.
const SERIAL: &str = "serial code";

/// Prefix of Fortran directives.
const SENTINEL: &str = "!$omp ";

/// Extensions of Fortran files, in lower case: `.F90` means that the file is preprocessed first.
const FORTRAN: &[&str] = &["f", "for", "ftn", "fpp", "f77", "f90", "f95", "f03", "f08", "f18", "f23"];

/// A place in the program. Unknown parts are `None`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "PrintedPlace")]
pub struct Place {
    /// The construct, spelled independently of the language: `parallel`, `omp_set_lock`,
    /// `serial code before stencil.c:35`. If neither file nor function is known, followed by its code address:
    /// `parallel @app+0x1234`.
    pub construct: String,
    /// Whether the construct is an OpenMP directive: `parallel`, but not `omp_set_lock`.
    pub is_directive: bool,
    /// The source file.
    pub file: Option<String>,
    /// The line in this file.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
    /// How function, file and line are related to the construct.
    pub position: Option<Position>,
    /// The module and the address in it, if function and line do not tell the construct from others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The file's name as shown to users, if the last part of its path does not distinguish it from other files.
    /// Ignored when places are compared.
    #[serde(skip)]
    file_name: Option<String>,
}

/// How a function, file and line are related to a construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// The construct is at this line.
    At,
    /// The construct is in the code of this line, or in a function called there.
    Inside,
    /// The construct is near this line, which may belong to an earlier statement.
    Near,
    /// Serial code before the region at this line.
    Before,
    /// Serial code after the region at this line, with no other region after it.
    After,
}

impl Position {
    /// The position's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Position::At => "at",
            Position::Inside => "inside",
            Position::Near => "near",
            Position::Before => "before",
            Position::After => "after",
        }
    }
}

impl From<model::Position> for Position {
    fn from(position: model::Position) -> Position {
        match position {
            model::Position::At => Position::At,
            model::Position::Inside => Position::Inside,
            model::Position::Near => Position::Near,
        }
    }
}

/// A place as printed in JSON. In schema 1, the construct has a sentinel, and is followed by `inside @app.c:7` if its
/// own line is unknown.
#[derive(Deserialize)]
struct PrintedPlace {
    construct: String,
    #[serde(default)]
    is_directive: bool,
    file: Option<String>,
    line: Option<u32>,
    function: Option<String>,
    position: Option<Position>,
    code: Option<String>,
}

impl From<PrintedPlace> for Place {
    fn from(printed: PrintedPlace) -> Place {
        let PrintedPlace { construct, is_directive, file, line, function, position, code } = printed;
        let place = Place { file, line, function, position, code, ..Place::new(&construct) };
        let is_known = place.file.is_some() || place.function.is_some();
        let of_serial = |place: &Place| match place.construct.starts_with("serial code after") {
            true => Position::After,
            false => Position::Before,
        };
        let (construct, around) = split_place(&place.construct);
        let around = around.strip_prefix(" inside @");
        let around = around.and_then(|around| around.rsplit_once(':'));
        let line = around.and_then(|(_, line)| line.parse().ok());
        match (position, around.zip(line)) {
            (Some(_), _) => Place { is_directive: is_directive || place.is_directive, ..place },
            (None, Some(((file, _), line))) if !is_known => Place {
                construct: construct.to_owned(),
                file: Some(file.to_owned()),
                line: Some(line),
                position: Some(Position::Inside),
                ..place
            },
            (None, _) => Place {
                position: is_known.then(|| match place.is_serial() {
                    true => of_serial(&place),
                    false => Position::At,
                }),
                is_directive: is_directive || place.is_directive,
                ..place
            },
        }
    }
}

impl Place {
    /// A construct without a source location, by its printed name: `!$omp parallel`, `omp_set_lock`.
    pub fn new(name: &str) -> Place {
        let (construct, is_directive) = plain_name(name);
        Place { construct: construct.to_owned(), is_directive, ..Place::default() }
    }

    /// A construct, by its printed name, in this file, line and function.
    pub fn at(name: &str, file: Option<&str>, line: Option<u32>, function: Option<&str>) -> Place {
        Place {
            file: file.map(str::to_owned),
            line,
            function: function.map(str::to_owned),
            position: (file.is_some() || function.is_some()).then_some(Position::At),
            ..Place::new(name)
        }
    }

    /// A region's place. Its construct is the one that the programmer wrote, even if the region is a wait.
    pub fn of(region: &Region) -> Place {
        let source = region.source.clone().unwrap_or_default();
        let (construct, around) = split_place(&region.name);
        // Without names, the address identifies the place.
        let construct = match source.is_known() {
            true => construct,
            false => &region.name,
        };
        let construct = construct.replacen(" (wake-up)", "", 1);
        let construct = match region.construct {
            Construct::SyncRegionWait(_) | Construct::MutexWait(_) => construct.replacen(" wait", "", 1),
            _ => construct,
        };
        let position = source.is_known().then(|| source.position.into());
        let (file, line) = source.line.unzip();
        let name = around.split_once('@').map_or("", |(_, place)| place);
        let name = name.rsplit_once(':').map(|(file, _)| file.to_owned());
        Place {
            file_name: name.filter(|_| file.is_some()),
            file,
            line,
            function: source.function,
            position,
            code: source.code,
            ..Place::new(&construct)
        }
    }

    /// The serial code between two regions; `None` at the program's start and end.
    pub fn serial(after: Option<&Place>, before: Option<&Place>) -> Place {
        let name = |place: &Place| place.source().unwrap_or_else(|| place.without_function());
        let construct = match (after, before) {
            (Some(after), Some(before)) => {
                format!("{SERIAL} from {} to {}", name(after), name(before))
            }
            (None, Some(before)) => format!("{SERIAL} before {}", name(before)),
            (Some(after), None) => format!("{SERIAL} after {}", name(after)),
            (None, None) => SERIAL.to_owned(),
        };
        let position = match before {
            Some(_) => Position::Before,
            None => Position::After,
        };
        let at = before.or(after);
        Place {
            construct,
            is_directive: false,
            position: at.and_then(|at| at.position).map(|_| position),
            ..at.cloned().unwrap_or_default()
        }
    }

    /// Whether the place is code outside of parallel regions.
    pub fn is_serial(&self) -> bool {
        self.construct.starts_with(SERIAL)
    }

    /// Whether the place is a call of an MPI function, which users know by the function's name.
    pub fn is_call(&self) -> bool {
        self.construct.starts_with("MPI_")
    }

    /// Whether the line belongs to the construct itself, or to the region next to serial code.
    pub fn has_own_line(&self) -> bool {
        self.line.is_some() && !matches!(self.position, Some(Position::Inside | Position::Near))
    }

    /// The construct, spelled as in the language of its file: `parallel`, or `!$omp parallel` in Fortran.
    pub fn construct_name(&self) -> String {
        match (self.is_fortran(), self.is_directive) {
            (true, true) => format!("{SENTINEL}{}", self.construct),
            (true, false) => self.construct.clone(),
            // The name of serial code contains constructs.
            (false, _) => self.construct.replace(SENTINEL, ""),
        }
    }

    /// The construct in the same spelling for all languages, for comparisons: `!$omp parallel`.
    pub fn construct_with_sentinel(&self) -> String {
        let sentinel = if self.is_directive { SENTINEL } else { "" };
        format!("{sentinel}{}", self.construct)
    }

    /// The place's key in other tools' JSON, which has the sentinel in all languages: `!$omp parallel @stencil.c:35`.
    pub(crate) fn key_with_sentinel(&self) -> String {
        let sentinel = if self.is_directive && !self.is_fortran() { SENTINEL } else { "" };
        format!("{sentinel}{}", self.long())
    }

    /// Whether the file has a Fortran extension.
    fn is_fortran(&self) -> bool {
        let extension = self.file.as_deref().and_then(|file| Path::new(file).extension()?.to_str());
        let extension = extension.map(str::to_ascii_lowercase);
        extension.is_some_and(|extension| FORTRAN.contains(&&*extension))
    }

    /// `stencil.c:35` or `near stencil.c:35`; for serial code, `before stencil.c:35`. Otherwise, without an own line, the
    /// same as [`Place::long`].
    pub fn short(&self) -> String {
        if let Some(beside) = self.beside_region() {
            return beside;
        }
        self.source().or_else(|| self.near()).unwrap_or_else(|| self.long())
    }

    /// [`Place::short`] with its preposition: `at stencil.c:35`, `near stencil.c:35`.
    pub fn at_short(&self) -> String {
        self.beside_region().or_else(|| self.near()).unwrap_or_else(|| format!("at {}", self.short()))
    }

    /// The construct and its line in a sentence: `MPI_Recv at halo.c:20`. Without a line, the same as [`Place::long`].
    pub fn with_line(&self) -> String {
        match self.source().or_else(|| self.near()) {
            Some(_) => format!("{} {}", self.construct_name(), self.at_short()),
            None => self.long(),
        }
    }

    /// The region next to serial code, with a preposition: `before stencil.c:35`. `None` for other places, and for serial
    /// code without regions.
    pub fn beside_region(&self) -> Option<String> {
        let name = self.construct_name();
        let beside = name.strip_prefix(SERIAL)?.strip_prefix(' ')?;
        Some(match (self.position, self.line_name()) {
            (Some(position @ (Position::Before | Position::After)), Some(line)) => {
                format!("{} {line}", position.name())
            }
            _ => beside.to_owned(),
        })
    }

    /// Whether the place is the serial code before the first parallel region. Samples are taken only after the OpenMP
    /// runtime has been initialised, which usually happens at the first region.
    pub(crate) fn is_before_all_regions(&self) -> bool {
        self.construct.strip_prefix(SERIAL).is_some_and(|rest| rest.starts_with(" before "))
    }

    /// `near stencil.c:35`, if the position is only near this line.
    pub(crate) fn near(&self) -> Option<String> {
        let line = self.line_name().filter(|_| self.position == Some(Position::Near));
        line.map(|line| format!("near {line}"))
    }

    /// `parallel @stencil.c:35`, `parallel inside @stencil.c:35`, `!$omp single near @stencil.f90:35`.
    pub fn long(&self) -> String {
        let construct = self.construct_name();
        let how = match self.position {
            Some(Position::Inside) => "inside ",
            Some(Position::Near) => "near ",
            _ => "",
        };
        match self.line_name().or_else(|| self.function.clone()) {
            Some(source) => format!("{construct} {how}@{source}"),
            None => construct,
        }
    }

    /// The place in words: the same as [`Place::long`], but serial code is named only by the regions around it, such as
    /// `serial code before stencil.c:35` or `serial code between executions of stencil.c:35`.
    pub fn in_words(&self) -> String {
        if !self.is_serial() {
            return self.long();
        }
        let name = self.construct_name();
        let ends = name.strip_prefix(SERIAL).and_then(|rest| rest.strip_prefix(" from ")?.split_once(" to "));
        match ends {
            Some((from, to)) if from == to => format!("{SERIAL} between executions of {to}"),
            _ => name,
        }
    }

    /// The same as [`Place::key_with_sentinel`], but without the function if no line is known.
    fn without_function(&self) -> String {
        match self.line_name() {
            Some(_) => self.key_with_sentinel(),
            None => self.construct_with_sentinel(),
        }
    }

    /// The file without its directories, and the line; `None` if the line is not the construct's own.
    pub fn source(&self) -> Option<String> {
        let is_own = !matches!(self.position, Some(Position::Inside | Position::Near));
        self.line_name().filter(|_| is_own)
    }

    fn line_name(&self) -> Option<String> {
        let path = self.file.as_deref()?;
        let last = path.rsplit('/').next().unwrap_or(path);
        let file = self.file_name.as_deref().unwrap_or(last);
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        })
    }

    /// Sets the file's name as shown to users to its name among `names`.
    pub(crate) fn name_file(&mut self, names: &FileNames) {
        let file = self.file.as_deref();
        self.file_name = file.map(|file| names.name(file).to_owned());
    }

    /// The names of these places' files as shown to users.
    pub(crate) fn file_names<'p>(places: impl IntoIterator<Item = &'p Place>) -> FileNames {
        FileNames::of(places.into_iter().filter_map(|place| place.file.as_deref()))
    }

    /// The key for comparisons. Directives come first.
    fn key(&self) -> Key<'_> {
        (
            !self.is_directive,
            &self.construct,
            self.file.as_deref(),
            self.line,
            self.function.as_deref(),
            self.position,
            self.code.as_deref(),
        )
    }
}

/// See [`Place::key`].
type Key<'p> =
    (bool, &'p str, Option<&'p str>, Option<u32>, Option<&'p str>, Option<Position>, Option<&'p str>);

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Place {
        serde_json::from_str(json).expect("a place")
    }

    #[test]
    fn places_of_schema_1_are_read() {
        let known = read(r#"{"construct":"!$omp parallel","file":"/src/a.c","line":7,"function":"main"}"#);
        assert_eq!(
            (&*known.construct, known.is_directive, known.position),
            ("parallel", true, Some(Position::At))
        );
        assert_eq!(known.long(), "parallel @a.c:7");
        let inside =
            read(r#"{"construct":"!$omp parallel inside @a.c:7","file":null,"line":null,"function":null}"#);
        assert_eq!(
            (&*inside.construct, inside.file.as_deref(), inside.line),
            ("parallel", Some("a.c"), Some(7))
        );
        assert_eq!(inside.long(), "parallel inside @a.c:7");
        let serial = read(r#"{"construct":"serial code before a.c:7","file":"a.c","line":7,"function":"f"}"#);
        assert_eq!(serial.position, Some(Position::Before));
        let nowhere = read(r#"{"construct":"!$omp parallel @app+0x12"}"#);
        assert_eq!((&*nowhere.long(), nowhere.position), ("parallel @app+0x12", None));
    }

    #[test]
    fn constructs_are_spelled_as_in_the_language_of_their_file() {
        for (file, name) in [
            (Some("/src/a.c"), "parallel @a.c:7"),
            (Some("/src/a.cpp"), "parallel @a.cpp:7"),
            (Some("/src/f90"), "parallel @f90:7"),
            (Some("/src/a.f90"), "!$omp parallel @a.f90:7"),
            (Some("/src/a.F"), "!$omp parallel @a.F:7"),
            (None, "parallel"),
        ] {
            let place = Place::at("!$omp parallel", file, file.map(|_| 7), None);
            assert_eq!(place.long(), name);
            let key = place.key_with_sentinel();
            assert!(key.starts_with("!$omp parallel") && key.ends_with(name), "{key}");
        }
        let lock = Place::at("omp_set_lock", Some("a.f90"), Some(7), None);
        assert_eq!((lock.long(), lock.key_with_sentinel()), ("omp_set_lock @a.f90:7".into(), lock.long()));
    }

    #[test]
    fn serial_code_is_not_at_the_line_of_the_next_region() {
        let region = |line| Place::at("!$omp parallel", Some("/src/a.c"), Some(line), Some("main"));
        let before = Place::serial(None, Some(&region(7)));
        assert_eq!((&*before.short(), &*before.at_short()), ("before a.c:7", "before a.c:7"));
        let between = Place::serial(Some(&region(7)), Some(&region(9)));
        assert_eq!(between.at_short(), "before a.c:9");
        assert_eq!(before.in_words(), "serial code before a.c:7");
        assert!(before.is_before_all_regions() && !between.is_before_all_regions());
        assert_eq!(between.in_words(), "serial code from a.c:7 to a.c:9");
        let repeated = Place::serial(Some(&region(7)), Some(&region(7)));
        assert_eq!(repeated.in_words(), "serial code between executions of a.c:7");
        assert_eq!(Place::serial(None, None).at_short(), "at serial code");
    }

    #[test]
    fn a_call_without_a_line_is_named_once() {
        let call =
            |line: Option<u32>| Place::at("MPI_Send", line.map(|_| "/src/a.c"), line, Some("exchange"));
        assert_eq!(call(Some(7)).with_line(), "MPI_Send at a.c:7");
        assert_eq!(call(None).with_line(), "MPI_Send @exchange");
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        let places = [
            Place {
                file: Some("/a/b.c".to_owned()),
                line: Some(3),
                position: Some(Position::Inside),
                ..Place::new("!$omp task")
            },
            Place {
                function: Some("f".to_owned()),
                position: Some(Position::At),
                ..Place::new("omp_set_lock")
            },
            Place {
                file: Some("/a/b.c".to_owned()),
                line: Some(3),
                position: Some(Position::Near),
                code: Some("b+0x1234".to_owned()),
                ..Place::new("!$omp single")
            },
            Place::new("no process"),
        ];
        for place in places {
            let text = serde_json::to_string(&place).expect("JSON");
            assert_eq!(read(&text), place, "{text}");
        }
    }
}
