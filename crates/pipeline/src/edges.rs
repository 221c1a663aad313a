//! How stages meet: two as one stage (`chain`), a pipeline and its holder (`held`, `iterate`),
//! stages behind a pointer (`boxed`), and stages that work side by side on parts of a stream
//! (`parts`).

pub(crate) mod boxed;
pub(crate) mod chain;
pub(crate) mod held;
pub(crate) mod iterate;
pub(crate) mod parts;
