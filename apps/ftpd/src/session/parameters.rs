//! How transfers are made, and what the server tells about itself: TYPE, MODE, STRU, REST, ALLO,
//! PORT, PASV, EPRT, EPSV, OPTS; FEAT, SYST, HELP, NOOP, SITE, ABOR, and STAT without a path.

use super::{Login, Session};
use crate::address::{self, AddressError};
use crate::command::{self, VERBS, Verb};
use crate::data::DataPort;
use crate::listing::Facts;
use crate::reply::Reply;
use std::net::{IpAddr, SocketAddr};

/// A port below this one is a service's, which an FTP server has no business with (RFC 2577 §3).
const PRIVILEGED: u16 = 1024;

impl Session {
    /// The commands that are answered without waiting.
    pub(super) fn set(&mut self, verb: Verb, argument: &[u8]) -> Reply {
        let text = String::from_utf8_lossy(argument);
        match verb {
            Verb::Type => self.set_type(&text),
            Verb::Mode => one_of(&text, "S", &["B", "C"]),
            Verb::Stru => one_of(&text, "F", &["R", "P"]),
            Verb::Rest => self.set_restart(&text),
            Verb::Allo => match text.split(' ').next().is_some_and(|bytes| bytes.parse::<u64>().is_ok()) {
                true => Reply::new(202, "Nothing has to be reserved."),
                false => Reply::new(501, "A number of bytes is wanted."),
            },
            Verb::Port => match address::parse_port(argument) {
                Some(address) => self.set_active(address),
                None => Reply::new(501, "Six numbers are wanted: h1,h2,h3,h4,p1,p2."),
            },
            Verb::Eprt => match address::parse_eprt(argument) {
                Ok(address) => self.set_active(address),
                Err(AddressError::Protocol) => self.wrong_protocol(),
                Err(AddressError::Syntax) => Reply::new(501, "An address is wanted: |1|192.0.2.1|5282|."),
            },
            Verb::Pasv => self.set_passive(),
            Verb::Epsv => self.set_extended_passive(&text),
            Verb::Opts => self.set_option(&text),
            Verb::Feat => features(&self.parameters.facts, self.server.identity().is_some()),
            Verb::Syst => Reply::new(215, "UNIX Type: L8"),
            Verb::Help => help(argument),
            Verb::Stat => self.status(),
            Verb::Site if text.eq_ignore_ascii_case("HELP") => Reply::new(200, "SITE has HELP only."),
            Verb::Site => Reply::new(500, "There is no such command of SITE."),
            // No transfer runs: `transfers.rs` reads the commands that come during one.
            Verb::Abor => {
                self.parameters.data = DataPort::None;
                Reply::new(226, "No transfer runs.")
            }
            _ => Reply::new(200, "Fine."),
        }
    }

    fn set_type(&mut self, text: &str) -> Reply {
        let text = text.to_ascii_uppercase();
        self.parameters.is_binary = match text.as_str() {
            "A" | "A N" => false,
            "I" | "L 8" => true,
            _ if matches!(text.split(' ').next(), Some("A" | "E" | "L")) => {
                return Reply::new(504, "There are TYPE A N, TYPE I and TYPE L 8.");
            }
            _ => return Reply::new(501, "There is no such type."),
        };
        Reply::new(200, if self.parameters.is_binary { "The type is I." } else { "The type is A." })
    }

    fn set_restart(&mut self, text: &str) -> Reply {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse().ok().filter(|_| is_digits) {
            Some(bytes) => {
                self.parameters.restart = bytes;
                Reply::new(350, format!("The next transfer begins at byte {bytes}."))
            }
            None => Reply::new(501, "A number of bytes is wanted."),
        }
    }

    /// PORT and EPRT: the server will connect to the client, and to no other machine.
    fn set_active(&mut self, address: SocketAddr) -> Reply {
        if self.parameters.is_epsv_only {
            return only_epsv();
        }
        self.parameters.data = DataPort::None;
        if !self.server.options.has_active {
            return Reply::new(502, "This server makes no connections. Use EPSV or PASV.");
        }
        let ip = address.ip().to_canonical();
        if ip != self.client {
            return Reply::new(504, "The address is not yours.");
        }
        if address.port() < PRIVILEGED {
            return Reply::new(504, "The port is one below 1024.");
        }
        self.parameters.data = DataPort::Active(SocketAddr::new(ip, address.port()));
        Reply::new(200, "The server will connect to that address.")
    }

    fn set_passive(&mut self) -> Reply {
        if self.parameters.is_epsv_only {
            return only_epsv();
        }
        // What PASV tells is an IPv4 address.
        let IpAddr::V4(local) = self.local else {
            return Reply::new(425, "Over IPv6 there is EPSV.");
        };
        let told = self.server.options.passive_address.unwrap_or(local);
        match self.listen() {
            Ok(port) => Reply::new(227, address::passive(told, port)),
            Err(reply) => reply,
        }
    }

