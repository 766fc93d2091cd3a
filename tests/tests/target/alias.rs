//! The control catalog under another name: socket, other port, proxy.

use tollgate_tests::proxy::Proxy;
use tollgate_tests::server::Flavour;

use crate::fixture::{CATALOG, CONTROL_CATALOG, Place, url};

#[tokio::test]
async fn another_catalog_of_the_control_server_is_a_target() {
    let place = Place::on(Flavour::MariaDb).await;
    let tunnel = Proxy::to(place.server.port()).await;
    let port = tunnel.port();
    let mut config = place.config();
    config.endpoint = url(&format!("jdbc:mysql://127.0.0.1:{port}/{CATALOG}"));
    config.control.endpoint = url(&format!(
        "jdbc:mysql:///{CONTROL_CATALOG}?localSocket={}",
        place.server.socket().display()
    ));
    crate::fixture::open(&config).await.unwrap().close().await;
}
