//! Whether an edge with clean inputs has to run all the same: rule 3 of `project.rs`.
//!
//! `visit.rs` calls `outputs_dirty` before the build, and `Project::must_run` calls it again when
//! everything before the edge has been made. `command_hash` is here too, because the hash of the
//! command is one of the reasons. `build/finish.rs` records the same hash.

use super::{Project, ProjectError};
use crate::disk;
use crate::graph::{EdgeId, Files, NodeId, names};

impl Project {
    pub(super) fn set_outputs_dirty(&mut self, edge: EdgeId, dirty: bool) {
        // `disk` makes `nodes` long enough for all outputs.
        let last = self.graph.outputs(edge).max();
        last.map(|last| self.disk(last));
        for output in self.graph.outputs(edge) {
            self.nodes[output.index()].dirty = dirty;
        }
    }

    /// Whether an edge with clean inputs has to run all the same.
    pub(super) fn outputs_dirty(
        &mut self,
        edge: EdgeId,
        newest: Option<NodeId>,
    ) -> Result<bool, ProjectError> {
        let newest = newest.map(|input| (input, self.nodes[input.index()].mtime));
        let first = self.graph.files_of(edge, Files::Outputs).len();
        let single = first == 1 && self.graph.outputs(edge).nth(1).is_none();
        let mut hash = None;
        if single {
            let output = self.graph.files_of(edge, Files::Outputs)[0];
            return self.output_dirty(edge, output, newest, &mut hash);
        }
        for output in self.graph.outputs(edge).collect::<Vec<_>>() {
            if self.output_dirty(edge, output, newest, &mut hash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn output_dirty(
        &mut self,
        edge: EdgeId,
        output: NodeId,
        newest: Option<(NodeId, i64)>,
        hash: &mut Option<u64>,
    ) -> Result<bool, ProjectError> {
        let mtime = self.mtime(output)?;
        if self.graph.is_phony(edge) {
            let borrowed = self.disk(output).borrowed;
            if mtime == disk::MISSING && !borrowed && self.graph.inputs(edge).next().is_none() {
                return Ok(true);
            }
            if let Some((_, newest)) = newest
                && (mtime == disk::MISSING || borrowed)
            {
                let disk = self.disk(output);
                (disk.mtime, disk.borrowed) = (mtime.max(newest), true);
            }
            return Ok(false);
        }
        if mtime == disk::MISSING {
            self.explain(edge, |graph| [b"output ", graph.path(output), b" doesn't exist"].concat());
            return Ok(true);
        }
        let entry = self.build_log.entry(output);
        let restats = entry.is_some() && self.graph.restats(edge)?;
        // A command that restats may have left the output as it was. So only the time in the log
        // counts, and not the output's own mtime.
        if let Some((input, newest)) = newest.filter(|(_, newest)| !restats && mtime < *newest) {
            self.explain(edge, |graph| {
                let times = format!(" ({mtime} vs {newest})");
                let (output, input) = (graph.path(output), graph.path(input));
                [b"output ", output, b" older than most recent input ", input, times.as_bytes()].concat()
            });
            return Ok(true);
        }
        let generator = self.graph.has(edge, names::GENERATOR)?;
        let Some(entry) = entry else {
            if !generator {
                self.explain(edge, |graph| {
                    [b"command line not found in log for ", graph.path(output)].concat()
                });
            }
            return Ok(!generator);
        };
        if entry.is_unfinished() {
            self.explain(edge, |graph| {
                [b"the command of ", graph.path(output), b" did not succeed"].concat()
            });
            return Ok(true);
        }
        if !generator && self.hash(edge, hash)? != entry.hash {
            self.explain(edge, |graph| [b"command line changed for ", graph.path(output)].concat());
            return Ok(true);
        }
        if let Some((input, newest)) = newest.filter(|(_, newest)| entry.mtime < *newest) {
            self.explain(edge, |graph| {
                let times = format!(" ({} vs {newest})", entry.mtime);
                let (output, input) = (graph.path(output), graph.path(input));
                let reason = b" older than most recent input ";
                [b"recorded mtime of ", output, reason, input, times.as_bytes()].concat()
            });
            return Ok(true);
        }
        Ok(false)
    }

    /// The hash of an edge's command, computed once.
    fn hash(&mut self, edge: EdgeId, known: &mut Option<u64>) -> Result<u64, ProjectError> {
        if let Some(hash) = known {
            return Ok(*hash);
        }
        let hash = self.command_hash(edge)?;
        *known = Some(hash);
        Ok(hash)
    }

    /// The hash by which the build log knows an edge's command.
    ///
    /// # Errors
    /// If the command has a circle of variables.
    pub fn command_hash(&mut self, edge: EdgeId) -> Result<u64, ProjectError> {
        self.scratch.clear();
        let evaluated = self.graph.command_with_content(edge, &mut self.scratch);
        evaluated?;
        Ok(self.build_log.hash(&self.scratch))
    }
}
