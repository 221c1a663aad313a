//! A random graph as data, and the interpreter of it, which shares no code with the crate.

use std::collections::{BTreeMap, BTreeSet};

/// The next number of a random sequence.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

pub(super) fn mix(a: u64, b: u64) -> u64 {
    (a ^ b.rotate_left(17)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// How the step of a node is prescribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Replay,
    Async,
    /// A replay step that forks another one, which puts for it.
    Fork,
    Depends,
    /// A range of one number.
    Range,
    /// Its tag is put twice.
    Memoised,
}

const KINDS: [Kind; 6] = [Kind::Replay, Kind::Async, Kind::Fork, Kind::Depends, Kind::Range, Kind::Memoised];

/// What a node does after its gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It puts its item, and the tags of its children.
    Puts,
    /// It puts the tags of its children alone.
    Silent,
    /// It returns an error.
    Fails,
    /// It puts its item, and puts it once more, which is a fault.
    Twice,
}

/// How the items are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Dense,
    Paged,
    Hashed,
    Streamed,
}

/// A step with a number for a tag. All that it needs has a smaller number.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The node that puts its tag; the environment does if there is none.
    parent: Option<u32>,
    pub(super) needs: Vec<u32>,
    /// Whether it also needs an item that depends on the values of the others.
    pub(super) needs_more: bool,
    pub(super) end: End,
    /// Its tag is cancelled before the run.
    pub(super) cancelled: bool,
}

#[derive(Debug)]
pub(super) struct Spec {
    pub(super) nodes: Vec<Node>,
    children: BTreeMap<u32, Vec<u32>>,
    pub(super) kept: Kept,
    /// The items are counted, by what the interpreter says.
    wants_counts: bool,
}

/// What became of a graph.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The items, the value of their reduction, and their joins.
    Ended(BTreeMap<u32, u64>, Option<u64>, Pairs),
    /// For each missing item the steps that wait for it.
    Stuck(BTreeMap<u32, Vec<u32>>),
    /// The steps that have failed.
    Failed(Vec<u32>),
}

/// The pairs of two joins of the items: of each even with each odd number of the same class, and of
/// each number of class 0 with each one of class 1.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs {
    pub(super) of_one_class: BTreeSet<(u32, u32)>,
    pub(super) of_two_classes: BTreeSet<(u32, u32)>,
}

/// The class of an item, by its value.
pub(super) fn class(value: u64) -> u32 {
    (value >> 20) as u32 % 8
}

impl Pairs {
    fn of(items: &BTreeMap<u32, u64>) -> Pairs {
        let mut pairs = Pairs::default();
        for (&a, &left) in items {
            for (&b, &right) in items {
                if a % 2 == 0 && b % 2 == 1 && class(left) == class(right) {
                    pairs.of_one_class.insert((a, b));
                }
                if class(left) == 0 && class(right) == 1 {
                    pairs.of_two_classes.insert((a, b));
                }
            }
        }
        pairs
    }
}

/// How often each item of a graph is got, and which node takes it.
#[derive(Debug, Default)]
pub(super) struct Counts {
    gets: BTreeMap<u32, Vec<u32>>,
}

impl Counts {
    /// How often an item is got.
    pub(super) fn of(&self, item: u32) -> u32 {
        self.gets.get(&item).map_or(0, Vec::len) as u32
    }

    /// Whether a node takes an item. No other node with a get of the item comes after that node, so
    /// none waits for it.
    pub(super) fn takes(&self, node: u32, item: u32) -> bool {
        let gets = self.gets.get(&item).map_or(&[][..], |gets| gets);
        gets.iter().max() == Some(&node) && gets.iter().filter(|by| **by == node).count() == 1
    }
}

