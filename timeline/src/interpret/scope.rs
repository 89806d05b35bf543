//! Endpoints of regions, as events report them, and values of their arguments.

use ompt_sys as ompt;
use omptrace_trace_format::field::{Address, Id};

use crate::model::Value;
use crate::names::construct::Construct;
use crate::threads::open_regions::Meaning;

/// An endpoint of a region, as an event reports it.
pub(super) struct Scope {
    pub(super) endpoint: ompt::ompt_scope_endpoint_t,
    pub(super) construct: Construct,
    /// Distinguishes the region from other open ones of its construct; 0 if nothing does.
    pub(super) key: u64,
    pub(super) codeptr_ra: Address,
    pub(super) meaning: Meaning,
}

impl Scope {
    /// A scope without key and place.
    #[inline(always)]
    pub(super) fn new(endpoint: ompt::ompt_scope_endpoint_t, construct: Construct) -> Scope {
        Scope { endpoint, construct, key: 0, codeptr_ra: Address(0), meaning: Meaning::Alone }
    }

    #[inline(always)]
    pub(super) fn with_key(self, key: u64) -> Scope {
        Scope { key, ..self }
    }

    #[inline(always)]
    pub(super) fn at(self, codeptr_ra: Address) -> Scope {
        Scope { codeptr_ra, ..self }
    }

    #[inline(always)]
    pub(super) fn with(self, meaning: Meaning) -> Scope {
        Scope { meaning, ..self }
    }
}

/// An id, or a word if the runtime passed none.
pub(super) fn id(id: Id) -> Value<'static> {
    match id {
        Id::NULL => Value::Text("null"),
        Id::UNSET => Value::Text("unset"),
        Id(number) => Value::Hex(number),
    }
}

pub(super) fn uint(number: impl Into<u64>) -> Value<'static> {
    Value::Uint(number.into())
}

pub(super) fn int(number: impl Into<i64>) -> Value<'static> {
    Value::Int(number.into())
}

pub(super) fn hex(number: impl Into<u64>) -> Value<'static> {
    Value::Hex(number.into())
}
