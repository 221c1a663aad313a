//! Code written for the traits of `futures-io`, on our streams: line by line, copying, both halves
//! at once.

use futures::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use futures::{StreamExt, TryStreamExt};
use selvedge::net::UnixStream;
use selvedge::spawn_local;
use selvedge_compat::Compat;
use std::error::Error;
use std::io;
use std::rc::Rc;

/// Numbers the lines that it reads. It uses nothing of Selvedge.
async fn number_lines(reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut lines = BufReader::new(reader).lines().enumerate();
    while let Some((i, line)) = lines.next().await {
        writer.write_all(format!("{} {}\n", i + 1, line?).as_bytes()).await?;
    }
    writer.close().await
}

fn main() -> Result<(), Box<dyn Error>> {
    selvedge::run_local(async {
        let (here, there) = UnixStream::pair()?;
        // Our streams are used through shared references: two adapters on one stream are its
        // halves.
        let there = Rc::new(there);
        let numbering = spawn_local(number_lines(Compat::new(there.clone()), Compat::new(there)));

        let (reader, mut writer) = (Compat::new(&here), Compat::new(&here));
        let poem = "What is the warp?\nWhat is the weft?\n";
        futures::io::copy(poem.as_bytes(), &mut writer).await?;
        writer.close().await?;
        let lines: Vec<String> = BufReader::new(reader.take(1_000)).lines().try_collect().await?;
        for line in &lines {
            println!("{line}");
        }
        assert_eq!(lines, ["1 What is the warp?", "2 What is the weft?"]);
        numbering.await??;
        Ok(())
    })?
}
