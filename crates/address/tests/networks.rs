//! What is said once of a process holds in all of it, so that this test has a process of its own.

use std::net::SocketAddr;
use weir_address::networks::{Networks, check, permitted};

#[test]
fn a_process_connects_to_the_networks_that_were_named_first_and_to_no_others() {
    let addresses = ["10.1.2.3:80", "127.0.0.1:80", "[::1]:80"].map(|it| it.parse::<SocketAddr>().unwrap());
    assert_eq!(permitted(addresses), Ok(addresses.to_vec()), "of a process that is no agent");
    Networks::new(vec!["127.0.0.0/8".parse().unwrap()]).restrict();
    Networks::new(vec!["0.0.0.0/0".parse().unwrap()]).restrict();
    assert_eq!(permitted(addresses), Ok(vec![addresses[1]]));
    assert!(check("::ffff:127.0.0.1".parse().unwrap()).is_ok());
    assert!(check("::ffff:10.1.2.3".parse().unwrap()).is_err());
    let refused = permitted([addresses[0]]).unwrap_err().to_string();
    assert!(refused.contains("127.0.0.0/8 only, and 10.1.2.3 is not there"), "{refused}");
    assert_eq!(permitted([]), Ok(Vec::new()));
}
