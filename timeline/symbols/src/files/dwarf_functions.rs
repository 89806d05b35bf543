//! The functions of a compilation unit, for cases in which linkage names are not enough: Fortran's functions, and the
//! function that contained code which the compiler moved out of it.

use std::collections::HashMap;
use std::rc::Rc;

use addr2line::gimli::{self, AttributeValue, DwAt, UnitRef};

use crate::files::elf::Slice;
use crate::files::loaded_module::file_name;
use crate::names::function::{Function, function};

/// The functions of the units requested so far, by the unit's offset in the debug information.
#[derive(Default)]
pub(crate) struct Functions {
    units: HashMap<Option<usize>, Rc<UnitFunctions>>,
}

#[derive(Default)]
struct UnitFunctions {
    /// Names as written in the source, by linkage name, if they differ.
    written: HashMap<String, String>,
    /// File name, line and name of each function definition.
    defined: Vec<(String, u32, String)>,
}

impl Functions {
    /// The source name of the function with linkage name `name` in a Fortran unit.
    pub(crate) fn written(&mut self, unit: UnitRef<'_, Slice<'_>>, name: &str) -> Option<String> {
        if !is_fortran(unit) {
            return None;
        }
        self.of(unit).written.get(name).cloned()
    }

    /// The function around `line` of `file`: the last one that starts before the line.
    pub(crate) fn around(&mut self, unit: UnitRef<'_, Slice<'_>>, file: &str, line: u32) -> Option<String> {
        let functions = self.of(unit);
        let before = functions
            .defined
            .iter()
            .filter(|(in_file, begin, _)| in_file == file_name(file) && *begin <= line);
        Some(before.max_by_key(|(_, begin, _)| *begin)?.2.clone())
    }

    fn of(&mut self, unit: UnitRef<'_, Slice<'_>>) -> Rc<UnitFunctions> {
        let offset = unit.header.debug_info_offset().map(|offset| offset.0);
        let functions = self.units.entry(offset).or_insert_with(|| {
            let mut functions = UnitFunctions::default();
            // In damaged debug information, the functions before the damage are found.
            let _ = functions.read(unit);
            Rc::new(functions)
        });
        Rc::clone(functions)
    }
}

/// A debugging entry around the current one.
struct Scope {
    depth: isize,
    /// The name of a function; `None` for a class.
    function: Option<String>,
    /// Its declaration: file name and line.
    begin: Option<(String, u32)>,
}

impl UnitFunctions {
    fn read(&mut self, unit: UnitRef<'_, Slice<'_>>) -> gimli::Result<()> {
        let mut scopes: Vec<Scope> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let is_function = match entry.tag() {
                gimli::DW_TAG_subprogram => true,
                gimli::DW_TAG_class_type | gimli::DW_TAG_structure_type => false,
                _ => continue,
            };
            scopes.retain(|scope| scope.depth < entry.depth());
            let attributes = Attributes::of(unit, entry)?;
            let mut scope = Scope { depth: entry.depth(), function: None, begin: attributes.begin() };
            if is_function {
                scope.function = self.function(&attributes, &scopes);
                if scope.begin.is_none() {
                    scope.begin = scopes.last().and_then(|class| class.begin.clone());
                }
                if let (false, Some(name), Some((file, line))) =
                    (attributes.is_declaration(), &scope.function, &scope.begin)
                {
                    self.defined.push((file.clone(), *line, name.clone()));
                }
            }
            scopes.push(scope);
        }
        Ok(())
    }

    /// The name of the function with these attributes inside `scopes`.
    fn function(&mut self, attributes: &Attributes<'_, '_>, scopes: &[Scope]) -> Option<String> {
        let name = attributes.text(gimli::DW_AT_name);
        // gfortran does not record that the main program is `MAIN__`.
        let linkage_name = match attributes.is_true(gimli::DW_AT_main_subprogram) {
            true => Some("MAIN__".to_owned()),
            false => attributes.text(gimli::DW_AT_linkage_name),
        };
        if let (Some(linkage_name), Some(name)) = (&linkage_name, &name) {
            self.written.insert(linkage_name.clone(), name.clone());
        }
        match function(&linkage_name.or(name)?) {
            Function::Named(name) => Some(name),
            // GCC gives no linkage name to lambdas that are inlined everywhere.
            Function::Lambda => {
                let around = scopes.iter().rev().find_map(|scope| scope.function.as_ref())?;
                Some(format!("{around}::{{lambda}}::operator()"))
            }
            Function::MovedOut => None,
        }
    }
}

/// The attributes of an entry. The definition of a member function refers to its declaration for attributes that the
/// declaration already has.
struct Attributes<'u, 'd> {
    unit: UnitRef<'u, Slice<'d>>,
    entry: &'u Entry<'d>,
    declaration: Option<Entry<'d>>,
}

impl<'u, 'd> Attributes<'u, 'd> {
    fn of(unit: UnitRef<'u, Slice<'d>>, entry: &'u Entry<'d>) -> gimli::Result<Self> {
        let declaration = match entry.attr_value(gimli::DW_AT_specification) {
            Some(AttributeValue::UnitRef(offset)) => Some(unit.entry(offset)?),
            _ => None,
        };
        Ok(Attributes { unit, entry, declaration })
    }

    fn value(&self, name: DwAt) -> Option<AttributeValue<Slice<'d>>> {
        let declared = || self.declaration.as_ref()?.attr_value(name);
        self.entry.attr_value(name).or_else(declared)
    }

    fn text(&self, name: DwAt) -> Option<String> {
        let value = self.unit.attr_string(self.value(name)?).ok()?;
        Some(value.to_string_lossy().into_owned())
    }

    fn is_true(&self, name: DwAt) -> bool {
        matches!(self.entry.attr_value(name), Some(AttributeValue::Flag(true)))
    }

    fn is_declaration(&self) -> bool {
        self.is_true(gimli::DW_AT_declaration)
    }

    /// The file name without directories, and the line.
    fn begin(&self) -> Option<(String, u32)> {
        let AttributeValue::FileIndex(file) = self.value(gimli::DW_AT_decl_file)? else {
            return None;
        };
        let line = self.value(gimli::DW_AT_decl_line)?.udata_value()?;
        let header = self.unit.line_program.as_ref()?.header();
        let path = self.unit.attr_string(header.file(file)?.path_name()).ok()?.to_string_lossy();
        Some((file_name(&path).to_owned(), u32::try_from(line).ok()?))
    }
}

type Entry<'d> = gimli::DebuggingInformationEntry<Slice<'d>>;

fn is_fortran(unit: UnitRef<'_, Slice<'_>>) -> bool {
    let mut entries = unit.entries();
    let Ok(Some(root)) = entries.next_dfs() else {
        return false;
    };
    matches!(
        root.attr_value(gimli::DW_AT_language),
        Some(AttributeValue::Language(
            gimli::DW_LANG_Fortran77
                | gimli::DW_LANG_Fortran90
                | gimli::DW_LANG_Fortran95
                | gimli::DW_LANG_Fortran03
                | gimli::DW_LANG_Fortran08
                | gimli::DW_LANG_Fortran18
        ))
    )
}
