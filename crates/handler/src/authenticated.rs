//! [`Authenticated`]: the name that a client has proved.

/// The client's name as it was proved: an extension of a request, by what has checked it.
///
/// `selvedge-http` adds it on a route with passwords. CGI and FastCGI programs get it as
/// `AUTH_TYPE` and `REMOTE_USER`, and get no `Authorization` field then, because the secret in it
/// is the server's.
///
/// # Examples
/// ```
/// use selvedge_handler::{Authenticated, Request};
///
/// async fn greet(request: Request) -> String {
///     match request.extensions().get::<Authenticated>() {
///         Some(Authenticated { user, .. }) => format!("Hello {user}\n"),
///         None => "Hello\n".into(),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// The scheme, such as `Basic`.
    pub scheme: String,
    /// The user's name.
    pub user: String,
}
