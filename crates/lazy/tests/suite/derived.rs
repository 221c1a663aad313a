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

trait Fits<const N: usize> {}
impl<T, const N: usize> Fits<N> for T {}

/// The groups after `where` have no fields.
#[derive(Deep)]
#[deep(crate = selvedge_lazy)]
struct Heddle<F, T>
where
    F: Fn(u8) -> u8,
    (T, u8): Fits<{ 1 + 1 }>,
{
    eye: Lazy<T>,
    #[deep(skip)]
    lift: F,
}

#[derive(Deep)]
#[deep(crate = selvedge_lazy)]
enum Treadle<F>
where
    F: Fn(u8) -> u8,
{
    Pressed(Lazy<u8>, #[deep(skip)] F),
}

#[derive(Deep)]
#[deep(crate = selvedge_lazy)]
#[repr(u8)]
enum Pick {
    Warp(Lazy<u8>) = 1 << 0,
    Weft(Lazy<u8>) = 1 << 1,
}

/// Types of which each part is a fragment.
macro_rules! cloth {
    ($see:vis struct $name:ident { $(#[$meta:meta])* $see_field:vis $field:ident: $type:ty $(,)? }) => {
        #[derive(Deep)]
        #[deep(crate = selvedge_lazy)]
        $see struct $name {
            $(#[$meta])*
            $see_field $field: $type,
        }
    };
    (enum $name:ident { $variant:ident($type:ty) = $number:expr, $rest:ident $(,)? }) => {
        #[derive(Deep)]
        #[deep(crate = selvedge_lazy)]
        #[repr(u8)]
        enum $name {
            $variant($type) = $number,
            $rest,
        }
    };
}
cloth!(
    struct Linen {
        thread: Lazy<u8>,
    }
);
cloth!(
    pub(crate) struct Wool {
        pub(crate) thread: Lazy<u8>,
    }
);
cloth!(
    struct Silk {
        #[deep(skip)]
        thread: fn() -> u8,
    }
);
cloth!(
    enum Yarn {
        Spun(Lazy<u8>) = 1 << 2,
        Raw,
    }
);

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

#[test]
fn groups_in_the_bounds_are_not_taken_for_the_fields() {
    let heddle = Heddle { eye: Lazy::new(|| 1u8), lift: |height| height + 1 };
    let treadle = Treadle::Pressed(Lazy::new(|| 2), |depth| depth + 1);
    futures::executor::block_on(heddle.deep());
    futures::executor::block_on(treadle.deep());
    assert_eq!((heddle.eye.get(), (heddle.lift)(1)), (Some(&1), 2));
    let Treadle::Pressed(depth, press) = &treadle;
    assert_eq!((depth.get(), press(2)), (Some(&2), 3));
}

#[test]
fn each_variant_with_a_shift_for_its_number_is_forced() {
    let (warp, weft) = (Lazy::new(|| 1), Lazy::new(|| 2));
    for pick in [Pick::Warp(warp.clone()), Pick::Weft(weft.clone())] {
        futures::executor::block_on(pick.deep());
    }
    assert!(is_ready(&warp) && is_ready(&weft));
}

#[test]
fn types_that_a_macro_makes_of_fragments_are_forced() {
    let (linen, wool) = (Linen { thread: Lazy::new(|| 1) }, Wool { thread: Lazy::new(|| 2) });
    let (spun, silk) = (Lazy::new(|| 3), Silk { thread: || 4 });
    futures::executor::block_on(async {
        linen.deep().await;
        wool.deep().await;
        Yarn::Spun(spun.clone()).deep().await;
        Yarn::Raw.deep().await;
        silk.deep().await;
    });
    assert!(is_ready(&linen.thread) && is_ready(&wool.thread) && is_ready(&spun));
    assert_eq!((silk.thread)(), 4);
}
