//! [`Info`]: hints by name, which a call may take and may ignore.

use std::collections::BTreeMap;
use std::fmt;

/// Hints: values by name. A call that takes them says which names it knows, and ignores the others.
/// So a program may give hints for other machines.
///
/// # Examples
/// ```
/// use selvedge::mpi::Info;
///
/// let hints = Info::new().with("cb_nodes", 2).with("striping_unit", 1 << 20);
/// assert_eq!(hints.get("cb_nodes"), Some("2"));
/// assert_eq!(hints.iter().count(), 2);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[doc(alias = "MPI_Info")]
pub struct Info(BTreeMap<String, String>);

impl Info {
    /// No hints.
    #[doc(alias = "infoNull")]
    #[doc(alias = "infoCreate")]
    #[doc(alias = "MPI_INFO_NULL")]
    #[doc(alias = "MPI_Info_create")]
    pub fn new() -> Info {
        Info::default()
    }

    /// These hints and one more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl ToString) -> Info {
        self.set(name, value);
        self
    }

    /// Sets a hint, in place of one with the same name.
    #[doc(alias = "infoSet")]
    #[doc(alias = "MPI_Info_set")]
    pub fn set(&mut self, name: impl Into<String>, value: impl ToString) {
        self.0.insert(name.into(), value.to_string());
    }

    /// The value of a hint.
    #[doc(alias = "infoGet")]
    #[doc(alias = "MPI_Info_get")]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Takes a hint away, and gives its value.
    #[doc(alias = "infoDelete")]
    #[doc(alias = "MPI_Info_delete")]
    pub fn delete(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// The names and values, in the order of the names.
    #[doc(alias = "MPI_Info_get_nkeys")]
    #[doc(alias = "MPI_Info_get_nthkey")]
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
