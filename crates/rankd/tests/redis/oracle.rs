//! A library client writes random data; both read it back, and must agree to the byte.

use crate::nodes::Cluster;
use crate::server::Server;
use rankd_engine::store::redis::{Address, RedisEndpoint};
use rankd_engine::store::{KeyedRead, Keys, Open, ReadBatch, Replies};
use rankd_plan::registry::Policy;
use redis::{Commands, Connection};
use std::collections::HashMap;
use std::sync::Arc;

const KEYS: i64 = 120;
const ROUNDS: u64 = 30;

/// A small generator, so that a failure comes again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Any bytes, often such as the protocol itself is made of.
    fn bytes(&mut self) -> Vec<u8> {
        let length = match self.below(20) {
            0 => 0,
            1 => 20_000 + self.below(100_000),
            _ => self.below(40),
        };
        let protocol = b"\r\n$*-+:_%>0123";
        (0..length)
            .map(|_| match self.below(2) {
                0 => protocol[self.below(protocol.len() as u64) as usize],
                _ => self.next() as u8,
            })
            .collect()
    }
}

impl Random {
    /// Mostly an id; sometimes one that is too large, or no id at all.
    fn element(&mut self) -> Vec<u8> {
        match self.below(5) {
            0 => self.bytes(),
            1 => format!("{}{}", self.next(), self.next()).into_bytes(),
            2 => format!("-{}{}", self.next(), self.below(1_000_000_000)).into_bytes(),
            _ => self.next().to_string().into_bytes(),
        }
    }
}

/// Writes a hash and a list for some of the ids; others have none.
fn write(random: &mut Random, oracle: impl Fn(&str) -> Connection) {
    for id in 0..KEYS {
        let (hash, list) = (format!("h:{id}"), format!("l:{id}"));
        let (mut of_hash, mut of_list) = (oracle(&hash), oracle(&list));
        let _: () = of_hash.del(&hash).and_then(|()| of_list.del(&list)).expect("it deletes");
        for number in 0..random.below(8) {
            let _: () = of_hash.hset(&hash, format!("f{number}"), random.bytes()).expect("it writes");
        }
        for _ in 0..random.below(30) {
            let element = random.element();
            let _: () = of_list.rpush(&list, element).expect("it writes");
        }
    }
}

/// Reads everything both ways.
fn compare(random: &mut Random, endpoint: &RedisEndpoint, oracle: impl Fn(&str) -> Connection) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
    let runtime = runtime.expect("a runtime can be made");
    runtime.block_on(async {
        let store = endpoint.open().keyed.expect("it answers keyed reads");
        let read = async |what: KeyedRead<'_>, prefix: &str, ids: &[i64]| -> Replies {
            store.read(ReadBatch { read: what, keys: Keys::Numbered { prefix, ids } }).await.expect("rankd reads")
        };
        for _ in 0..ROUNDS {
            let ids: Vec<i64> = (0..1 + random.below(KEYS as u64)).map(|_| random.below(KEYS as u64) as i64).collect();
            let fields: Vec<Arc<str>> = (0..1 + random.below(9)).map(|number| format!("f{number}").into()).collect();
            let count = 1 + random.below(25) as usize;
            let whole = read(KeyedRead::HashAll, "h", &ids).await;
            let some = read(KeyedRead::HashFields(&fields), "h", &ids).await;
            let heads = read(KeyedRead::ListHead(count), "l", &ids).await;
            for (at, id) in ids.iter().enumerate() {
                let (hash, list) = (format!("h:{id}"), format!("l:{id}"));
                let expected: HashMap<Vec<u8>, Vec<u8>> = oracle(&hash).hgetall(&hash).expect("it reads");
                let items: Vec<Vec<u8>> = whole.items(at).map(|item| item.expect("no nulls").to_vec()).collect();
                let found: HashMap<Vec<u8>, Vec<u8>> =
                    items.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
                assert_eq!(found, expected, "{hash}");
                let names: Vec<&str> = fields.iter().map(|field| &**field).collect();
                let expected: Vec<Option<Vec<u8>>> =
                    redis::cmd("HMGET").arg(&hash).arg(&names).query(&mut oracle(&hash)).expect("it reads");
                let found: Vec<Option<Vec<u8>>> = some.items(at).map(|item| item.map(<[u8]>::to_vec)).collect();
                assert_eq!(found, expected, "{hash} {names:?}");
                let expected: Vec<Vec<u8>> = oracle(&list).lrange(&list, 0, count as isize - 1).expect("it reads");
                let text =
                    |element: &Vec<u8>| String::from_utf8(element.clone()).ok().filter(|text| !text.starts_with('+'));
                let expected: Vec<i64> = expected.iter().filter_map(|element| text(element)?.parse().ok()).collect();
                assert_eq!(heads.ids(at), expected, "{list}");
            }
        }
    });
}

fn connect(server: &Server) -> Connection {
    redis::Client::open(server.url()).and_then(|client| client.get_connection()).expect("the library connects")
}

#[test]
fn both_read_the_same_from_a_server() {
    let server = Server::start(&["--unixsocket", "redis.sock"]);
    let mut random = Random(20_260_101);
    write(&mut random, |_| connect(&server));
    for url in [server.url(), format!("unix:{}/redis.sock", server.folder.display())] {
        let address = Address::parse(&url).expect("it is one");
        compare(&mut random, &RedisEndpoint::server("redis_default", address, Policy::default(), None), |_| {
            connect(&server)
        });
    }
}

#[test]
fn both_read_the_same_from_a_cluster() {
    let cluster = Cluster::start();
    let mut random = Random(7);
    let owner = |key: &str| connect(&cluster.masters[Cluster::first_owner(cluster.slot_of(key))]);
    write(&mut random, owner);
    let seeds = vec![Address::parse(&cluster.masters[0].url()).expect("it is one")];
    compare(&mut random, &RedisEndpoint::cluster("redis_default", seeds, Policy::default(), None), owner);
}
