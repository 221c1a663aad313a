//! Matching: which message a receive takes, and which receive a message goes to. [`Pattern`] is
//! what a receive asks for, [`MatchTable`] holds messages or receives in the order in which they
//! came.
//!
//! Each rank's mailbox (`mailbox.rs`) has two tables under its lock: the messages that no receive
//! has taken, and the receives that no message has come for. One of the two is empty of any pair
//! that matches, always.
//!
//! # The order
//! MPI's rule is that messages do not overtake: a receive takes the first message that matches it,
//! and a message goes to the receive that was posted first of all receives that match it. Each
//! entry of a table has its number in the order of arrival. An entry lies in lists that are in this
//! order, and the first of a list is found by the hash of the list's pattern.
//!
//! - A posted receive lies in one list, that of its own pattern. A message looks at the first
//!   entries of the four lists that could have a receive for it, and takes the earliest.
//! - A message lies in up to four lists, one of each [kind](Pattern::kind): a receive looks at the
//!   first entry of one. The lists of a kind are made when the first receive of that kind asks, so
//!   a program without wildcards pays for one list.
//! - The entry that was added last lies in no list until the next one comes. It is compared with
//!   what is looked for. So a rank with one thread that waits needs no hash.
//!
//! So each step costs the same however many messages or receives are there; an entry leaves all its
//! lists in constant time.

use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// What a receive asks for; without a source, any source. A message's own pattern has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// The communicator, and whether the message belongs to one of its collectives.
    pub context: u64,
    /// The sender's rank in the communicator.
    pub source: Option<u32>,
    /// The tag.
    pub tag: Option<u32>,
}

/// The number of kinds of patterns.
const KINDS: usize = 4;

impl Pattern {
    /// Bit 0 stands for any source, bit 1 for any tag.
    pub(crate) fn kind(&self) -> usize {
        usize::from(self.source.is_none()) | usize::from(self.tag.is_none()) << 1
    }

    /// Whether a message with this exact pattern is one that is asked for.
    pub(crate) fn matches(&self, message: &Pattern) -> bool {
        message.widened(self.kind()) == *self
    }

    /// The pattern of this kind that the exact pattern matches.
    fn widened(&self, kind: usize) -> Pattern {
        Pattern {
            source: self.source.filter(|_| kind & 1 == 0),
            tag: self.tag.filter(|_| kind & 2 == 0),
            ..*self
        }
    }
}

/// Two words, and not a word for each field and each variant.
impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [source, tag] = [self.source, self.tag].map(|part| part.unwrap_or(u32::MAX));
        state.write_u64(self.context);
        state.write_u64(u64::from(source) << 32 | u64::from(tag));
    }
}

/// The place of an entry in its table, until it is removed.
pub(crate) type EntryKey = u32;

const NONE: EntryKey = EntryKey::MAX;

/// Entries in the order of arrival, which are found by their patterns.
#[derive(Debug)]
pub(crate) struct MatchTable<T> {
    slots: Vec<EntrySlot<T>>,
    /// The first free slot; each has the next one in its first link.
    free: EntryKey,
    /// The entry that was added last, if it is there. It lies in no list.
    unlisted: EntryKey,
    lists: HashMap<Pattern, EntryList, FixedState>,
    /// How many lists of each kind there are.
    of_kind: [usize; KINDS],
    /// The kinds of lists in which an exact entry lies, as bits.
    indexed: u8,
    len: usize,
}

#[derive(Debug)]
struct EntrySlot<T> {
    /// `None` while the slot is free.
    entry: Option<(Pattern, T)>,
    order: u64,
    /// The kinds of lists in which the entry lies, or will lie, as bits.
    listed: u8,
    links: [EntryLink; KINDS],
}

#[derive(Debug, Clone, Copy)]
struct EntryLink {
    before: EntryKey,
    after: EntryKey,
}

#[derive(Debug, Clone, Copy)]
struct EntryList {
    first: EntryKey,
    last: EntryKey,
}

const UNLINKED: EntryLink = EntryLink { before: NONE, after: NONE };

