//! A browser without a window, for the console's pages: Debian's `chromium-headless-shell`, spoken to over its own pipes (descriptors 3 and 4, JSON with a NUL
//! after each message), without a driver.
//!
//! One browser at a time for all tests. A page that is dropped is judged: nothing was asked of any other address, the policy was never violated and no script
//! failed.

use crate::downloads;
use crate::json::Json;
use crate::server::{Folder, PATIENCE};
use rankd_plan::json::Writer;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// The program, installed by whoever comes first, under a lock; why not, where it cannot be.
fn program() -> Result<PathBuf, String> {
    let find = || {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).map(|folder| folder.join("chromium-headless-shell")).find(|path| path.is_file())
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    downloads::once(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("downloads"), "chromium-headless-shell", |_| {
        downloads::run(Command::new("apt-get").arg("update"))?;
        let mut install = Command::new("apt-get");
        downloads::run(install.args([
            "install",
            "-y",
            "--no-install-recommends",
            "chromium-headless-shell",
            "fonts-dejavu-core",
        ]))
    })?;
    find().ok_or_else(|| "apt-get has installed it, but it is not in PATH".to_owned())
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut writer = Writer::new();
    writer.string(text);
    writer.finish()
}

/// Bytes that were written as base64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 6 | u32::from(value(*byte))) << (6 * (4 - chunk.len()));
        out.extend(bits.to_be_bytes().iter().skip(1).take(chunk.len() - 1));
    }
    out
}

struct Browser {
    child: Child,
    to: File,
    from: Receiver<String>,
    last_id: u32,
    events: Vec<Json>,
    _folder: Folder,
}

impl Browser {
    fn start() -> Result<Browser, String> {
        let program = program()?;
        let folder = Folder::new();
        let [to, from] = ["to", "from"].map(|name| folder.0.join(name));
        downloads::run(Command::new("mkfifo").args([&to, &from]))?;
        let child = Command::new("sh")
            // The shell opens the pipes as the descriptors that the browser knows.
            .args(["-c", "to=$1 from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\"", "sh"])
            .args([&to, &from])
            .arg(program)
            .args([
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--force-color-profile=srgb",
            ])
            .arg(format!("--user-data-dir={}", folder.0.join("profile").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let opened = |error: std::io::Error| error.to_string();
        let to = OpenOptions::new().write(true).open(&to).map_err(opened)?;
        let from = BufReader::new(File::open(&from).map_err(opened)?);
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for message in from.split(0).map_while(Result::ok) {
                let _ = sender.send(String::from_utf8_lossy(&message).into_owned());
            }
        });
        Ok(Browser { child, to, from: receiver, last_id: 0, events: Vec::new(), _folder: folder })
    }

    /// What the browser answers; `session` is the page that is meant.
    fn call(&mut self, session: &str, method: &str, params: &str) -> Json {
        let told = self.try_call(session, method, params);
        assert!(!told.has("error"), "{method} {params}: {told:?}");
        told.at("result").clone()
    }

