//! Plans made to hurt: refused or stopped within two seconds of the processor and 64 MB, with a clear error; nothing of the world
//! can be reached.

use crate::workspace::Workspace;
use rankd_column::expr::operation::{Home, names_in};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MEMORY_KB_MAX: u64 = 64 * 1024;

/// What was said, how long the processor worked for it, and the most memory that the process had.
fn check(workspace: &Workspace, plan: &str) -> (String, Duration, u64) {
    workspace.write("plans/case.plan.ts", plan);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dslc"));
    command.current_dir(&workspace.folder).args(["check", "plans/case.plan.ts"]);
    let began = Instant::now();
    let mut child = command.stderr(Stdio::piped()).spawn().expect("dslc can be started");
    let (mut peak, mut took) = (0, Duration::ZERO);
    let status = loop {
        peak = peak.max(peak_kb(child.id()));
        took = took.max(processor_time(child.id()));
        match child.try_wait().expect("it can be waited for") {
            Some(status) => break status,
            None => std::thread::yield_now(),
        }
    };
    assert!(began.elapsed() < Duration::from_secs(60), "however busy the machine is, it ends");
    let output = child.wait_with_output().expect("it has ended");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(status.code(), Some(2), "it ends by itself and says that the plan is wrong: {words}");
    (words, took, peak)
}

/// The high-water mark, where the system tells it; 0 where it does not, and for a process that has ended.
fn peak_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// How long the processor has worked for a process, where the system tells it: ticks of 10 ms in the 14th and 15th field.
fn processor_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: u64 = after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

#[test]
fn whatever_a_plan_does_it_is_stopped() {
    let workspace = Workspace::new();
    let deep = |text: &str, times: usize| format!("const x = {}1;\n", text.repeat(times));
    let plans: Vec<(&str, String)> = vec![
        ("D007", "for (;;) {}".into()),
        ("D007", "for (;;) { try { for (;;) {} } finally { continue; } }".into()),
        ("D007", "const it = { *[Symbol.iterator]() { for (;;) yield 1; } }; for (const x of it) void x;".into()),
        ("D007", "/^(a+)+$/.test(\"a\".repeat(40) + \"!\");".into()),
        ("D007", "new Set(new Array(4e9));".into()),
        ("D007", "const p = { get length() { return 2 ** 53; } }; for (let i = 0; i < p.length; i++);".into()),
        ("D008", "const a: string[] = []; for (;;) a.push(\"x\".repeat(100000) + a.length);".into()),
        ("D008", "let s = \"x\"; while (true) s += s;".into()),
        ("D008", "new Array(4e8).join(\"xxxxxxxxxx\");".into()),
        ("D008", "Array.prototype.indexOf.call({ length: 1e15 }, 1);".into()),
        ("D008", "const a: any[] = []; for (let b = a; ; ) { const c: any[] = []; b.push(c); b = c; }".into()),
        ("D009", "const f = (n: number): number => f(n + 1) + 1; f(0);".into()),
        ("D009", "let o: any = []; for (let i = 0; i < 100000; i++) o = [o]; JSON.stringify(o);".into()),
        ("D006", "(() => {}).constructor(\"return 1\")();".into()),
        ("D006", "const F: any = Object.getPrototypeOf(function* () {}).constructor; F(\"yield 1\")();".into()),
        ("D006", "const F: any = Reflect.getPrototypeOf(Reflect.ownKeys)!.constructor; new F(\"return 1\")();".into()),
        ("D006", "eval(\"1\");".into()),
        ("D006", "new Function(\"return 1\");".into()),
        ("D006", "Object.prototype.toString = () => \"x\";".into()),
        ("D006", "(Array.prototype as any).push = () => 1;".into()),
        ("D006", "(globalThis as any).Key = 1;".into()),
        ("D006", "(Key as any).id = 1;".into()),
        ("D011", "(Object.getPrototypeOf(Key.id) as any).x = 1;".into()),
        ("D011", "new (Object.getPrototypeOf(Key.id).constructor as any)({ op: \"x\" }).foo.bar;".into()),
        ("D004", "import x from \"/etc/passwd\"; export default x;".into()),
        ("D004", "import x from \"../../x\"; export default x;".into()),
        ("D005", "export default import(\"/etc/passwd\");".into()),
        ("D005", "export default $rankd;".into()),
        ("D003", deep("(", 100_000)),
        ("D003", deep("!", 100_000)),
        ("D003", deep("[", 100_000)),
        ("D003", deep("1+", 80_000)),
        ("D003", deep("a=>", 50_000)),
        ("D003", "if (1) ".repeat(20_000)),
        ("D001", "x".repeat(10_000_000)),
    ];
    for (code, plan) in plans {
        let shown: String = plan.chars().take(80).collect();
        let (words, took, peak) = check(&workspace, &plan);
        assert!(words.contains(&format!("error[{code}]")), "{shown}: not {code} but {words}");
        assert!(took < Duration::from_secs(2), "{shown}: it took {took:?}");
        assert!(peak < MEMORY_KB_MAX, "{shown}: it took {peak} kB");
    }
}