    fn set_extended_passive(&mut self, text: &str) -> Reply {
        if text.eq_ignore_ascii_case("ALL") {
            self.parameters.is_epsv_only = true;
            return Reply::new(200, "From now on only EPSV makes data connections.");
        }
        let protocol = address::protocol(self.local).to_string();
        if !text.is_empty() && text != protocol {
            return match text.parse::<u16>() {
                Ok(_) => self.wrong_protocol(),
                Err(_) => Reply::new(501, "A number of a protocol is wanted."),
            };
        }
        match self.listen() {
            Ok(port) => Reply::new(229, address::extended_passive(port)),
            Err(reply) => reply,
        }
    }

    /// Listens for the client at a port, which it returns.
    ///
    /// # Errors
    /// A reply: no port is free.
    fn listen(&mut self) -> Result<u16, Reply> {
        // The port of an earlier command is free then.
        self.parameters.data = DataPort::None;
        let listener = self.server.ports.listen(self.local);
        let listener = listener.map_err(|_| Reply::new(425, "No port is free for a data connection."))?;
        let port = listener.local_addr().port();
        self.parameters.data = DataPort::Passive(listener);
        Ok(port)
    }

    fn wrong_protocol(&self) -> Reply {
        let protocol = address::protocol(self.local);
        Reply::new(522, format!("Network protocol not supported, use ({protocol})"))
    }

    fn set_option(&mut self, text: &str) -> Reply {
        let (name, value) = text.split_once(' ').unwrap_or((text, ""));
        if name.eq_ignore_ascii_case("UTF8") {
            return match value.to_ascii_uppercase().as_str() {
                "" | "ON" => Reply::new(200, "Names are always UTF-8."),
                _ => Reply::new(501, "Names are always UTF-8."),
            };
        }
        if !name.eq_ignore_ascii_case("MLST") {
            return Reply::new(501, "There is no such option.");
        }
        self.parameters.facts = Facts::chosen(value);
        let names = self.parameters.facts.names(false);
        Reply::new(200, format!("MLST OPTS {names}").trim_end())
    }

    /// STAT without a path, and no transfer runs.
    fn status(&self) -> Reply {
        let user = match &self.login {
            Login::Done(account, _) => account.name.as_str(),
            _ => "none",
        };
        let security = match (self.control.is_secure(), self.protection.is_private) {
            (false, _) => "no",
            (true, false) => "for commands",
            (true, true) => "for commands and data",
        };
        let data = match &self.parameters.data {
            DataPort::None => "none".to_owned(),
            DataPort::Passive(listener) => format!("at port {} of the server", listener.local_addr().port()),
            DataPort::Active(address) => format!("to {address}"),
        };
        let lines = [
            format!("client: {}", self.client),
            format!("user: {user}"),
            format!("TLS: {security}"),
            format!("TYPE {}, MODE S, STRU F", if self.parameters.is_binary { "I" } else { "A N" }),
            format!("next data connection: {data}"),
        ];
        Reply::of_lines(211, "Selvedge FTP server", lines.map(String::into_bytes).into(), "End")
    }
}

fn only_epsv() -> Reply {
    Reply::new(503, "After EPSV ALL there is EPSV only.")
}

/// MODE and STRU: one value is there, and others of the RFC are not.
fn one_of(text: &str, value: &str, others: &[&str]) -> Reply {
    if text.eq_ignore_ascii_case(value) {
        return Reply::new(200, "Fine.");
    }
    match others.iter().any(|other| text.eq_ignore_ascii_case(other)) {
        true => Reply::new(504, format!("There is {value} only.")),
        false => Reply::new(501, "There is no such value."),
    }
}

/// FEAT (RFC 2389): what goes beyond RFC 959.
fn features(facts: &Facts, has_tls: bool) -> Reply {
    let mlst = format!("MLST {}", facts.names(true));
    let security: &[&str] = if has_tls { &["AUTH TLS", "PBSZ", "PROT"] } else { &[] };
    let others = ["EPRT", "EPSV", "MDTM", &mlst, "REST STREAM", "SIZE", "TVFS", "UTF8"];
    let features = security.iter().chain(&others).map(|feature| feature.as_bytes().to_vec());
    Reply::of_lines(211, "Features", features.collect(), "End")
}

fn help(argument: &[u8]) -> Reply {
    match command::row(argument) {
        Some(row) => Reply::new(214, format!("Write {}", command::usage(row))),
        None if argument.is_empty() => {
            let names: Vec<&str> = VERBS.iter().map(|row| row.name).collect();
            let lines = names.chunks(8).map(|names| names.join(" ").into_bytes()).collect();
            Reply::of_lines(214, "Commands", lines, "End")
        }
        None => Reply::new(502, "There is no such command."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_there_and_values_that_are_not() {
        for (text, code) in [("S", 200), ("s", 200), ("B", 504), ("c", 504), ("X", 501), ("S S", 501)] {
            assert_eq!(one_of(text, "S", &["B", "C"]).code(), code, "{text}");
        }
    }

    #[test]
    fn help_names_each_command() {
        let text = String::from_utf8(help(b"").to_bytes()).unwrap();
        for row in &VERBS {
            assert!(text.contains(row.name), "{}", row.name);
            assert_eq!(help(row.name.to_lowercase().as_bytes()).code(), 214);
        }
        assert_eq!(help(b"TYPE").to_bytes(), b"214 Write TYPE A [N], I or L 8\r\n");
        assert_eq!(help(b"NOPE").code(), 502);
    }
}
