//! vacation, a program of STAMP: a travel agency. Clients reserve cars, rooms and flights for
//! customers, delete customers with their reservations, and change the offer. Each action is one
//! transaction. `child.rs` calls `vacation`, and `figures/src/stamp.rs` gives the mix.
//!
//! The random numbers are those of the Haskell program, so both have the same answers. One client
//! alone must end with the tables of the same agency without transactions, which is at the end of
//! the file.

use super::maps::{Map, Maps};
use super::numbers::{EXACT, Random, mixed};
use super::threads::{timed, together};
use crate::child::fault;
use selvedge_stm::{TVar, TWord, Tried, Tx, Word, atomically, atomically_blocking};
use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

/// The size and the mix of a run, as the options of STAMP have them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TravelMix {
    /// `-n`: the most queries of an action.
    pub(crate) queries: u64,
    /// `-q`: the part of each table that is queried, per cent.
    pub(crate) range: u64,
    /// `-u`: the actions that are reservations, per cent.
    pub(crate) users: u64,
    /// `-r`: the rows of each table.
    pub(crate) rows: u64,
    /// `-t`: the number of actions.
    pub(crate) actions: u64,
}

/// The most that `TravelMix::queries` may be.
const MOST: usize = 4;

/// Cars, rooms and flights.
const KINDS: usize = 3;

/// One row of a table: the numbers of its cars, rooms or seats, and their price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stock {
    used: u16,
    free: u16,
    total: u16,
    price: u16,
}

impl Word for Stock {
    fn into_bits(self) -> u64 {
        let Stock { used, free, total, price } = self;
        u64::from(used) | u64::from(free) << 16 | u64::from(total) << 32 | u64::from(price) << 48
    }

    fn from_bits(bits: u64) -> Stock {
        let part = |shift: u32| (bits >> shift) as u16;
        Stock { used: part(0), free: part(16), total: part(32), price: part(48) }
    }
}

impl Stock {
    fn new(count: u16, price: u16) -> Stock {
        Stock { used: 0, free: count, total: count, price }
    }

    fn reserved(self) -> Stock {
        Stock { used: self.used + 1, free: self.free - 1, ..self }
    }

    fn cancelled(self) -> Stock {
        Stock { used: self.used - 1, free: self.free + 1, ..self }
    }

    fn more(self, price: u16) -> Stock {
        Stock { free: self.free + ADDED, total: self.total + ADDED, price, ..self }
    }

    fn less(self) -> Stock {
        Stock { free: self.free - ADDED, total: self.total - ADDED, ..self }
    }
}

/// The number that a change of the offer adds or removes.
const ADDED: u16 = 100;

/// A reservation of a customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Booking {
    kind: usize,
    id: u64,
    price: u16,
}

/// A row that an action asks for, and for a change of the offer the change.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    kind: usize,
    id: u64,
    is_more: bool,
    price: u16,
}

/// The rows that an action asks for.
#[derive(Clone, Copy, Debug)]
struct Wishes {
    wishes: [Wish; MOST],
    count: usize,
}

impl Wishes {
    fn iter(&self) -> impl Iterator<Item = &Wish> {
        self.wishes[..self.count].iter()
    }
}

/// One action of a client.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Reserves the dearest wish of each kind for a customer.
    Reserve(u64, Wishes),
    /// Deletes a customer.
    Delete(u64),
    /// Changes the offer.
    Change(Wishes),
}

impl Action {
    fn drawn(random: &mut Random, mix: &TravelMix) -> Action {
        let range = (mix.rows * mix.range / 100).max(1);
        let choice = random.below(100);
        if choice < mix.users {
            let wishes = Action::wishes(random, mix, range);
            Action::Reserve(random.below(range), wishes)
        } else if choice.is_multiple_of(2) {
            Action::Delete(random.below(range))
        } else {
            Action::Change(Action::wishes(random, mix, range))
        }
    }

    fn wishes(random: &mut Random, mix: &TravelMix, range: u64) -> Wishes {
        let count = 1 + random.below(mix.queries) as usize;
        let mut wishes = [Wish::default(); MOST];
        for wish in &mut wishes[..count] {
            *wish = Wish {
                kind: random.below(KINDS as u64) as usize,
                id: random.below(range),
                is_more: random.below(2) == 0,
                price: 50 + 10 * random.below(5) as u16,
            };
        }
        Wishes { wishes, count }
    }
}

/// The stock of each row at the begin.
fn first_stock(random: &mut Random) -> Stock {
    Stock::new(100 + 100 * random.below(5) as u16, 50 + 10 * random.below(5) as u16)
}

