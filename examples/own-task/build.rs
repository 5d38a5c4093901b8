//! Finds the task files, so that no list names them.

fn main() {
    rankd_tasks_build::list_tasks();
}
