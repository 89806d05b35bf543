//! The table as JSON in the trace's metadata, under the key [`KEY`]:
//!
//! ```json
//! {"strings": ["main", "/src/jacobi.c"],
//!  "modules": [{"path": "/src/jacobi", "build_id": "12ab", "load_address": 94000, "file_size": 9, "modified_ns": 8,
//!               "runtime": false, "problem": null,
//!               "places": [[4660, 1, 4096, 2, 41, 0]],
//!               "inlined": [[4660, [[3, 2, 50]]]],
//!               "md5": [[2, "0cc175b9c0f1b6a831c399e269772661"]]}],
//!  "made": [[140000000000000, 1]]}
//! ```
//!
//! A place consists of the call's address in the module's file, function, the function's start, file, line, and a mark.
//! The mark is 1 if the place is in an OpenMP runtime that is linked into the module, 2 if the construct is in a
//! function that is called there, 3 after a memory fence, and 4 if the line may be that of an earlier statement.
//! Function and file are indexes of strings, counted from 1. An index, start or line of 0 means unknown. Each string is
//! stored once, because most places share file and function.
//!
//! If a place's function is inlined, `inlined` contains the functions into which it is inlined, innermost first, each
//! with file and line of the call. `md5` contains checksums of the source files that the compiler read. `made` contains
//! code generated at run time: the call's address, and the function.

use std::collections::HashMap;

use omptrace_trace_format::Metadata;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::table::{Caller, MAX_CALLERS, ModuleSymbols, Place, Table};
use crate::files::loaded_module::Instance;
use crate::names::missing_names::Problem;

/// The key in the metadata.
pub const KEY: &str = "symbols";

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredTable {
    strings: Vec<String>,
    modules: Vec<StoredModule>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    made: Vec<(u64, usize)>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredModule {
    #[serde(flatten)]
    instance: Instance,
    runtime: bool,
    problem: Option<Problem>,
    places: Vec<StoredPlace>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlined: Vec<StoredCallers>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    md5: Vec<(usize, String)>,
}

#[derive(Serialize, Deserialize)]
struct StoredPlace(u64, usize, u64, usize, u32, u8);

/// The callers of the place at this offset: function, file, line.
#[derive(Serialize, Deserialize)]
struct StoredCallers(u64, Vec<(usize, usize, u32)>);

const IN_RUNTIME: u8 = 1;
const IS_AROUND: u8 = 2;
const IS_BEHIND_FENCE: u8 = 3;
const IS_NEAR: u8 = 4;

/// Assigns a number to each string, counted from 1.
#[derive(Default)]
struct Strings<'t> {
    list: Vec<String>,
    numbers: HashMap<&'t str, usize>,
}

impl<'t> Strings<'t> {
    fn number(&mut self, string: &'t str) -> usize {
        *self.numbers.entry(string).or_insert_with(|| {
            self.list.push(string.to_owned());
            self.list.len()
        })
    }
}

impl Table {
    /// The table for the metadata: see the format in the module's source.
    pub fn to_json(&self) -> Value {
        let mut strings = Strings::default();
        let modules = self
            .modules()
            .iter()
            .map(|module| StoredModule {
                instance: module.instance.clone(),
                runtime: module.is_runtime,
                problem: module.problem,
                places: module.places.iter().map(|place| stored(place, &mut strings)).collect(),
                inlined: module
                    .places
                    .iter()
                    .filter(|place| !place.callers.is_empty())
                    .map(|place| stored_callers(place, &mut strings))
                    .collect(),
                md5: module.checksums.iter().map(|(file, md5)| (strings.number(file), md5.clone())).collect(),
            })
            .collect();
        let made = self.made().iter();
        let made = made.map(|(call, function)| (*call, strings.number(function))).collect();
        let stored = StoredTable { strings: strings.list, modules, made };
        serde_json::to_value(stored).unwrap_or_default()
    }

    /// The table stored in a trace. `None` if there is none, or if it is invalid.
    pub fn from_metadata(metadata: &Metadata) -> Option<Table> {
        let StoredTable { strings, modules, made } =
            StoredTable::deserialize(metadata.other.get(KEY)?).ok()?;
        let modules = modules.into_iter().map(|module| {
            let inlined = module.inlined.iter();
            let inlined: HashMap<u64, &StoredCallers> = inlined.map(|callers| (callers.0, callers)).collect();
            let places = module.places.iter().map(|place| {
                let mut place = unstored(place, &strings);
                if let Some(StoredCallers(_, callers)) = inlined.get(&place.offset) {
                    place.callers = unstored_callers(callers, &strings);
                }
                place
            });
            ModuleSymbols {
                places: places.collect(),
                checksums: module
                    .md5
                    .into_iter()
                    .filter_map(|(file, md5)| Some((string(&strings, file)?, md5)))
                    .collect(),
                instance: module.instance,
                is_runtime: module.runtime,
                problem: module.problem,
            }
        });
        let made = made.into_iter();
        let made = made.filter_map(|(call, function)| Some((call, string(&strings, function)?)));
        Some(Table::new(modules.collect(), made.collect()))
    }
}