impl<T> MatchTable<T> {
    pub(crate) fn new() -> MatchTable<T> {
        MatchTable {
            slots: Vec::new(),
            free: NONE,
            unlisted: NONE,
            lists: HashMap::default(),
            of_kind: [0; KINDS],
            indexed: 1,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a receive with its pattern.
    pub(crate) fn post(&mut self, pattern: Pattern, order: u64, value: T) -> EntryKey {
        self.add(pattern, order, value, 1 << pattern.kind())
    }

    /// Adds a message with its exact pattern. An earlier order than that of the messages which are
    /// there puts it before them.
    pub(crate) fn arrive(&mut self, pattern: Pattern, order: u64, value: T) -> EntryKey {
        self.add(pattern, order, value, self.indexed)
    }

    fn add(&mut self, pattern: Pattern, order: u64, value: T, listed: u8) -> EntryKey {
        let slot = EntrySlot { entry: Some((pattern, value)), order, listed, links: [UNLINKED; KINDS] };
        let key = match self.free {
            NONE => {
                self.slots.push(slot);
                EntryKey::try_from(self.slots.len() - 1).expect("fewer than 2^32 messages wait")
            }
            key => {
                self.free = self.slots[key as usize].links[0].after;
                self.slots[key as usize] = slot;
                key
            }
        };
        self.list_unlisted();
        self.unlisted = key;
        self.len += 1;
        key
    }

    /// Puts the entry that lies in no list, if there is one, into its lists.
    fn list_unlisted(&mut self) {
        if self.unlisted == NONE {
            return;
        }
        let key = self.unlisted;
        let EntrySlot { entry, listed, .. } = &self.slots[key as usize];
        let (pattern, listed) = (entry.as_ref().expect("it is in the table").0, *listed);
        for kind in (0..KINDS).filter(|kind| listed & 1 << kind != 0) {
            self.link(pattern.widened(kind), kind, key);
        }
    }

    /// The first entry that this pattern finds.
    pub(crate) fn first(&self, pattern: &Pattern) -> Option<EntryKey> {
        let kind = pattern.kind();
        let unlisted =
            self.unlisted_if(|entry, listed| listed & 1 << kind != 0 && entry.widened(kind) == *pattern);
        self.earlier(self.first_listed(pattern, kind), unlisted)
    }

    /// The first entry of the list of this pattern, which is of this kind.
    fn first_listed(&self, pattern: &Pattern, kind: usize) -> Option<EntryKey> {
        if self.of_kind[kind] == 0 { None } else { self.lists.get(pattern).map(|list| list.first) }
    }

    /// The entry that lies in no list, if its pattern and the kinds of its lists are right.
    fn unlisted_if(&self, is_right: impl FnOnce(&Pattern, u8) -> bool) -> Option<EntryKey> {
        // Without such an entry the key is out of range.
        let EntrySlot { entry, listed, .. } = self.slots.get(self.unlisted as usize)?;
        is_right(&entry.as_ref()?.0, *listed).then_some(self.unlisted)
    }

    /// Of two entries the entry that came first.
    fn earlier(&self, one: Option<EntryKey>, other: Option<EntryKey>) -> Option<EntryKey> {
        match (one, other) {
            (Some(one), Some(other)) if self.order(other) < self.order(one) => Some(other),
            (one, other) => one.or(other),
        }
    }

    /// The first message that matches. It makes the lists of the pattern's kind if there are none.
    pub(crate) fn first_message(&mut self, pattern: &Pattern) -> Option<EntryKey> {
        let kind = pattern.kind();
        if self.indexed & 1 << kind == 0 {
            self.index(kind);
        }
        self.first(pattern)
    }

    /// Makes the lists of a kind, of the messages that are there.
    #[cold]
    fn index(&mut self, kind: usize) {
        self.indexed |= 1 << kind;
        let mut keys: Vec<EntryKey> = (0..self.slots.len() as EntryKey)
            .filter(|&key| self.slots[key as usize].entry.is_some())
            .collect();
        keys.sort_unstable_by_key(|&key| self.slots[key as usize].order);
        for key in keys {
            let slot = &mut self.slots[key as usize];
            slot.listed |= 1 << kind;
            let pattern = slot.entry.as_ref().expect("it was filtered above").0.widened(kind);
            if key != self.unlisted {
                self.link(pattern, kind, key);
            }
        }
    }

    /// The receive that was posted first of all that match the message with this exact pattern.
    pub(crate) fn first_receive(&self, message: &Pattern) -> Option<EntryKey> {
        let unlisted = self.unlisted_if(|entry, _| message.widened(entry.kind()) == *entry);
        if self.lists.is_empty() {
            return unlisted;
        }
        (0..KINDS).fold(unlisted, |first, kind| {
            self.earlier(self.first_listed(&message.widened(kind), kind), first)
        })
    }

    pub(crate) fn get(&self, key: EntryKey) -> &T {
        &self.slots[key as usize].entry.as_ref().expect("the key is of an entry").1
    }

    /// The entry with this key, if there is one.
    pub(crate) fn find(&self, key: EntryKey) -> Option<&T> {
        self.slots.get(key as usize)?.entry.as_ref().map(|(_, value)| value)
    }

    pub(crate) fn order(&self, key: EntryKey) -> u64 {
        self.slots[key as usize].order
    }

    /// All entries with their keys, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntryKey, &Pattern, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(at, slot)| {
            slot.entry.as_ref().map(|(pattern, value)| (at as EntryKey, pattern, value))
        })
    }

    /// All entries, in no order.
    pub(crate) fn into_values(self) -> impl Iterator<Item = T> {
        self.slots.into_iter().filter_map(|slot| slot.entry).map(|(_, value)| value)
    }

    /// Takes an entry out of all its lists.
    pub(crate) fn remove(&mut self, key: EntryKey) -> T {
        let slot = &mut self.slots[key as usize];
        let listed = slot.listed;
        let (pattern, value) = slot.entry.take().expect("the key is of an entry");
        if key == self.unlisted {
            self.unlisted = NONE;
        } else {
            for kind in (0..KINDS).filter(|kind| listed & 1 << kind != 0) {
                self.unlink(pattern.widened(kind), kind, key);
            }
        }
        self.slots[key as usize].links[0].after = self.free;
        self.free = key;
        self.len -= 1;
        value
    }

    /// Puts an entry into a list, at its place in the order: mostly the end.
    fn link(&mut self, pattern: Pattern, kind: usize, key: EntryKey) {
        let order = self.order(key);
        let Some(&EntryList { first, last }) = self.lists.get(&pattern) else {
            self.lists.insert(pattern, EntryList { first: key, last: key });
            self.of_kind[kind] += 1;
            return;
        };
        // The entry that is to stand after it, and the one before.
        let (before, after) = match self.order(last) < order {
            true => (last, NONE),
            false => {
                // An entry that comes back is early: it is looked for from the front.
                let mut after = first;
                while self.order(after) < order {
                    after = self.slots[after as usize].links[kind].after;
                }
                (self.slots[after as usize].links[kind].before, after)
            }
        };
        self.slots[key as usize].links[kind] = EntryLink { before, after };
        self.join(pattern, kind, before, key);
        self.join(pattern, kind, key, after);
    }

    fn unlink(&mut self, pattern: Pattern, kind: usize, key: EntryKey) {
        let EntryLink { before, after } = self.slots[key as usize].links[kind];
        if (before, after) == (NONE, NONE) {
            self.lists.remove(&pattern);
            self.of_kind[kind] -= 1;
            return;
        }
        self.join(pattern, kind, before, after);
    }

    /// Makes two entries neighbours in a list. [`NONE`] stands for the end of the list on that
    /// side.
    fn join(&mut self, pattern: Pattern, kind: usize, before: EntryKey, after: EntryKey) {
        match before {
            NONE => self.list(&pattern).first = after,
            _ => self.slots[before as usize].links[kind].after = after,
        }
        match after {
            NONE => self.list(&pattern).last = before,
            _ => self.slots[after as usize].links[kind].before = before,
        }
    }

    fn list(&mut self, pattern: &Pattern) -> &mut EntryList {
        self.lists.get_mut(pattern).expect("an entry is in the list")
    }
}
