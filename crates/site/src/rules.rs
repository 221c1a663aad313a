//! What holds for a route besides its action: [`Access`] by address, [`BasicAuth`], [`Cors`],
//! header rules, own error pages. Each is a decision without I/O.

use crate::network::Network;
use crate::password::Users;
use crate::pattern::Glob;
use crate::rate::Rate;
use std::net::IpAddr;
use std::path::PathBuf;

/// The rules of a route.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Which addresses may ask.
    pub access: Access,
    /// Names and passwords, if the client must give one.
    pub auth: Option<BasicAuth>,
    /// How often one address may ask.
    pub rate: Option<Rate>,
    /// Fields that each reply gets or loses.
    pub headers: Vec<HeaderRule>,
    /// `Cache-Control` by path: the first that matches.
    pub cache_control: Vec<(Glob, String)>,
    /// Which other sites' scripts may read the replies.
    pub cors: Option<Cors>,
    /// The directory with own pages for errors, `404.html` and so on.
    pub error_pages: Option<PathBuf>,
}

/// Which addresses may ask. Without a rule every address may.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// If there are any, only these may.
    pub allow: Vec<Network>,
    /// These may not, except those in `allow`.
    pub deny: Vec<Network>,
}

impl Access {
    /// Whether `address` may ask. A client without an address, at a Unix socket, may if there is no
    /// rule.
    pub fn permits(&self, address: Option<IpAddr>) -> bool {
        if self.allow.is_empty() && self.deny.is_empty() {
            return true;
        }
        let Some(address) = address else { return false };
        let lies_in = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        lies_in(&self.allow) || self.allow.is_empty() && !lies_in(&self.deny)
    }
}

/// Names and passwords that a client must give (RFC 7617).
#[derive(Clone, Debug)]
pub struct BasicAuth {
    /// The words that a browser shows.
    pub realm: String,
    /// The names and the hashed passwords.
    pub users: Users,
}

/// A field that each reply of the route gets; without a value, one that it loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRule {
    /// The field's name.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

/// Which other sites' scripts may read the replies (the Fetch standard, "CORS protocol").
#[derive(Clone, Debug, PartialEq)]
pub struct Cors {
    /// The origins, or `*` for all.
    pub origins: Vec<String>,
    /// The methods besides GET, HEAD and POST.
    pub methods: Vec<String>,
    /// The request's fields.
    pub headers: Vec<String>,
    /// Whether the scripts may send cookies. It has no effect with the origin `*`.
    pub credentials: bool,
    /// For how many seconds a browser need not ask again.
    pub max_age: u64,
}

impl Cors {
    /// The fields for a reply to a request from `origin`: names and values. A preflight is an
    /// `OPTIONS` request that asks for a method.
    pub fn fields(&self, origin: Option<&[u8]>, is_preflight: bool) -> Vec<(&'static str, String)> {
        let every = self.origins.iter().any(|allowed| allowed == "*");
        let mut fields = Vec::new();
        if !every {
            fields.push(("Vary", "Origin".to_owned()));
        }
        let Some(origin) = origin.and_then(|origin| std::str::from_utf8(origin).ok()) else { return fields };
        if !every && !self.origins.iter().any(|allowed| allowed == origin) {
            return fields;
        }
        let named = if every { "*" } else { origin };
        fields.push(("Access-Control-Allow-Origin", named.to_owned()));
        // With cookies for every origin, each site could read what the server tells its users.
        if self.credentials && !every {
            fields.push(("Access-Control-Allow-Credentials", "true".to_owned()));
        }
        if is_preflight {
            fields.push(("Access-Control-Allow-Methods", self.methods.join(", ")));
            if !self.headers.is_empty() {
                fields.push(("Access-Control-Allow-Headers", self.headers.join(", ")));
            }
            fields.push(("Access-Control-Max-Age", self.max_age.to_string()));
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access() {
        let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let address = |text: &str| Some(text.parse().unwrap());
        let open = Access::default();
        assert!(open.permits(None) && open.permits(address("192.0.2.1")));
        let inside = Access { allow: networks(&["10.0.0.0/8"]), deny: Vec::new() };
        assert!(inside.permits(address("10.1.1.1")) && !inside.permits(address("192.0.2.1")));
        assert!(!inside.permits(None));
        let outside = Access { allow: Vec::new(), deny: networks(&["192.0.2.0/24"]) };
        assert!(outside.permits(address("10.1.1.1")) && !outside.permits(address("192.0.2.1")));
        let both = Access { allow: networks(&["192.0.2.7"]), deny: networks(&["all"]) };
        assert!(both.permits(address("192.0.2.7")) && !both.permits(address("10.1.1.1")));
    }

    #[test]
    fn cors() {
        let cors = Cors {
            origins: vec!["https://a.example".into()],
            methods: vec!["PUT".into()],
            headers: vec![],
            credentials: false,
            max_age: 60,
        };
        let other = cors.fields(Some(b"https://b.example"), false);
        assert_eq!(other, [("Vary", "Origin".to_owned())]);
        let own = cors.fields(Some(b"https://a.example"), true);
        assert!(own.contains(&("Access-Control-Allow-Origin", "https://a.example".into())));
        assert!(own.contains(&("Access-Control-Allow-Methods", "PUT".into())));
        // Also with credentials no origin is named that was not chosen.
        let every = Cors { origins: vec!["*".into()], credentials: true, ..cors };
        assert_eq!(every.fields(Some(b"x"), false), [("Access-Control-Allow-Origin", "*".into())]);
    }
}
