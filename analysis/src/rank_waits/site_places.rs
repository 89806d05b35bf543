//! The places of a process's call sites, by the first call of each.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::CallSite;
use omptrace_timeline::model::{Construct, Item, LocationKind, Ns, Sink, Wants};
use omptrace_trace_format::Reader;

use crate::model::place::Place;

/// Finds the places of call sites.
#[derive(Debug, Default)]
pub(crate) struct SitePlaces {
    /// The numbers of the trace's streams, in order.
    streams: Vec<u32>,
    /// The index of each location's stream.
    by_location: FastMap<u32, u32>,
    /// The places of MPI calls, by region.
    regions: FastMap<u32, Place>,
    /// The sites, by the stream of the first call and when it began.
    wanted: FastMap<(u32, Ns), usize>,
    found: Vec<Option<Place>>,
}

impl SitePlaces {
    pub(crate) fn of(sites: &[CallSite], reader: &Reader) -> SitePlaces {
        SitePlaces {
            streams: reader.streams().iter().map(|stream| stream.number).collect(),
            wanted: sites.iter().enumerate().map(|(number, site)| (site.first, number)).collect(),
            found: vec![None; sites.len()],
            ..SitePlaces::default()
        }
    }

    /// The place of each site; `None` if its first call is not on the timeline.
    pub(crate) fn places(self) -> Vec<Option<Place>> {
        self.found
    }
}

impl Sink for SitePlaces {
    fn wants(&self) -> Wants {
        Wants::NONE
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Enter(enter) => {
                let Some(place) = self.regions.get(&enter.region.0) else { return };
                let stream = self.by_location.get(&enter.at.location.0);
                let site = stream.and_then(|stream| self.wanted.get(&(*stream, enter.at.time)));
                if let Some(found) = site.and_then(|site| self.found.get_mut(*site)) {
                    *found = Some(place.clone());
                }
            }
            Item::Region(region) if matches!(region.construct, Construct::MpiCall(_)) => {
                self.regions.insert(region.id.0, Place::of(region));
            }
            Item::Location(location) => {
                if let LocationKind::Thread { stream, .. } = location.kind
                    && let Ok(index) = self.streams.binary_search(&stream)
                {
                    self.by_location.insert(location.id.0, index as u32);
                }
            }
            _ => {}
        }
    }
}
