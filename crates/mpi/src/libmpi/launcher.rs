//! [`MpiLauncher`]: which program started this process as a rank, and the MPI library that belongs
//! to that program.
//!
//! `library.rs` calls it to order its search. `message_loop.rs` compares the number of ranks that
//! the launcher announced with the number that the library knows: they differ when the library of
//! another MPI was loaded.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The program that started this process as a rank of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiLauncher {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `mpirun` of MPICH or of an MPI derived from it, or `srun --mpi=pmi2`. They tell a rank its
    /// number by the protocol PMI.
    Pmi,
    /// Another launcher that speaks PMIx, such as `srun --mpi=pmix` or `prun`.
    Pmix,
}

/// The launcher, with what it told this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The program.
    pub launcher: MpiLauncher,
    /// The number of ranks of the job, where the launcher tells it.
    pub size: Option<usize>,
}

impl Launched {
    /// What the environment of this process says. `None` if no launcher started it: then it is a
    /// job of one rank.
    pub fn from_environment() -> Option<Launched> {
        Launched::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
        let number = |name: &str| variable(name).and_then(|value| value.parse().ok());
        // The order matters, because the mpirun of Open MPI sets the variables of PMIx too.
        let (launcher, size) = if variable("OMPI_COMM_WORLD_SIZE").is_some() {
            (MpiLauncher::OpenMpi, number("OMPI_COMM_WORLD_SIZE"))
        } else if variable("PMI_RANK").is_some() {
            (MpiLauncher::Pmi, number("PMI_SIZE"))
        } else if variable("PMIX_RANK").is_some() {
            // Slurm tells the size of the step. Other launchers tell it through PMIx alone.
            (MpiLauncher::Pmix, number("SLURM_STEP_NUM_TASKS"))
        } else {
            return None;
        };
        Some(Launched { launcher, size })
    }
}

impl fmt::Display for MpiLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MpiLauncher::OpenMpi => "the mpirun of Open MPI",
            MpiLauncher::Pmi => "a launcher that speaks PMI, as the mpirun of MPICH does",
            MpiLauncher::Pmix => "a launcher that speaks PMIx",
        })
    }
}

/// The number of ancestors that `beside` looks at. Between a rank and its launcher there are few
/// other processes: a shell, `env`, a debugger.
const ANCESTORS_MAX: usize = 8;

/// The first of the files `names` in a directory `lib` beside the executable of an ancestor of this
/// process. An MPI that was unpacked at any place has its launcher in `bin` and its library in
/// `lib`, so this finds the library of the very MPI that started the rank.
pub(super) fn beside(names: &[&str]) -> Option<PathBuf> {
    let mut process = parent("self")?;
    for _ in 0..ANCESTORS_MAX {
        if let Ok(executable) = fs::read_link(format!("/proc/{process}/exe"))
            && let Some(library) = in_lib(&executable, names)
        {
            return Some(library);
        }
        process = parent(&process.to_string())?;
    }
    None
}

fn in_lib(executable: &Path, names: &[&str]) -> Option<PathBuf> {
    let directory = executable.parent()?.parent()?.join("lib");
    names.iter().map(|name| directory.join(name)).find(|path| path.is_file())
}

/// The parent of a process. `None` for the first process, and where `/proc` cannot be read.
fn parent(process: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|&parent| parent != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(variables: &[(&str, &str)]) -> Option<Launched> {
        Launched::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn a_launcher_is_known_by_its_variables() {
        let open_mpi = launched(&[("PMIX_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")]);
        assert_eq!(open_mpi, Some(Launched { launcher: MpiLauncher::OpenMpi, size: Some(4) }));
        let mpich = launched(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]);
        assert_eq!(mpich, Some(Launched { launcher: MpiLauncher::Pmi, size: Some(2) }));
        let slurm = launched(&[("PMIX_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "8")]);
        assert_eq!(slurm, Some(Launched { launcher: MpiLauncher::Pmix, size: Some(8) }));
        assert_eq!(launched(&[("SLURM_PROCID", "0")]), None);
    }

    #[test]
    fn the_parent_of_this_process_is_found() {
        assert_eq!(parent("self"), Some(std::os::unix::process::parent_id()));
        assert_eq!(parent("1"), None);
    }

    #[test]
    fn a_library_is_looked_for_in_lib_beside_bin() {
        let root = std::env::temp_dir().join(format!("selvedge-launcher-{}", std::process::id()));
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::write(root.join("lib/libmpi.so.12"), "").unwrap();
        let found = in_lib(&root.join("bin/mpirun"), &["libmpi.so.40", "libmpi.so.12"]);
        assert_eq!(found, Some(root.join("lib/libmpi.so.12")));
        assert_eq!(in_lib(&root.join("bin/mpirun"), &["libmpi.so.40"]), None);
        fs::remove_dir_all(root).unwrap();
    }
}
