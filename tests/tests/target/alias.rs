//! The control catalog under another name: socket, other port, proxy.

use tokio::net::{TcpListener, TcpStream};
use tollgate_tests::server::Flavour;

use crate::fixture::{CATALOG, CONTROL_CATALOG, Place, url};

/// Forwards a new port to the server, as an SSH tunnel or a TCP proxy does.
async fn tunnel(to: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn another_catalog_of_the_control_server_is_a_target() {
    let place = Place::on(Flavour::MariaDb).await;
    let port = tunnel(place.server.port()).await;
    let mut config = place.config();
    config.endpoint = url(&format!("jdbc:mysql://127.0.0.1:{port}/{CATALOG}"));
    config.control.endpoint = url(&format!(
        "jdbc:mysql:///{CONTROL_CATALOG}?localSocket={}",
        place.server.socket().display()
    ));
    crate::fixture::open(&config).await.unwrap().close().await;
}
