//! The peers: which Debian package each comes from, and how the programs under `figures/peers` are
//! built. `contender.rs` and the figures ask for the path of a peer; `main.rs` has `build-peers`
//! and `packages`, which `cargo xtask peers` calls.
//!
//! A peer that is not installed is an `Err` with the package's name. The table shows it as missing,
//! and no figure fails for it.

use std::env;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The Debian packages that bring every peer this stage measures against.
pub(crate) const PACKAGES: [&str; 36] = [
    "golang-go",
    "ghc",
    "libghc-parallel-dev",
    "libghc-monad-par-dev",
    "gcc",
    "g++",
    "libtbb-dev",
    "fio",
    "nginx-light",
    "lighttpd",
    "h2o",
    "apache2-bin",
    "haproxy",
    "mighttpd2",
    "valgrind",
    "ninja-build",
    "make",
    "cmake",
    "ripgrep",
    "libghc-conduit-dev",
    "libxml2-utils",
    "ocaml-nox",
    "ocaml-findlib",
    "liblwt-ocaml-dev",
    "erlang-base",
    "openjdk-21-jdk-headless",
    "openmpi-bin",
    "libopenmpi-dev",
    "mpich",
    "libmpich-dev",
    "python3-mpi4py",
    "libclang-dev",
    "unbound",
    "knot",
    "nsd",
    "vsftpd",
];

/// The web servers that have to be installed to be measured.
const WEB_SERVERS: [&str; 5] = ["nginx", "lighttpd", "h2o", "apache2", "haproxy"];

/// The packages of the servers of names, each with its program.
pub(crate) const NAME_SERVERS: [(&str, &str); 3] =
    [("unbound", "unbound"), ("knot", "knotd"), ("nsd", "nsd")];

/// A peer program that is compiled from a source file of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compiled {
    /// The executable's name below the peers' directory.
    name: &'static str,
    /// Its source below `figures/peers`.
    source: &'static str,
    /// The other sources that it includes, as seen from `figures/peers`.
    includes: &'static [&'static str],
    /// The compiler, by name and by the places where it may be outside the search path.
    compiler: &'static [&'static str],
    /// The Debian package that has the compiler.
    package: &'static str,
    /// Compiler arguments; `{out}` and `{source}` are replaced.
    arguments: &'static [&'static str],
    /// Whether its compiler fetches other sources from the network. Then a figure does not build
    /// it, but `build-peers` alone does.
    fetches: bool,
}

/// C++20 coroutines.
pub(crate) const CPP: Compiled = Compiled {
    name: "threads-cpp",
    source: "cpp/threads.cpp",
    includes: &[],
    compiler: &["g++"],
    package: "g++",
    arguments: &["-O2", "-std=c++20", "-o", "{out}", "{source}"],
    fetches: false,
};

/// TBB's tasks and its flow graph.
pub(crate) const TBB: Compiled = Compiled {
    name: "cnc-tbb",
    source: "cpp/cnc_tbb.cpp",
    package: "g++ libtbb-dev",
    arguments: &["-O3", "-march=native", "-std=c++17", "-o", "{out}", "{source}", "-ltbb"],
    ..CPP
};

/// OpenMP's tasks.
pub(crate) const OPEN_MP: Compiled = Compiled {
    name: "cnc-omp",
    source: "cpp/cnc_omp.cpp",
    includes: &["cpp/cholesky.hpp", "c/cholesky.h"],
    arguments: &["-O3", "-march=native", "-fopenmp", "-std=c++17", "-o", "{out}", "{source}"],
    ..CPP
};

/// The six programs of a paper with TBB and with OpenMP's tasks, for any x86-64.
pub(crate) const TBB_AND_OPEN_MP: Compiled = Compiled {
    name: "cnc-six",
    source: "cpp/cnc_six.cpp",
    includes: &["cpp/cholesky.hpp", "c/cholesky.h"],
    package: "g++ libtbb-dev",
    arguments: &["-O3", "-fopenmp", "-std=c++17", "-o", "{out}", "{source}", "-ltbb"],
    ..CPP
};

/// Goroutines.
pub(crate) const GO: Compiled = Compiled {
    name: "threads-go",
    source: "go/threads.go",
    includes: &[],
    compiler: &["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"],
    package: "golang-go",
    arguments: &["build", "-o", "{out}", "{source}"],
    fetches: false,
};

