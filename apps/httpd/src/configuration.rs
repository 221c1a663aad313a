//! From the files of a configuration to the routes and the options of a server:
//! [`ConfigurationFiles`] names the files, [`load`] reads them. `main.rs` loads them at the start
//! and for `check`, `running.rs` at each reload.

use crate::options::{Address, Log, Options};
use crate::startup_error::StartupError;
use selvedge_http::{ConnectionGate, LogFormat, Rotation, Routing, Severity, ZipStore};
use selvedge_site::settings::Settings;
use selvedge_site::{ConfigError, Network, RouteAction, RouteTable, mighty};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The files of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConfigurationFiles {
    /// One in TOML.
    Toml(PathBuf),
    /// Mighttpd's configuration and its route file.
    Mighty(PathBuf, PathBuf),
}

/// A configuration that was read and found right.
pub(crate) struct Loaded {
    pub(crate) routing: Arc<Routing>,
    pub(crate) archives: OpenArchives,
    pub(crate) options: Options,
    pub(crate) process: ProcessSettings,
    pub(crate) warnings: Vec<ConfigError>,
    /// A mistake without words at the place of each address of `listen`, in the same order. Empty
    /// if the configuration names none.
    pub(crate) listen_places: Vec<ConfigError>,
}

/// The zip archives of a configuration, by their paths.
pub(crate) type OpenArchives = HashMap<PathBuf, ZipStore>;

/// What concerns the process and not what it serves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcessSettings {
    pub(crate) processes: usize,
    pub(crate) user: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) pid_file: Option<PathBuf>,
    pub(crate) report: Option<PathBuf>,
    pub(crate) daemon: bool,
    pub(crate) control: Option<PathBuf>,
    /// The least of the reports that are written.
    pub(crate) level: Severity,
    pub(crate) format: LogFormat,
    pub(crate) rotation: Rotation,
    pub(crate) connections_per_address: u32,
    pub(crate) balancers: Vec<String>,
}

impl Default for ProcessSettings {
    /// Those of a server for a directory.
    fn default() -> ProcessSettings {
        ProcessSettings {
            processes: 1,
            user: None,
            group: None,
            pid_file: None,
            report: None,
            daemon: false,
            control: None,
            level: Severity::Notice,
            format: LogFormat::default(),
            rotation: Rotation::default(),
            connections_per_address: 0,
            balancers: Vec::new(),
        }
    }
}

impl ProcessSettings {
    /// What connections pass before their first request.
    pub(crate) fn gate(&self) -> Option<Arc<ConnectionGate>> {
        ConnectionGate::new(self.networks(), self.connections_per_address)
    }

    /// The networks of the balancers.
    pub(crate) fn networks(&self) -> Vec<Network> {
        self.balancers.iter().map(|text| text.parse().expect("`read` has checked it")).collect()
    }
}

/// Reads the files, and opens the directories that they name.
///
/// # Errors
/// The first mistake, with status 2.
pub(crate) fn load(source: &ConfigurationFiles) -> Result<Loaded, StartupError> {
    let startup_error = |mistake: ConfigError| StartupError { message: mistake.to_string(), status: 2 };
    let (file, text, settings, table, warnings) = match source {
        ConfigurationFiles::Toml(path) => {
            let text = contents(path)?;
            let file = path.display().to_string();
            let base = base_of(path);
            let (settings, table) = selvedge_site::read(&file, &text, &base, |path| fs::read_to_string(path))
                .map_err(startup_error)?;
            let settings = Settings {
                pid_file: settings.pid_file.map(|path| base.join(path)),
                control: settings.control.map(|path| base.join(path)),
                report: settings.report.map(|path| base.join(path)),
                ..settings
            };
            (file, text, settings, table, Vec::new())
        }
        ConfigurationFiles::Mighty(configuration, routes) => {
            let text = contents(configuration)?;
            let file = configuration.display().to_string();
            let (settings, defaults, warnings) =
                mighty::configuration(&file, &text).map_err(startup_error)?;
            let route_text = contents(routes)?;
            let route_file = routes.display().to_string();
            let table = mighty::routes(&route_file, &route_text, &defaults).map_err(startup_error)?;
            let (options, process) = split(&settings, &file, &text)?;
            let listen_places = listen_places(&settings, &file, &text);
            return Ok(Loaded { listen_places, ..finish(&route_file, table, options, process, warnings)? });
        }
    };
    let (mut options, process) = split(&settings, &file, &text)?;
    if let (Log::File(path), ConfigurationFiles::Toml(source)) = (&mut options.log, source) {
        *path = base_of(source).join(&*path);
    }
    let listen_places = listen_places(&settings, &file, &text);
    Ok(Loaded { listen_places, ..finish(&file, table, options, process, warnings)? })
}

