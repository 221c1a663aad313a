//! What scopes and combinators do, in one program, because linking is what takes long.

#[path = "../../../core/tests/common/group.rs"]
mod group;

mod foreign_owners;
mod random_trees;
mod scopes;
mod select;
mod several_cpus;
mod threads;
