//! From a plan's text to one that runs, the way the program does it: checked, then linked.

use rankd_engine::Linked;
use rankd_engine::task::Definition;
use rankd_plan::Registry;
use rankd_plan::registry::Text;
use std::sync::Arc;

/// The definitions of a test's tasks, and what its plans may name.
pub(crate) struct Tasks {
    tasks: rankd_engine::Tasks,
    registry: Registry,
}

impl Tasks {
    pub(crate) fn new(definitions: &[Definition]) -> Tasks {
        let tasks = rankd_engine::Tasks::new(definitions.iter().copied()).expect("each op is there once");
        let empty = |file| Text { file, text: "" };
        let keys = Text { file: "keys.toml", text: KEYS };
        let (registry, problems) = Registry::parse(keys, empty("params.toml"), empty("endpoints.toml"));
        assert!(problems.is_empty(), "{:?}", problems[0].diagnostics);
        Tasks { tasks, registry }
    }

    /// Each node as its JSON text, and the ids of the outputs.
    pub(crate) fn link(&self, nodes: &[String], outputs: &[String]) -> Arc<Linked> {
        self.link_with_preds(nodes, outputs, &[])
    }

    /// The same with predicates, each with its id.
    pub(crate) fn link_with_preds(&self, nodes: &[String], outputs: &[String], preds: &[String]) -> Arc<Linked> {
        let outputs: Vec<String> = outputs.iter().map(|output| format!("{output:?}")).collect();
        let text = format!(
            r#"{{"schema_version":1,"plan_name":"scripted","nodes":[{}],"outputs":[{}],"expr_table":{{}},"pred_table":{{{}}}}}"#,
            nodes.join(","),
            outputs.join(","),
            preds.join(",")
        );
        let checked = rankd_plan::check(text.as_bytes(), &self.registry, self.tasks.signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{:?}\n{text}", checked.diagnostics.list()));
        Arc::new(Linked::link(&plan, &self.tasks, &self.registry).unwrap())
    }
}

const KEYS: &str = r#"
[[key]]
key_id = 1
name = "id"
type = "int"
nullable = false
allow_write = false
doc = "The row's own id"

[[key]]
key_id = 2
name = "x"
type = "int"
nullable = true
doc = "A number"

[[key]]
key_id = 3
name = "y"
type = "float"
nullable = true
doc = "Another number"
"#;
