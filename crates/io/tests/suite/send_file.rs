//! `send_file` sends every byte, from any offset, to a peer of any speed; and a file may shrink
//! meanwhile.

use crate::common::{ms, run, tcp_pair};
use selvedge_core::spawn;
use selvedge_io::fs::File;
use selvedge_io::time::sleep;
use std::io::{ErrorKind, Write};

fn file_of(data: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(data).unwrap();
    file
}

#[test]
fn a_file_arrives_whole_and_in_parts() {
    let data: Vec<u8> = (0..5_000_000u32).map(|i| (i.wrapping_mul(i) >> 9) as u8).collect();
    let on_disk = file_of(&data);
    run(async move {
        let file = File::open(on_disk.path()).await.unwrap();
        assert_eq!(file.metadata().await.unwrap().len(), data.len() as u64);
        for (offset, length) in [(0, data.len()), (1, 3), (4_999_999, 1), (1_234_567, 3_000_001), (7, 0)] {
            let (client, server) = tcp_pair().await;
            let sending = file.clone();
            let sender = spawn(async move {
                server.write_all_more(b"head:").await.unwrap();
                server.send_file(&sending, offset as u64, length as u64).await.unwrap();
            });
            sleep(ms(5)).await; // the socket is full by now
            let mut received = Vec::with_capacity(length + 6);
            while client.read_to_spare(&mut received).await.unwrap() > 0 {}
            assert_eq!(&received[..5], b"head:");
            assert!(received[5..] == data[offset..offset + length], "{offset} {length}: {}", received.len());
            sender.await.unwrap();
        }
    });
}

#[test]
fn a_file_that_shrinks_meanwhile_is_an_error_not_a_wait() {
    let on_disk = file_of(&vec![7; 20_000_000]);
    run(async move {
        let file = File::open(on_disk.path()).await.unwrap();
        let (client, server) = tcp_pair().await;
        let sender = spawn(async move { server.send_file(&file, 0, 20_000_000).await.unwrap_err() });
        sleep(ms(10)).await; // the sender waits for room now
        on_disk.as_file().set_len(15_000_000).unwrap();
        let mut received = Vec::with_capacity(20_000_000);
        while client.read_to_spare(&mut received).await.unwrap() > 0 {}
        let error = sender.await.unwrap();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("the file shrank"), "{error}");
        assert_eq!(received.len(), 15_000_000);
    });
}

#[test]
fn a_peer_that_goes_away_is_an_error() {
    let on_disk = file_of(&vec![7; 20_000_000]);
    run(async move {
        let file = File::open(on_disk.path()).await.unwrap();
        let (client, server) = tcp_pair().await;
        let sender = spawn(async move { server.send_file(&file, 0, 20_000_000).await.unwrap_err() });
        sleep(ms(10)).await;
        client.set_linger(Some(ms(0))).unwrap();
        drop(client);
        let kind = sender.await.unwrap().kind();
        assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind}");
    });
}

#[test]
fn files_name_themselves_in_errors() {
    run(async {
        let error = File::open("/nowhere/to/be/found").await.unwrap_err();
        assert_eq!(error.to_string(), "open /nowhere/to/be/found: No such file or directory");
        let error = selvedge_io::fs::read("/").await.unwrap_err();
        assert_eq!(error.to_string(), "read /: Is a directory");
        let directory = File::open("/").await.unwrap();
        let (read, buffer) = directory.read_at(vec![0; 10], 0).await;
        assert_eq!((read.unwrap_err().to_string().as_str(), buffer.len()), ("read /: Is a directory", 10));
    });
}