/// The reservations of a customer, the last one first. The Haskell programs have such a list too:
/// a new reservation copies nothing.
#[derive(Clone, Default)]
struct BookingList(Option<Arc<BookingNode>>);

struct BookingNode {
    booking: Booking,
    others: BookingList,
}

impl BookingList {
    fn with(&self, booking: Booking) -> BookingList {
        BookingList(Some(Arc::new(BookingNode { booking, others: self.clone() })))
    }

    fn iter(&self) -> impl Iterator<Item = Booking> {
        iter::successors(self.0.as_deref(), |node| node.others.0.as_deref()).map(|node| node.booking)
    }
}

/// A long list is dropped without recursion.
impl Drop for BookingList {
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.others.0.take();
        }
    }
}

type Bookings = TVar<BookingList>;

/// The tables of the agency.
struct Agency<M: Maps> {
    stocks: [M::MapOf<TWord<Stock>>; KINDS],
    customers: M::MapOf<Bookings>,
}

impl<M: Maps> Agency<M> {
    fn new(mix: &TravelMix) -> Agency<M> {
        let agency: Agency<M> = Agency { stocks: std::array::from_fn(|_| Map::new()), customers: Map::new() };
        let mut random = Random::new(0);
        for id in 0..mix.rows {
            for table in &agency.stocks {
                let stock = TWord::new(first_stock(&mut random));
                atomically_blocking(|tx| table.insert(tx, id, stock.clone()));
            }
            atomically_blocking(|tx| agency.customers.insert(tx, id, TVar::new(BookingList::default())));
        }
        agency
    }

    fn act(&self, tx: &Tx, action: &Action) -> Tried<()> {
        match action {
            Action::Reserve(customer, wishes) => self.reserve(tx, *customer, wishes),
            Action::Delete(customer) => self.delete(tx, *customer),
            Action::Change(wishes) => wishes.iter().try_for_each(|wish| self.change(tx, wish)),
        }
    }

    fn reserve(&self, tx: &Tx, customer: u64, wishes: &Wishes) -> Tried<()> {
        let mut dearest: [Option<(Booking, &TWord<Stock>, Stock)>; KINDS] = [None; KINDS];
        for wish in wishes.iter() {
            let Some(row) = self.stocks[wish.kind].find(tx, wish.id)? else { continue };
            let stock = row.read(tx)?;
            let best = &mut dearest[wish.kind];
            if stock.free > 0 && best.is_none_or(|(best, ..)| best.price < stock.price) {
                *best = Some((Booking { kind: wish.kind, id: wish.id, price: stock.price }, row, stock));
            }
        }
        if dearest.iter().all(Option::is_none) {
            return Ok(());
        }
        for (_, row, stock) in dearest.iter().flatten() {
            row.write(tx, stock.reserved());
        }
        let mut new = dearest.iter().flatten().map(|(booking, ..)| *booking);
        let mut with_new = |old: &BookingList| new.by_ref().fold(old.clone(), |list, one| list.with(one));
        match self.customers.find(tx, customer)? {
            Some(bookings) => bookings.modify(tx, with_new),
            None => self.customers.insert(tx, customer, TVar::new(with_new(&BookingList::default()))),
        }
    }

    fn delete(&self, tx: &Tx, customer: u64) -> Tried<()> {
        let Some(bookings) = self.customers.find(tx, customer)? else { return Ok(()) };
        for booking in bookings.read(tx)?.iter() {
            let row = self.stocks[booking.kind].find(tx, booking.id)?;
            row.expect("a row that is used is not removed").modify(tx, Stock::cancelled)?;
        }
        self.customers.remove(tx, customer)
    }

    fn change(&self, tx: &Tx, wish: &Wish) -> Tried<()> {
        let table = &self.stocks[wish.kind];
        let Some(row) = table.find(tx, wish.id)? else {
            return match wish.is_more {
                true => table.insert(tx, wish.id, TWord::new(Stock::new(ADDED, wish.price))),
                false => Ok(()),
            };
        };
        let stock = row.read(tx)?;
        if wish.is_more {
            row.write(tx, stock.more(wish.price));
        } else if stock.total == ADDED && stock.free == ADDED {
            table.remove(tx, wish.id)?;
        } else if stock.free >= ADDED {
            row.write(tx, stock.less());
        }
        Ok(())
    }

    /// The tables without transactions.
    fn state(&self) -> Model {
        let mut model = Model::default();
        for (kind, table) in self.stocks.iter().enumerate() {
            let stocks = table.entries().into_iter();
            model.stocks.extend(stocks.map(|(id, row)| ((kind, id), row.read_now())));
        }
        let customers = self.customers.entries().into_iter();
        model
            .customers
            .extend(customers.map(|(id, bookings)| (id, bookings.read_now(|list| list.iter().collect()))));
        model
    }
}

