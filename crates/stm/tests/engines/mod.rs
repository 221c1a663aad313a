//! The engines that the tests run under.

/// A module for each engine, with a test for each function.
///
/// The tests of one engine run one after the other, because two engines have a lock for the whole
/// process: a transaction of one test may conflict with those of another one.
macro_rules! under_each_engine {
    ($($name:ident)*) => {
        under_each_engine! { @ versioned Versioned [$($name)*] }
        under_each_engine! { @ figure3 Figure3 [$($name)*] }
        under_each_engine! { @ norec NOrec [$($name)*] }
        under_each_engine! { @ global_lock GlobalLock [$($name)*] }
    };
    (@ $module:ident $engine:ident [$($name:ident)*]) => {
        mod $module {
            static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

            $(#[test]
            fn $name() {
                let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                super::$name::<selvedge_stm::$engine>();
            })*
        }
    };
}
