//! `rankd import`: what is in a file, what becomes of it, and what is left alone.

use crate::folder::Folder;
use crate::json::Json;

const MOVIES: &str = "movie_id,title,year,rating,score,Release Date\n11,Alpha,1999,7.5,high,1999-01-02\n12,Beta,2005,8.5,low,2005-03-04\n";

#[test]
fn nothing_is_written_before_everything_is_known() {
    let (folder, elsewhere) = (Folder::project(), Folder::empty());
    elsewhere.write("movies.csv", MOVIES);
    let file = elsewhere.path("movies.csv").display().to_string();
    let keys = folder.read("registry/keys.toml");
    let ran = folder.rankd(&["import", &file, "--name", "movies", "--dry_run"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for line in ["2 rows", "movie_id", "rating", "rating (new)", "Release_Date (new)", "movies_score (new)"] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    assert!(ran.stderr.contains("the key \"score\" is float"), "a clash is said: {}", ran.stderr);
    for (args, says) in [
        (&["--name", "9movies"][..], "is no name for a table"),
        (&["--name", "store"], "there is an endpoint \"store\" already"),
        (&["--name", "movies", "--id", "movi_id"], "did you mean \"movie_id\"?"),
        (&["--name", "movies", "--id", "score_"], "did you mean \"score\"?"),
    ] {
        let ran = folder.rankd(&[&["import", &file], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
    folder.write("plans/movies.plan.ts", "// mine\n");
    let ran = folder.rankd(&["import", &file, "--name", "movies"]);
    assert!(ran.code == 2 && ran.stderr.contains("plans/movies.plan.ts is there"), "{}", ran.stderr);
    assert_eq!(folder.read("registry/keys.toml"), keys);
    assert!(!folder.path("data/movies.csv").exists() && folder.read("plans/movies.plan.ts") == "// mine\n");
    elsewhere.write("texts.csv", "name,likes\na,1\nb,2\n");
    let file = elsewhere.path("texts.csv").display().to_string();
    let ran = folder.rankd(&["import", &file, "--name", "texts", "--id", "name"]);
    assert!(ran.code == 2 && ran.stderr.contains("type = \"string\""), "{}", ran.stderr);
    let ran = Folder::empty().rankd(&["import", &file, "--name", "texts"]);
    assert!(ran.code == 2 && ran.stderr.contains("rankd init NAME"), "{}", ran.stderr);
}

#[test]
fn an_imported_table_is_ranked_by_its_first_plan() {
    let (folder, elsewhere) = (Folder::project(), Folder::empty());
    elsewhere.write("movies.csv", MOVIES);
    let file = elsewhere.path("movies.csv").display().to_string();
    let ran = folder.rankd_in("plans", &["import", &file, "--name", "movies"], &[], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("../data/movies.csv: a copy of"), "{}", ran.stderr);
    assert_eq!(folder.read("data/movies.csv"), MOVIES);
    let ran = folder.rankd(&["check"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = folder.rankd(&["run", "--plan_name", "movies", "--user", "1"]);
    let answer = Json::read(&ran.stdout);
    let rows: Vec<(f64, &str, &str)> = answer
        .list("candidates")
        .iter()
        .map(|row| (row.number("id"), row.text("title"), row.text("movies_score")))
        .collect();
    // By rating, because its name says so.
    assert_eq!(rows, [(12.0, "Beta", "low"), (11.0, "Alpha", "high")]);
    assert_eq!(answer.list("candidates")[0].text("Release_Date"), "2005-03-04");
    // A file of the project stays where it is; keys that are there are used; ids are written where the file has them.
    assert_eq!(folder.rankd(&["registry", "fix"]).code, 0);
    folder.write("data/more.tsv", "sku\ttitle\tprice\n1\tA\t2.5\n2\tB\t1\n");
    let ran = folder.rankd_in("data", &["import", "more.tsv", "--name", "more", "--id", "sku"], &[], "");
    assert!(ran.code == 0 && ran.stderr.contains("more.tsv: read where it is"), "{}", ran.stderr);
    assert!(folder.read("registry/endpoints.local.toml").contains("url = \"file:data/more.tsv\""));
    assert_eq!(folder.read("registry/keys.toml").matches("\"title\"").count(), 1);
    assert!(
        folder.read("registry/keys.toml").contains("key_id = 9\nname = \"price\""),
        "{}",
        folder.read("registry/keys.toml")
    );
    let ran = folder.rankd(&["check"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
