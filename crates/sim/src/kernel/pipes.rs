//! The `PipeCalls` of `Kernel`: the calls on pipes and FIFOs (`Pipe`, `PipeEnd`), which
//! `selvedge-io`'s `sys/pipe.rs` makes. `files.rs` opens a FIFO through `open_fifo`.
//!
//! Bytes in a pipe arrive at once; only room takes time (`PipeRoom` in the calendar). The edges
//! follow Linux: a state of the pipe that begins puts an edge on the ends that can see it.

use super::*;

impl Kernel {
    fn new_pipe(&mut self) -> Id {
        let capacity = self.window().max(PIPE_BUF);
        let (readers, writers) = (Vec::new(), Vec::new());
        let pipe = Pipe { bytes: VecDeque::new(), capacity, readers, writers, begun: false, full: false };
        self.pipes.push(Some(pipe));
        self.pipes.len() as Id - 1
    }

    fn add_end(&mut self, end: PipeEnd) -> Id {
        let (reads, writes, pipe) = (end.reads, end.writes, end.pipe);
        let id = self.add(ObjectKind::Pipe(end));
        let pipe = self.pipe_mut(pipe).expect("just looked up or made");
        if reads {
            pipe.readers.push(id);
        }
        if writes {
            pipe.writers.push(id);
            pipe.begun = true;
        }
        id
    }

    fn pipe_mut(&mut self, pipe: Id) -> Option<&mut Pipe> {
        self.pipes[pipe as usize].as_mut()
    }

    /// Opens an end of a FIFO. Its file is open already.
    pub(super) fn open_fifo(&mut self, ino: Ino, reads: bool, writes: bool) -> Result<RawFd> {
        let pipe = match self.fifos.get(&ino) {
            Some(&pipe) => pipe,
            None => {
                let pipe = self.new_pipe();
                self.fifos.insert(ino, pipe);
                pipe
            }
        };
        let id = self.add_end(PipeEnd { pipe, reads, writes, fifo: Some(ino) });
        let fd = self.describe(id);
        if writes && self.pipe_mut(pipe).is_some_and(|pipe| pipe.readers.is_empty()) {
            self.close(fd);
            return Err(Errno::NXIO);
        }
        Ok(fd)
    }

    pub(super) fn close_end(&mut self, id: Id, end: &PipeEnd) {
        let Some(pipe) = self.pipe_mut(end.pipe) else { return };
        pipe.readers.retain(|&other| other != id);
        pipe.writers.retain(|&other| other != id);
        let (readers, writers) = (pipe.readers.clone(), pipe.writers.clone());
        if readers.is_empty() && writers.is_empty() {
            self.pipes[end.pipe as usize] = None;
            end.fifo.map(|ino| self.fifos.remove(&ino));
        }
        let left = if readers.is_empty() { writers } else { readers };
        if end.reads && end.writes || self.is_last(end) {
            left.into_iter().for_each(|id| self.edge(id));
        }
        if let Some(ino) = end.fifo {
            self.disk.close(ino);
        }
    }

    /// Whether no end is left on the side of an end that was closed.
    fn is_last(&mut self, end: &PipeEnd) -> bool {
        self.pipe_mut(end.pipe)
            .is_some_and(|pipe| end.reads && pipe.readers.is_empty() || end.writes && pipe.writers.is_empty())
    }

    pub(super) fn pipe_flags(&self, end: &PipeEnd) -> EventFlags {
        self.pipes[end.pipe as usize].as_ref().map_or(EventFlags::empty(), |pipe| pipe.flags(end))
    }

    fn end_at(&mut self, fd: RawFd) -> Result<(Id, &PipeEnd)> {
        let id = self.id(fd)?;
        match self.object(id) {
            Some(KernelObject { kind: ObjectKind::Pipe(end), .. }) => Ok((id, end)),
            _ => Err(Errno::INVAL),
        }
    }

    /// A pipe takes bytes again.
    pub(super) fn pipe_room(&mut self, number: Id) {
        let Some(pipe) = self.pipe_mut(number) else { return };
        pipe.full = false;
        if pipe.room() >= PIPE_BUF {
            let writers = pipe.writers.clone();
            writers.into_iter().for_each(|writer| self.edge(writer));
        }
    }
}

impl PipeCalls for Kernel {
    fn pipe(&mut self) -> Result<(RawFd, RawFd)> {
        if self.open + 2 > self.conditions.descriptors_max {
            return Err(Errno::MFILE);
        }
        let pipe = self.new_pipe();
        let reader = self.add_end(PipeEnd { pipe, reads: true, writes: false, fifo: None });
        let writer = self.add_end(PipeEnd { pipe, reads: false, writes: true, fifo: None });
        Ok((self.describe(reader), self.describe(writer)))
    }

    /// Reads from a pipe. Programs read from other descriptors by other calls.
    fn read(&mut self, fd: RawFd, room: usize) -> Result<Vec<u8>> {
        let (id, end) = self.end_at(fd)?;
        if !end.reads {
            return Err(Errno::BADF);
        }
        let number = end.pipe;
        let pipe = self.pipe_mut(number).expect("an end of it is open");
        if pipe.bytes.is_empty() && room > 0 {
            return if pipe.writers.is_empty() { Ok(Vec::new()) } else { Err(Errno::AGAIN) };
        }
        let had_room = pipe.room() >= PIPE_BUF;
        let bytes: Vec<u8> = pipe.bytes.drain(..room.min(pipe.bytes.len())).collect();
        let writers = if !had_room && pipe.room() >= PIPE_BUF { pipe.writers.clone() } else { Vec::new() };
        writers.into_iter().for_each(|writer| self.edge(writer));
        self.note(u64::from(id) << 32 | bytes.len() as u64);
        Ok(bytes)
    }

    fn write(&mut self, fd: RawFd, bytes: &[u8]) -> Result<usize> {
        let (id, end) = self.end_at(fd)?;
        if !end.writes {
            return Err(Errno::BADF);
        }
        let number = end.pipe;
        let pipe = self.pipe_mut(number).expect("an end of it is open");
        if pipe.readers.is_empty() {
            return Err(Errno::PIPE);
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let room = pipe.room();
        if room == 0 || bytes.len() <= PIPE_BUF && room < bytes.len() {
            return Err(Errno::AGAIN);
        }
        let mut written = bytes.len().min(room);
        if bytes.len() > PIPE_BUF && written > 1 && self.random.happens(self.conditions.short_write) {
            written = 1 + self.random.below(written as u64 - 1) as usize;
            self.pipe_mut(number).expect("as above").full = true;
            self.later(Happening::PipeRoom { pipe: number });
        }
        let pipe = self.pipe_mut(number).expect("as above");
        pipe.bytes.extend(&bytes[..written]);
        let readers = pipe.readers.clone();
        readers.into_iter().for_each(|reader| self.edge(reader));
        self.note(u64::from(id) << 32 | written as u64 | 1 << 31);
        Ok(written)
    }
}
