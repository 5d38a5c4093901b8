//! Other people's libraries in a Python process, asked line by line, so that their rounds alternate with ours.
//!
//! `PYTHON` names the interpreter, `python3` where it is not set. A library that is not there takes no part, and the tables say so.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Says which libraries are there; what follows it answers questions.
const PRELUDE: &str = r#"
import importlib, importlib.metadata, os, sys
# A library may print whatever it likes, such as how far it is: what this prints are answers, and the rest goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
there = {}
for name in sys.argv[1].split(","):
    try:
        there[name] = importlib.import_module(name)
    except ImportError:
        pass
version = lambda name, library: getattr(library, "__version__", None) or importlib.metadata.version(name)
print(" ".join(f"{name}={version(name, library)}" for name, library in there.items()), file=answers, flush=True)
def answer(respond):
    for line in sys.stdin:
        try:
            print(respond(*line.split()), file=answers, flush=True)
        except Exception as error:
            print(f"{line.strip()}: {error!r}", file=sys.stderr)
            print("error", file=answers, flush=True)
"#;

pub struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Name and version of each library that is there.
    libraries: Vec<(String, String)>,
}

impl Python {
    /// A process with these libraries, as far as they are there, on one thread each. The script has them in `there` by name, and
    /// ends with `answer(function)`, which is called with the words of each question. `None` where there is no Python.
    pub fn start(libraries: &[&str], script: &str, args: &[&str]) -> Option<Python> {
        let mut command = Command::new(std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned()));
        command.args(["-c", &format!("{PRELUDE}{script}"), &libraries.join(",")]).args(args);
        for threads in ["POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"] {
            command.env(threads, "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let mut python = Python { child, input, output, libraries: Vec::new() };
        let there = python.line()?;
        let there = there.split_whitespace().filter_map(|word| word.split_once('='));
        python.libraries = there.map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
        Some(python)
    }

    pub fn has(&self, library: &str) -> bool {
        self.libraries.iter().any(|(name, _)| name == library)
    }

    /// The numbers that a question is answered with; `None` where it failed, which the process says on stderr.
    pub fn ask(&mut self, question: &str) -> Option<Vec<f64>> {
        writeln!(self.input, "{question}").ok()?;
        self.line()?.split_whitespace().map(|word| word.parse().ok()).collect()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        Some(line)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Which peers take part, and how to get those that do not.
pub fn introduce(python: Option<&Python>, wanted: &[&str]) {
    let there = python.map_or(&[][..], |python| &python.libraries);
    let shown: Vec<String> = there.iter().map(|(name, version)| format!("{name} {version}")).collect();
    if !shown.is_empty() {
        println!("Peers, in Python, on one thread: {}.\n", shown.join(", "));
    }
    let missing: Vec<&str> =
        wanted.iter().copied().filter(|name| !python.is_some_and(|python| python.has(name))).collect();
    if !missing.is_empty() {
        println!(
            "**Not measured, because they are not there: {}.** To have them: `python3 -m venv peers && peers/bin/pip install {}`, \
             then set `PYTHON=peers/bin/python`, as an absolute path.\n",
            missing.join(", "),
            wanted.join(" ")
        );
    }
}