/// GHC's threads, in its non-threaded runtime.
pub(crate) const GHC: Compiled = Compiled {
    name: "threads-ghc",
    source: "haskell/Threads.hs",
    includes: &[],
    compiler: &["ghc"],
    package: "ghc",
    arguments: &["-v0", "-O2", "-rtsopts", "-outputdir", "{out}.objects", "-o", "{out}", "{source}"],
    fetches: false,
};

/// The least work that answers a web request: a bound, not a server.
pub(crate) const LIMIT: Compiled = Compiled {
    name: "limit",
    source: "cpp/limit.cpp",
    includes: &[],
    compiler: &["g++"],
    package: "g++",
    arguments: &["-O2", "-std=c++20", "-o", "{out}", "{source}"],
    fetches: false,
};

/// C with POSIX threads that compute and count.
pub(crate) const C_CORES: Compiled = c_with_threads("cores-c", "c/cores.c");

/// C with POSIX threads that talk over pipes.
pub(crate) const C_FIFO: Compiled = c_with_threads("fifo-c", "c/fifo.c");

/// The least work that answers a message: a bound, not a server.
pub(crate) const C_ECHO: Compiled = c_with_threads("echo-c", "c/echo.c");

/// Random reads of a disk by POSIX threads.
pub(crate) const PTHREADS_DISK: Compiled = c_with_threads("disk-pthread", "c/disk_pthread.c");

/// C with POSIX threads and a mutex for each account of a bank.
pub(crate) const C_BANK: Compiled = c_with_threads("stm-c", "c/stm.c");

/// A program in C with POSIX threads.
const fn c_with_threads(name: &'static str, source: &'static str) -> Compiled {
    Compiled {
        name,
        source,
        includes: &[],
        compiler: &["gcc"],
        package: "gcc",
        arguments: &["-O2", "-pthread", "-o", "{out}", "{source}"],
        fetches: false,
    }
}

/// Goroutines on several processors.
pub(crate) const GO_CORES: Compiled = Compiled { name: "cores-go", source: "go/cores.go", ..GO };

/// GHC's threads, in its threaded runtime.
pub(crate) const GHC_CORES: Compiled = Compiled {
    name: "cores-ghc",
    source: "haskell/Cores.hs",
    arguments: &[
        "-v0",
        "-O2",
        "-threaded",
        "-rtsopts",
        "-outputdir",
        "{out}.objects",
        "-o",
        "{out}",
        "{source}",
    ],
    ..GHC
};

/// The STAMP programs over GHC's transactions, in its threaded runtime.
pub(crate) const GHC_STAMP: Compiled =
    Compiled { name: "stamp-ghc", source: "haskell/Stamp.hs", ..GHC_CORES };

/// GHC's lazy values and sparks, in its threaded runtime.
pub(crate) const GHC_LAZY: Compiled = Compiled {
    name: "lazy-ghc",
    source: "haskell/Lazy.hs",
    package: "ghc libghc-parallel-dev libghc-monad-par-dev",
    ..GHC_CORES
};

/// monad-par, in GHC's threaded runtime.
pub(crate) const GHC_PAR: Compiled =
    Compiled { name: "cnc-ghc", source: "haskell/Cnc.hs", package: "ghc libghc-monad-par-dev", ..GHC_CORES };

/// GHC's transactions, in its threaded runtime.
pub(crate) const GHC_STM: Compiled = Compiled { name: "stm-ghc", source: "haskell/Stm.hs", ..GHC_CORES };

/// The Rust crates for transactions. They are in a workspace of their own, with a lock file of its
/// own.
pub(crate) const RUST_STM: Compiled = Compiled {
    name: "stm-rust/release/stm-rust",
    source: "rust/src/main.rs",
    includes: &[],
    compiler: &["cargo"],
    package: "cargo",
    arguments: &[
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--manifest-path",
        "{sources}/rust/Cargo.toml",
        "--target-dir",
        "{directory}/stm-rust",
    ],
    fetches: true,
};

/// The Rust crates for lazy values and parallel halves, in a workspace as above.
pub(crate) const RUST_LAZY: Compiled = Compiled {
    name: "lazy-rust/release/lazy-rust",
    source: "lazy-rust/src/main.rs",
    includes: &["../src/child/lazy/forced.rs"],
    arguments: &[
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--manifest-path",
        "{sources}/lazy-rust/Cargo.toml",
        "--target-dir",
        "{directory}/lazy-rust",
    ],
    ..RUST_STM
};

/// Generators and streams of Rust crates, and a parser of XML. They are in the package of
/// [`RUST_STM`].
pub(crate) const RUST_STREAMS: Compiled =
    Compiled { name: "stm-rust/release/streams-rust", source: "rust/src/streams.rs", ..RUST_STM };

