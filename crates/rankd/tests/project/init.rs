//! `rankd init`: a project that runs as it is, and overwrites nothing.

use crate::folder::Folder;
use crate::json::Json;

#[test]
fn a_new_project_gives_a_ranked_list_as_it_is() {
    let folder = Folder::empty();
    let ran = folder.rankd(&["init", "movies"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("rankd run --plan_name top_movies --user 7"), "{}", ran.stderr);
    let ran = folder.rankd_in("movies", &["check", "--connect"], &[], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let ran = folder.rankd_in("movies/plans", &["run", "--plan_name", "top_movies", "--user", "7"], &[], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer = Json::read(&ran.stdout);
    let scores: Vec<f64> = answer.list("candidates").iter().map(|row| row.number("score")).collect();
    assert_eq!(scores.len(), 10);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    // The settings name the plan.
    let drama = "{\"user_id\":7,\"params\":{\"genre\":\"drama\",\"year_min\":1980}}";
    let ran = folder.rankd_in("movies", &[], &[], drama);
    let answer = Json::read(&ran.stdout);
    assert!(answer.list("candidates").iter().all(|row| row.number("year") >= 1980.0), "{}", ran.stdout);
    assert_eq!(answer.list("candidates")[0].text("genre"), "drama");
    // Without a genre in the request, what the user likes best counts.
    let lists = [1, 2, 3, 4].map(|user| folder.rankd_in("movies", &["--user", &user.to_string()], &[], "").stdout);
    let ids =
        lists.map(|list| Json::read(&list).list("candidates").iter().map(|row| row.number("id")).collect::<Vec<_>>());
    assert!(ids.iter().any(|list| *list != ids[0]), "different users get different lists: {ids:?}");
    let ran = folder.rankd_in("movies", &["compile"], &[], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn what_is_there_is_overwritten_only_when_forced() {
    let folder = Folder::empty();
    folder.write("rankd.toml", "# mine\n");
    let ran = folder.rankd(&["init", "."]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("rankd.toml is there: nothing was written. --force overwrites"), "{}", ran.stderr);
    assert!(!folder.path("registry").exists() && folder.read("rankd.toml") == "# mine\n");
    let ran = folder.rankd(&["init", ".", "--force"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(folder.read("rankd.toml").contains("top_movies"));
    assert_eq!(folder.rankd(&["init", "."]).code, 2);
    // What the template's own README says works.
    for command in ["run --user 7", "check", "explain top_movies"] {
        assert!(folder.read("README.md").contains(&format!("rankd {command}")));
        let args: Vec<&str> = command.split(' ').collect();
        assert_eq!(folder.rankd(&args).code, 0, "{command}");
    }
}

#[test]
fn the_plan_of_the_readme_gives_what_it_says_as_typescript_and_as_an_artifact() {
    let readme = include_str!("../../../../README.md");
    let block = |start: &str| {
        let at = readme.find(start).unwrap_or_else(|| unreachable!("{start:?} is not in the README"));
        let text = readme[at..].split("```").nth(1).and_then(|block| block.split_once('\n'));
        text.map(|(_, text)| text).unwrap_or_default()
    };
    let folder = Folder::empty();
    assert_eq!(folder.rankd(&["init", "."]).code, 0);
    folder.write("plans/liked_movies.plan.ts", block("```ts"));
    folder.write("other/liked_movies.plan.json", block("```json\n{\n  \"schema_version\""));
    let command = readme.lines().find_map(|line| line.strip_suffix("' | rankd --plan_name liked_movies"));
    let request = command.and_then(|line| line.strip_prefix("echo '{")).expect("the README has the command");
    let request = format!("{{\"request_id\": \"…\", {request}");
    let [source, artifact] = ["plans", "other"]
        .map(|plans| folder.rankd_in("", &["--plan_dir", plans, "--plan_name", "liked_movies"], &[], &request));
    assert_eq!((source.code, &*source.stderr, &source.stdout), (0, "", &artifact.stdout));
    let shown = readme.lines().find(|line| line.starts_with(r#"{"request_id":"…","plan":"liked_movies""#));
    let shown = shown.and_then(|line| line.strip_suffix("…]}")).expect("the README shows the first rows");
    assert!(source.stdout.starts_with(shown), "{}", source.stdout);
}
