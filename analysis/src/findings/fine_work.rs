//! Rules about regions, tasks and chunks that are so short that to begin, to fetch and to end them costs as much as they work. What that
//! costs lands in whatever cause there is a word for: threads that are late for a barrier, have no task, wait for one, or work. So these
//! rules look at the work and at all that is not, and go before advice about these causes.

use serde_json::{Map, Value};

use super::case::{Candidate, Case, Overrules, at, evidence, without_region_cost};
use super::rule_table::{
    MAX_OVERRULED, MAX_TASK_COST, MIN_CHUNK_NS, MIN_GRAINS, MIN_REGION_NS, MIN_TASK_COST, MIN_TASK_NS,
    TASKS_FOR_EACH, TASKS_TOO_FINE,
};
use crate::answers::mergeable::{MergeableAnswers, PlaceSums, RegionPart};
use crate::model::answers::Finding;
use crate::model::cause::Cause;
use crate::model::numbers::with_commas;
use crate::model::place::Place;
use crate::model::task_levels::TaskLevels;
use crate::model::within::Within;
use crate::what_if::scenario::{Plan, Target};

/// Drops findings about a loss that fine work explains.
pub(super) fn drop_overruled(part: &MergeableAnswers, candidates: &mut Vec<Candidate>) {
    let rulings = candidates.iter_mut();
    let rulings = rulings.filter_map(|of| Some((of.overrules.take()?, of.finding.clone())));
    let rulings: Vec<(Overrules, Finding)> = rulings.collect();
    candidates.retain(|Candidate { finding, .. }| {
        !rulings.iter().any(|(overrules, fine)| {
            // Whoever is late there creates and runs these tasks.
            let is_due_to_tasks = fine.id == TASKS_TOO_FINE && is_one_directive(&finding.place, &fine.place);
            overrules.rules.contains(&&*finding.id)
                && (is_due_to_tasks || finding.gain_ns as f64 <= MAX_OVERRULED * fine.gain_ns as f64)
                && is_within(part, &finding.place, &overrules.place)
        })
    });
}

/// Whether a change concerns a region whose tasks are too small. A replay keeps the time in which threads get tasks,
/// which is most of the time there, and which would become shorter if a thread created tasks faster.
pub(crate) fn depends_on_fetching(part: &MergeableAnswers, findings: &[Finding], plan: &Plan) -> bool {
    let Target::Place(target) = &plan.target else {
        return false;
    };
    let fine = findings.iter().filter(|finding| finding.id == TASKS_TOO_FINE);
    fine.filter_map(|fine| part.places.get(&fine.place)).any(|fine| match &fine.within {
        Within::One(region) => is_within(part, target, region),
        Within::Nowhere | Within::Several => false,
    })
}

/// Whether two constructs are of one directive, as `taskloop` and its tasks are.
fn is_one_directive(one: &Place, other: &Place) -> bool {
    let spot = |place: &Place| (place.file.clone(), place.line, place.function.clone());
    one == other || one.line.is_some() && spot(one) == spot(other)
}

fn is_within(part: &MergeableAnswers, place: &Place, around: &Place) -> bool {
    let sums = part.places.get(place);
    place == around
        || sums.is_some_and(|sums| matches!(&sums.within, Within::One(within) if within == around))
}

/// What an event costs on the machine on which the costs of runtimes were measured.
const USUAL_EVENT_NS: u64 = 10;

/// What only threads of a team lose.
const IN_TEAMS: [Cause; 12] = [
    Cause::Serial,
    Cause::NarrowTeam,
    Cause::Fork,
    Cause::Join,
    Cause::Barrier,
    Cause::Imbalance,
    Cause::TaskStarvation,
    Cause::TaskWait,
    Cause::Lock,
    Cause::Critical,
    Cause::Atomic,
    Cause::Ordered,
];

/// A number of tasks that would do.
#[derive(Clone, Copy, Debug)]
enum Fewer {
    /// Those of a tree, down to this level.
    Levels { deepest: u64, left: u64 },
    /// The work of so many in one.
    Groups { size: u64, left: u64 },
}

impl Fewer {
    fn left(self) -> u64 {
        match self {
            Fewer::Levels { left, .. } | Fewer::Groups { left, .. } => left,
        }
    }
}