/// A map of many OS threads. It is in the package of [`RUST_STM`].
pub(crate) const RUST_ITEMS: Compiled =
    Compiled { name: "stm-rust/release/items-rust", source: "rust/src/items.rs", ..RUST_STM };

/// A web application with axum. It is in the package of [`RUST_STM`].
pub(crate) const AXUM: Compiled =
    Compiled { name: "stm-rust/release/app-rust", source: "rust/src/app.rs", ..RUST_STM };

/// A web application with Go's standard library.
pub(crate) const GO_APP: Compiled = Compiled { name: "app-go", source: "go/app.go", ..GO };

/// A small CGI program.
pub(crate) const C_CGI: Compiled = c_with_threads("cgi-c", "c/cgi.c");

/// samurai, as a program of muon's: `muon samu`.
pub(crate) const SAMURAI: Compiled = Compiled {
    name: "samurai/muon",
    source: "sh/samurai.sh",
    includes: &[],
    compiler: &["sh"],
    package: "dash",
    arguments: &["{source}", "{directory}/samurai"],
    fetches: true,
};

/// Conduits, in GHC's non-threaded runtime.
pub(crate) const GHC_CONDUIT: Compiled =
    Compiled { name: "conduit-ghc", source: "haskell/Conduits.hs", package: "ghc libghc-conduit-dev", ..GHC };

/// The programs of light-weight concurrency over GHC's threads, in its non-threaded runtime.
pub(crate) const GHC_LWC: Compiled = Compiled { name: "lwc-ghc", source: "haskell/Lwc.hs", ..GHC };

/// The same over goroutines.
pub(crate) const GO_LWC: Compiled = Compiled { name: "lwc-go", source: "go/lwc.go", ..GO };

/// The same over Lwt, by OCaml's compiler for native code.
pub(crate) const LWT: Compiled = Compiled {
    name: "lwc-lwt",
    source: "ocaml/lwc.ml",
    includes: &["sh/ocaml.sh"],
    compiler: &["sh"],
    package: "dash ocaml-nox ocaml-findlib liblwt-ocaml-dev",
    arguments: &["{sources}/sh/ocaml.sh", "{source}", "{out}"],
    fetches: false,
};

/// The same over Erlang's processes.
pub(crate) const ERLANG: Compiled = Compiled {
    name: "lwc-erlang",
    source: "erlang/lwc.erl",
    includes: &["sh/erlang.sh"],
    compiler: &["sh"],
    package: "dash erlang-base",
    arguments: &["{sources}/sh/erlang.sh", "{source}", "{out}"],
    fetches: false,
};

/// The same over Java's virtual threads, which Java has since 21.
pub(crate) const JAVA: Compiled = Compiled {
    name: "lwc-java",
    source: "java/Lwc.java",
    includes: &["sh/java.sh"],
    compiler: &["sh"],
    package: "dash openjdk-21-jdk-headless",
    arguments: &["{sources}/sh/java.sh", "{source}", "{out}"],
    fetches: false,
};

/// C over Open MPI.
pub(crate) const C_OPEN_MPI: Compiled = Compiled {
    name: "mpi-c-openmpi",
    source: "c/mpi.c",
    includes: &[],
    compiler: &["mpicc.openmpi"],
    package: "openmpi-bin libopenmpi-dev",
    arguments: &["-O2", "-pthread", "-o", "{out}", "{source}", "-lm"],
    fetches: false,
};

/// The same, compiled so that the compiler may call a sine of several numbers at once.
pub(crate) const C_OPEN_MPI_FAST: Compiled = Compiled {
    name: "mpi-c-fast",
    arguments: &["-Ofast", "-march=native", "-pthread", "-o", "{out}", "{source}", "-lm"],
    ..C_OPEN_MPI
};

/// C over MPICH.
pub(crate) const C_MPICH: Compiled =
    Compiled { name: "mpi-c-mpich", compiler: &["mpicc.mpich"], package: "mpich libmpich-dev", ..C_OPEN_MPI };

/// The programs of the graphs over ranks, written by hand in C over Open MPI.
pub(crate) const C_GRAPHS_OPEN_MPI: Compiled = Compiled {
    name: "mpi-graphs-c",
    source: "c/mpi_graphs.c",
    includes: &["c/cholesky.h"],
    arguments: &["-O3", "-o", "{out}", "{source}", "-lm"],
    ..C_OPEN_MPI
};