    /// The same, with errors.
    fn try_call(&mut self, session: &str, method: &str, params: &str) -> Json {
        self.last_id += 1;
        let session = if session.is_empty() { String::new() } else { format!(",\"sessionId\":\"{session}\"") };
        let message = format!("{{\"id\":{},\"method\":\"{method}\",\"params\":{params}{session}}}\0", self.last_id);
        self.to.write_all(message.as_bytes()).unwrap();
        loop {
            let told = self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer to {method} {params}"));
            let told = Json::read(&told);
            if !told.has("id") {
                self.events.push(told);
            } else if told.number("id") == f64::from(self.last_id) {
                return told;
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

static TURN: Mutex<()> = Mutex::new(());

/// A page in a browser of its own.
pub(crate) struct Page {
    browser: Browser,
    session: String,
    /// What it may ask: addresses that begin like this.
    base: String,
    _turn: MutexGuard<'static, ()>,
}

impl Page {
    /// Opens an address; nothing, said loudly, where there is no browser.
    pub(crate) fn open(base: &str, path: &str) -> Option<Page> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut browser = match Browser::start() {
            Ok(browser) => browser,
            Err(why) => {
                downloads::skipped("the console in a browser", &why);
                return None;
            }
        };
        let target = browser.call("", "Target.createTarget", r#"{"url":"about:blank"}"#);
        let attach = format!("{{\"targetId\":\"{}\",\"flatten\":true}}", target.text("targetId"));
        let session = browser.call("", "Target.attachToTarget", &attach).text("sessionId").to_owned();
        let mut page = Page { browser, session, base: base.to_owned(), _turn: turn };
        for domain in ["Page", "Runtime", "Network", "Log"] {
            page.call(&format!("{domain}.enable"), "{}");
        }
        let watch = "window.violations = []; document.addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));";
        page.call("Page.addScriptToEvaluateOnNewDocument", &format!("{{\"source\":{}}}", quoted(watch)));
        page.size(1280, 800, 1);
        page.go(path);
        Some(page)
    }

    pub(crate) fn call(&mut self, method: &str, params: &str) -> Json {
        let session = self.session.clone();
        self.browser.call(&session, method, params)
    }

    pub(crate) fn go(&mut self, path: &str) {
        let url = quoted(&format!("{}{path}", self.base));
        self.call("Page.navigate", &format!("{{\"url\":{url}}}"));
    }

    /// How large the window is, and how many points a pixel has.
    pub(crate) fn size(&mut self, width: u32, height: u32, scale: u32) {
        let params =
            format!("{{\"width\":{width},\"height\":{height},\"deviceScaleFactor\":{scale},\"mobile\":false}}");
        self.call("Emulation.setDeviceMetricsOverride", &params);
    }

    pub(crate) fn colours(&mut self, scheme: &str) {
        let params = format!("{{\"features\":[{{\"name\":\"prefers-color-scheme\",\"value\":\"{scheme}\"}}]}}");
        self.call("Emulation.setEmulatedMedia", &params);
    }

    /// What an expression gives, which may be a promise.
    pub(crate) fn eval(&mut self, expression: &str) -> Json {
        let params = format!("{{\"expression\":{},\"awaitPromise\":true,\"returnByValue\":true}}", quoted(expression));
        let told = self.call("Runtime.evaluate", &params);
        assert!(!told.has("exceptionDetails"), "{expression}: {told:?}");
        told.at("result.value").clone()
    }

    /// Waits until an expression holds.
    pub(crate) fn wait(&mut self, expression: &str) {
        let look = format!(
            "new Promise((done) => {{ const until = Date.now() + 45000; const look = () => {{ let held = false; try {{ held = Boolean({expression}); }} catch {{}} \
             if (held || Date.now() > until) done(held); else setTimeout(look, 20); }}; look(); }})"
        );
        let params = format!("{{\"expression\":{},\"awaitPromise\":true,\"returnByValue\":true}}", quoted(&look));
        let session = self.session.clone();
        // A page that loads itself again forgets what it was asked.
        let mut told = self.browser.try_call(&session, "Runtime.evaluate", &params);
        while told.has("error") {
            told = self.browser.try_call(&session, "Runtime.evaluate", &params);
        }
        if *told.at("result.result.value") != Json::Bool(true) {
            let shown = self.eval("document.body.innerText");
            panic!("this does not come: {expression}\nthe page shows {shown:?}\nevents {:?}", self.complaints());
        }
    }

    /// The text of what a selector finds first.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found = self.eval(&format!("document.querySelector({})?.innerText ?? ''", quoted(selector)));
        if let Json::Text(text) = found { text } else { String::new() }
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        match self.eval(expression) {
            Json::Number(number) => number,
            other => panic!("{expression} is {other:?}"),
        }
    }

    pub(crate) fn click(&mut self, selector: &str) {
        self.wait(&format!("document.querySelector({})", quoted(selector)));
        self.eval(&format!("document.querySelector({}).click()", quoted(selector)));
    }

    /// Presses a key, as a keyboard would.
    pub(crate) fn press(&mut self, key: &str, code: u32, modifiers: u32) {
        // Of keys that are no text, the browser is told as of raw ones.
        let (down, text) = if key == "Enter" { ("keyDown", ",\"text\":\"\\r\"") } else { ("rawKeyDown", "") };
        for (kind, text) in [(down, text), ("keyUp", "")] {
            let params = format!(
                "{{\"type\":\"{kind}\",\"key\":\"{key}\",\"code\":\"{key}\",\"windowsVirtualKeyCode\":{code},\"modifiers\":{modifiers}{text}}}"
            );
            self.call("Input.dispatchKeyEvent", &params);
        }
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &format!("{{\"text\":{}}}", quoted(text)));
    }

    pub(crate) fn screenshot(&mut self) -> Vec<u8> {
        decoded(self.call("Page.captureScreenshot", r#"{"format":"png"}"#).text("data"))
    }

    /// Keeps a picture of the page among the artefacts of the tests, for people to look at.
    pub(crate) fn keep(&mut self, name: &str) -> usize {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console");
        std::fs::create_dir_all(&folder).unwrap();
        let png = self.screenshot();
        std::fs::write(folder.join(format!("{name}.png")), &png).unwrap();
        png.len()
    }

    /// The addresses that were asked so far.
    pub(crate) fn asked(&mut self) -> Vec<String> {
        self.eval("0");
        let sent = self
            .browser
            .events
            .iter()
            .filter(|event| *event.at("method") == Json::Text("Network.requestWillBeSent".to_owned()));
        sent.map(|event| event.text("params.request.url").to_owned()).collect()
    }

    /// What went wrong, as the browser tells it. That an answer was a refusal is for the tests to say.
    fn complaints(&self) -> Vec<&Json> {
        let is_wrong = |event: &&Json| match event.at("method") {
            Json::Text(method) if method == "Runtime.exceptionThrown" => true,
            Json::Text(method) if method == "Log.entryAdded" => {
                event.text("params.entry.level") == "error" && event.text("params.entry.source") != "network"
            }
            _ => false,
        };
        self.browser.events.iter().filter(is_wrong).collect()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let violations = self.eval("window.violations.join('; ')");
        assert_eq!(violations, Json::Text(String::new()));
        let foreign: Vec<String> = self
            .asked()
            .into_iter()
            .filter(|url| !url.starts_with(&self.base) && !url.starts_with("data:") && url != "about:blank")
            .collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        assert!(self.complaints().is_empty(), "{:?}", self.complaints());
    }
}
