//! The `EpollCalls` of `Kernel`: the epoll set with its edges, and `epoll_wait`, which moves the
//! clock.
//!
//! The ordinary event loop of `selvedge-io` makes the calls (`sys/epoll.rs`). The other files of
//! `kernel` call `edge` when a state of an object begins; an edge too few lets a program hang in a
//! way that Linux would not. `epoll_wait` lets the entries of the calendar happen, and moves the
//! virtual clock to the next of them. It fails with `EDEADLK` when nothing can happen any more.

use super::*;

impl Kernel {
    /// Puts an edge on each descriptor of an object, because a state of the object has begun.
    pub(super) fn edge(&mut self, id: Id) {
        let Some(object) = self.object(id) else { return };
        let numbers = object.numbers.clone();
        for epoll in self.epolls.clone() {
            if let Some(KernelObject { kind: ObjectKind::Epoll(epoll), .. }) = self.object(epoll) {
                numbers.iter().for_each(|&number| epoll.edge(number));
            }
        }
    }

    /// The present state of a descriptor.
    pub(super) fn state(&mut self, number: usize) -> EventFlags {
        let Some(id) = self.descriptors.get(number - NUMBER_MIN).copied().flatten() else {
            return EventFlags::empty();
        };
        let has_room = match self.stream(id) {
            Some(stream) if stream.full => false,
            Some(stream) => {
                let peer = stream.peer;
                self.stream(peer).is_none_or(|peer| peer.room() > 0)
            }
            None => false,
        };
        match self.objects[id as usize].as_ref().map(|object| &object.kind) {
            Some(ObjectKind::Listener(listener)) if !listener.backlog.is_empty() => EventFlags::IN,
            Some(ObjectKind::Stream(stream)) => stream.flags(has_room),
            Some(ObjectKind::Datagrams(socket)) => self.datagrams_flags(socket),
            Some(ObjectKind::Pipe(end)) => self.pipe_flags(end),
            Some(ObjectKind::Signals(subscription)) if subscription.pending != 0 => EventFlags::IN,
            _ => EventFlags::empty(),
        }
    }

    pub(super) fn epoll(&mut self, set: RawFd) -> Result<&mut Epoll> {
        let id = self.id(set)?;
        match self.object(id) {
            Some(KernelObject { kind: ObjectKind::Epoll(epoll), .. }) => Ok(epoll),
            _ => Err(Errno::INVAL),
        }
    }

    /// Registers a descriptor. `unless` is the error to fail with: `EXIST` if the descriptor must
    /// be new to the set, `NOENT` if it must be in it.
    fn epoll_set(&mut self, set: RawFd, fd: RawFd, member: Member, unless: Errno) -> Result<()> {
        let Some(number) = number(fd) else { return Ok(()) };
        let id = self.id(fd)?;
        if let Some(KernelObject { kind: ObjectKind::File(_), .. }) = self.object(id) {
            return Err(Errno::PERM);
        }
        let is_ready = self.state(number).intersects(member.interest | EventFlags::HUP | EventFlags::ERR);
        let epoll = self.epoll(set)?;
        if epoll.members.contains_key(&number) == (unless == Errno::EXIST) {
            return Err(unless);
        }
        epoll.members.insert(number, member);
        if is_ready {
            epoll.edge(number);
        }
        Ok(())
    }

    /// At most `room` events of an epoll set, oldest edge first.
    fn report(&mut self, set: RawFd, room: usize) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        while events.len() < room {
            let Some(number) = self.epoll(set)?.edges.pop_front() else { break };
            let Some(member) = self.epoll(set)?.members.get_mut(&number) else { continue };
            member.queued = false;
            let (data, interest) = (member.data, member.interest);
            let flags = self.state(number) & (interest | EventFlags::HUP | EventFlags::ERR);
            if !flags.is_empty() {
                events.push(Event { flags, data: EventData::new_u64(data) });
            }
        }
        Ok(events)
    }
}

impl EpollCalls for Kernel {
    fn epoll_create(&mut self) -> Result<RawFd> {
        self.has_descriptor_left()?;
        let id = self.add(ObjectKind::Epoll(Epoll::default()));
        self.epolls.push(id);
        Ok(self.describe(id))
    }

    /// Registers a descriptor. A real descriptor is never ready in a simulation.
    fn epoll_add(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()> {
        self.epoll_set(set, fd, Member { data, interest, queued: false }, Errno::EXIST)
    }

    /// Changes the interest in a descriptor. A descriptor that is ready gets an edge.
    fn epoll_modify(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()> {
        self.epoll_set(set, fd, Member { data, interest, queued: false }, Errno::NOENT)
    }

    fn epoll_delete(&mut self, set: RawFd, fd: RawFd) -> Result<()> {
        let Some(number) = number(fd) else { return Ok(()) };
        self.epoll(set)?.members.remove(&number).map(|_| ()).ok_or(Errno::NOENT)
    }

    fn epoll_wait(&mut self, set: RawFd, room: usize, timeout: Option<Duration>) -> Result<Vec<Event>> {
        let limit = timeout.map(|timeout| Time::now() + timeout);
        loop {
            if !self.leaves_arrivals {
                while let Some(Reverse(next)) = self.calendar.peek()
                    && next.at <= Time::now()
                {
                    let Some(Reverse(entry)) = self.calendar.pop() else { break };
                    self.happen(entry.what);
                }
            }
            let events = self.report(set, room)?;
            if !events.is_empty() || limit.is_some_and(|limit| limit <= Time::now()) {
                return Ok(events);
            }
            let next = self.calendar.peek().map(|Reverse(entry)| entry.at);
            if self.leaves_arrivals && next.is_some_and(|next| next <= Time::now()) {
                // The call returns without an event, so that the scheduler chooses among the
                // arrivals.
                return Ok(events);
            }
            match next.into_iter().chain(limit).min() {
                Some(until) => VirtualClock::advance(until),
                None => return Err(Errno::DEADLK),
            }
        }
    }

    /// No set of the real kernel has descriptors of a simulated one.
    fn has_events(&mut self, _: RawFd) -> bool {
        false
    }
}
