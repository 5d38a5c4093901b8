//! Plans made to hurt: each is refused (or accepted) quickly and without memory that grows with it.
//!
//! The time limits are coarse guards for slow machines and unoptimised builds; the memory limits are exact.

#![expect(unsafe_code, reason = "counting what is allocated needs a global allocator")]

use rankd_plan::registry::Text;
use rankd_plan::signature::*;
use rankd_plan::{Registry, Signatures, check};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it is; the counters touch no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MEMORY_MAX: usize = 32 << 20;
const TIME_MAX: Duration = Duration::from_secs(10);

static SOURCE: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::Nothing,
    params: &[],
    cost: Cost::Trivial,
};

static VM: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Params(&[ParamRef::named("out_key")]),
    params: &[
        Param { name: "out_key", kind: ParamKind::Key(KeyTypes::Any), need: Need::Required, doc: "", uses: &[] },
        Param {
            name: "expr",
            kind: ParamKind::Expr { into: Some(ParamRef::named("out_key")) },
            need: Need::Required,
            doc: "",
            uses: &[],
        },
        Param { name: "extra", kind: ParamKind::Bool, need: Need::Default(Literal::Bool(true)), doc: "", uses: &[] },
    ],
    cost: Cost::Unknown,
};

static CONCAT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Appended,
    reads: &[],
    writes: Writes::Nothing,
    params: &[Param { name: "rhs", kind: ParamKind::Node, need: Need::Required, doc: "", uses: &[] }],
    cost: Cost::Unknown,
};

static FILTER: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: &[Param { name: "pred", kind: ParamKind::Pred, need: Need::Required, doc: "", uses: &[] }],
    cost: Cost::Unknown,
};

static FIXED: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::Params(&[ParamRef::named("columns")]),
    params: &[
        Param {
            name: "row_count",
            kind: ParamKind::Int { min: 0, max: 10_000_000 },
            need: Need::Default(Literal::Int(1)),
            doc: "",
            uses: &[],
        },
        Param {
            name: "columns",
            kind: ParamKind::Columns { rows: Some(ParamRef::named("row_count")) },
            need: Need::Optional,
            doc: "",
            uses: &[],
        },
    ],
    cost: Cost::Trivial,
};

fn tasks() -> Signatures {
    Signatures::new(TASKS.iter().copied()).expect("each op is there once")
}

static TASKS: &[Signature] = &[
    Signature { op: "fixed", summary: "", contract: &FIXED },
    Signature { op: "filter", summary: "", contract: &FILTER },
    Signature { op: "source", summary: "", contract: &SOURCE },
    Signature { op: "vm", summary: "", contract: &VM },
    Signature { op: "concat", summary: "", contract: &CONCAT },
];

fn registry() -> Registry {
    let keys = "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n\
                [[key]]\nkey_id = 2\nname = \"score\"\ntype = \"float\"\nnullable = true\ndoc = \"\"\n\
                [[key]]\nkey_id = 3\nname = \"title\"\ntype = \"string\"\nnullable = true\ndoc = \"\"\n";
    let text = |text| Text { file: "", text };
    let (registry, problems) = Registry::parse(text(keys), text(""), text(""));
    assert!(problems.is_empty());
    registry
}

fn with_expression(expression: &str) -> String {
    format!(
        r#"{{"schema_version":1,"plan_name":"p","nodes":[{{"node_id":"a","op":"source"}},{{"node_id":"b","op":"vm","inputs":["a"],"params":{{"out_key":"score","expr":"e"}}}}],"outputs":["b"],"expr_table":{{"e":{expression}}}}}"#
    )
}

