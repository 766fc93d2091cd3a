//! The wire between a client and its server, in the test's hands: it counts what the client asks,
//! speaks into the client's session, and loses answers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

/// When the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never gets the statement.
    Before,
    /// The server carried the statement out; the client never learns.
    After,
    /// The client's side breaks; the statement is still on its way to the server.
    Underway,
}

#[derive(Debug)]
enum Order {
    /// Run a statement in the client's session and say whether the server took it.
    Say(String, oneshot::Sender<bool>),
    /// Send a statement into the client's session and wait for nothing.
    Leave(String, oneshot::Sender<()>),
    /// Let the statement that is underway arrive, and say whether the server took it.
    Arrive(oneshot::Sender<bool>),
}

#[derive(Debug, Default)]
struct Plan {
    cut: Mutex<Option<(String, Cut)>>,
    asked: AtomicU32,
}

/// One connection's wire.
#[derive(Debug)]
pub struct Wire {
    plan: Arc<Plan>,
    orders: mpsc::Sender<Order>,
}

impl Wire {
    /// A port that leads to the server's, once.
    pub async fn to(server: u16) -> (u16, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(Plan::default());
        let (orders, orders_in) = mpsc::channel(1);
        let carried = Arc::clone(&plan);
        tokio::spawn(async move {
            let (near, _) = listener.accept().await.unwrap();
            let far = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
            for side in [&near, &far] {
                side.set_nodelay(true).unwrap();
            }
            // An error is a side that closed; then both do.
            let _ = carry(near, far, &carried, orders_in).await;
        });
        (port, Self { plan, orders })
    }

    /// Cuts the connection at the first statement that contains the text.
    pub fn cut(&self, cut: Cut, text: &str) {
        *self.plan.cut.lock().unwrap() = Some((text.to_owned(), cut));
    }

    /// Whether the cut was made.
    pub fn was_cut(&self) -> bool {
        self.plan.cut.lock().unwrap().is_none()
    }

    /// How many packets the client has sent.
    pub fn asked(&self) -> u32 {
        self.plan.asked.load(Ordering::SeqCst)
    }

    /// Runs a statement in the client's session while the client is idle.
    pub async fn say(&self, statement: &str) {
        let (done, answer) = oneshot::channel();
        assert!(self.orders.send(Order::Say(statement.to_owned(), done)).await.is_ok());
        assert!(answer.await.unwrap(), "the server refused `{statement}`");
    }

    /// Lets the statement arrive that is underway since the cut. Whether the server carried it out:
    /// not when its session is gone.
    pub async fn arrive(&self) -> bool {
        let (done, answer) = oneshot::channel();
        assert!(self.orders.send(Order::Arrive(done)).await.is_ok(), "nothing is underway");
        answer.await.unwrap()
    }

    /// Sends a statement into the client's session; from then on the client is dead, its statement
    /// is not.
    pub async fn leave(&self, statement: &str) {
        let (done, sent) = oneshot::channel();
        assert!(self.orders.send(Order::Leave(statement.to_owned(), done)).await.is_ok());
        sent.await.unwrap();
    }
}

async fn carry(
    mut near: TcpStream,
    mut far: TcpStream,
    plan: &Plan,
    mut orders: mpsc::Receiver<Order>,
) -> std::io::Result<()> {
    let (mut near_in, mut near_out) = near.split();
    let (mut far_in, mut far_out) = far.split();
    let mut answers = vec![0; 64 * 1024];
    let underway = loop {
        tokio::select! {
            packet = packet(&mut near_in) => {
                let packet = packet?;
                plan.asked.fetch_add(1, Ordering::SeqCst);
                let cut = due(plan, &packet);
                match cut {
                    Some(Cut::Before) => return Ok(()),
                    Some(Cut::Underway) => break packet,
                    Some(Cut::After) | None => {}
                }
                far_out.write_all(&packet).await?;
                if cut == Some(Cut::After) {
                    // The answer is there: the statement has been carried out.
                    self::packet(&mut far_in).await?;
                    return Ok(());
                }
            }
            read = far_in.read(&mut answers) => {
                match read? {
                    0 => return Ok(()),
                    length => near_out.write_all(&answers[..length]).await?,
                }
            }
            Some(order) = orders.recv() => {
                match order {
                    Order::Say(statement, done) => {
                        far_out.write_all(&query(&statement)).await?;
                        let answer = self::packet(&mut far_in).await?;
                        let _ = done.send(answer.get(4) == Some(&0));
                    }
                    Order::Leave(statement, done) => {
                        far_out.write_all(&query(&statement)).await?;
                        let _ = done.send(());
                        return Ok(());
                    }
                    Order::Arrive(_) => panic!("nothing is underway"),
                }
            }
        }
    };
    drop(near);
    while let Some(order) = orders.recv().await {
        let Order::Arrive(done) = order else { panic!("the client is gone") };
        let answer = match far.write_all(&underway).await {
            Ok(()) => self::packet(&mut far).await.unwrap_or_default(),
            // The server has closed its side.
            Err(_) => Vec::new(),
        };
        let _ = done.send(answer.get(4) == Some(&0));
    }
    Ok(())
}

fn due(plan: &Plan, packet: &[u8]) -> Option<Cut> {
    let mut planned = plan.cut.lock().unwrap();
    let (text, cut) = planned.as_ref()?;
    let cut = *cut;
    let contains = packet.windows(text.len()).any(|window| window == text.as_bytes());
    contains.then(|| {
        *planned = None;
        cut
    })
}

/// One packet with its header. Cancelled between two packets only, as long as a client sends each in
/// one piece, which one on a loopback does.
async fn packet(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    from.read_exact(&mut packet).await?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]);
    packet.resize(4 + usize::try_from(length).unwrap(), 0);
    from.read_exact(&mut packet[4..]).await?;
    Ok(packet)
}

/// `COM_QUERY` as the first packet of an exchange.
fn query(statement: &str) -> Vec<u8> {
    let length = u32::try_from(statement.len() + 1).unwrap();
    let mut packet = length.to_le_bytes()[..3].to_vec();
    packet.extend([0, 3]);
    packet.extend(statement.as_bytes());
    packet
}
