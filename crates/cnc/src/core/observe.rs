//! What a [`Core`] shows of itself: its outline, its record and its statistics, as plain data. The
//! face (`graph/observe.rs`) hands them to the program, with a picture in place of the outline. A
//! monitor gets the outline from here too.

use super::Core;
use crate::any_items::AnyItems;
use crate::monitor::Monitor;
use crate::outline::Outline;
use crate::picture::{ArrowKind, CollectionId, Picture, PictureArrow, PictureNode};
use crate::primitives::Ordering;
use crate::ready_step::ReadyStep;
use crate::record::{Edge, RecordedTag, Recorder, Recording};
use crate::statistics::{ItemStatistics, Statistics, StepStatistics};
use std::collections::BTreeSet;
use std::iter;

/// The number under which each item collection is shown, and the name of each number: first the
/// collections of the environment, then the collections that steps have made.
fn shown_items<'g>(core: &Core<'g>) -> (Vec<usize>, Vec<&'g str>) {
    let items = core.catalogue.each_items();
    type Several<'g> = Vec<&'g dyn AnyItems<'g, ReadyStep<'g>>>;
    let (of_steps, others): (Several<'g>, Several<'g>) =
        items.iter().copied().partition(|items| items.is_made_by_step());
    let mut names: Vec<&'g str> = others.into_iter().map(|items| items.name()).collect();
    let first = names.len();
    names.extend(of_steps.into_iter().map(|items| items.name()).collect::<BTreeSet<_>>());
    let mut next = 0..first;
    let number = |items: &&'g dyn AnyItems<'g, ReadyStep<'g>>| match items.is_made_by_step() {
        true => first + names[first..].binary_search(&items.name()).unwrap_or(0),
        false => next.next().unwrap_or(first),
    };
    (items.iter().map(number).collect(), names)
}

impl<'g> Core<'g> {
    /// The collections, which tags prescribe which steps, and the declared puts.
    pub(crate) fn outline(&'g self) -> Outline {
        let forks = self.catalogue.forked_if_any().map(|entry| entry.number);
        let entries = self.catalogue.each_step();
        let mut shown: Vec<usize> = (0..entries.len()).collect();
        for entry in &entries {
            if let Some(rest) = entry.code.rest() {
                shown[rest] = entry.number;
            }
        }
        let environment = self.environment().number;
        let node = |collection, name: &str| PictureNode {
            collection,
            name: name.to_owned(),
            is_environment: collection == CollectionId::Step(environment),
            progress: None,
            put: 0,
        };
        let steps = entries.iter().filter(|entry| shown[entry.number] == entry.number);
        let steps = steps.map(|entry| node(CollectionId::Step(entry.number), &entry.name));
        let (shown_items, items) = shown_items(self);
        let tags = self.catalogue.each_tags();
        let items =
            items.into_iter().enumerate().map(|(number, name)| node(CollectionId::Items(number), name));
        let prescribed = tags.iter().enumerate().flat_map(|(number, tags)| {
            iter::successors(tags.first(), |entry| entry.next.get().copied())
                .map(move |entry| (CollectionId::Tags(number), CollectionId::Step(entry.number)))
        });
        let prescribed = prescribed.map(|(from, to)| PictureArrow { from, to, kind: ArrowKind::Prescribes });
        let declared: BTreeSet<(CollectionId, CollectionId)> = entries
            .iter()
            .filter(|entry| shown[entry.number] == entry.number)
            .flat_map(|entry| entry.code.made_collections().into_iter().map(|items| (entry.number, items)))
            .map(|(step, items)| (CollectionId::Step(step), CollectionId::Items(shown_items[items])))
            .collect();
        let of_puts =
            self.catalogue.each_items().into_iter().zip(&shown_items).filter_map(|(items, &shown)| {
                let (from, to) = (CollectionId::Items(shown), CollectionId::Tags(items.put_tags()?));
                Some(PictureArrow { from, to, kind: ArrowKind::Prescribes })
            });
        let of_puts: Vec<PictureArrow> = of_puts.collect();
        let declared =
            declared.into_iter().map(|(from, to)| PictureArrow { from, to, kind: ArrowKind::Declared });
        let arrows = prescribed.chain(of_puts).chain(declared).collect();
        let tags =
            tags.iter().enumerate().map(|(number, tags)| node(CollectionId::Tags(number), tags.name()));
        let nodes = steps.chain(items).chain(tags).collect();
        let picture = Picture { nodes, arrows };
        Outline { picture, shown, shown_items, forked: forks.unwrap_or(usize::MAX) }
    }

    /// Shows the monitor the collections that there are now.
    pub(crate) fn show_to_monitor(&'g self) {
        if let Some(monitor) = self.monitor.get() {
            monitor.show(self.outline());
        }
    }

    /// The uses of collections that were recorded or monitored.
    pub(crate) fn used_edges(&self) -> BTreeSet<Edge> {
        let mut edges = self.recorder().map(Recorder::edges).unwrap_or_default();
        edges.extend(self.monitor_if_any().into_iter().flat_map(Monitor::edges));
        edges
    }

    /// What was recorded so far.
    pub(crate) fn recording(&self) -> Recording {
        let Some(recorder) = self.recorder() else { return Recording::nothing() };
        recorder.recording(|step, tag| {
            let entry = self.catalogue.step(step).expect("the step was run");
            let tag = match tag {
                RecordedTag::Word(word) => entry.tag_of_word(word).unwrap_or_default(),
                RecordedTag::Text(text) => text,
            };
            (entry.name.clone(), entry.twin, tag)
        })
    }

    /// What the steps and items have done so far.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics { steps: self.step_statistics(), items: self.item_statistics() }
    }

    /// Returns a row for each step collection, by their numbers.
    fn step_statistics(&self) -> Vec<StepStatistics> {
        let counts = self.tally.of_steps();
        let entries = self.catalogue.each_step();
        let cancelled = |row: usize| {
            let of_row = entries.iter().filter(|entry| entry.row == row);
            of_row.map(|entry| entry.cancelled.load(Ordering::Relaxed)).sum()
        };
        let rows = entries.iter().filter(|entry| entry.row == entry.number);
        let counted = rows.map(|entry| {
            let (runs, misses) = counts.get(entry.row).copied().unwrap_or_default();
            StepStatistics { name: entry.name.clone(), runs, misses, cancelled: cancelled(entry.row) }
        });
        counted.collect()
    }

    /// Returns a row for each item collection: first the collections of the environment by their
    /// numbers, then the collections of steps by their names.
    fn item_statistics(&self) -> Vec<ItemStatistics> {
        let (mut of_steps, mut all) = (Vec::new(), Vec::new());
        for items in self.catalogue.each_items() {
            let rows = if items.is_made_by_step() { &mut of_steps } else { &mut all };
            rows.push(items.statistics());
        }
        of_steps.sort_by(|a, b| (&a.name, a.put, a.there).cmp(&(&b.name, b.put, b.there)));
        all.append(&mut of_steps);
        all
    }
}
