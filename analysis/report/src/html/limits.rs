//! How much of each list a page shows. Where a page would be too large, all limits shrink together.

/// The most of each list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Rows of a table.
    pub(crate) rows: usize,
    /// Regions with charts.
    pub(crate) charts: usize,
    /// Bars of threads in the chart of a region.
    pub(crate) threads: usize,
    /// Lines of sources.
    pub(crate) lines: usize,
    /// Frames of the flame graph.
    pub(crate) frames: usize,
    /// Bytes of the picture of threads over time, as text.
    pub(crate) picture: usize,
}

impl Limits {
    const MOST: Limits =
        Limits { rows: 200, charts: 40, threads: 64, lines: 600, frames: 600, picture: 480 << 10 };

    /// The limits to try, one after the other.
    pub(crate) fn all() -> impl Iterator<Item = Limits> {
        (0..8).map(|halvings| {
            let half = |most: usize| most >> halvings;
            let most = Limits::MOST;
            Limits {
                rows: half(most.rows),
                charts: half(most.charts),
                threads: half(most.threads),
                lines: half(most.lines),
                frames: half(most.frames),
                picture: half(most.picture),
            }
        })
    }
}
