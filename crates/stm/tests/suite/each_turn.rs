//! A property test compares all engines, one after the other.

/// Calls a function for each engine, in the turn of the engine.
macro_rules! in_each_turn {
    ($name:ident($($of:expr),*)) => {
        in_each_turn! { @ versioned Versioned $name($($of),*) }
        in_each_turn! { @ figure3 Figure3 $name($($of),*) }
        in_each_turn! { @ norec NOrec $name($($of),*) }
        in_each_turn! { @ global_lock GlobalLock $name($($of),*) }
    };
    (@ $turn:ident $engine:ident $name:ident($($of:expr),*)) => {{
        let _turn = $crate::engines::TURNS.$turn.take();
        $name::<selvedge_stm::$engine>($($of),*);
    }};
}