/// The same agency for one client, without transactions.
#[derive(Debug, Default)]
struct Model {
    stocks: BTreeMap<(usize, u64), Stock>,
    customers: BTreeMap<u64, Vec<Booking>>,
}

impl Model {
    fn new(mix: &TravelMix) -> Model {
        let mut model = Model::default();
        let mut random = Random::new(0);
        for id in 0..mix.rows {
            for kind in 0..KINDS {
                model.stocks.insert((kind, id), first_stock(&mut random));
            }
            model.customers.insert(id, Vec::new());
        }
        model
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Reserve(customer, wishes) => {
                for kind in 0..KINDS {
                    let free = |id| self.stocks.get(&(kind, id)).filter(|stock| stock.free > 0);
                    let wishes = wishes.iter().filter(|wish| wish.kind == kind);
                    let offers = wishes.filter_map(|wish| Some((wish.id, free(wish.id)?.price)));
                    // Of several that are equally dear, the first.
                    let dearest = offers.reduce(|best, other| if other.1 > best.1 { other } else { best });
                    if let Some((id, price)) = dearest {
                        self.stocks.entry((kind, id)).and_modify(|stock| *stock = stock.reserved());
                        self.customers.entry(*customer).or_default().push(Booking { kind, id, price });
                    }
                }
            }
            Action::Delete(customer) => {
                for booking in self.customers.remove(customer).unwrap_or_default() {
                    let row = self.stocks.entry((booking.kind, booking.id));
                    row.and_modify(|stock| *stock = stock.cancelled());
                }
            }
            Action::Change(wishes) => {
                for &Wish { kind, id, is_more, price } in wishes.iter() {
                    let new = match self.stocks.get(&(kind, id)) {
                        Some(stock) if is_more => Some(stock.more(price)),
                        None if is_more => Some(Stock::new(ADDED, price)),
                        Some(stock) if stock.free >= ADDED => Some(stock.less()),
                        old => old.copied(),
                    };
                    match new.filter(|stock| stock.total > 0) {
                        Some(stock) => self.stocks.insert((kind, id), stock),
                        None => self.stocks.remove(&(kind, id)),
                    };
                }
            }
        }
    }

    /// The rows of which the numbers do not agree with the customers' bookings.
    fn violations(&self) -> u64 {
        let mut booked: BTreeMap<(usize, u64), u16> = BTreeMap::new();
        for booking in self.customers.values().flatten() {
            *booked.entry((booking.kind, booking.id)).or_default() += 1;
        }
        let is_wrong = |(row, stock): &(&(usize, u64), &Stock)| {
            stock.used + stock.free != stock.total || booked.get(row).copied().unwrap_or(0) != stock.used
        };
        let unknown = booked.keys().filter(|row| !self.stocks.contains_key(row)).count();
        (self.stocks.iter().filter(is_wrong).count() + unknown) as u64
    }

    fn checksum(&self) -> u64 {
        let mut sum = 0;
        for (&(_, id), stock) in &self.stocks {
            sum = mixed(mixed(sum, id), stock.into_bits());
        }
        for (&id, bookings) in &self.customers {
            let of = |booking: &Booking| booking.id * 1000 + u64::from(booking.price) + booking.kind as u64;
            sum = mixed(mixed(sum, id), bookings.iter().map(of).sum());
        }
        sum & EXACT
    }
}

/// The checksum that a run with one client must print.
pub(crate) fn expected(mix: &TravelMix) -> u64 {
    let mut model = Model::new(mix);
    let mut random = Random::new(1);
    (0..mix.actions).for_each(|_| model.act(&Action::drawn(&mut random, mix)));
    model.checksum()
}

/// Clients, each of which does its part of the actions.
pub(in crate::child) fn vacation<M: Maps>(clients: u64, mix: TravelMix) {
    let agency = Arc::new(Agency::<M>::new(&mix));
    let each = mix.actions / clients;
    let shared = agency.clone();
    let done = timed(clients, async move {
        let client = |number| {
            let agency = shared.clone();
            async move {
                let mut random = Random::new(1 + number);
                for _ in 0..each {
                    let action = Action::drawn(&mut random, &mix);
                    atomically(|tx| agency.act(tx, &action)).await;
                }
                each
            }
        };
        together(clients, client).await.iter().sum::<u64>()
    });
    let mut state = agency.state();
    if fault() != 0 {
        // A run that is to be wrong loses a car.
        state.stocks.first_entry().expect("there are cars").get_mut().free ^= 1;
    }
    println!("actions {done}");
    println!("violations {}", state.violations());
    println!("checksum {}", state.checksum());
}
