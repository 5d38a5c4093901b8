//! The listeners of one address: how they become the only ones on it, and how they are closed without resetting connections.

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// A listener for each loop, all on the same port: the system deals connections out among them.
///
/// The first one takes the address for itself, so that a second process is refused; only then is it shared, and only with
/// the listeners of this process, since every other one starts by taking the address for itself, too.
pub fn listen(address: SocketAddr, loops: usize) -> io::Result<Vec<TcpListener>> {
    let first = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    first.set_reuse_address(true)?;
    first.set_nonblocking(true)?;
    first.bind(&address.into())?;
    first.listen(BACKLOG)?;
    if loops > 1 {
        first.set_reuse_port(true)?;
    }
    let first: TcpListener = first.into();
    // Of port 0 the system makes one for the first; the others take the same.
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..loops {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        listeners.push(socket.into());
    }
    Ok(listeners)
}

/// Holds off new connections; those that were begun are completed and can be accepted.
///
/// Closing a listener resets every connection that the system has completed and that was not accepted. So the packets that ask for
/// a new one are dropped first. Their clients ask again after a second and are refused by then.
#[cfg(target_os = "linux")]
pub(crate) fn stop_new_connections(listener: &impl AsFd) -> io::Result<()> {
    use socket2::SockFilter;
    // A filter of a TCP socket sees packets from the TCP header on; its 14th byte has the flags.
    const FLAGS_AT: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_AT),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
}

/// Other systems have no such filter: a client that connects between the last accept and the close is reset.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stop_new_connections(_: &impl AsFd) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn an_address_is_taken_once_however_many_listeners_it_has() {
        for loops in [1, 2, 3] {
            let listeners = listen("127.0.0.1:0".parse().unwrap(), loops).unwrap();
            assert_eq!(listeners.len(), loops);
            let address = listeners[0].local_addr().unwrap();
            assert!(listeners.iter().all(|listener| listener.local_addr().unwrap() == address));
            for others in [1, 2] {
                let refused = listen(address, others).map(|_| ()).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::AddrInUse, "{loops} listeners, then {others}");
            }
            // Gone with its listeners, also while connections to it are being closed.
            drop(TcpStream::connect(address).unwrap());
            drop(listeners);
            listen(address, loops).unwrap();
        }
    }

    #[test]
    fn connections_are_dealt_out_among_the_listeners() {
        let listeners = listen("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let address = listeners[0].local_addr().unwrap();
        let clients: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(address).unwrap()).collect();
        let accepted = listeners.iter().map(|listener| std::iter::from_fn(|| listener.accept().ok()).count());
        let counts: Vec<usize> = accepted.collect();
        assert_eq!(counts.iter().sum::<usize>(), clients.len());
        assert!(counts.iter().all(|count| *count > 8), "{counts:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn whoever_has_connected_is_not_reset_and_nobody_new_connects() {
        use std::io::{Read, Write};
        use std::time::Duration;
        let listeners = listen("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let address = listeners[0].local_addr().unwrap();
        let mut clients: Vec<TcpStream> = (0..16).map(|_| TcpStream::connect(address).unwrap()).collect();
        listeners.iter().for_each(|listener| stop_new_connections(listener).unwrap());
        let late = TcpStream::connect_timeout(&address, Duration::from_millis(100)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let accepted: Vec<TcpStream> = listeners
            .iter()
            .flat_map(|listener| std::iter::from_fn(|| Some(listener.accept().ok()?.0)).collect::<Vec<_>>())
            .collect();
        drop(listeners);
        assert_eq!(accepted.len(), clients.len());
        for mut stream in accepted {
            stream.write_all(b"!").unwrap();
        }
        for client in &mut clients {
            let mut all = String::new();
            client.read_to_string(&mut all).unwrap();
            assert_eq!(all, "!");
        }
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
