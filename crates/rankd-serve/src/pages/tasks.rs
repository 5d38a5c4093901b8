//! `GET /tasks`: the tasks that plans are made of.

use crate::audience::Audience;
use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Failures, Page, Schema, Shape};
use hyper::Method;
use rankd_edge::task_list;

pub(crate) struct TasksPage;

impl Page for TasksPage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/tasks",
        audience: Audience::Operators,
        operation: "Tasks",
        summary: "List the tasks that plans are made of",
        schema: Schema {
            takes: None,
            gives: &[(JSON, Shape::Json(r#"{"type":"array","items":{"type":"object"}}"#))],
            failures: Failures::OfPages(&[]),
            components: &[],
        },
    };

    async fn answer(scope: &mut RequestScope, _: &mut Call) -> Reply {
        let all: Vec<_> = scope.loop_state.app.tasks.iter().collect();
        Reply::json(task_list::to_json(&all))
    }
}
