//! [`installed`]: the MPIs of this machine, on which `libmpi.rs` and `launched.rs` run their jobs.
//!
//! These are `mpirun.openmpi` and `mpirun.mpich` (Debian), the builds that `cargo xtask setup`
//! fetches into the directory `mpi` of the target directory, and the programs that
//! `SELVEDGE_TEST_MPIRUN` names with their paths, separated by colons. Where an MPI has a library
//! with the standard binary interface beside its own, it is in the list with each of the two.

use selvedge_mpi::libmpi::{MpiFamily, PATH_VARIABLE};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An MPI of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    mpirun: PathBuf,
    pub(crate) is_open_mpi: bool,
    /// The library that the ranks load, unless they find it themselves.
    pub(crate) library: Option<PathBuf>,
    pub(crate) family: MpiFamily,
    /// The options with which a job goes on when a rank has died, if there are any.
    pub(crate) bears_deaths: Option<&'static [&'static str]>,
}

impl fmt::Display for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.library.as_ref().unwrap_or(&self.mpirun).display(), self.family)
    }
}

impl Installed {
    /// The same launcher with another library.
    pub(crate) fn with_library(&self, library: PathBuf) -> Installed {
        Installed { library: Some(library), ..self.clone() }
    }

    /// A program beside the launcher.
    pub(crate) fn beside(&self, name: &str) -> Option<PathBuf> {
        Some(self.mpirun.with_file_name(name)).filter(|program| program.is_file())
    }

    /// Its compiler of C beside the launcher, with a name such as `mpicc.openmpi`.
    #[allow(dead_code, reason = "one of the two tests has ranks in C")]
    pub(crate) fn compiler(&self) -> Option<PathBuf> {
        let name = self.mpirun.file_name()?.to_str()?.replace("mpirun", "mpicc");
        self.beside(&name)
    }

    /// The library that a program of mpi4py is to load under this launcher: a path or a name.
    /// Debian's MPICH has none, because its library does not have the name that mpi4py asks for.
    #[allow(dead_code, reason = "one of the two tests has ranks in Python")]
    pub(crate) fn library_for_python(&self) -> Option<PathBuf> {
        let file = if self.is_open_mpi { "libmpi.so.40" } else { "libmpi.so.12" };
        let root = self.mpirun.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let beside = Some(root.join("lib").join(file)).filter(|library| library.is_file());
        beside.or(self.is_open_mpi.then(|| file.into()))
    }

    /// A job of this number of ranks, which is to be given the program.
    pub(crate) fn job(&self, ranks: usize, options: &[&str]) -> Command {
        let mut command = Command::new(&self.mpirun);
        if self.is_open_mpi {
            command.args(["--allow-run-as-root", "--oversubscribe"]);
        }
        command.args(options).arg("-n").arg(ranks.to_string());
        match &self.library {
            Some(library) => command.env(PATH_VARIABLE, library),
            None => command.env_remove(PATH_VARIABLE),
        };
        command
    }
}

/// The MPIs of this machine.
pub(crate) fn installed() -> Vec<Installed> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = |name: &str| {
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
    };
    let named = std::env::var_os("SELVEDGE_TEST_MPIRUN").unwrap_or_default();
    let named = std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty());
    let of_debian = ["mpirun.openmpi", "mpirun.mpich"].into_iter().filter_map(on_path);
    of_debian.chain(fetched()).chain(named).flat_map(|mpirun| both_interfaces(&mpirun)).collect()
}

/// The builds in the target directory.
fn fetched() -> Vec<PathBuf> {
    let me = std::env::current_exe().expect("the program has a path");
    let builds = me.ancestors().map(|directory| directory.join("mpi")).find(|path| path.is_dir());
    let entries = builds.and_then(|builds| std::fs::read_dir(builds).ok()).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries.map(|entry| entry.path().join("bin/mpirun")).collect();
    all.retain(|mpirun| mpirun.is_file());
    all.sort();
    all
}

/// The MPI of this launcher; also with the library that has the standard interface, if it is there.
fn both_interfaces(mpirun: &Path) -> Vec<Installed> {
    let version = Command::new(mpirun).arg("--version").output().expect("mpirun starts");
    let version = String::from_utf8_lossy(&version.stdout);
    // MPICH's is called HYDRA, and Open MPI's has several names.
    let is_open_mpi = !version.contains("HYDRA");
    let family = if is_open_mpi { MpiFamily::OpenMpi } else { MpiFamily::Mpich };
    // The first number is the version: `mpirun (Open MPI) 5.0.11`.
    let major = version.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse::<u32>().ok());
    let bears_deaths = (is_open_mpi && major >= Some(5)).then_some(&["--with-ft", "ulfm"][..]);
    let own = Installed { mpirun: mpirun.to_owned(), is_open_mpi, library: None, family, bears_deaths };
    let root = mpirun.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    let standard = Some(root.join("lib/libmpi_abi.so.1")).filter(|library| library.is_file());
    let by_standard =
        standard.map(|library| Installed { family: MpiFamily::Standard, ..own.with_library(library) });
    [own].into_iter().chain(by_standard).collect()
}

/// What the program says where there is no MPI.
pub(crate) const NONE: &str = "no MPI is installed, so no job ran over an MPI library: install openmpi-bin or mpich, or call cargo xtask setup";

/// What the program says where no MPI bears deaths.
pub(crate) const NONE_BEARS_DEATHS: &str =
    "no MPI here goes on when a rank has died, so this was not tried: cargo xtask setup fetches Open MPI 5";