fn listen_places(settings: &Settings, file: &str, text: &str) -> Vec<ConfigError> {
    let places = settings.listen.get_ref().iter();
    places.map(|address| ConfigError::at(file, text, address.span().start, "")).collect()
}

fn finish(
    file: &str,
    table: RouteTable,
    options: Options,
    process: ProcessSettings,
    warnings: Vec<ConfigError>,
) -> Result<Loaded, StartupError> {
    let startup_error = |line: usize, message: String| {
        let mistake = ConfigError { file: file.to_owned(), line, column: usize::from(line > 0), message };
        StartupError { message: mistake.to_string(), status: 2 }
    };
    let mut archives = OpenArchives::new();
    for (_, route) in table.routes() {
        if let RouteAction::Archive(path) = &route.action
            && !archives.contains_key(path)
        {
            let opened =
                ZipStore::open(path).map_err(|error| startup_error(route.line, error.to_string()))?;
            archives.insert(path.clone(), opened);
        }
    }
    let routing = Routing::new(table).map_err(|error| startup_error(error.line, error.to_string()))?;
    Ok(Loaded { routing, archives, options, process, warnings, listen_places: Vec::new() })
}

fn contents(path: &Path) -> Result<String, StartupError> {
    fs::read_to_string(path)
        .map_err(|error| StartupError { message: format!("{}: {error}", path.display()), status: 2 })
}

/// The directory that relative paths of the file at `path` are relative to.
fn base_of(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned())
}

/// The options and the process that the settings ask for.
fn split(settings: &Settings, file: &str, text: &str) -> Result<(Options, ProcessSettings), StartupError> {
    let mistake = |at: usize, message: String| StartupError {
        message: ConfigError::at(file, text, at, message).to_string(),
        status: 2,
    };
    let mut options = Options::new(".".into());
    options.listen.clear();
    for address in settings.listen.get_ref() {
        let parsed = address.get_ref().parse::<Address>();
        options.listen.push(parsed.map_err(|why| mistake(address.span().start, why.to_owned()))?);
    }
    if options.listen.is_empty() {
        options.listen = Options::new(".".into()).listen;
    }
    options.unix_mode =
        settings.unix_mode.as_ref().and_then(|mode| u32::from_str_radix(mode.get_ref(), 8).ok());
    options.workers = settings.workers.as_ref().map(|workers| *workers.get_ref() as usize);
    let seconds = Duration::from_secs_f64;
    let limits = &settings.limits;
    (options.idle, options.head) = (seconds(limits.idle), seconds(limits.head));
    (options.body, options.write) = (seconds(limits.body), seconds(limits.write));
    (options.drain, options.validity) = (seconds(limits.drain), seconds(settings.cache.validity));
    options.head_bytes = *limits.head_bytes.get_ref() as usize;
    options.body_bytes = limits.body_bytes;
    options.cache_files = settings.cache.files as usize;
    options.cache_bytes = settings.cache.bytes as usize;
    options.cache_direct = settings.cache.direct as usize;
    let log = &settings.log;
    options.log = match log.access.as_str() {
        "off" => Log::Off,
        "-" => Log::Stdout,
        path => Log::File(path.into()),
    };
    let format = log.format.get_ref().parse::<LogFormat>();
    let format = format.map_err(|error| mistake(log.format.span().start, error.to_string()))?;
    let level = Severity::ALL.iter().find(|(name, _)| name == log.level.get_ref());
    let Some((_, level)) = level.copied() else {
        let why = format!("{:?} is not \"error\", \"warning\" or \"notice\"", log.level.get_ref());
        return Err(mistake(log.level.span().start, why));
    };
    let rotation = Rotation {
        bytes: log.rotate_bytes,
        period: Duration::from_secs(log.rotate_seconds),
        backups: log.backups,
    };
    let processes = *settings.processes.get_ref() as usize;
    if processes > 1 && options.listen.iter().any(|one| matches!(one, Address::Unix(_))) {
        let at = settings.processes.span().start;
        return Err(mistake(at, "several processes can listen at TCP addresses only".into()));
    }
    let process = ProcessSettings {
        processes,
        user: settings.user.as_ref().map(|user| user.get_ref().clone()),
        group: settings.group.as_ref().map(|group| group.get_ref().clone()),
        pid_file: settings.pid_file.clone(),
        report: settings.report.clone(),
        daemon: settings.daemon,
        control: settings.control.clone(),
        level,
        format,
        rotation: if matches!(options.log, Log::File(_)) { rotation } else { Rotation::default() },
        connections_per_address: limits.connections_per_address,
        balancers: settings.proxy_protocol.iter().map(|one| one.get_ref().clone()).collect(),
    };
    Ok((options, process))
}
