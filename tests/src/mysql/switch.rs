//! A proxy before a server that gives what a client says to another session of its own, as one that keeps no sessions does.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// See the module. It is for users without a password: what they say first is right for every session.
pub struct Switch {
    port: u16,
    switched: watch::Sender<bool>,
}

impl Switch {
    /// A proxy before the server on this port.
    pub async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port can be had");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let (switched, told) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, server, told.clone()));
            }
        });
        Self { port, switched }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on all that is said goes to other sessions. Those before them stay.
    pub fn switch(&self) {
        self.switched.send_replace(true);
    }
}

async fn relay(
    mut client: TcpStream,
    port: u16,
    mut told: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut first = TcpStream::connect(("127.0.0.1", port)).await?;
    client.write_all(&packet(&mut first).await?).await?;
    let introduction = packet(&mut client).await?;
    first.write_all(&introduction).await?;
    let mut second = None;
    let (mut said, mut answered) = ([0; 4096], [0; 4096]);
    loop {
        let is_first = second.is_none();
        let session = second.as_mut().unwrap_or(&mut first);
        tokio::select! {
            changed = told.changed(), if is_first => {
                if changed.is_err() {
                    return Ok(());
                }
                let mut other = TcpStream::connect(("127.0.0.1", port)).await?;
                packet(&mut other).await?;
                other.write_all(&introduction).await?;
                packet(&mut other).await?;
                second = Some(other);
            }
            count = client.read(&mut said) => match count? {
                0 => return Ok(()),
                count => session.write_all(&said[..count]).await?,
            },
            count = session.read(&mut answered) => match count? {
                0 => return Ok(()),
                count => client.write_all(&answered[..count]).await?,
            },
        }
    }
}

/// Three bytes of a packet's head are its length, the fourth is its number.
async fn packet(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    stream.read_exact(&mut packet).await?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]);
    packet.resize(4 + usize::try_from(length).expect("it is short"), 0);
    stream.read_exact(&mut packet[4..]).await?;
    Ok(packet)
}
