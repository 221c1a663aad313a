//! The programs of the figure `simulation`: yields and an echo over a simulated network, in an
//! order that a seed determines. `child.rs` calls `yields` and `echo`; the figure is in
//! `figures/src/simulation.rs`.
//!
//! The clock of the simulation is not the clock of the figure: `Times` measures how many steps the
//! process makes in a second.

use super::clock::Times;
use super::fault;
use selvedge_core::{spawn_local, yield_now};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_sim::{Simulation, VirtualTime, World};
use std::cell::Cell;
use std::rc::Rc;

/// Runs the program `name` with its numbers. `false` if it is no program about the simulated
/// network.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("simulated-yields", &[threads, count]) => yields(threads, count),
        ("simulated-echo", &[clients, messages]) => echo(clients, messages),
        _ => return Ok(false),
    }
    Ok(true)
}

/// This number of threads that yield this number of times each.
fn yields(threads: u64, yields: u64) {
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    let main = async move {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let count = count.clone();
                // A run that is to be wrong yields once too often.
                let yields = if thread == 0 { yields + fault() } else { yields };
                spawn_local(async move {
                    for _ in 0..yields {
                        yield_now().await;
                        count.set(count.get() + 1);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.await.expect("a thread does not panic");
        }
    };
    let first = Times::now();
    let run = Simulation::new(1).run(&mut VirtualTime::new(), main).expect("the program ends");
    first.print_rate_until(Times::now(), run.steps);
    println!("yields {}", counted.get());
}

/// Sends bytes back until the client has sent the last.
async fn serve(stream: TcpStream) -> std::io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {
        stream.write_all(&byte).await?;
    }
    Ok(())
}

/// This number of clients that each get this number of bytes back, one after the other, in good
/// conditions.
fn echo(clients: u64, messages: u64) {
    let main = async move {
        let listener = TcpListener::bind("10.0.0.1:7".parse().expect("an address")).expect("a listener");
        let address = listener.local_addr();
        let server = spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("nothing fails in good conditions");
                drop(spawn_local(serve(stream)));
            }
        });
        let clients: Vec<_> = (0..clients)
            .map(|client| {
                // A run that is to be wrong loses a byte.
                let messages = if client == 0 { messages - fault() } else { messages };
                spawn_local(async move {
                    let stream = TcpStream::connect(address).await.expect("the server listens");
                    let mut right = 0;
                    for message in 0..messages {
                        let (sent, mut got) = (message as u8, [0]);
                        stream.write_all(&[sent]).await.expect("nothing fails");
                        stream.read_exact(&mut got).await.expect("nothing fails");
                        right += u64::from(got[0] == sent);
                    }
                    right
                })
            })
            .collect();
        let mut bytes = 0;
        for client in clients {
            bytes += client.await.expect("a client does not panic");
        }
        drop(server);
        bytes
    };
    let first = Times::now();
    let ended = World::new(1).run(main).expect("the program ends");
    first.print_rate_until(Times::now(), ended.steps);
    println!("bytes {}", ended.output);
}
