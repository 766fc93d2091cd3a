//! One test for each kind of server, so that a result names the server it was seen on.

use crate::server::Flavour;

/// Makes a claim about a server one test for each kind of server: `<claim>::mariadb`, and so on.
///
/// The claim is an `async fn(Flavour)` beside it. On a kind of server that the run does not cover
/// (see [`Flavour::available`]) its test says so and passes. Where a claim makes no sense on some
/// kinds, those it is for are listed.
///
/// ```no_run
/// use tollgate_tests::over_servers;
/// use tollgate_tests::server::Flavour;
///
/// async fn a_server_starts(flavour: Flavour) {
///     let _server = flavour.start();
/// }
/// over_servers!(a_server_starts);
///
/// async fn an_old_server_starts(flavour: Flavour) {
///     let _server = flavour.start();
/// }
/// over_servers!(an_old_server_starts on mysql56, mariadb);
/// ```
#[macro_export]
macro_rules! over_servers {
    ($claim:ident) => {
        $crate::over_servers!($claim on mariadb, mysql9, mysql56);
    };
    ($claim:ident on $($server:ident),+) => {
        mod $claim {
            $(
                #[test]
                fn $server() {
                    $crate::matrix::run(stringify!($server), super::$claim);
                }
            )+
        }
    };
}

/// Runs a claim on one kind of server, named as in `TOLLGATE_SERVERS`.
///
/// It gets a runtime of several threads: what a test stages beside itself goes on while the test
/// waits for a process.
pub fn run<F: Future<Output = ()>>(server: &str, claim: impl FnOnce(Flavour) -> F) {
    let flavour = Flavour::ALL.iter().copied().find(|flavour| flavour.name() == server);
    let flavour = flavour.unwrap_or_else(|| panic!("`{server}` is no kind of server"));
    if !Flavour::available().contains(&flavour) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(claim(flavour));
}