#[test]
fn the_deepest_code_that_is_let_through_is_compiled() {
    let workspace = Workspace::new();
    for (text, times) in
        [("(", 2_900), ("!", 2_900), ("a=>", 1_400), ("[", 2_900), ("1+", 1_400), ("-", 1_000), ("1?", 10)]
    {
        let close = match text {
            "(" => ")".repeat(times),
            "[" => "]".repeat(times),
            _ => String::new(),
        };
        let tail = if text == "1?" { ":1".repeat(times) } else { String::new() };
        let (words, took, peak) = check(&workspace, &format!("const x = {}1{tail}{close};\n", text.repeat(times)));
        // What comes of it does not matter: there is no plan in it. That the process ends by itself does.
        assert!(words.contains("error[D") && took < Duration::from_secs(2), "{text}: {took:?} {words}");
        assert!(peak < MEMORY_KB_MAX, "{text}: it took {peak} kB");
    }
}

#[test]
fn plan_code_finds_the_language_and_the_dsl_and_nothing_else() {
    const NAMES: usize = 30;
    let workspace = Workspace::new();
    let language = "$rankd AggregateError Array BigInt Boolean E EP Error EvalError Infinity JSON Key M Map Math NaN Number Object P Pred \
                    RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError U URIError WeakMap WeakSet \
                    dial globalThis isFinite isNaN parseFloat parseInt undefined";
    let mut expected: Vec<&str> = language.split(' ').chain(names_in(Home::Global)).collect();
    expected.sort_unstable();
    // A message is cut when it is long, so the names come in parts.
    for part in 0..expected.len().div_ceil(NAMES) {
        let from = part * NAMES;
        let plan = format!(
            "throw new Error(\"[\" + Object.getOwnPropertyNames(globalThis).sort().slice({from}, {}).join(\" \") + \"]\");",
            // The last part has all that is left.
            if from + NAMES < expected.len() { from + NAMES } else { 1_000 }
        );
        let (words, ..) = check(&workspace, &plan);
        let names = expected[from..expected.len().min(from + NAMES)].join(" ");
        assert!(words.contains(&format!("[{names}]")), "{names}\n{words}");
    }
    let plan = "throw new Error(Object.getOwnPropertyNames(Math).includes(\"random\") + \" \" + typeof (globalThis as any).Date);";
    let (words, ..) = check(&workspace, plan);
    assert!(words.contains("false undefined"), "{words}");
}

/// The system calls of a compilation: it reads the registry, the plan and what the program itself needs to start, and it talks
/// to nobody.
#[test]
fn the_system_is_asked_for_the_plans_own_files_only() {
    let workspace = Workspace::new();
    workspace.write("plans/fragments/a.ts", "export const a = 1;\n");
    workspace.write(
        "plans/case.plan.ts",
        "import { a } from \"./fragments/a.ts\";\nfor (let i = 0; i < 1000; i++) JSON.stringify([a, i]);\nexport default a;\n",
    );
    let trace = workspace.path("trace.txt");
    let mut command = Command::new("strace");
    command.env_remove("LD_LIBRARY_PATH");
    command.current_dir(&workspace.folder).args(["-f", "-qq", "-e", "trace=%network,%file,%process", "-o"]).arg(&trace);
    let ran = command.arg(env!("CARGO_BIN_EXE_dslc")).args(["check", "plans"]).output();
    let text = std::fs::read_to_string(&trace).unwrap_or_default();
    if ran.is_err() || !text.contains("execve") {
        crate::downloads::skipped(
            "strace does not watch the compiler, only its globals are looked at",
            "not here or forbidden",
        );
        return;
    }
    let own = workspace.folder.canonicalize().expect("it is there").display().to_string();
    let mut opened = 0;
    for line in text.lines() {
        assert!(!["socket(", "connect(", "sendto(", "bind("].iter().any(|call| line.contains(call)), "{line}");
        assert!(!line.contains("execve(") || line.contains("dslc"), "{line}");
        let Some(path) = line.split_once("openat(").and_then(|(_, rest)| rest.split('"').nth(1)) else { continue };
        opened += usize::from(path.ends_with(".ts"));
        let is_own = path.starts_with(&own) || ["registry", "plans", "."].iter().any(|root| path.starts_with(root));
        let is_system = ["/lib", "/usr/lib", "/etc/ld.so", "/proc/", "/sys/"].iter().any(|root| path.starts_with(root));
        assert!(is_own || is_system, "{line}");
    }
    assert_eq!(opened, 2, "the plan and what it imports, each once:\n{text}");
}