fn stored<'t>(place: &'t Place, strings: &mut Strings<'t>) -> StoredPlace {
    let function = place.function.as_deref();
    let source = place.source.as_ref();
    StoredPlace(
        place.offset,
        function.map_or(0, |function| strings.number(function)),
        place.function_start.unwrap_or(0),
        source.map_or(0, |(file, _)| strings.number(file)),
        source.map_or(0, |(_, line)| *line),
        match place {
            place if place.in_runtime => IN_RUNTIME,
            place if place.is_around => IS_AROUND,
            place if place.is_near => IS_NEAR,
            place if place.is_behind_fence => IS_BEHIND_FENCE,
            _ => 0,
        },
    )
}

fn stored_callers<'t>(place: &'t Place, strings: &mut Strings<'t>) -> StoredCallers {
    let callers = place.callers.iter();
    let callers = callers.map(|caller| {
        let function = caller.function.as_deref();
        let source = caller.source.as_ref();
        (
            function.map_or(0, |function| strings.number(function)),
            source.map_or(0, |(file, _)| strings.number(file)),
            source.map_or(0, |(_, line)| *line),
        )
    });
    StoredCallers(place.offset, callers.collect())
}

/// The string with this number, counted from 1.
fn string(strings: &[String], number: usize) -> Option<String> {
    strings.get(number.checked_sub(1)?).cloned()
}

fn source(strings: &[String], file: usize, line: u32) -> Option<(String, u32)> {
    let file = string(strings, file).filter(|_| line != 0);
    file.map(|file| (file, line))
}

fn unstored(place: &StoredPlace, strings: &[String]) -> Place {
    let StoredPlace(offset, function, function_start, file, line, what) = *place;
    Place {
        offset,
        function: string(strings, function),
        function_start: (function_start != 0).then_some(function_start),
        source: source(strings, file, line),
        in_runtime: what == IN_RUNTIME,
        is_around: what == IS_AROUND,
        is_near: what == IS_NEAR,
        is_behind_fence: what == IS_BEHIND_FENCE,
        callers: Vec::new(),
    }
}

fn unstored_callers(callers: &[(usize, usize, u32)], strings: &[String]) -> Vec<Caller> {
    let callers = callers.iter().take(MAX_CALLERS);
    let callers = callers.map(|(function, file, line)| Caller {
        function: string(strings, *function),
        source: source(strings, *file, *line),
    });
    callers.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table() -> Table {
        let place = |offset, line: u32| Place {
            offset,
            function: Some("main".to_owned()),
            function_start: Some(4096),
            source: (line > 0).then(|| ("/src/jacobi.c".to_owned(), line)),
            in_runtime: false,
            is_around: offset == 4670,
            is_near: offset == 4690,
            is_behind_fence: offset == 4680,
            callers: match offset {
                4660 => vec![Caller {
                    function: Some("outer".to_owned()),
                    source: Some(("/src/jacobi.c".to_owned(), 50)),
                }],
                _ => Vec::new(),
            },
        };
        let instance = Instance {
            path: "/src/jacobi".to_owned(),
            build_id: "12ab".to_owned(),
            load_address: 0x5555_5555_4000,
            ..Instance::default()
        };
        Table::new(
            vec![ModuleSymbols {
                problem: Some(Problem::NoDebugInfo),
                places: vec![place(4660, 41), place(4670, 0), place(4680, 0), place(4690, 50)],
                checksums: [("/src/jacobi.c".to_owned(), "0cc1".to_owned())].into(),
                ..ModuleSymbols::new(instance, false)
            }],
            [(77, "made".to_owned())].into(),
        )
    }

    fn read(symbols: Value) -> Option<Table> {
        let mut metadata = Metadata::default();
        metadata.other.insert(KEY.to_owned(), symbols);
        Table::from_metadata(&metadata)
    }

    #[test]
    fn a_table_comes_back_as_it_was() {
        let json = table().to_json();
        assert_eq!(json["strings"], json!(["main", "/src/jacobi.c", "outer", "made"]));
        assert_eq!(json["made"], json!([[77, 4]]));
        assert_eq!(json["modules"][0]["md5"], json!([[2, "0cc1"]]));
        assert_eq!(json["modules"][0]["inlined"], json!([[4660, [[3, 2, 50]]]]));
        assert_eq!(
            json["modules"][0]["places"],
            json!([
                [4660, 1, 4096, 2, 41, 0],
                [4670, 1, 4096, 0, 0, 2],
                [4680, 1, 4096, 0, 0, 3],
                [4690, 1, 4096, 2, 50, 4]
            ])
        );
        assert_eq!(read(json), Some(table()));
    }

    #[test]
    fn nonsense_gives_no_name() {
        assert_eq!(read(json!(7)), None);
        assert_eq!(read(json!({"modules": [{"places": [[1, 2]]}]})), None);
        let places = json!({"modules": [{"places": [[1, 99, 0, 99, 5, 0]], "problem": "new",
            "inlined": [[1, [[99, 99, 5]]], [2, []]]}]});
        let table = read(places).expect("a table");
        assert_eq!(table.modules()[0].problem, Some(Problem::Unknown));
        let place = &table.modules()[0].places[0];
        assert_eq!((&place.function, &place.source), (&None, &None));
        assert_eq!(place.callers, [Caller::default()]);
    }
}
