//! Two small plans whose figures were computed by hand.

use super::*;

fn rows(ids: &[(i64, f64, &str)]) -> Vec<RankedRow> {
    let row = |(id, score, group): &(i64, f64, &str)| RankedRow {
        id: Id::Int(*id),
        score: Some(*score),
        group: Some((*group).to_owned()),
        source: Some(if *id < 3 { "follow" } else { "trend <ing>" }.to_owned()),
    };
    ids.iter().map(row).collect()
}

fn answered(ids: &[(i64, f64, &str)]) -> Answered {
    Answered { outputs: Ok(vec![rows(ids)]), is_degraded: false }
}

fn diff(labels: Option<Labels>) -> PlanDiff {
    PlanDiff::new(Asked {
        plans: ["feed".to_owned(), "feed <next>".to_owned()],
        k: 2,
        outputs: vec!["0".to_owned()],
        score: Some("score".to_owned()),
        group: Some("country".to_owned()),
        labels,
        captures: None,
    })
}

fn asked<'a>(user: &'a Id, text: &'a str) -> ComparedRequest<'a> {
    ComparedRequest { user, text, captured_id: None }
}

fn figure(diff: &PlanDiff, name: &str) -> (Option<f64>, Option<f64>) {
    let figure = diff.figures().into_iter().find(|figure| figure.name == name);
    let figure = figure.unwrap_or_else(|| panic!("there is no figure {name}"));
    (figure.of_first, figure.value)
}

#[test]
fn a_plan_beside_itself_differs_in_nothing() {
    let mut diff = diff(None);
    for user in 1..=100 {
        let same = answered(&[(user, 1.0, "DE"), (user + 1, 0.5, "US")]);
        diff.add(asked(&Id::Int(user), "{}"), [&same, &same]);
    }
    assert_eq!(figure(&diff, "differ").1, Some(0.0));
    assert_eq!((figure(&diff, "overlap@2").1, figure(&diff, "displacement").1), (Some(1.0), Some(0.0)));
    assert!((figure(&diff, "rbo").1.unwrap() - 1.0).abs() < 1e-12);
    assert_eq!((figure(&diff, "entered").1, figure(&diff, "drift").1), (Some(0.0), Some(0.0)));
    assert!(diff.shown.is_empty());
}