impl Spec {
    pub(super) fn random(seed: u64) -> Spec {
        let wants_counts = seed.is_multiple_of(3);
        let seed = &mut (seed + 1);
        let (least, more) = if cfg!(miri) { (8, 6) } else { (20, 200) };
        let count = least + random(seed) as u32 % more;
        // Half of the graphs have no node that is silent, and one in four has faults, or
        // cancellations.
        let (silent, fails, cancels) = (random(seed) % 2, random(seed) % 4, random(seed) % 4);
        let twice = random(seed) % 8;
        let mut children = BTreeMap::<u32, Vec<u32>>::new();
        let nodes = (0..count)
            .map(|i| {
                let below = |seed: &mut u64| (random(seed) % u64::from(i.max(1))) as u32;
                let parent = (i > 0 && !random(seed).is_multiple_of(3)).then(|| below(seed));
                children.entry(parent.unwrap_or(u32::MAX)).or_default().push(i);
                let needs = if i == 0 { 0 } else { random(seed) % 4 };
                let kind = KINDS[random(seed) as usize % KINDS.len()];
                let rarely = |seed: &mut u64, wants: u64| random(seed).is_multiple_of(20) && wants == 0;
                let end = match (rarely(seed, silent), rarely(seed, fails), rarely(seed, twice)) {
                    (_, _, true) => End::Twice,
                    (_, true, _) => End::Fails,
                    (true, ..) => End::Silent,
                    _ => End::Puts,
                };
                Node {
                    kind,
                    parent,
                    needs: (0..needs).map(|_| below(seed)).collect(),
                    // What a step declares cannot depend on values.
                    needs_more: needs > 0 && kind != Kind::Depends && random(seed).is_multiple_of(2),
                    end,
                    cancelled: rarely(seed, cancels),
                }
            })
            .collect();
        let kept = [Kept::Dense, Kept::Paged, Kept::Hashed, Kept::Streamed][random(seed) as usize % 4];
        Spec { nodes, children, kept, wants_counts }
    }

    /// The key that node `i` gets after the others, with this value.
    pub(super) fn more(i: u32, value: u64) -> u32 {
        (value % u64::from(i)) as u32
    }

    /// The nodes with tags that a node puts.
    pub(super) fn children(&self, i: u32) -> &[u32] {
        self.children.get(&i).map_or(&[][..], |children| children)
    }

    /// The nodes with tags that the environment puts.
    pub(super) fn roots(&self) -> &[u32] {
        self.children(u32::MAX)
    }

    /// What a graph of this form does, and how often its items are got, if they are counted.
    pub(super) fn interpret(&self) -> (Outcome, Option<Counts>) {
        let (mut items, mut waiting) = (BTreeMap::new(), BTreeMap::<u32, Vec<u32>>::new());
        let (mut ended, mut failed) = (BTreeSet::new(), Vec::new());
        let mut counts = Counts::default();
        for (i, node) in (0..).zip(&self.nodes) {
            if node.cancelled || node.parent.is_some_and(|parent| !ended.contains(&parent)) {
                continue;
            }
            let mut value = u64::from(i);
            let mut got = Vec::new();
            let mut missing = None;
            for need in &node.needs {
                match items.get(need) {
                    Some(item) => value = mix(value, *item),
                    None => {
                        missing = Some(*need);
                        break;
                    }
                }
                got.push(*need);
            }
            if missing.is_none() && node.needs_more {
                let more = Spec::more(i, value);
                match items.get(&more) {
                    Some(item) => value = mix(value, *item),
                    None => missing = Some(more),
                }
                got.push(more);
            }
            if let Some(missing) = missing {
                waiting.entry(missing).or_default().push(i);
                continue;
            }
            got.into_iter().for_each(|item| counts.gets.entry(item).or_default().push(i));
            match node.end {
                End::Fails | End::Twice => {
                    if node.end == End::Twice {
                        items.insert(i, value);
                    }
                    failed.push(i);
                    continue;
                }
                End::Puts => {
                    items.insert(i, value);
                }
                End::Silent => {}
            }
            ended.insert(i);
        }
        if !failed.is_empty() {
            return (Outcome::Failed(failed), None);
        }
        if !waiting.is_empty() {
            return (Outcome::Stuck(waiting), None);
        }
        let whole = reduce(items.values().copied().collect());
        let pairs = Pairs::of(&items);
        (Outcome::Ended(items, whole, pairs), self.wants_counts.then_some(counts))
    }
}

/// The value of a tree in which each node combines up to 16 nodes of the level below.
fn reduce(mut level: Vec<u64>) -> Option<u64> {
    loop {
        level = level
            .chunks(16)
            .map(|part| part[1..].iter().fold(part[0], |value, next| mix(value, *next)))
            .collect();
        if level.len() <= 1 {
            return level.pop();
        }
    }
}