/// The tasks of a region that are too short, which may come from several directives: what they cost cannot be told apart.
struct FineTasks<'p> {
    /// Where most of them are created.
    place: &'p Place,
    /// How many other places create some.
    other_places: usize,
    tasks: u64,
    useful: u64,
    levels: TaskLevels,
}

impl FineTasks<'_> {
    fn within<'p>(part: &'p MergeableAnswers, region: &Place) -> Option<FineTasks<'p>> {
        let is_fine = |sums: &PlaceSums| sums.tasks > MIN_GRAINS && sums.useful / sums.tasks < MIN_TASK_NS;
        let places = part.places.iter();
        let places: Vec<_> =
            places.filter(|(place, sums)| is_fine(sums) && is_within(part, place, region)).collect();
        let (place, _) = places.iter().max_by_key(|(_, sums)| sums.tasks)?;
        let mut levels = TaskLevels::default();
        places.iter().for_each(|(_, sums)| levels.merge(&sums.task_levels));
        Some(FineTasks {
            place,
            other_places: places.len() - 1,
            tasks: places.iter().map(|(_, sums)| sums.tasks).sum(),
            useful: places.iter().map(|(_, sums)| sums.useful).sum(),
            levels,
        })
    }
}

impl Case<'_> {
    pub(super) fn fine_work(&self) -> Vec<Candidate> {
        let regions = self.part.regions.iter();
        let of_regions = regions.filter_map(|(place, region)| {
            self.of_small_region(place, region).or_else(|| self.of_fine_tasks(place, region))
        });
        let places = self.part.places.iter();
        let of_chunks = places.filter_map(|(place, sums)| self.of_chunks(place, sums));
        of_regions.chain(of_chunks).collect()
    }

    /// A region whose members work shorter than it takes to begin and to end it.
    fn of_small_region(&self, place: &Place, region: &RegionPart) -> Option<Candidate> {
        let members = u64::from(region.max_team.max(1));
        let mean = (region.accounting[Cause::Useful] / members).checked_div(region.visits)?;
        if region.visits < 2 || mean >= MIN_REGION_NS {
            return None;
        }
        let sum = |causes: &[Cause]| causes.iter().map(|cause| region.accounting[*cause]).sum::<u64>();
        let cost = sum(&[Cause::Fork, Cause::Join, Cause::Barrier]);
        // One thread may do all of it as fast: it waits for no other, and for all else as long as they all do.
        let stays = Cause::ALL.iter().filter(|cause| !IN_TEAMS.contains(cause));
        let alone = region.duration.saturating_sub(stays.map(|cause| region.accounting[*cause]).sum());
        // Regions inside have accounts of their own.
        let alone = alone.min(sum(&IN_TEAMS));
        let gain = self.gain(cost).max(alone);
        if !self.is_worth_it(gain) {
            return None;
        }
        let evidence = evidence(&[("visits", region.visits), ("useful_mean_ns", mean), ("cost_ns", cost)]);
        let text = format!(
            "the work in the region {} takes less time than starting and ending the region: merge the region with other regions, or use an if clause",
            at(place)
        );
        Some(Candidate {
            plan: Some(without_region_cost(place)),
            gain_at_least: alone,
            overrules: Some(Overrules { rules: &["load_imbalance"], place: place.clone() }),
            ..self.fine("region_too_small", (place, Cause::Fork), gain, text, evidence)
        })
    }

    /// Tasks that cost as much as they work.
    fn of_fine_tasks(&self, region_place: &Place, region: &RegionPart) -> Option<Candidate> {
        let all = FineTasks::within(self.part, region_place)?;
        let place = all.place;
        let grain = all.useful / all.tasks;
        // Between two creations, the tracer has recorded one, and the first task's dependences.
        let event_ns = self.part.event_ps().unwrap_or(0) / 1000;
        let events = region.tasks.saturating_add(region.tasks_with_dependences);
        let recording_ns = event_ns.saturating_mul(events) / region.tasks.max(1);
        let creation_ns = region.creation_times.mean_ns().unwrap_or(0).saturating_sub(recording_ns);
        // The creator may work before each, so that no time between two shows the cost alone. An event shows how fast the machine is.
        let is_slower = (event_ns / USUAL_EVENT_NS).max(1);
        let most = region.max_creation_ns.map_or(u64::MAX, |most| most.saturating_mul(is_slower));
        let creation_ns = creation_ns.min(most);
        let creations = creation_ns.saturating_mul(region.tasks).min(region.accounting[Cause::Useful]);
        let cost =
            creations.saturating_add(self.waits_for_tasks(region_place, region, creations + all.useful));
        let each = cost / region.tasks.max(1);
        let gain = self.gain(cost);
        if !self.is_worth_it(gain) || (each as f64) < MIN_TASK_COST * grain as f64 {
            return None;
        }
        let figures = [
            ("tasks", all.tasks),
            ("task_mean_ns", grain),
            ("task_cost_ns", each),
            ("creation_ns", creation_ns),
            ("cost_ns", cost),
        ];
        let mut figures = evidence(&figures);
        let fewer = self.fewer_tasks(&all, (grain, each));
        let advice = match fewer {
            Some(Fewer::Levels { deepest, left }) => {
                figures.insert("deepest_level".to_owned(), deepest.into());
                figures.insert("tasks_left".to_owned(), left.into());
                format!(
                    "create no tasks below nesting level {deepest} (at deeper levels, call code without task directives); the remaining {} tasks are enough for all threads",
                    with_commas(left)
                )
            }
            Some(Fewer::Groups { size, left }) => {
                figures.insert("work_in_one_task".to_owned(), size.into());
                figures.insert("tasks_left".to_owned(), left.into());
                format!(
                    "merge {size} tasks into one (with a grainsize clause, or by processing iterations in blocks)"
                )
            }
            None => "make the tasks larger, or create no tasks for small amounts of work".to_owned(),
        };
        // Those that are left cost as much as before.
        let removed = fewer.map_or(all.tasks, |fewer| all.tasks.saturating_sub(fewer.left()));
        let gain = (gain as f64 * removed as f64 / region.tasks.max(1) as f64) as u64;
        let others = match all.other_places {
            0 => String::new(),
            1 => " and another location".to_owned(),
            others => format!(" and {others} other locations"),
        };
        let text = format!(
            "{} tasks {}{others} do {} ns of work each, and managing each task costs another {} ns: {advice}",
            with_commas(all.tasks),
            at(place),
            with_commas(grain),
            with_commas(each)
        );
        let rules: &[&str] = &["single_creator", "too_few_tasks", "taskwait_chain", "load_imbalance"];
        Some(Candidate {
            overrules: Some(Overrules { rules, place: region_place.clone() }),
            ..self.fine(TASKS_TOO_FINE, (place, Cause::Useful), gain, text, figures)
        })
    }

    /// How fewer tasks would do: those of a tree down to the first level that has enough for all threads, or else several in one, so that
    /// their cost is a small share. `None` where there would be too few.
    fn fewer_tasks(&self, all: &FineTasks<'_>, (grain, cost): (u64, u64)) -> Option<Fewer> {
        let enough = self.threads.saturating_mul(TASKS_FOR_EACH);
        if all.levels.are_nested() {
            let (deepest, left) = all.levels.first_with(enough)?;
            return (left <= all.tasks / 2).then_some(Fewer::Levels { deepest, left });
        }
        let wanted = (cost as f64 / (MAX_TASK_COST * grain.max(1) as f64)).ceil() as u64;
        let size = wanted.next_power_of_two().min(all.tasks / enough.max(1));
        (size >= 2).then(|| Fewer::Groups { size, left: all.tasks.div_ceil(size) })
    }

    /// How long threads of a region wait for tasks, or fetch them. Who waits at a barrier for those that create tasks, and run them at once
    /// where there are too many, waits no longer than they are busy with that; the rest is imbalance of other work. So is that of loops.
    fn waits_for_tasks(&self, region_place: &Place, region: &RegionPart, busy: u64) -> u64 {
        let fetches = [Cause::TaskWait, Cause::TaskStarvation, Cause::Barrier, Cause::Runtime];
        let fetches: u64 = fetches.map(|cause| region.accounting[cause]).iter().sum();
        let rows = self.part.blame.iter().filter(|((cause, place), _)| {
            let sums = self.part.places.get(place);
            let is_loop = sums.is_some_and(|sums| !sums.schedules.is_empty());
            *cause == Cause::Imbalance && !is_loop && is_within(self.part, place, region_place)
        });
        let late: u64 = rows.map(|(_, ns)| ns).sum();
        let others = u64::from(region.max_team).saturating_sub(1);
        fetches.saturating_add(late.min(busy.saturating_mul(others)))
    }

    /// Loops whose chunks cost as much as they work.
    fn of_chunks(&self, place: &Place, sums: &PlaceSums) -> Option<Candidate> {
        let mean = sums.useful.checked_div(sums.chunks)?;
        let event_ns = self.part.event_ps().unwrap_or(0) / 1000;
        let cost = sums.chunks_cost.checked_div(sums.chunks)?.min(mean.saturating_sub(event_ns));
        let gain = self.gain(sums.chunks.saturating_mul(cost));
        if sums.chunks <= MIN_GRAINS || mean >= MIN_CHUNK_NS || !self.is_worth_it(gain) {
            return None;
        }
        // As for tasks: what is left to hand out costs a small share of the work, and there are enough chunks to balance it.
        let work = mean.saturating_sub(cost).max(1);
        let times = (cost as f64 / (MAX_TASK_COST * work as f64)).ceil() as u64;
        let times = times.next_power_of_two().min(sums.chunks / MIN_GRAINS).max(2);
        let figures = [
            ("chunks", sums.chunks),
            ("chunk_mean_ns", mean),
            ("assumed_chunk_cost_ns", cost),
            ("larger_by", times),
        ];
        let text = format!(
            "the chunks of the loop {} take only {mean} ns on average: make them at least {times} times as large in the schedule clause",
            at(place)
        );
        Some(Candidate {
            overrules: Some(Overrules { rules: &["load_imbalance"], place: place.clone() }),
            ..self.fine("chunk_too_small", (place, Cause::Useful), gain, text, evidence(&figures))
        })
    }

    /// A finding whose worst instances are those of a cause at its place.
    fn fine(
        &self,
        id: &str,
        (place, cause): (&Place, Cause),
        gain_ns: u64,
        text: String,
        evidence: Map<String, Value>,
    ) -> Candidate {
        let instances = self.instances(cause, place);
        let (id, place) = (id.to_owned(), place.clone());
        Candidate::of(Finding { id, place, gain_ns, text, evidence, instances }, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: &str = "/src/shade.c";

    fn place(construct: &str, line: u32) -> Place {
        Place::at(construct, Some(LOOP), Some(line), Some("shade"))
    }

    fn found(id: &str, place: Place, gain_ns: u64) -> Candidate {
        let (id, text, instances) = (id.to_owned(), String::new(), Vec::new());
        Candidate::of(Finding { id, place, gain_ns, text, evidence: Map::new(), instances }, None)
    }

    /// The findings that are left beside one about a taskloop of fine tasks that gains 100.
    fn left(other: Candidate) -> Vec<String> {
        let region = place("parallel", 8);
        let mut part = MergeableAnswers::default();
        let within = Within::One(region.clone());
        part.places.insert(other.finding.place.clone(), PlaceSums { within, ..PlaceSums::default() });
        let overrules = Some(Overrules { rules: &["load_imbalance"], place: region });
        let fine = Candidate { overrules, ..found(TASKS_TOO_FINE, place("task", 11), 100) };
        let mut candidates = vec![other, fine];
        drop_overruled(&part, &mut candidates);
        candidates.into_iter().map(|left| left.finding.id).collect()
    }

    #[test]
    fn advice_about_the_same_loss_is_left_out() {
        assert_eq!(left(found("load_imbalance", place("for", 20), 140)), [TASKS_TOO_FINE]);
        assert_eq!(left(found("load_imbalance", place("for", 20), 160)), ["load_imbalance", TASKS_TOO_FINE]);
        assert_eq!(left(found("serial_part", place("for", 20), 50)), ["serial_part", TASKS_TOO_FINE]);
    }

    #[test]
    fn whoever_is_late_at_a_directive_with_fine_tasks_is_so_by_these() {
        assert_eq!(left(found("load_imbalance", place("taskloop", 11), 900)), [TASKS_TOO_FINE]);
        assert_eq!(left(found("load_imbalance", place("task", 11), 900)), [TASKS_TOO_FINE]);
    }
}