#[test]
fn figures_over_requests_are_those_that_were_computed_by_hand() {
    let labels = Labels::read("user_id,id,gain\n1,3,1\n", false).unwrap();
    let mut diff = diff(Some(labels));
    let a = answered(&[(1, 1.0, "DE"), (2, 0.5, "US")]);
    // 2 goes, 3 comes, and 1 is worth more.
    let b = answered(&[(1, 1.5, "DE"), (3, 0.5, "DE")]);
    let failed = Answered { outputs: Err("E501"), is_degraded: false };
    let degraded = Answered { is_degraded: true, ..answered(&[(1, 1.0, "DE"), (2, 0.5, "US")]) };
    diff.add(asked(&Id::Int(1), "{\"user_id\": 1}"), [&a, &b]);
    diff.add(asked(&Id::Int(2), "{\"user_id\": 2}"), [&a, &a]);
    diff.add(asked(&Id::Int(3), "{\"user_id\": 3, \"request_id\": \"it's\"}"), [&a, &failed]);
    diff.add(asked(&Id::Int(4), "{\"user_id\": 4}"), [&failed, &degraded]);
    diff.add_cost(1, Cost { requests: 4, cpu_seconds: 0.004, commands: 8 });
    assert_eq!(figure(&diff, "differ").1, Some(0.75));
    assert_eq!(figure(&diff, "overlap@2").1, Some(0.75), "of the two that both answered: a half and all");
    assert_eq!((figure(&diff, "entered").1, figure(&diff, "left").1), (Some(0.5), Some(0.5)));
    assert_eq!(figure(&diff, "displacement").1, Some(0.0));
    // Row 1 of the first request, and both rows of the second.
    assert!((figure(&diff, "drift").1.unwrap() - 0.5 / 3.0).abs() < 1e-12);
    assert_eq!(figure(&diff, "errors"), (Some(0.25), Some(0.25)));
    assert_eq!(figure(&diff, "degraded"), (Some(0.0), Some(0.25)));
    assert_eq!(figure(&diff, "rows"), (Some(2.0), Some(2.0)), "of those that have rows");
    assert_eq!((figure(&diff, "cpu").1, figure(&diff, "commands").1), (Some(1_000.0), Some(2.0)));
    assert_eq!(figure(&diff, "recall@2"), (Some(0.0), Some(1.0)), "user 1 alone has a label");
    assert_eq!(diff.outputs[0].groups["DE"], [1, 0]);
    assert_eq!(diff.outputs[0].groups["US"], [0, 1]);
    assert_eq!(diff.outputs[0].sources, BTreeMap::from([("follow".into(), [0, 1]), ("trend <ing>".into(), [1, 0])]));
    assert_eq!(diff.shown.iter().map(|shown| shown.number).collect::<Vec<_>>(), [2, 3, 0], "failures first");
    let why = diff.shown[2].why(&diff.asked);
    assert_eq!(why.as_deref(), Some(r#"echo '{"user_id": 1}' | rankd why 'feed <next>' --item 2"#));
    let text = diff.to_text();
    assert!(text.contains("feed <next> failed with E501") && text.contains("overlap@2"), "{text}");
    let json = diff.to_json();
    assert!(json.contains(r#""errors":[0.25,0.25]"#) && json.contains(r#""interval":[1.0,1.0]"#), "{json}");
    let html = diff.to_html();
    assert!(html.contains("feed &lt;next&gt;") && !html.contains("<next>"), "{html}");
    assert!(html.contains("<td>trend &lt;ing&gt;<td class=n>1<td class=n>0"), "{html}");
    assert!(
        json.contains(r#""sources":{"follow":{"entered":0,"left":1},"trend <ing>":{"entered":1,"left":0}}"#),
        "{json}"
    );
    assert!(text.contains("trend <ing>"), "{text}");
    assert!(!json.contains("\"left_out\"") && !json.contains("missing"), "nothing was captured: {json}");
}

#[test]
fn only_the_requests_that_differ_most_are_kept() {
    let mut diff = diff(None);
    let a = answered(&[(1, 1.0, "DE"), (2, 1.0, "DE")]);
    let (half, none) = (answered(&[(1, 1.0, "DE"), (9, 1.0, "DE")]), answered(&[(8, 1.0, "DE"), (9, 1.0, "DE")]));
    for number in 0..100 {
        diff.add(asked(&Id::Int(1), "{}"), [&a, if number % 20 == 7 { &none } else { &half }]);
    }
    let numbers: Vec<u64> = diff.shown.iter().map(|shown| shown.number).collect();
    assert_eq!(numbers, [7, 27, 47, 67, 87, 0, 1, 2, 3, 4]);
}

#[test]
fn captured_requests_that_are_not_compared_are_counted_and_no_errors() {
    let mut diff =
        PlanDiff { asked: Asked { captures: Some(vec!["my captures".to_owned()]), ..diff(None).asked }, ..diff(None) };
    let (a, b) = (answered(&[(1, 1.0, "DE")]), answered(&[(7, 1.0, "DE")]));
    let (user, text) = (&Id::Int(1), "{}");
    diff.add(ComparedRequest { user, text, captured_id: Some("r 1") }, [&a, &b]);
    diff.leave_out(NotCompared::Missing([false, true]));
    diff.leave_out(NotCompared::Missing([true, true]));
    diff.leave_out(NotCompared::Missing([false, true]));
    diff.leave_out(NotCompared::NotComparable("there is no parameter <p>".to_owned()));
    diff.leave_out(NotCompared::OtherPlan);
    assert_eq!(figure(&diff, "missing"), (Some(0.25), Some(0.75)));
    assert_eq!((figure(&diff, "errors"), figure(&diff, "differ").1), ((Some(0.0), Some(0.0)), Some(1.0)));
    let why = diff.shown[0].why(&diff.asked);
    assert_eq!(why.as_deref(), Some("rankd why 'feed <next>' --capture 'my captures' --request_id 'r 1' --item 1"));
    let json = diff.to_json();
    let counts = r#""left_out":{"missing":[1,3],"not_comparable":{"there is no parameter <p>":1},"other_plan":1}"#;
    assert!(json.contains(counts), "{json}");
    let text = diff.to_text();
    for line in [
        "left out: 1 requests, because feed reads what was not captured",
        "left out: 3 requests, because feed <next> reads what was not captured",
        "left out: 1 requests: there is no parameter <p>",
        "passed over: 1 requests, captured for other plans",
        "request 0, r 1: overlap 0 %",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let html = diff.to_html();
    assert!(
        html.contains("no parameter &lt;p&gt;") && html.contains("3 requests, because feed &lt;next&gt; reads"),
        "{html}"
    );
}
