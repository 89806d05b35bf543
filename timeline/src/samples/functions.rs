//! The functions of a timeline's samples, numbered at first use.

use std::collections::HashMap;

use omptrace_symbols::fast_map::FastMap;

use crate::model::{Function, FunctionId, FunctionKind, Item, Sink};

/// The functions of a timeline.
#[derive(Default)]
pub(crate) struct Functions {
    by_name: HashMap<Key, FunctionId>,
    all: Vec<Function>,
    /// By function: its outlined part.
    outlined: FastMap<u32, FunctionId>,
}

/// Name, module, file and kind.
type Key = (String, String, Option<String>, FunctionKind);

impl Functions {
    /// The function with these properties.
    pub(crate) fn intern(&mut self, sink: &mut dyn Sink, key: Key) -> FunctionId {
        if let Some(known) = self.by_name.get(&key) {
            return *known;
        }
        let id = FunctionId(self.all.len() as u32);
        let (name, module, file, kind) = key.clone();
        let function = Function { id, name, module, file, kind };
        sink.item(&Item::Function(&function));
        self.all.push(function);
        self.by_name.insert(key, id);
        id
    }

    /// The outlined part of `function`, if `caller`, which called the runtime, is the same function; otherwise,
    /// `function` itself.
    pub(crate) fn outlined(
        &mut self,
        sink: &mut dyn Sink,
        function: FunctionId,
        caller: FunctionId,
    ) -> FunctionId {
        if function != caller {
            return function;
        }
        if let Some(known) = self.outlined.get(&function.0) {
            return *known;
        }
        let whole = self.all[function.0 as usize].clone();
        let id = match whole.kind {
            FunctionKind::Code => {
                let name = whole.name + " [OpenMP]";
                self.intern(sink, (name, whole.module, whole.file, FunctionKind::Outlined))
            }
            _ => function,
        };
        self.outlined.insert(function.0, id);
        id
    }
}
