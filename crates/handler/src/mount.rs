//! [`Mount`]: where a handler stands below another one.

/// The beginning of the path that a handler does not see, because a router has taken it away: an
/// extension of a request. It begins with `/` and does not end with one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount(pub String);
