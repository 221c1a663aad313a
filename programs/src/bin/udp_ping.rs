//! Ping over UDP: a server that answers, and a client that asks again when an answer is lost.
//!
//! # Prints
//! ```text
//! 10 pings, 10 answers, 3 asked again
//! ```
//!
//! # CPU time
//! 200 ms.

use selvedge::net::UdpSocket;
use selvedge::spawn;
use selvedge::time::timeout;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// Answers each datagram with itself, but loses every fourth.
async fn answer(socket: UdpSocket) -> io::Result<()> {
    let mut buffer = [0; 64];
    for number in 1.. {
        let (length, from) = socket.recv_from(&mut buffer).await?;
        if number % 4 != 0 {
            socket.send_to(&buffer[..length], from).await?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let server = UdpSocket::bind("127.0.0.1:0".parse()?)?;
        let address = server.local_addr()?;
        drop(spawn(answer(server)));

        let socket = UdpSocket::bind("127.0.0.1:0".parse()?)?;
        let (mut answers, mut again) = (0, 0);
        for number in 0..10u8 {
            let mut answered = [255];
            loop {
                socket.send_to(&[number], address).await?;
                match timeout(Duration::from_millis(40), socket.recv_from(&mut answered)).await {
                    Ok(received) => {
                        received?;
                        break;
                    }
                    Err(_) => again += 1,
                }
            }
            answers += u32::from(answered == [number]);
        }
        println!("10 pings, {answers} answers, {again} asked again");
        Ok(())
    })
}
