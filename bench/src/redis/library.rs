//! The library client that most Rust programs use, on its multiplexed connection: one pipeline for each of the three steps.

use crate::redis::{FANOUT, Reader};
use redis::aio::MultiplexedConnection;
use redis::{Client, pipe};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

pub struct Library {
    runtime: Runtime,
    connection: MultiplexedConnection,
}

impl Library {
    pub fn connect(url: &str) -> Library {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        let client = Client::open(url).expect("it is a url");
        let connection = runtime.block_on(client.get_multiplexed_async_connection()).expect("it connects");
        Library { runtime, connection }
    }
}

impl Reader for Library {
    fn read(&mut self, users: &[i64], in_flight: usize) -> usize {
        let (users, next, rows) = (Rc::new(users.to_vec()), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let tasks = LocalSet::new();
        for _ in 0..in_flight {
            let (users, next, rows, mut connection) =
                (users.clone(), next.clone(), rows.clone(), self.connection.clone());
            tasks.spawn_local(async move {
                while let Some(user) = users.get(next.replace(next.get() + 1)) {
                    rows.set(rows.get() + request(&mut connection, *user).await.expect("the server answers"));
                }
            });
        }
        self.runtime.block_on(tasks);
        rows.get()
    }
}

async fn request(connection: &mut MultiplexedConnection, user: i64) -> redis::RedisResult<usize> {
    let last = FANOUT as isize - 1;
    let (_,): (HashMap<String, String>,) = pipe().hgetall(format!("user:{user}")).query_async(connection).await?;
    let (follow, recommendation): (Vec<i64>, Vec<i64>) = pipe()
        .lrange(format!("follow:{user}"), 0, last)
        .lrange(format!("recommendation:{user}"), 0, last)
        .query_async(connection)
        .await?;
    let mut media = pipe();
    for id in follow.iter().chain(&recommendation) {
        media.lrange(format!("media:{id}"), 0, last);
    }
    let media: Vec<Vec<i64>> = media.query_async(connection).await?;
    Ok(media.iter().map(Vec::len).sum())
}
