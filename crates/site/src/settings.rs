//! The configuration in TOML, as types that serde fills. Every key has its documentation and its
//! default here and nowhere else: `reference.rs` makes the page for operators of them.
//!
//! [`read`](crate::read) parses a file into [`Settings`] and makes a
//! [`RouteTable`](crate::RouteTable) of the routes. `mighty.rs` makes the same two of Mighttpd's
//! files.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Spanned;

/// A key of the configuration, for the page that documents it.
#[derive(Clone, Copy, Debug)]
pub struct SettingKey {
    /// The key.
    pub name: &'static str,
    /// Its type in TOML.
    pub kind: &'static str,
    /// Its default as it would stand in the file; empty if it has none.
    pub default: &'static str,
    /// What it says.
    pub docs: &'static [&'static str],
}

/// A table of the configuration, for the page that documents it.
#[derive(Clone, Copy, Debug)]
pub struct SettingSection {
    /// Its head as it stands in the file; empty for the top.
    pub head: &'static str,
    /// What it is.
    pub docs: &'static [&'static str],
    /// Its keys.
    pub keys: &'static [SettingKey],
}

/// Declares a table of the configuration: the type, its defaults and its documentation.
macro_rules! settings {
    (
        $(#[doc = $docs:literal])*
        $name:ident $head:literal {
            $( $(#[doc = $key_docs:literal])* $key:ident: $type:ty = $default:expr, $kind:literal $shown:literal; )*
        }
    ) => {
        $(#[doc = $docs])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $( $(#[doc = $key_docs])* pub $key: $type, )*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $( $key: $default, )* }
            }
        }

        impl $name {
            /// Its documentation.
            pub const SECTION: SettingSection = SettingSection {
                head: $head,
                docs: &[$($docs),*],
                keys: &[$(
                    SettingKey { name: stringify!($key), kind: $kind, default: $shown, docs: &[$($key_docs),*] },
                )*],
            };
        }
    };
}

/// One text or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them.
    pub fn as_slice(&self) -> &[String] {
        match self {
            OneOrMany::One(text) => std::slice::from_ref(text),
            OneOrMany::Many(texts) => texts,
        }
    }
}

settings! {
    /// What concerns the server as a whole.
    Settings "" {
        /// The addresses to listen on, as for `--listen`: `192.0.2.1:80`, `[2001:db8::1]:80`,
        /// `localhost:8080`, `80`, `unix:/run/s.sock`.
        listen: Spanned<Vec<Spanned<String>>> = spanned(Vec::new()), "list of strings" "[\"127.0.0.1:8080\"]";
        /// The permissions of Unix sockets in octal. By default the umask decides.
        unix_mode: Option<Spanned<String>> = None, "string" "";
        /// OS threads that serve in each process. By default one for each processor.
        workers: Option<Spanned<i64>> = None, "integer" "";
        /// Processes that serve. 1 is no further process; with more, a parent starts this number
        /// of processes at the same addresses and starts a new one for each that dies.
        processes: Spanned<i64> = spanned(1), "integer" "1";
        /// The user that the server becomes after it has bound its addresses.
        user: Option<Spanned<String>> = None, "string" "";
        /// The group that the server becomes; by default that of the user.
        group: Option<Spanned<String>> = None, "string" "";
        /// The file for the number of the process.
        pid_file: Option<PathBuf> = None, "string" "";
        /// The file that reports are appended to, in place of the standard error stream.
        report: Option<PathBuf> = None, "string" "";
        /// Whether the server goes into the background once it serves. Its reports are lost unless
        /// `report` names a file.
        daemon: bool = false, "boolean" "false";
        /// The Unix socket for `selvedge-httpd ctl`.
        control: Option<PathBuf> = None, "string" "";
        /// Load balancers that send the PROXY protocol, versions 1 or 2, as addresses or networks.
        /// A connection from them must begin with its head; from others the head is not believed.
        proxy_protocol: Vec<Spanned<String>> = Vec::new(), "list of strings" "[]";
        /// Times and sizes.
        limits: LimitSettings = LimitSettings::default(), "table" "";
        /// What is kept of files.
        cache: CacheSettings = CacheSettings::default(), "table" "";
        /// The logs.
        log: LogSettings = LogSettings::default(), "table" "";
        /// The virtual hosts.
        host: Vec<HostSettings> = Vec::new(), "list of tables" "";
        /// Routes for all hosts that have no table of their own.
        route: Vec<Spanned<RouteSettings>> = Vec::new(), "list of tables" "";
    }
}

settings! {
    /// Times and sizes. Times are in seconds, and fractions are allowed.
    LimitSettings "[limits]" {
        /// How long a connection may be open without a request.
        idle: f64 = 60.0, "seconds" "60.0";
        /// How long the head of a request may take to arrive.
        head: f64 = 10.0, "seconds" "10.0";
        /// How long the body of a request may take to arrive.
        body: f64 = 30.0, "seconds" "30.0";
        /// How long a client may leave a reply without taking a byte of it.
        write: f64 = 30.0, "seconds" "30.0";
        /// How long the server waits for requests in flight when it stops.
        drain: f64 = 10.0, "seconds" "10.0";
        /// The largest head of a request, 512 to 1048576. The target may take half of it.
        head_bytes: Spanned<i64> = spanned(16_384), "bytes" "16384";
        /// The largest body of a request.
        body_bytes: u64 = 1_048_576, "bytes" "1048576";
        /// The most connections of one address at a time. An IPv6 network of 64 bits counts as one
        /// address. Connections beyond it are closed at once. 0 is no limit.
        connections_per_address: u32 = 0, "integer" "0";
    }
}

settings! {
    /// What each worker keeps of files, and the cache of their blocks.
    CacheSettings "[cache]" {
        /// How long a file is served before the server looks whether it has changed.
        validity: f64 = 2.0, "seconds" "2.0";
        /// The most files.
        files: u32 = 1024, "integer" "1024";
        /// The most bytes.
        bytes: u64 = 67_108_864, "bytes" "67108864";
        /// The bytes of a cache of blocks that all workers of a process share. If it is not 0,
        /// files are read past the kernel's page cache, and kept in this cache: for a site that is
        /// larger than memory.
        direct: u64 = 0, "bytes" "0";
    }
}

settings! {
    /// The logs: of requests, and of reports.
    LogSettings "[log]" {
        /// The file, `-` for the standard output, or `off`.
        access: String = "off".to_owned(), "string" "\"off\"";
        /// `combined`, `json`, or a format of your own with `$address`, `$time`, `$request`,
        /// `$method`, `$path`, `$status`, `$bytes`, `$referer`, `$user_agent` and `$host`.
        format: Spanned<String> = spanned("combined".to_owned()), "string" "\"combined\"";
        /// The file is renamed to `FILE.1` when it has this number of bytes, and `FILE.1` to
        /// `FILE.2` and so on. 0 is never.
        rotate_bytes: u64 = 0, "bytes" "0";
        /// The file is renamed when this number of seconds have passed. 0 is never.
        rotate_seconds: u64 = 0, "seconds" "0";
        /// How many renamed files are kept.
        backups: u32 = 10, "integer" "10";
        /// Which reports are written: `error` for failures; `warning` for limits that are reached
        /// and replies that are cut, too; `notice` for reloads and upgrades, too.
        level: Spanned<String> = spanned("notice".to_owned()), "string" "\"notice\"";
    }
}

settings! {
    /// A virtual host. The first host with the name of the request is taken, and only its
    /// routes are asked.
    HostSettings "[[host]]" {
        /// The names: `example.org`; `*.example.org` for all below it; `*` for all.
        names: Vec<Spanned<String>> = Vec::new(), "list of strings" "[]";
        /// The routes. The first that matches wins.
        route: Vec<Spanned<RouteSettings>> = Vec::new(), "list of tables" "";
    }
}

settings! {
    /// A route: the paths that it takes, one action, and rules. The first that matches wins.
    RouteSettings "[[route]] or [[host.route]]" {
        /// The paths: `/docs/` takes all below it, `/robots.txt` this one alone, and `/**.php` is a
        /// pattern: `*` is any part of a name, `**` may contain `/`, `?` is one character, `{a,b}`
        /// is one of two.
        path: Option<Spanned<String>> = None, "string" "\"/\"";
        /// Action: the directory of the files to send. The part of the path behind `path` is
        /// looked up in it.
        directory: Option<PathBuf> = None, "string" "";
        /// Action: the zip archive of the files to send. It is opened when the configuration is
        /// read.
        archive: Option<PathBuf> = None, "string" "";
        /// Action: the address that the client is sent to. `$path` is the path, `$rest` the part
        /// behind `path`, `$host` the host, `$query` the query, which is added if it is not named.
        redirect: Option<Spanned<String>> = None, "string" "";
        /// Action: the server that the request is passed to, or several: `127.0.0.1:3000` or
        /// `unix:/run/app.sock`.
        proxy: Option<Spanned<OneOrMany>> = None, "string or list of strings" "";
        /// Action: the directory of CGI programs.
        cgi: Option<PathBuf> = None, "string" "";
        /// Action: the FastCGI server, as for `proxy`. It takes `root` too.
        fastcgi: Option<Spanned<String>> = None, "string" "";
        /// Action: a page of the server: `status` or `metrics`.
        page: Option<Spanned<String>> = None, "string" "";
        /// Action: a status alone, such as 404 or 410.
        answer: Option<Spanned<u16>> = None, "integer" "";
        /// With `redirect`: 301, 302, 303, 307 or 308.
        status: Option<Spanned<u16>> = None, "integer" "301";
        /// With `proxy`: the path at the server. By default the path of the request.
        rewrite: Option<Spanned<String>> = None, "string" "\"$path\"";
        /// With `proxy` to several servers: how one is chosen: `round_robin`; `least_connections`,
        /// the fewest requests under way; `client` or `path`, the same server for the same one.
        balance: Option<Spanned<String>> = None, "string" "\"round_robin\"";
        /// With `proxy`: which servers get requests.
        health: Option<Spanned<HealthSettings>> = None, "table" "";
        /// With `proxy` and `fastcgi`: how long the other server may take.
        times: Option<Spanned<TimeSettings>> = None, "table" "";
        /// With `proxy`, `fastcgi` and `cgi`: whether the work for a client that has left goes on.
        /// By default a client that closes its direction of the connection has left, and the
        /// program is ended.
        outlive_client: bool = false, "boolean" "false";
        /// With `cgi`: how many programs run at once, and for how long.
        programs: Option<Spanned<ProgramSettings>> = None, "table" "";
        /// With `fastcgi`: the directory of the scripts.
        root: Option<PathBuf> = None, "string" "";
        /// With `directory`: the names that stand for a directory. With `fastcgi` and `cgi`: the
        /// script for the path of a directory, `index.php` and none by default.
        index: Option<Spanned<Vec<String>>> = None, "list of strings" "[\"index.html\"]";
        /// With `directory`: how a directory without an index is listed: `off`, `html` (and as JSON
        /// for a client that prefers it) or `json`.
        listing: Option<Spanned<String>> = None, "string" "\"off\"";
        /// With `directory`: the names to try in this order, `$rest` being the path. With
        /// `["$rest", "/index.html"]` a single page answers for all paths that are no files.
        try_files: Option<Spanned<Vec<String>>> = None, "list of strings" "[\"$rest\"]";
        /// With `directory`: whether `name.br`, `name.zst` and `name.gz` are sent for `name`.
        precompressed: bool = false, "boolean" "false";
        /// With `directory`: whether files are compressed before they are sent, and kept so.
        compress: bool = false, "boolean" "false";
        /// With `compress`: the media types.
        compress_types: Option<Spanned<Vec<String>>> = None, "list of strings"
            "[\"text/*\", \"application/{javascript,json,xml,wasm}*\", \"image/svg+xml*\", \"*/*+{json,xml}*\"]";
        /// With `compress`: shorter files are sent as they are.
        compress_bytes_min: u64 = 1024, "bytes" "1024";
        /// With `compress`: longer files are sent as they are.
        compress_bytes_max: u64 = 4_194_304, "bytes" "4194304";
        /// With `directory`: the language of files without a suffix, such as `en`. Then
        /// `name.html.ja` is sent for `name.html` to a client that prefers Japanese.
        language: Option<Spanned<String>> = None, "string" "";
        /// Fields that each reply gets. An empty text takes the field away.
        headers: BTreeMap<Spanned<String>, String> = BTreeMap::new(), "table of strings" "{}";
        /// `Cache-Control` by path: a list of tables with `path`, a pattern, and `value`.
        cache_control: Vec<CacheControl> = Vec::new(), "list of tables" "[]";
        /// The addresses and networks that may ask. If there are any, others may not.
        allow: Vec<Spanned<String>> = Vec::new(), "list of strings" "[]";
        /// The addresses and networks that may not ask; `all` for all that `allow` does not name.
        deny: Vec<Spanned<String>> = Vec::new(), "list of strings" "[]";
        /// Names and passwords that a client must give.
        auth: Option<AuthSettings> = None, "table" "";
        /// Which other sites' scripts may read the replies.
        cors: Option<CorsSettings> = None, "table" "";
        /// How often one address may ask.
        rate: Option<RateSettings> = None, "table" "";
        /// A directory with own pages for errors: `404.html`, `500.html` and so on.
        error_pages: Option<PathBuf> = None, "string" "";
    }
}

settings! {
    /// A rule for `Cache-Control`.
    CacheControl "cache_control" {
        /// The paths, as a pattern.
        path: Option<Spanned<String>> = None, "string" "\"**\"";
        /// The value.
        value: Spanned<String> = spanned(String::new()), "string" "";
    }
}

settings! {
    /// Names and passwords that a client must give (HTTP Basic).
    AuthSettings "auth" {
        /// The words that a browser shows.
        realm: Spanned<String> = spanned("restricted".to_owned()), "string" "\"restricted\"";
        /// The file with a line `name:hash` for each user. Hashes are Argon2, bcrypt
        /// (`htpasswd -B`) or SHA-crypt (`openssl passwd -6`).
        users: Option<Spanned<PathBuf>> = None, "string" "";
    }
}

settings! {
    /// Which other sites' scripts may read the replies.
    CorsSettings "cors" {
        /// The origins, such as `https://example.org`; `*` for all.
        origins: Vec<String> = vec!["*".to_owned()], "list of strings" "[\"*\"]";
        /// The methods.
        methods: Vec<String> = ["GET", "HEAD", "POST"].map(String::from).to_vec(), "list of strings"
            "[\"GET\", \"HEAD\", \"POST\"]";
        /// The request's fields.
        headers: Vec<String> = Vec::new(), "list of strings" "[]";
        /// Whether the scripts may send cookies. The origins must be named then.
        credentials: Spanned<bool> = spanned(false), "boolean" "false";
        /// How long a browser need not ask again.
        max_age: u64 = 600, "seconds" "600";
    }
}

settings! {
    /// Which of a proxy's servers get requests. A server that fails several times in a row gets
    /// none for a while.
    HealthSettings "health" {
        /// The path that each server is asked for regularly. One that does not answer, or with a
        /// status of 500 or more, gets no requests until it does. By default none is asked.
        path: Option<Spanned<String>> = None, "string" "";
        /// The time between two such questions.
        seconds: Spanned<f64> = spanned(5.0), "seconds" "5.0";
        /// The number of failures in a row after which a server gets no requests. 0 is never.
        failures: u32 = 3, "integer" "3";
        /// For how long it gets none then.
        pause: Spanned<f64> = spanned(10.0), "seconds" "10.0";
    }
}

settings! {
    /// How long another server may take. After it the answer is 504, or 502 if no connection was
    /// made.
    TimeSettings "times" {
        /// Until a connection is made.
        connect: Spanned<f64> = spanned(5.0), "seconds" "5.0";
        /// Without taking a byte of the request.
        send: Spanned<f64> = spanned(30.0), "seconds" "30.0";
        /// From the end of the request to the head of the answer. With `fastcgi` it is `read`.
        answer: Spanned<f64> = spanned(60.0), "seconds" "60.0";
        /// Between two parts of the answer.
        read: Spanned<f64> = spanned(60.0), "seconds" "60.0";
    }
}

settings! {
    /// How many CGI programs of the route run at once in each process, and for how long.
    ProgramSettings "programs" {
        /// The most programs at once.
        at_once: Spanned<u32> = spanned(64), "integer" "64";
        /// The most requests that wait until one has ended. One more is answered 503.
        queue: u32 = 128, "integer" "128";
        /// The longest time that a request waits. After it the answer is 503.
        patience: Spanned<f64> = spanned(10.0), "seconds" "10.0";
        /// The longest time that a program may take. After it the program is ended, and the
        /// answer is 504.
        time: Spanned<f64> = spanned(60.0), "seconds" "60.0";
    }
}

settings! {
    /// How often one address may ask. Requests beyond it are answered 429.
    RateSettings "rate" {
        /// Requests a second over a long time.
        per_second: Spanned<f64> = spanned(10.0), "number" "10.0";
        /// Requests at once after a pause.
        burst: Spanned<u32> = spanned(20), "integer" "20";
    }
}

/// All tables, in the order of the page.
pub const SECTIONS: &[SettingSection] = &[
    Settings::SECTION,
    LimitSettings::SECTION,
    CacheSettings::SECTION,
    LogSettings::SECTION,
    HostSettings::SECTION,
    RouteSettings::SECTION,
    AuthSettings::SECTION,
    CacheControl::SECTION,
    CorsSettings::SECTION,
    RateSettings::SECTION,
    HealthSettings::SECTION,
    TimeSettings::SECTION,
    ProgramSettings::SECTION,
];

/// A value that stands nowhere in a file.
pub(crate) fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each default on the page, put into a file, changes nothing.
    #[test]
    fn the_documented_defaults_are_the_defaults() {
        fn check<T: serde::de::DeserializeOwned + Default + std::fmt::Debug>(section: SettingSection) {
            let spanless = |value: &T| {
                // The places of values differ.
                let text = format!("{value:?}");
                let mut parts = text.split("span: ");
                let first = parts.next().unwrap_or_default().to_owned();
                parts.fold(first, |all, part| all + part.split_once(',').map_or("", |(_, rest)| rest))
            };
            for key in section.keys.iter().filter(|key| !key.default.is_empty()) {
                let text = format!("{} = {}", key.name, key.default);
                let value: T = toml::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                // An optional key with a documented default gets it later, in `read.rs`.
                if !format!("{:?}", T::default()).contains(&format!("{}: None", key.name))
                    && key.name != "listen"
                {
                    assert_eq!(spanless(&value), spanless(&T::default()), "{text}");
                }
            }
        }
        check::<Settings>(Settings::SECTION);
        check::<LimitSettings>(LimitSettings::SECTION);
        check::<CacheSettings>(CacheSettings::SECTION);
        check::<LogSettings>(LogSettings::SECTION);
        check::<HostSettings>(HostSettings::SECTION);
        check::<RouteSettings>(RouteSettings::SECTION);
        check::<AuthSettings>(AuthSettings::SECTION);
        check::<CacheControl>(CacheControl::SECTION);
        check::<CorsSettings>(CorsSettings::SECTION);
        check::<RateSettings>(RateSettings::SECTION);
        check::<HealthSettings>(HealthSettings::SECTION);
        check::<TimeSettings>(TimeSettings::SECTION);
        check::<ProgramSettings>(ProgramSettings::SECTION);
    }

    #[test]
    fn every_key_is_documented() {
        for section in SECTIONS {
            assert!(!section.docs.is_empty());
            for key in section.keys {
                assert!(!key.docs.is_empty() && !key.kind.is_empty(), "{}", key.name);
            }
        }
    }
}
