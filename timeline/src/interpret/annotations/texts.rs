//! What the numbers in events of annotations stand for.
//!
//! A thread may use a number before its own stream defines it, since another thread has. A flight recorder defines numbers again at its
//! end. So all definitions are read before the first event is interpreted, of those traces that have any.

use omptrace_symbols::fast_map::FastMap;
use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::event::{Event, ObjectDefined};
use omptrace_trace_format::field::{ObjectKind, domain};
use omptrace_trace_format::reader::{Reader, Stream};

/// Names of domains, ranges and categories.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: FastMap<u64, String>,
    /// By domain and the program's number.
    categories: FastMap<u64, String>,
}

impl Texts {
    /// Reads them; none where the trace says that there are none.
    pub(crate) fn of(reader: &Reader) -> Texts {
        let mut texts = Texts::default();
        if reader.metadata().annotations {
            let of_streams =
                in_parallel(reader.streams().iter().collect(), |stream: &Stream| defined(reader, stream));
            of_streams.into_iter().flatten().for_each(|object| texts.define(&object));
        }
        texts
    }

    fn define(&mut self, object: &ObjectDefined<'_>) {
        // Without its text, the number itself is the name.
        let Some(_) = &object.name.0 else { return };
        let name = object.name.lossy().into_owned();
        match object.kind {
            ObjectKind::category => self.categories.insert(key(object.parent.0, object.handle.0), name),
            _ => self.texts.insert(object.handle.0, name),
        };
    }

    /// The text of a number; `None` for 0.
    pub(crate) fn text(&self, number: u32) -> Option<std::borrow::Cow<'_, str>> {
        if number == 0 {
            return None;
        }
        Some(match self.texts.get(&number.into()) {
            Some(text) => text.as_str().into(),
            None => format!("text {number}").into(),
        })
    }

    /// The name of a category; its number where the program gave none.
    pub(crate) fn category(&self, domain: u32, category: u32) -> std::borrow::Cow<'_, str> {
        match self.categories.get(&key(domain.into(), category.into())) {
            Some(name) => name.as_str().into(),
            None => category.to_string().into(),
        }
    }
}

fn key(domain: u64, category: u64) -> u64 {
    domain << 32 ^ category
}

fn defined(reader: &Reader, stream: &Stream) -> Vec<ObjectDefined<'static>> {
    let events = reader.events(stream);
    let objects = events.filter_map(|record| match record.event {
        Event::ObjectDefined(object) if object.domain == domain::ANNOTATIONS => Some(*object),
        _ => None,
    });
    objects.collect()
}
