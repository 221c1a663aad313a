//! Worlds that did not start together: [`Port`], at which one accepts what another connects, and
//! the names under which ports are found.
//!
//! `port/queue.rs` has the meeting of two worlds of one process, and `port/socket.rs` that of two
//! processes.

mod queue;
mod socket;

use crate::collective::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::intercommunicator::InterCommunicator;
use crate::joined::{JoinWay, JoinedWorlds, check_all_here, sides};
use queue::{PortQueue, knocked};
use selvedge_io::net::UnixListener;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A place at which the ranks of one world [accept](Communicator::accept) those of another one,
/// which [connect](Communicator::connect) to its name. It is closed when it is dropped.
///
/// The worlds of one process meet at a port that was [opened](Port::open), and those of several
/// processes of a machine at one that was [bound](Port::bind) to a path.
///
/// # Examples
/// Two servers and a client that know each other by a name:
/// ```
/// use selvedge::mpi::{self, Communicator, Port};
///
/// async fn server(world: Communicator) -> Result<(), mpi::Error> {
///     let port = (world.rank() == 0).then(Port::open);
///     if let Some(port) = &port {
///         port.publish("squares").expect("no other port has this name");
///     }
///     let client = world.accept(0, port.as_ref()).await?;
///     if world.rank() == 1 {
///         let (number, status) = client.recv::<u64>(mpi::ANY, ()).await?;
///         client.send(status.source, (), number * number).await?;
///     }
///     Ok(())
/// }
///
/// async fn client(world: Communicator) -> Result<(), mpi::Error> {
///     let name = loop {
///         match mpi::lookup_name("squares") {
///             Some(name) => break name,
///             None => selvedge::yield_now().await,
///         }
///     };
///     let servers = world.connect(0, Some(&name)).await?;
///     servers.send(1, (), 12_u64).await?;
///     assert_eq!(servers.recv::<u64>(1, ()).await?.0, 144);
///     Ok(())
/// }
///
/// # selvedge::round_robin(async {
/// let (served, asked) = selvedge::scope::join((mpi::run(2, server), mpi::run(1, client))).await;
/// served.unwrap();
/// asked.unwrap();
/// # })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "openPort")]
#[doc(alias = "closePort")]
#[doc(alias = "MPI_Open_port")]
#[doc(alias = "MPI_Close_port")]
pub struct Port {
    name: String,
    place: PortPlace,
}

/// Where a port is.
#[derive(Clone)]
enum PortPlace {
    /// In this process.
    Here(Arc<PortQueue>),
    /// A socket of the machine.
    Socket(Arc<UnixListener>),
}

/// The open ports, and the names under which they are found.
#[derive(Default)]
struct OpenPorts {
    queues: HashMap<String, Arc<PortQueue>>,
    names: HashMap<String, String>,
}

static OPEN: Mutex<Option<OpenPorts>> = Mutex::new(None);

/// What the names of ports begin with that are sockets.
const SOCKET: &str = "unix:";

static NEXT: AtomicU64 = AtomicU64::new(0);

fn with_open<R>(act: impl FnOnce(&mut OpenPorts) -> R) -> R {
    act(OPEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

impl Port {
    /// Opens a port with a name that no other port of the process has.
    pub fn open() -> Port {
        let name = format!("port-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let queue = Arc::new(PortQueue::default());
        with_open(|open| open.queues.insert(name.clone(), queue.clone()));
        Port { name, place: PortPlace::Here(queue) }
    }

    /// Opens a port that other processes of the machine reach, those of the same user: a socket
    /// with this path. Its name is `unix:` and the path. The file stays when the port is dropped.
    /// The scheduler needs an event loop, as `selvedge::main` has one.
    ///
    /// The messages of the worlds that meet there go through shared memory, whatever the engines of
    /// the two are.
    ///
    /// # Complexity
    /// Each rank of two worlds that have met has two OS threads for it until its run has ended, and
    /// the memory of a [`LocalJob`](crate::processes::LocalJob) of all ranks of both.
    ///
    /// # Errors
    /// If the socket cannot be made: a file has this path, or a permission is missing.
    ///
    /// # Examples
    /// ```no_run
    /// use selvedge::mpi::{self, Communicator, Port};
    ///
    /// // One program: selvedge-mpirun -n 4 server
    /// async fn server(world: Communicator) -> Result<(), mpi::Error> {
    ///     let bind = || Port::bind("/run/user/1000/squares").expect("the path is free");
    ///     let port = (world.rank() == 0).then(bind);
    ///     let clients = world.accept(0, port.as_ref()).await?;
    ///     clients.send(0, (), "hello".to_string()).await
    /// }
    ///
    /// // And another one.
    /// async fn client(world: Communicator) -> Result<(), mpi::Error> {
    ///     let servers = world.connect(0, Some("unix:/run/user/1000/squares")).await?;
    ///     println!("{:?}", servers.recv::<String>(mpi::ANY, ()).await?);
    ///     Ok(())
    /// }
    /// ```
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Port> {
        let listener = UnixListener::bind(&path)?;
        let name = format!("{SOCKET}{}", path.as_ref().display());
        Ok(Port { name, place: PortPlace::Socket(Arc::new(listener)) })
    }

    /// The name of the port, for [`Communicator::connect`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets the port be found under another name, by [`lookup_name`], until it is closed.
    ///
    /// # Errors
    /// If another port is published under this name.
    #[doc(alias = "MPI_Publish_name")]
    #[doc(alias = "MPI_Unpublish_name")]
    pub fn publish(&self, service: impl Into<String>) -> Result<(), NameTakenError> {
        let service = service.into();
        with_open(|open| match open.names.get(&service) {
            Some(other) if *other != self.name => Err(NameTakenError { service, port: other.clone() }),
            _ => {
                open.names.insert(service, self.name.clone());
                Ok(())
            }
        })
    }
}

/// Another port is [published](Port::publish) under the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTakenError {
    service: String,
    port: String,
}

impl NameTakenError {
    /// The name of the port that is published.
    pub fn port(&self) -> &str {
        &self.port
    }
}

impl fmt::Display for NameTakenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the port {} is published as {}", self.port, self.service)
    }
}

