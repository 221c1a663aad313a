//! What follows a command: the inputs that it names, the outputs that it left as they were, and the
//! lines of the logs.
//!
//! `Runner::run` in `finish.rs` calls `read_deps` and then `record`. `record` writes the deps log
//! before the build log. If this process is killed between the two, then the build log has no fresh
//! line, and the command runs again.

use super::finish::{CommandError, Finished, Order};
use super::includes;
use super::runner::Runner;
use crate::error::MakeError;
use crate::evaluate::DepsFormat;
use crate::graph::{EdgeId, NodeId, names};
use crate::log::build_log::Entry;
use crate::log::deps_log::Deps;
use crate::project::{Project, ProjectError, as_path};
use crate::{canonical, depfile, disk};
use std::fs;
use std::io;

impl Runner {
    /// The inputs that the edge's compiler names, if the edge has `deps`. With `deps = msvc` it
    /// takes them out of the messages in `finished`. A depfile that cannot be used makes the edge
    /// fail: then `failure` in `finished` says why.
    ///
    /// # Errors
    /// Those of [`Graph::deps_format`](crate::graph::Graph::deps_format).
    pub(super) fn read_deps(
        &self,
        edge: EdgeId,
        order: &Order,
        finished: &mut Finished,
    ) -> Result<Option<Vec<NodeId>>, MakeError> {
        let mut project = self.project.borrow_mut();
        let deps = project.graph.deps_format(edge)?;
        let error = match deps {
            None => return Ok(None),
            Some(DepsFormat::Msvc) => {
                let prefix = project.graph.value(edge, names::MSVC_DEPS_PREFIX)?;
                let (headers, messages) = includes::read(&finished.output, &prefix);
                finished.output = messages;
                return Ok(Some(headers.iter().map(|header| project.graph.node(header)).collect()));
            }
            _ if finished.failure.is_some() => return Ok(None),
            Some(DepsFormat::Gcc) => match self.depfile(&mut project, order) {
                Ok(inputs) => return Ok(Some(inputs)),
                Err(error) => error,
            },
        };
        finished.failure = Some(CommandError::other("its depfile cannot be used"));
        finished.output.extend_from_slice(error.to_string().as_bytes());
        Ok(None)
    }

    /// Reads and removes the depfile that a compiler has written.
    fn depfile(&self, project: &mut Project, order: &Order) -> Result<Vec<NodeId>, MakeError> {
        if order.depfile.is_empty() {
            return Err(ProjectError::NoDepfile.into());
        }
        let path = as_path(&order.depfile);
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(MakeError::of_file(path)(error)),
        };
        let parsed = depfile::parse(&text)
            .map_err(|error| ProjectError::Depfile { path: path.to_path_buf(), error })?;
        let mut nodes = Vec::with_capacity(parsed.inputs.len());
        for mut input in parsed.inputs {
            canonical::canonicalize(&mut input);
            nodes.push(project.graph.node(&input));
        }
        if !self.options.keep_depfile {
            fs::remove_file(path).map_err(MakeError::of_file(path))?;
        }
        Ok(nodes)
    }

    /// Follows a command that succeeded: marks outputs that it has left as they were clean, removes
    /// its response file, and writes the command and its inputs to the logs.
    ///
    /// # Errors
    /// The build cannot go on: a log cannot be written, an output cannot be looked at.
    pub(super) fn record(
        &self,
        edge: EdgeId,
        order: &Order,
        mut entry: Entry,
        inputs: Option<Vec<NodeId>>,
    ) -> Result<(), MakeError> {
        let mut project = self.project.borrow_mut();
        let restats = project.graph.restats(edge)?;
        let generator = project.graph.has(edge, names::GENERATOR)?;
        if restats || generator {
            let (mut unchanged, began) = (false, entry.mtime);
            for output in &order.outputs {
                let before = project.mtime(*output)?;
                let after = disk::mtime(project.graph.path(*output))?;
                entry.mtime = entry.mtime.max(after);
                if restats && before == after {
                    project.set_clean(*output);
                    unchanged = true;
                }
            }
            if unchanged {
                entry.mtime = began;
            }
        }
        if !order.rspfile.is_empty() && !self.options.keep_rspfile {
            let _ = fs::remove_file(as_path(&order.rspfile));
        }
        let Project { graph, build_log, deps_log, .. } = &mut *project;
        for output in &order.outputs {
            if let Some(inputs) = &inputs {
                let mtime = disk::mtime(graph.path(*output))?;
                let deps = Deps { mtime, inputs: inputs.clone() };
                deps_log.record(graph, *output, deps).map_err(MakeError::DepsLog)?;
            }
        }
        for output in &order.outputs {
            let recorded = build_log.record(graph, *output, entry);
            recorded.map_err(MakeError::BuildLog)?;
        }
        Ok(())
    }
}
