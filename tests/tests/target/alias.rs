//! The control catalog under another name: socket, other port, proxy.

use tollgate::target::TargetError;
use tollgate_tests::proxy::Proxy;
use tollgate_tests::server::Flavour;

use crate::fixture::{CATALOG, CONTROL_CATALOG, Place, url};

async fn grant_target_to_control(place: &Place) {
    place.server.execute(&[r"GRANT ALL ON `plugin\_preview`.* TO 'host_control'@'%'"]).await;
}

#[tokio::test]
async fn the_same_catalog_through_the_servers_socket_is_recognised() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        grant_target_to_control(&place).await;
        let socket = place.server.socket();
        let mut config = place.config();
        config.control.endpoint =
            url(&format!("jdbc:mysql:///{CATALOG}?localSocket={}", socket.display()));
        assert_eq!(place.refused(&config).await, TargetError::ControlAlias, "{flavour}");
    }
}

#[tokio::test]
async fn the_same_catalog_through_a_tunnel_is_recognised_whichever_side_it_is_on() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        grant_target_to_control(&place).await;
        let tunnel = Proxy::to(place.server.port()).await;
        let port = tunnel.port();
        let through = url(&format!("jdbc:mysql://127.0.0.1:{port}/{CATALOG}"));
        let mut config = place.config();
        config.control.endpoint = through.clone();
        assert_eq!(place.refused(&config).await, TargetError::ControlAlias, "{flavour}");
        let mut config = place.config();
        config.control.endpoint = config.endpoint;
        config.endpoint = through;
        assert_eq!(place.refused(&config).await, TargetError::ControlAlias, "{flavour}");
    }
}

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
