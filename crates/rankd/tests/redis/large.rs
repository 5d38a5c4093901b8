//! What cannot be read: keys that are too large, of the wrong type, or forbidden. Only the steps that read them fail; those that
//! are under way on the same connection, and those that come later, do not notice.

use crate::server::Server;
use futures_util::future::join_all;
use rankd_engine::store::health::Snapshot;
use rankd_engine::store::redis::{Address, RedisEndpoint};
use rankd_engine::store::{Keyed, KeyedRead, Keys, Open, ReadBatch};
use rankd_plan::registry::Policy;
use std::sync::Arc;

/// Without limits on time, which are not what this is about.
fn policy() -> Policy {
    Policy { request_timeout_ms: 20_000, stall_timeout_ms: 20_000, connect_timeout_ms: 5_000, ..Policy::default() }
}

/// The endpoint's counters after `read` has been given its store.
fn with_store(url: &str, policy: Policy, read: impl AsyncFnOnce(&dyn Keyed)) -> Snapshot {
    let endpoint = RedisEndpoint::server("redis_default", Address::parse(url).expect("it is one"), policy, None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
    runtime.expect("a runtime can be made").block_on(async {
        let store = endpoint.open().keyed.expect("it answers keyed reads");
        read(&*store).await;
    });
    endpoint.health().expect("a server's endpoint counts").snapshot()
}

/// How many ids the list of `good:1` has, or the error's code.
async fn good(store: &dyn Keyed) -> Result<usize, &'static str> {
    let keys = Keys::Numbered { prefix: "good", ids: &[1, 2] };
    let replies = store.read(ReadBatch { read: KeyedRead::ListHead(10), keys }).await;
    replies.map(|replies| replies.ids(0).len()).map_err(|error| error.code().id)
}

/// The code and the words of an error that must be there.
async fn bad(store: &dyn Keyed, what: KeyedRead<'_>, prefix: &str) -> (&'static str, String) {
    match store.read(ReadBatch { read: what, keys: Keys::Numbered { prefix, ids: &[7, 1, 8] } }).await {
        Ok(replies) if replies.wrong_types() == [1] => ("wrong type", String::new()),
        Ok(_) => panic!("{prefix}:1 was read"),
        Err(error) => (error.code().id, error.to_string()),
    }
}

fn fill(server: &Server) {
    server.must(&["RPUSH", "good:1", "1", "2", "3"]);
    let fields = "for i = 1, ARGV[1] do redis.call('HSET', 'wide:1', 'f' .. i, 'v' .. i) end return 1";
    server.must(&["EVAL", fields, "0", "100001"]);
    server.must(&["EVAL", "return redis.call('HSET', 'long:1', 'f', string.rep('x', 2097152))", "0"]);
    server.must(&["EVAL", "return redis.call('HSET', 'huge:1', 'f', string.rep('x', 64 * 1048576))", "0"]);
    server.must(&["RPUSH", "list:1", "1"]);
}

#[test]
fn a_key_that_cannot_be_read_costs_nobody_else_anything() {
    let server = Server::start(&[]);
    fill(&server);
    // No second tries, which a crowded machine could give other reasons for.
    let policy = Policy { retry_percent: 0, ..policy() };
    let health = with_store(&server.url(), policy, async |store| {
        let fields: [Arc<str>; 1] = ["f".into()];
        for _ in 0..20 {
            let others = join_all([good(store), good(store)]);
            let wide = bad(store, KeyedRead::HashAll, "wide");
            let long = bad(store, KeyedRead::HashAll, "long");
            let some = bad(store, KeyedRead::HashFields(&fields), "long");
            let list = bad(store, KeyedRead::HashAll, "list");
            let (before, wide, long, some, list, after) = tokio::join!(others, wide, long, some, list, good(store));
            assert_eq!((before, after), (vec![Ok(3); 2], Ok(3)));
            assert_eq!((wide.0, long.0, some.0, list.0), ("E421", "E421", "E421", "wrong type"));
            assert_eq!(wide.1, "the hash wide:1 has more than 100000 fields: read only some");
            assert_eq!(long.1, "the key long:1 holds a value of more than 1048576 bytes");
        }
    });
    assert_eq!((health.connects, health.opened, health.retries), (1, 0, 0), "{health:?}");
    assert_eq!(health.errors, 60, "{health:?}");
}

#[test]
fn what_is_too_large_to_be_passed_over_costs_a_connection_and_the_others_a_second_try() {
    let server = Server::start(&[]);
    fill(&server);
    let health = with_store(&server.url(), policy(), async |store| {
        for round in 0..5 {
            // What is saved up for second tries.
            for _ in 0..50 {
                assert_eq!(good(store).await, Ok(3));
            }
            let (before, huge, after) =
                tokio::join!(good(store), bad(store, KeyedRead::HashAll, "huge"), join_all([good(store), good(store)]));
            assert_eq!((before, after), (Ok(3), vec![Ok(3); 2]), "round {round}");
            assert_eq!(huge.0, "E421", "{}", huge.1);
        }
    });
    assert_eq!((health.opened, health.errors), (0, 5), "{health:?}");
    assert!(health.connects >= 6, "{health:?}");
}

#[test]
fn a_command_that_is_forbidden_does_not_stop_the_others() {
    let server = Server::start(&[]);
    fill(&server);
    server.must(&["ACL", "SETUSER", "reader", "on", ">open-sesame", "~*", "+lrange"]);
    let url = format!("redis://reader:open-sesame@127.0.0.1:{}", server.port);
    let health = with_store(&url, Policy { retry_percent: 0, ..policy() }, async |store| {
        for _ in 0..20 {
            let (forbidden, allowed) = tokio::join!(bad(store, KeyedRead::HashAll, "wide"), good(store));
            assert_eq!((forbidden.0, allowed), ("E417", Ok(3)), "{}", forbidden.1);
        }
    });
    assert_eq!((health.connects, health.opened), (1, 0), "{health:?}");
}
