//! TLS on our threads: an echo server and its clients, with a certificate made for the occasion.

use futures::io::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use futures_rustls::{TlsAcceptor, TlsConnector};
use selvedge::net::{TcpListener, TcpStream};
use selvedge::spawn_local;
use selvedge_compat::Compat;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

async fn echo(acceptor: TlsAcceptor, stream: TcpStream) -> io::Result<()> {
    let (reader, mut writer) = acceptor.accept(Compat::new(stream)).await?.split();
    futures::io::copy(reader, &mut writer).await?;
    writer.close().await
}

async fn serve(acceptor: TlsAcceptor, listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, peer) = listener.accept().await?;
        let connection = echo(acceptor.clone(), stream);
        drop(spawn_local(async move {
            if let Err(error) = connection.await {
                eprintln!("{peer}: {error}");
            }
        }));
    }
}

async fn client(connector: TlsConnector, address: SocketAddr, number: usize) -> io::Result<usize> {
    let stream = Compat::new(TcpStream::connect(address).await?);
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let mut tls = connector.connect(name, stream).await?;
    let secret = format!("the secret of client {number}");
    tls.write_all(secret.as_bytes()).await?;
    tls.close().await?;
    // Up to the server's own closing message: a connection that was cut off would be an error.
    let mut received = String::new();
    tls.read_to_string(&mut received).await?;
    assert_eq!(received, secret);
    Ok(received.len())
}

fn main() -> Result<(), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = made.cert.der().clone();
    let mut trusted = RootCertStore::empty();
    trusted.add(certificate.clone())?;
    let connector = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(connector));
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let acceptor = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(acceptor));

    let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let address = listener.local_addr();
    selvedge::run_local(async move {
        drop(spawn_local(serve(acceptor, listener)));
        let clients: Vec<_> =
            (0..20).map(|number| spawn_local(client(connector.clone(), address, number))).collect();
        let mut bytes = 0;
        for client in clients {
            bytes += client.await??;
        }
        println!("20 clients got their {bytes} bytes back from {address}, and no eavesdropper has read them");
        Ok(())
    })?
}
