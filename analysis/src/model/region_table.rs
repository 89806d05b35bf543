//! The regions of a timeline: their kinds, places and names.

use omptrace_timeline::model::{Construct, Region, split_place};

use crate::model::answers::FunctionName;
use crate::model::place::Place;
use crate::model::place_id::PlaceId;
use crate::passes::segments::{RegionKey, region_numbers};
use crate::states::region_kind::Kind;

/// The regions, as the answers need them.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) constructs: Vec<Construct>,
    pub(crate) places: Vec<Place>,
    /// The location of each region as text: `jacobi.c:41`, `main+0x13c`.
    pub(crate) spots: Vec<String>,
    /// The sampled functions.
    pub(crate) functions: Vec<FunctionName>,
    keys: Vec<RegionKey>,
}

impl Regions {
    pub(crate) fn add(&mut self, region: &Region) {
        self.kinds.push(Kind::of(region.construct));
        self.constructs.push(region.construct);
        let place = Place::of(region);
        self.keys.push((region.name.clone(), region.category, place.code.clone()));
        self.places.push(place);
        self.spots.push(split_place(&region.name).1.to_owned());
    }

    /// Adds the regions of a later segment. Returns the numbers that they get here; `None` if a region's kind differs.
    pub(crate) fn append(&mut self, more: Regions) -> Option<Vec<PlaceId>> {
        let numbers = region_numbers(self.keys.iter().cloned(), more.keys.iter().cloned());
        let places = more.places.into_iter().zip(more.spots);
        let kinds = more.kinds.into_iter().zip(more.constructs);
        let regions = more.keys.into_iter().zip(places).zip(kinds);
        for (number, ((key, (place, spot)), (kind, construct))) in numbers.iter().zip(regions) {
            match self.kinds.get(*number) {
                // A region keeps the construct with which it was defined first.
                Some(own) if *own != kind => return None,
                Some(_) => {}
                None => {
                    self.kinds.push(kind);
                    self.constructs.push(construct);
                    self.places.push(place);
                    self.spots.push(spot);
                    self.keys.push(key);
                }
            }
        }
        Some(numbers.iter().map(|number| *number as PlaceId).collect())
    }
}
