//! An async service behind a slow link that loses packets, one client in this process, and one that is a program.

use lasthop_behind::Link;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[expect(clippy::disallowed_methods, reason = "an example that shows how long a real link takes")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let network = Link::new().rate("8mbit").delay("20ms").loss("1%").start()?;
    let service = network.far().listen(0)?;
    let address = service.local_addr()?;
    let client = network.near().connect(address)?;
    service.set_nonblocking(true)?;
    client.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = TcpListener::from_std(service)?;
        let served =
            tokio::spawn(async move { service.accept().await?.0.write_all(&[7; 500_000]).await });
        let (begun, mut received) = (std::time::Instant::now(), Vec::new());
        TcpStream::from_std(client)?.read_to_end(&mut received).await?;
        println!("{} bytes in {:.2} s", received.len(), begun.elapsed().as_secs_f64());
        served.await?
    })?;
    network.near().command("ping").args(["-c", "3", "-q", &address.ip().to_string()]).status()?;
    let down = network.finish()?.tallied.down;
    println!("{} packets to the client, lost: {:?}", down.packets, down.lost);
    Ok(())
}
