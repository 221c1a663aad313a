//! `#[derive(Deep)]` on items of each shape.

use selvedge_lazy::{Deep, Lazy};
use std::fmt::Debug;

/// A list that ends with a value of its own.
#[derive(Deep)]
#[deep(crate = selvedge_lazy)]
pub(crate) enum Thread<T> {
    #[expect(dead_code, reason = "the derive reads the variant")]
    Cut,
    Knot(T),
    Twist(Lazy<T>, Lazy<Thread<T>>),
    Dyed {
        colour: Lazy<T>,
        #[deep(skip)]
        dye: fn() -> T,
    },
}

#[derive(Deep)]
#[deep(crate = selvedge_lazy)]
struct Shed<'a, T: Debug = u8, F: Fn() -> u8 = fn() -> u8, const N: usize = 2>(
    pub(crate) [Lazy<T>; N],
    &'a str,
    #[deep(skip)] F,
    (Lazy<u8>, Box<Lazy<u8>>),
)
where
    T: Clone;

#[derive(Deep)]
#[deep(crate = selvedge_lazy)]
struct Nothing;

#[derive(Deep)]
#[deep(crate = selvedge_lazy)]
enum Never {}

fn is_ready<T>(value: &Lazy<T>) -> bool {
    value.is_ready()
}

#[test]
fn each_field_of_each_variant_is_forced_but_for_those_that_are_skipped() {
    let colour = Lazy::new(|| 7u8);
    let end = colour.clone();
    let last = Thread::Dyed { colour: end, dye: || 7 };
    let twist =
        |value: u8, next: Thread<u8>| Thread::Twist(Lazy::new(move || value), Lazy::new(move || next));
    let thread = twist(1, twist(2, last));
    futures::executor::block_on(thread.deep());
    assert_eq!(colour.get(), Some(&7));
    let Thread::Twist(first, rest) = &thread else { panic!("it is a twist") };
    let Some(Thread::Twist(second, rest)) = rest.get() else { panic!("the rest has been forced") };
    assert_eq!((first.get(), second.get()), (Some(&1), Some(&2)));
    let Some(Thread::Dyed { colour, dye }) = rest.get() else { panic!("the end has been forced") };
    assert_eq!(colour.get(), Some(&dye()));
    futures::executor::block_on(Thread::Knot(5u8).deep());
}

#[test]
fn a_tuple_struct_with_generics_is_forced() {
    let one = || Lazy::new(|| 1u8);
    let shed = Shed([one(), one()], "warp", (|| 1) as fn() -> u8, (one(), Box::new(one())));
    futures::executor::block_on(shed.deep());
    futures::executor::block_on(Nothing.deep());
    let (single, boxed) = &shed.3;
    assert!(shed.0.iter().all(is_ready) && is_ready(single) && is_ready(boxed));
    assert_eq!(((shed.2)(), shed.1), (1, "warp"));
    assert!(None::<Never>.is_none_or(|never| match never {}));
}
