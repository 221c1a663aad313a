//! [`Library`]: the MPI library, loaded with dlopen(3) when the program runs.
//!
//! `message_loop.rs` calls `Library::load`, and `functions.rs` and `family.rs` look up its symbols.
//! The library stays loaded until the process ends, because MPI can be started only once in a
//! process, and libraries that MPI itself loads cannot be unloaded.

use super::launcher::{self, Launched, MpiLauncher};
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// The variable of the environment that names the library's file.
pub const PATH_VARIABLE: &str = "SELVEDGE_LIBMPI";

/// File names of the library of Open MPI 4 and 5.
const OPEN_MPI: &[&str] = &["libmpi.so.40"];
/// File names of the library of MPICH and those derived from it. Debian has the second one.
const MPICH: &[&str] = &["libmpi.so.12", "libmpich.so.12"];
/// File names of a library with the standard binary interface of MPI 5.
const STANDARD: &[&str] = &["libmpi_abi.so.1", "libmpi_abi.so.0"];

/// The MPI library of this process.
#[derive(Clone, Debug)]
pub(super) struct Library {
    /// From dlopen, and never closed.
    handle: NonNull<c_void>,
    /// The file's name or path, or a word for a library that was there already.
    pub(super) name: String,
}

impl Library {
    /// Loads the library, at the first of these places that has one:
    ///
    /// 1. the file that [`PATH_VARIABLE`] names, and no other if it is set;
    /// 2. the process itself, if the program or a part of it is linked with an MPI;
    /// 3. beside the launcher's executable;
    /// 4. where the loader finds a library of the launcher's family, then one of another family.
    ///
    /// # Errors
    /// When none of them can be loaded.
    pub(super) fn load(launched: Option<Launched>) -> Result<Library, LoadError> {
        let mut tried = Vec::new();
        if let Some(path) = std::env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()) {
            return open(Path::new(&path)).map_err(|error| {
                tried.push(error);
                LoadError { tried, launched }
            });
        }
        if let Some(library) = linked() {
            return Ok(library);
        }
        let names = names(launched.map(|launched| launched.launcher));
        let beside = launched.and_then(|_| launcher::beside(&names));
        for path in beside.into_iter().chain(names.iter().map(PathBuf::from)) {
            match open(&path) {
                Ok(library) => return Ok(library),
                Err(error) => tried.push(error),
            }
        }
        Err(LoadError { tried, launched })
    }

    /// The address of a symbol of the library, or of a library that it needs.
    pub(super) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is of a library that is never closed, and the name ends with a zero.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

/// The names under which the loader may know an MPI, those of the launcher's family first. The own
/// interface of a family comes before the standard one, because older versions have it alone.
fn names(launcher: Option<MpiLauncher>) -> Vec<&'static str> {
    let order = match launcher {
        Some(MpiLauncher::Pmi) => [MPICH, STANDARD, OPEN_MPI],
        Some(MpiLauncher::OpenMpi | MpiLauncher::Pmix) | None => [OPEN_MPI, MPICH, STANDARD],
    };
    order.concat()
}

/// The MPI that the process is linked with.
fn linked() -> Option<Library> {
    // SAFETY: without a name, dlopen gives a handle of the process itself.
    let handle = NonNull::new(unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_NOW) })?;
    let library = Library { handle, name: "the process itself".to_string() };
    library.symbol(c"MPI_Init_thread").map(|_| library)
}

/// Opens a file with dlopen. The error has the loader's words.
fn open(path: &Path) -> Result<Library, String> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| format!("{}: the path has a zero byte", path.display()))?;
    // The symbols are global, because Open MPI loads modules that look for its symbols there.
    let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL;
    // SAFETY: the name ends with a zero. The library's constructors run, as they would if the
    // program were linked with the library.
    match NonNull::new(unsafe { libc::dlopen(name.as_ptr(), flags) }) {
        Some(handle) => Ok(Library { handle, name: path.display().to_string() }),
        None => Err(last_error()),
    }
}

/// What dlopen said last on this OS thread.
fn last_error() -> String {
    // SAFETY: dlerror has no preconditions.
    let text: *mut c_char = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gives no reason".to_string();
    }
    // SAFETY: a text of the loader ends with a zero, and stays until the next call on this OS
    // thread.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// No MPI library could be loaded. Its text says which files were tried, and which Debian package
/// has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// What the loader said of each file.
    tried: Vec<String>,
    launched: Option<Launched>,
}

impl LoadError {
    /// The Debian package that has the missing library, together with its launcher.
    pub fn package(&self) -> &'static str {
        match self.launched.map(|launched| launched.launcher) {
            Some(MpiLauncher::Pmi) => "mpich",
            Some(MpiLauncher::OpenMpi | MpiLauncher::Pmix) | None => "openmpi-bin",
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no MPI library can be loaded")?;
        if let Some(launched) = self.launched {
            write!(f, ", and {} has started this process", launched.launcher)?;
        }
        write!(f, ". Install the Debian package {}, or set {PATH_VARIABLE}", self.package())?;
        write!(f, " to the library's file. Tried: {}", self.tried.join("; "))
    }
}

impl std::error::Error for LoadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_told_with_its_package() {
        let tried = vec![open(Path::new("libmpi.so.0-not-here")).unwrap_err()];
        let launched = |launcher| Some(Launched { launcher, size: None });
        let error = LoadError { tried: tried.clone(), launched: launched(MpiLauncher::Pmi) };
        let text = error.to_string();
        assert!(text.contains("the Debian package mpich,"), "{text}");
        assert!(text.contains("libmpi.so.0-not-here: cannot open shared object file"), "{text}");
        let error = LoadError { tried, launched: launched(MpiLauncher::OpenMpi) };
        assert!(error.to_string().contains("the mpirun of Open MPI has started this process"));
        assert_eq!(error.package(), "openmpi-bin");
    }

    #[test]
    fn a_library_of_the_launchers_family_comes_first() {
        assert_eq!(names(Some(MpiLauncher::Pmi))[0], "libmpi.so.12");
        assert_eq!(names(Some(MpiLauncher::OpenMpi))[0], "libmpi.so.40");
    }
}
