//! Samples and their functions.

use omptrace_timeline::model::{Function, RuntimeActivity, Sample, StackFrame};
use parquet::data_type::ByteArray;

use crate::cells::Word;
use crate::schema::SampleRow;

/// The functions of a process, by number. All rows share the texts.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    functions: Vec<Words>,
    /// A buffer for the text of a stack.
    stack: String,
    /// The last stack and its text: consecutive samples usually have the same stack.
    last: Option<(Vec<StackFrame>, ByteArray)>,
}

#[derive(Debug)]
struct Words {
    name: String,
    shared: ByteArray,
    module: Option<ByteArray>,
    file: Option<ByteArray>,
}

impl Functions {
    /// Adds the next function.
    pub(crate) fn define(&mut self, function: &Function) {
        let module = Some(&*function.module).filter(|module| !module.is_empty());
        self.functions.push(Words {
            name: function.name.clone(),
            shared: ByteArray::from(function.name.as_str()),
            module: module.map(ByteArray::from),
            file: function.file.as_deref().map(ByteArray::from),
        });
    }

    /// The row of a sample.
    pub(crate) fn row(&mut self, sample: &Sample<'_>) -> SampleRow {
        let stack = self.stack(sample.stack);
        let innermost = sample.stack.last();
        let function = innermost.and_then(|frame| self.functions.get(frame.function.0 as usize));
        SampleRow {
            thread: sample.at.location.0.cast_signed(),
            time_ns: sample.at.time,
            weight_ns: i64::try_from(sample.weight_ns).unwrap_or(i64::MAX),
            activity: sample.activity.map(RuntimeActivity::name).map(Word),
            is_work: sample.is_work(),
            function: function.map(|function| function.shared.clone()),
            module: function.and_then(|function| function.module.clone()),
            file: function.and_then(|function| function.file.clone()),
            line: innermost.and_then(|frame| frame.line).map(u32::cast_signed),
            stack,
        }
    }

    /// The names of the functions on a stack.
    fn stack(&mut self, frames: &[StackFrame]) -> ByteArray {
        if let Some((known, words)) = &self.last
            && known == frames
        {
            return words.clone();
        }
        self.stack.clear();
        for frame in frames {
            if !self.stack.is_empty() {
                self.stack.push(';');
            }
            if let Some(function) = self.functions.get(frame.function.0 as usize) {
                self.stack.push_str(&function.name);
            }
        }
        let words = ByteArray::from(self.stack.as_str());
        self.last = Some((frames.to_vec(), words.clone()));
        words
    }
}

#[cfg(test)]
mod tests {
    use omptrace_timeline::model::{FunctionId, FunctionKind, LocationId, Point};

    use super::*;

    fn function(id: u32, name: &str, module: &str) -> Function {
        Function {
            id: FunctionId(id),
            name: name.to_owned(),
            module: module.to_owned(),
            file: (!module.is_empty()).then(|| "app.c".to_owned()),
            kind: FunctionKind::Code,
        }
    }

    fn sample(stack: &[StackFrame], activity: Option<RuntimeActivity>) -> Sample<'_> {
        Sample { at: Point { location: LocationId(2), time: 70 }, weight_ns: 4, activity, stack }
    }

    fn words(cell: &ByteArray) -> &str {
        cell.as_utf8().expect("UTF-8")
    }

    #[test]
    fn a_row_has_the_innermost_function_and_the_whole_stack() {
        let mut functions = Functions::default();
        functions.define(&function(0, "main", "app"));
        functions.define(&function(1, "solve", "app"));
        functions.define(&function(2, "<OMP-barrier>", ""));
        let frame = |function, line| StackFrame { function: FunctionId(function), line };
        let stack = [frame(0, Some(3)), frame(1, Some(9))];
        let row = functions.row(&sample(&stack, None));
        assert_eq!((row.thread, row.time_ns, row.weight_ns), (2, 70, 4));
        assert_eq!(row.function.as_ref().map(words), Some("solve"));
        assert_eq!(row.file.as_ref().map(words), Some("app.c"));
        assert_eq!((row.line, row.is_work), (Some(9), true));
        assert_eq!(words(&row.stack), "main;solve");

        let waits = [frame(0, Some(3)), frame(2, None)];
        let barrier = Some(RuntimeActivity::Barrier);
        for _ in 0..2 {
            let row = functions.row(&sample(&waits, barrier));
            assert_eq!(words(&row.stack), "main;<OMP-barrier>");
            assert_eq!((row.module, row.is_work, row.line), (None, false, None));
        }
        let row = functions.row(&sample(&[], barrier));
        assert_eq!((row.function, words(&row.stack)), (None, ""));
    }
}