/// A plan that filters by each of these predicates.
fn with_predicates(predicates: &[String]) -> String {
    let nodes: String = (0..predicates.len())
        .map(|n| {
            let input = if n == 0 { "source".to_owned() } else { format!("n{}", n - 1) };
            format!(r#",{{"node_id":"n{n}","op":"filter","inputs":["{input}"],"params":{{"pred":"p{n}"}}}}"#)
        })
        .collect();
    let table: Vec<String> = predicates.iter().enumerate().map(|(n, text)| format!(r#""p{n}":{text}"#)).collect();
    format!(
        r#"{{"schema_version":1,"plan_name":"p","nodes":[{{"node_id":"source","op":"source"}}{nodes}],"outputs":["n{}"],"pred_table":{{{}}}}}"#,
        predicates.len() - 1,
        table.join(",")
    )
}

fn regex(pattern: &str, flags: &str) -> String {
    let pattern = pattern.replace('\\', "\\\\").replace('"', "\\\"");
    format!(r#"{{"op":"regex","key":"title","pattern":{{"literal":"{pattern}"}},"flags":"{flags}"}}"#)
}

/// Checks a plan within the limits and gives the codes found, each once.
#[expect(clippy::print_stdout, reason = "the figures are the point of running it by hand")]
fn codes(what: &str, text: &str) -> Vec<&'static str> {
    let registry = registry();
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    #[expect(clippy::disallowed_methods, reason = "a coarse guard against work that grows")]
    let start = Instant::now();
    let checked = check(text.as_bytes(), &registry, &tasks());
    let took = start.elapsed();
    let memory = PEAK.load(Ordering::Relaxed) - before;
    println!("{what}: {} bytes in {took:?}, {memory} bytes of memory", text.len());
    assert!(memory < MEMORY_MAX, "{what} took {memory} bytes");
    assert!(took < TIME_MAX, "{what} took {took:?}");
    let mut codes: Vec<&'static str> = checked.diagnostics.list().iter().map(|found| found.code.id()).collect();
    codes.dedup();
    codes
}

// One test, so that nothing else allocates while it counts.
#[test]
fn hostile_plans_are_refused_quickly_and_in_little_memory() {
    let deep = r#"{"op":"neg","x":"#.repeat(1_000_000) + "0" + &"}".repeat(1_000_000);
    assert_eq!(codes("1,000,000 deep, over the file limit", &with_expression(&deep)), ["P001"]);

    let deep = r#"{"op":"neg","x":"#.repeat(900_000) + "0" + &"}".repeat(900_000);
    assert_eq!(codes("900,000 deep", &with_expression(&deep)), ["P203"]);

    let array = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    assert_eq!(codes("1,000,000 arrays deep", &with_expression(&array)), ["P101"]);

    let list = "1,".repeat(1_000_000) + "1";
    let wide = format!(
        r#"{{"op":"if","cond":{{"op":"in","lhs":{{"op":"key_ref","key":"id"}},"list":[{list}]}},"then":{{"op":"const_null"}},"else":{{"op":"const_null"}}}}"#
    );
    assert_eq!(codes("1,000,001 wide", &with_expression(&wide)), ["P204"]);

    let leaf = r#"{"op":"key_ref","key":"id"}"#;
    let tree = (0..18).fold(leaf.to_owned(), |half, _| format!(r#"{{"op":"add","a":{half},"b":{half}}}"#));
    assert_eq!(codes("262,144 leaves", &with_expression(&tree)), ["P204"]);

    let fields: String = (0..50_000).map(|n| format!(r#""e{n}":{{}},"#)).collect();
    let plan = format!(
        r#"{{"schema_version":1,"plan_name":"p","nodes":[{{"node_id":"a","op":"source"}}],"outputs":["a"],"expr_table":{{{fields}"e":{{}}}}}}"#
    );
    assert!(codes("50,001 empty expressions", &plan).contains(&"P204"));

    let nodes = r#"{"node_id":"a","op":"source"},"#.repeat(1_000_000);
    let plan = format!(r#"{{"schema_version":1,"plan_name":"p","nodes":[{nodes}{{}}],"outputs":["a"]}}"#);
    assert_eq!(codes("1,000,001 nodes", &plan), ["P001"]);

    let nodes = "{},".repeat(5_000_000);
    let plan = format!(r#"{{"schema_version":1,"plan_name":"p","nodes":[{nodes}{{}}],"outputs":["a"]}}"#);
    assert_eq!(codes("5,000,001 tiny nodes", &plan), ["P201"]);

    let nodes: String = (1..10_000)
        .map(|n| format!(r#",{{"node_id":"n{n}","op":"concat","inputs":["n{0}"],"params":{{"rhs":"n{0}"}}}}"#, n - 1))
        .collect();
    let plan = format!(
        r#"{{"schema_version":1,"plan_name":"p","nodes":[{{"node_id":"n0","op":"source"}}{nodes}],"outputs":["n9999"]}}"#
    );
    assert_eq!(codes("a diamond of 2^9999 paths", &plan), [""; 0]);

    let nodes: String = (0..9_999)
        .map(|n| format!(r#"{{"node_id":"n{n}","op":"concat","inputs":["n{}"],"params":{{"rhs":"n{n}"}}}},"#, n + 1))
        .collect();
    let plan = format!(
        r#"{{"schema_version":1,"plan_name":"p","nodes":[{nodes}{{"node_id":"n9999","op":"concat","inputs":["n0"],"params":{{"rhs":"n0"}}}}],"outputs":["n9999"]}}"#
    );
    assert!(codes("a cycle through 10,000 nodes", &plan).contains(&"P601"));

    let pairs = r#""a":1,"#.repeat(2_000_000);
    assert!(codes("one field 2,000,000 times", &format!("{{{pairs}\"a\":1}}")).contains(&"P004"));

    let names: String = (0..1_000_000).map(|n| format!(r#""{n}":1,"#)).collect();
    assert!(codes("1,000,000 unknown fields", &format!("{{{names}\"a\":1}}")).contains(&"P102"));

    for flags in ["", "i"] {
        let bomb = with_predicates(&[regex(&r"[^\w]".repeat(9_000), flags)]);
        assert!(codes("a regex of 9,000 classes", &bomb).contains(&"P503"));
        let bomb = with_predicates(&[regex(&r"[^\w]".repeat(1_600), flags)]);
        assert!(codes("a regex of 1,600 classes", &bomb).contains(&"P503"));
        let bomb = with_predicates(&[regex(&"[\u{20}-\u{10ffff}]".repeat(900), flags)]);
        assert!(!codes("a regex of 900 wide ranges", &bomb).contains(&"P204"));
        let many: Vec<String> = (0..9_000).map(|n| regex(&format!(r"\w{{10}}{n}"), flags)).collect();
        assert!(codes("9,000 regexes of ten classes", &with_predicates(&many)).contains(&"P204"));
        let many: Vec<String> = (0..9_000).map(|n| regex(&format!("word{n}"), flags)).collect();
        assert!(codes("9,000 small regexes", &with_predicates(&many)).contains(&"P204"));
        let long: Vec<String> = (0..1_600).map(|n| regex(&format!("{n}").repeat(2_000), flags)).collect();
        assert!(codes("1,600 long regexes", &with_predicates(&long)).contains(&"P204"));
        let same: Vec<String> = (0..9_000).map(|_| regex(r"\w{10}", flags)).collect();
        assert!(!codes("one regex 9,000 times", &with_predicates(&same)).contains(&"P204"));
        let most: Vec<String> = (0..10).map(|n| regex(&format!(r"\w{{10}}{n}"), flags)).collect();
        assert!(!codes("as many classes as may be", &with_predicates(&most)).contains(&"P204"));
        let most: Vec<String> = (0..400).map(|n| regex(&format!("word{n}"), flags)).collect();
        assert!(!codes("as many regexes as may be", &with_predicates(&most)).contains(&"P204"));
        let most: Vec<String> = (0..3).map(|n| regex(&format!("{}{n}", "ks".repeat(4_000)), flags)).collect();
        assert!(!codes("as long regexes as may be", &with_predicates(&most)).contains(&"P204"));
    }

    let lists = |items: usize, item: &dyn Fn(usize) -> String| -> Vec<String> {
        let list = |from: usize| (from..from + 9_000).map(item).collect::<Vec<_>>().join(",");
        (0..items / 9_000)
            .map(|n| format!(r#"{{"op":"in","lhs":{{"op":"key_ref","key":"title"}},"list":[{}]}}"#, list(n * 9_000)))
            .collect()
    };
    let texts = lists(99_000, &|n| format!(r#""a text that is as long as many are, number {n}""#));
    assert!(codes("99,000 texts in lists", &with_predicates(&texts)).contains(&"P204"));
    let texts = lists(99_000, &|n| format!(r#""{n}""#));
    assert!(!codes("99,000 short texts in lists", &with_predicates(&texts)).contains(&"P204"));

    let leaf = r#"{"op":"key_ref","key":"id"}"#.to_owned();
    let side = |half: String, _| format!(r#"{{"op":"add","a":{half},"b":{leaf}}}"#);
    let deep = (0..250).fold(leaf.clone(), side);
    let fields: String = (0..199).map(|n| format!(r#""e{n}":{deep},"#)).collect();
    let plan = format!(
        r#"{{"schema_version":1,"plan_name":"p","nodes":[{{"node_id":"a","op":"source"}}],"outputs":["a"],"expr_table":{{{fields}"e":{leaf}}}}}"#
    );
    assert_eq!(codes("199 expressions 250 deep", &plan), ["P603"]);

    let with_sources = |files: &str, spans: &str| {
        let nodes: String = (0..9_000).map(|n| format!(r#"{{"node_id":"n{n}","op":"source","source":0}},"#)).collect();
        format!(
            r#"{{"schema_version":1,"plan_name":"p","nodes":[{nodes}{{"node_id":"n","op":"source"}}],"outputs":["n"],"sources":{{"files":[{files}],"spans":[{spans}]}}}}"#
        )
    };
    let (file, span) = (r#"{"path":"a","sha256":""}"#.to_owned(), "[0,1,1,1,1]".to_owned());
    let path = format!(r#"{{"path":"{}","sha256":""}}"#, "x".repeat(1_000_000));
    assert!(codes("a long path in each of 9,000 nodes", &with_sources(&path, &span)).contains(&"P108"));
    let digest = format!(r#"{{"path":"","sha256":"{}"}}"#, "x".repeat(1_000_000));
    assert!(codes("a long digest in each of 9,000 nodes", &with_sources(&digest, &span)).contains(&"P108"));
    let spans = (span.clone() + ",").repeat(400_000) + &span;
    assert!(codes("400,001 spans", &with_sources(&file, &spans)).contains(&"P108"));
    let files = (file.clone() + ",").repeat(600_000) + &file;
    assert!(codes("600,001 files", &with_sources(&files, &span)).contains(&"P108"));
    let spans = (span.clone() + ",").repeat(299_999) + &span;
    let path = format!(r#"{{"path":"{}","sha256":""}}"#, "x".repeat(512));
    assert!(!codes("as many places as may be", &with_sources(&path, &spans)).contains(&"P108"));

    let label = format!(
        r#"{{"schema_version":1,"plan_name":"p","nodes":[{{"node_id":"a","op":"source","params":{{"trace":"{}"}}}}],"outputs":["a"]}}"#,
        "x".repeat(15_000_000)
    );
    assert_eq!(codes("a label of 15 MB", &label), ["P405"]);

    let fixed = |nodes: usize, params: &str| {
        let node = |n| format!(r#"{{"node_id":"n{n}","op":"fixed","params":{{{params}}}}}"#);
        let nodes: Vec<String> = (0..nodes).map(node).collect();
        format!(r#"{{"schema_version":1,"plan_name":"p","nodes":[{}],"outputs":["n0"]}}"#, nodes.join(","))
    };
    assert!(codes("10,000,000 rows", &fixed(1, r#""row_count":10000000"#)).contains(&"P405"));
    assert!(codes("1,000 nodes of 10,000 rows", &fixed(1_000, r#""row_count":10000"#)).contains(&"P405"));
    let generated = r#""row_count":600000,"columns":{"score":{"hash":{"seed":1}},"title":{"cycle":["a"]}}"#;
    assert!(!codes("1,800,000 cells", &fixed(1, generated)).contains(&"P405"));
    let values = format!(r#""row_count":90000,"columns":{{"score":[{}1]}}"#, "1,".repeat(89_999));
    assert!(codes("20 columns of 90,000 values", &fixed(20, &values)).contains(&"P405"));
    assert!(!codes("2 columns of 90,000 values", &fixed(2, &values)).contains(&"P405"));
    let values = format!(r#""row_count":1,"columns":{{"score":{{"cycle":[{}1]}}}}"#, "1,".repeat(89_999));
    assert!(codes("20 cycles of 90,000 values", &fixed(20, &values)).contains(&"P405"));

    assert_eq!(codes("a lone surrogate", r#"{"plan_name":"\ud834x"}"#), ["P003"]);
    assert_eq!(codes("1e999", &with_expression(r#"{"op":"const_number","value":1e999}"#)), ["P005"]);
    let digits = "9".repeat(10_000_000);
    assert_eq!(
        codes(
            "a number of 10,000,000 digits",
            &with_expression(&format!(r#"{{"op":"const_number","value":{digits}}}"#))
        ),
        ["P005"]
    );
}
