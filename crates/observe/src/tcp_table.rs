//! `/proc/net/tcp` and `tcp6`: the slow way to the same sockets as `sock_diag`. It works in every sandbox
//! and, through `/proc/PID/net`, for the network namespace of another process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};

use crate::field::{decimal, hexadecimal, words};
use crate::sock_diag::{Socket, TcpState};

/// Calls `found` for every TCP socket of `pid`'s network namespace in this state and on this local port;
/// port 0 stands for every port.
pub(crate) fn each(pid: u32, state: TcpState, port: u16, mut found: impl FnMut(Socket)) -> io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    // The kernel writes the table piece by piece: while other sockets come and go, one may stand in two pieces. Only a connection that
    // no process has accepted yet has no inode.
    let mut seen = BTreeSet::new();
    for family in ["tcp", "tcp6"] {
        match File::open(format!("/proc/{pid}/net/{family}")) {
            Ok(mut file) => each_line(&mut file, &mut chunk, |line| {
                let socket = parse(line, state).filter(|it| port == 0 || it.local_port == port);
                if let Some(socket) = socket.filter(|it| it.inode == 0 || seen.insert(it.inode)) {
                    found(socket);
                }
            })?,
            // A kernel without IPv6 has no `tcp6`.
            Err(error) if family == "tcp6" && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The socket on this line, if it is in this state. The columns are `sl local_address rem_address st
/// tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode`.
fn parse(line: &[u8], state: TcpState) -> Option<Socket> {
    let mut words = words(line);
    let local = words.nth(1)?;
    let colon = local.iter().position(|&byte| byte == b':')?;
    let local_port = u16::try_from(hexadecimal(&local[colon + 1..])?).ok()?;
    if hexadecimal(words.nth(1)?)? != state as u64 {
        return None;
    }
    Some(Socket { local_port, inode: decimal(words.nth(5)?)? })
}

/// Splits what is read into lines; `chunk` must hold the longest of them.
fn each_line(file: &mut impl Read, chunk: &mut [u8], mut line: impl FnMut(&[u8])) -> io::Result<()> {
    let mut kept = 0;
    loop {
        let count = match file.read(&mut chunk[kept..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        };
        let filled = kept + count;
        let end = chunk[..filled].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        chunk[..end].split(|&byte| byte == b'\n').for_each(&mut line);
        if count == 0 {
            line(&chunk[end..filled]);
            return Ok(());
        }
        chunk.copy_within(end..filled, 0);
        kept = filled - end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Captured on Linux 6.18.
    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     
   0: 00000000:078F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1516 1 0000000040442c2b 100 0 0 10 0                      
   1: 0100007F:078F 0100007F:A754 01 00000000:00000000 00:00000000 00000000     0        0 10241 1 0000000045b4c223 20 4 1 46 146                    
   2: 0100007F:A754 0100007F:078F 01 00000000:007077F6 00:00000000 00000000     0        0 10240 1 000000001c3daf53 20 8 0 62 148                    
   3: 0100007F:078F 0100007F:A764 06 00000000:00000000 03:00001770 00000000     0        0 0 3 00000000dafc4d92
";
    const TABLE_6: &str = "   1: 00000000000000000000000001000000:078F 00000000000000000000000001000000:8E5A 01 00000000:00000000 00:00000000 00000000     0        0 777 1 0000000045b4c223 20 4 1 46 146";

    fn sockets(table: &str, state: TcpState) -> Vec<(u16, u64)> {
        table
            .lines()
            .filter_map(|line| parse(line.as_bytes(), state))
            .map(|it| (it.local_port, it.inode))
            .collect()
    }

    #[test]
    fn the_state_decides_and_both_ends_are_lines() {
        assert_eq!(sockets(TABLE, TcpState::Listen), [(1935, 1516)]);
        assert_eq!(sockets(TABLE, TcpState::Established), [(1935, 10241), (42836, 10240)]);
        assert_eq!(sockets(TABLE_6, TcpState::Established), [(1935, 777)]);
    }

    #[test]
    fn lines_survive_every_size_of_chunk() {
        let whole: Vec<&[u8]> =
            TABLE.as_bytes().split(|&byte| byte == b'\n').filter(|l| !l.is_empty()).collect();
        for size in [151, 152, 300, 4096] {
            let mut seen = Vec::new();
            each_line(&mut TABLE.as_bytes(), &mut vec![0; size], |line| {
                if !line.is_empty() {
                    seen.push(line.to_vec());
                }
            })
            .unwrap();
            assert_eq!(seen, whole, "chunk of {size}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line: Vec<u8>, cut in 0..TABLE_6.len()) {
            parse(&line, TcpState::Listen);
            parse(&TABLE_6.as_bytes()[..cut], TcpState::Established);
        }
    }
}