/// The Rust crate for MPI, over Open MPI. It is in a workspace of its own, because its build needs
/// an MPI and libclang.
pub(crate) const RSMPI: Compiled = Compiled {
    name: "mpi-rust/release/mpi-rust",
    source: "rsmpi/src/main.rs",
    includes: &["sh/rsmpi.sh"],
    compiler: &["sh"],
    package: "dash libopenmpi-dev libclang-dev",
    arguments: &["{sources}/sh/rsmpi.sh", "{sources}/rsmpi", "{directory}/mpi-rust"],
    fetches: true,
};

/// Python's module for MPI, over Open MPI.
pub(crate) const MPI4PY: Compiled = Compiled {
    name: "mpi-mpi4py",
    source: "python/mpi.py",
    includes: &["sh/mpi4py.sh"],
    compiler: &["sh"],
    package: "dash python3-mpi4py",
    arguments: &["{sources}/sh/mpi4py.sh", "{source}", "{out}"],
    fetches: false,
};

/// Formats of Rust crates for values. They are in the package of [`RUST_STM`].
pub(crate) const RUST_FORMATS: Compiled =
    Compiled { name: "stm-rust/release/formats-rust", source: "rust/src/formats.rs", ..RUST_STM };

/// Every compiled peer.
pub(crate) const COMPILED: &[Compiled] = &[
    CPP,
    GO,
    GHC,
    LIMIT,
    C_CORES,
    C_FIFO,
    C_ECHO,
    PTHREADS_DISK,
    GO_CORES,
    GHC_CORES,
    C_BANK,
    GHC_STM,
    GHC_STAMP,
    RUST_STM,
    GHC_LAZY,
    RUST_LAZY,
    RUST_STREAMS,
    RUST_ITEMS,
    RUST_FORMATS,
    AXUM,
    GO_APP,
    C_CGI,
    SAMURAI,
    GHC_CONDUIT,
    TBB,
    OPEN_MP,
    TBB_AND_OPEN_MP,
    GHC_PAR,
    GHC_LWC,
    GO_LWC,
    LWT,
    ERLANG,
    JAVA,
    C_OPEN_MPI,
    C_OPEN_MPI_FAST,
    C_MPICH,
    C_GRAPHS_OPEN_MPI,
    RSMPI,
    MPI4PY,
];

impl Compiled {
    /// Whether it takes its number of processors from `GOMAXPROCS`.
    pub(crate) fn is_go(self) -> bool {
        self.compiler == GO.compiler
    }

    /// Whether it runs in GHC's threaded runtime.
    pub(crate) fn is_threaded_ghc(self) -> bool {
        self.compiler == GHC.compiler && self.arguments.contains(&"-threaded")
    }

    /// The path of the executable. It is built first when it is absent or older than its source,
    /// unless its compiler fetches other sources.
    ///
    /// # Errors
    ///
    /// The text that the table shows instead of a number: the package to install, the command that
    /// builds it, or the compiler's complaint.
    pub(crate) fn executable(self) -> Result<String, String> {
        if self.fetches && !self.is_fresh() {
            return Err(format!("{MISSING} (figures build-peers)"));
        }
        self.built()
    }

    /// As [`executable`](Compiled::executable), but it is built in any case.
    fn built(self) -> Result<String, String> {
        let (source, out) = self.places();
        if !self.is_fresh() {
            self.build(&source, &out)?;
        }
        Ok(out.display().to_string())
    }

    /// Its source and its executable.
    fn places(self) -> (PathBuf, PathBuf) {
        (sources().join(self.source), directory().join(self.name))
    }

    /// Whether the executable is there and not older than its sources.
    fn is_fresh(self) -> bool {
        let changed = |path: PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
        let built = changed(directory().join(self.name));
        let mut files = iter::once(&self.source).chain(self.includes).map(|file| sources().join(file));
        built.is_some_and(|built| {
            files.all(|source| built >= changed(source).unwrap_or(SystemTime::UNIX_EPOCH))
        })
    }

    /// Whether a Debian package with its libraries is not installed. Its compiler is the first
    /// package, and was found. Without Debian's tools it lacks none.
    fn lacks_library(self) -> bool {
        let is_absent = |package: &str| {
            let status = Command::new("dpkg-query").args(["-W", "-f=${Status}", package]).output();
            status.is_ok_and(|said| !said.stdout.ends_with(b"ok installed"))
        };
        self.package.split(' ').skip(1).any(is_absent)
    }