impl std::error::Error for NameTakenError {}

/// The name of the port that is [published](Port::publish) under this name in the process, if one
/// is.
#[doc(alias = "MPI_Lookup_name")]
pub fn lookup_name(service: &str) -> Option<String> {
    with_open(|open| open.names.get(service).cloned())
}

impl Drop for Port {
    fn drop(&mut self) {
        let removed = with_open(|open| {
            open.names.retain(|_, name| *name != self.name);
            open.queues.remove(&self.name)
        });
        drop(removed);
        if let PortPlace::Here(queue) = &self.place {
            queue.close();
        }
    }
}

/// # Worlds that did not start together
/// The two worlds are two runs, of this process or of several, and each rank keeps its own. When a
/// rank ends, the ranks of the other world that wait for it get an error. The run of a rank ends
/// when the ranks of other processes have ended to which it was joined.
impl Communicator {
    /// Waits for a world that [connects](Self::connect) to a port, and gives the intercommunicator
    /// of the ranks of this communicator, its first group, and those of the other one. Every rank
    /// calls it; the port is that of the root, and the other ranks may name none.
    ///
    /// # Errors
    /// As for [`bcast`](Self::bcast), and if the root names no port. At a port of this process, if
    /// ranks of the communicator run in other processes; at a socket, if one runs on another
    /// machine.
    ///
    /// # Cancellation
    /// A world that has come is there for the next accept.
    ///
    /// # Examples
    /// See [`Port`].
    #[doc(alias = "commAccept")]
    #[doc(alias = "MPI_Comm_accept")]
    #[track_caller]
    pub fn accept(
        &self,
        root: usize,
        port: Option<&Port>,
    ) -> impl Future<Output = Result<InterCommunicator, Error>> + Send {
        let call = self.call("accept");
        let place = port.map(|port| port.place.clone());
        async move {
            let round = CollectiveRound::begin(self, call, CollectiveKind::Accept, root)?;
            let own = match place {
                _ if self.rank() != root => None,
                None => Some(Err(call.error(ErrorClass::Join, "the root names no port"))),
                Some(PortPlace::Here(queue)) => Some(self.accepted(call, &queue).await),
                Some(PortPlace::Socket(listener)) => {
                    Some(socket::accepted(call, &listener, self.size()).await)
                }
            };
            sides(round, call, self, root, true, own).await
        }
    }

    /// Waits for a world of this process.
    async fn accepted(&self, call: CallSite, queue: &Arc<PortQueue>) -> Result<JoinWay, Error> {
        check_all_here(self, call)?;
        loop {
            let knock = queue.next(call).await;
            let joined = JoinedWorlds::new(self.size(), knock.ranks, self.moves_values(self.rank()));
            if knock.answer(Some(joined.clone())) {
                return Ok(JoinWay::Here(joined));
            }
        }
    }

    /// Waits until another world [accepts](Self::accept) this one at a port, and gives the
    /// intercommunicator of both; the ranks of this communicator are the second group. Every rank
    /// calls it; the name is that of the root, and the other ranks may give none.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept); if no open port has this name, or the port is closed
    /// meanwhile.
    ///
    /// # Examples
    /// See [`Port`].
    #[doc(alias = "commConnect")]
    #[doc(alias = "MPI_Comm_connect")]
    #[track_caller]
    pub fn connect(
        &self,
        root: usize,
        port: Option<&str>,
    ) -> impl Future<Output = Result<InterCommunicator, Error>> + Send {
        let call = self.call("connect");
        async move {
            let round = CollectiveRound::begin(self, call, CollectiveKind::Connect, root)?;
            let own = match port {
                _ if self.rank() != root => None,
                None => Some(Err(call.error(ErrorClass::Join, "the root names no port"))),
                Some(name) => Some(match name.strip_prefix(SOCKET) {
                    Some(path) => socket::connected(call, path, self.size()).await,
                    None => match check_all_here(self, call) {
                        Ok(()) => {
                            let queue = with_open(|open| open.queues.get(name).cloned());
                            knocked(call, queue, name, self.size()).await.map(JoinWay::Here)
                        }
                        Err(error) => Err(error),
                    },
                }),
            };
            sides(round, call, self, root, false, own).await
        }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port({})", self.name)
    }
}