    fn build(self, source: &Path, out: &Path) -> Result<(), String> {
        let compiler =
            self.compiler.iter().find_map(|name| find(name)).ok_or_else(|| missing(self.package))?;
        fs::create_dir_all(directory()).map_err(|error| format!("{}: {error}", directory().display()))?;
        let place = |argument: &&str| {
            argument
                .replace("{out}", &out.display().to_string())
                .replace("{source}", &source.display().to_string())
                .replace("{sources}", &sources().display().to_string())
                .replace("{directory}", &directory().display().to_string())
        };
        let mut command = Command::new(compiler);
        command.args(self.arguments.iter().map(place));
        eprintln!("building {}: {command:?}", self.name);
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) if self.lacks_library() => Err(missing(self.package)),
            Ok(status) => Err(format!("{BROKEN}: {status}")),
            Err(error) => Err(format!("{BROKEN}: {error}")),
        }
    }
}

/// Builds every compiled peer, and says for each peer whether it is there.
///
/// # Errors
/// The names of the peers that do not compile. A peer that is not installed, or lacks its compiler,
/// is only reported.
pub(crate) fn build_all() -> Result<(), String> {
    let mut broken = Vec::new();
    let built = COMPILED.iter().map(|peer| (peer.name, peer.built()));
    let servers = WEB_SERVERS.map(|program| (program, program_path(program)));
    let of_names = NAME_SERVERS.map(|(package, program)| (program, program_of(package, program)));
    let others = [("vsftpd", program_path("vsftpd")), ("mighty", program_of("mighttpd2", "mighty"))];
    for (name, found) in built.chain(servers).chain(of_names).chain(others) {
        match found {
            Ok(path) => println!("{name}: {path}"),
            Err(why) => {
                println!("{name}: {why}");
                if !is_missing(&why) {
                    broken.push(name);
                }
            }
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("broken: {}", broken.join(", "))) }
}

/// The text about a peer that is not installed begins so.
const MISSING: &str = "missing";

/// The text about a peer that its compiler refuses begins so.
pub(crate) const BROKEN: &str = "does not build";

/// Whether a peer has no row because it is not installed.
pub(crate) fn is_missing(why: &str) -> bool {
    why.starts_with(MISSING)
}

/// That a peer is not installed, and how to install it.
fn missing(package: &str) -> String {
    format!("{MISSING} (apt-get install {package})")
}

/// The path of a program of another package of the workspace, built now if it is not up to date.
///
/// # Errors
///
/// When cargo cannot build it.
pub(crate) fn built(package: &str, program: &str) -> Result<String, String> {
    let target = target_directory();
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", package, "--bin", program, "--target-dir"])
        .arg(&target)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("{program} does not build"));
    }
    Ok(target.join("release").join(program).display().to_string())
}

/// The path of an installed program that a package of another name brings.
///
/// # Errors
///
/// The text that the table shows instead of a number: the package to install.
pub(crate) fn program_of(package: &str, program: &str) -> Result<String, String> {
    find(program).map(|path| path.display().to_string()).ok_or_else(|| missing(package))
}

/// The path of an installed program.
///
/// # Errors
///
/// The text that the table shows instead of a number: the package to install.
pub(crate) fn program_path(program: &str) -> Result<String, String> {
    let package = PACKAGES.iter().find(|package| package.starts_with(program)).unwrap_or(&program);
    find(program).map(|path| path.display().to_string()).ok_or_else(|| missing(package))
}

/// A program in the search path or in the directories of the system's servers; an absolute path is
/// only checked.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    places.map(|place| place.join(name)).find(|candidate| candidate.is_file())
}

/// Where the peers' sources are: beside this crate's manifest, as it was when this program was
/// built.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// Where peers are built: `peers` in the target directory this program runs from.
fn directory() -> PathBuf {
    target_directory().join("peers")
}

/// The target directory: two levels above this program (`target/release/figures`).
///
/// # Panics
///
/// When this program's own executable cannot be named.
pub(crate) fn target_directory() -> PathBuf {
    let program = env::current_exe().expect("the running executable has a path");
    program
        .ancestors()
        .nth(2)
        .expect("an executable built by cargo is two levels below the target directory")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_there() {
        for peer in COMPILED {
            for file in iter::once(&peer.source).chain(peer.includes) {
                assert!(sources().join(file).is_file(), "{file}");
            }
        }
    }

    #[test]
    fn a_missing_program_names_its_package() {
        assert_eq!(program_path("no-such-server").unwrap_err(), "missing (apt-get install no-such-server)");
    }
}
