//! The console's pages in a browser: what they show, by keyboard and in both colours, and that nothing in a plan becomes markup.

use crate::browser::{Page, quoted};
use crate::client::post;
use crate::console::{large_plan, start};
use crate::json::Json;
use crate::server::{Folder, Server, node, plan_text, repository, rows};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

const EVIL: &str = r#"<img src=x onerror=\"window.evil=1\">"#;

fn open(server: &Server, path: &str) -> Option<Page> {
    Page::open(&format!("http://{}/", server.console()), path)
}

fn rank(server: &Server, plan: &str, times: usize) {
    for user in 1..=times {
        post(&server.url(&format!("/rank/{plan}")), &format!("{{\"user_id\":{user}}}"));
    }
}

/// Every control of the page has a name, and the page does not scroll sideways.
fn is_usable(page: &mut Page) {
    let nameless = "[...document.querySelectorAll('a, button, input, select, textarea, canvas, [role=img], [role=region]')].filter((one) => !(one.innerText || '').trim() && !one.getAttribute('aria-label') && !document.querySelector(`label[for='${one.id}']`)).map((one) => one.outerHTML).join()";
    assert_eq!(page.eval(nameless), Json::Text(String::new()));
    assert_eq!(page.number("Math.max(0, document.documentElement.scrollWidth - innerWidth)"), 0.0);
    assert_eq!(page.number("document.querySelectorAll('main').length"), 1.0);
}

#[test]
fn plans_are_listed_with_what_is_wrong_with_them() {
    let folder = Folder::new();
    folder.plan("good", &rows("good", 3).1, "n0");
    folder.plan("broken", &[node("n0", "srot", &[], "")], "n0");
    let server = Server::start(&folder.0, &["--console", "127.0.0.1:0"]);
    rank(&server, "good", 30);
    let Some(mut page) = open(&server, "") else { return };
    page.wait("document.querySelectorAll('tbody tr').length === 3");
    assert!(page.text("tr.trouble").contains("broken.plan.json:1:"), "{}", page.text("tr.trouble"));
    assert!(page.text("main").contains("1 of 2 served"));
    page.wait("[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.startsWith('good')).cells[4].innerText !== '0'");
    is_usable(&mut page);
    page.eval("document.querySelector('input[type=search]').focus()");
    page.type_text("bro");
    page.wait("document.querySelectorAll('td.name').length === 1");
    // A new version is seen without loading the page again.
    folder.plan("broken", &rows("broken", 1).1, "n0");
    page.wait(
        "!document.querySelector('tr.trouble') && document.querySelector('main').innerText.includes('2 of 2 served')",
    );
    page.click("td.name a");
    page.wait("document.querySelector('canvas') && document.title.startsWith('broken')");
    page.eval("history.back()");
    page.wait("document.querySelector('td.name')");
}

#[test]
fn a_plan_is_drawn_and_its_nodes_are_there_as_text() {
    let server = start(&["--trace-every", "1"]);
    let Some(mut page) = open(&server, "#/plan/for_you") else { return };
    page.wait("document.querySelectorAll('.list li').length === 38");
    let drawn = "(() => { const c = document.querySelector('canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; })()";
    page.wait(&format!("{drawn} > 20"));
    is_usable(&mut page);
    // Figures are kept from the first look on.
    page.wait("performance.getEntriesByType('resource').some((one) => one.name.includes('api/live'))");
    rank(&server, "for_you", 20);
    page.wait("document.querySelector('.back-in-time').innerText.includes('traced runs') && [...document.querySelectorAll('.took')].some((one) => one.innerText.includes('s'))");
    // By keyboard alone: find a node, open it, come back.
    page.eval("document.querySelector('.find input').focus()");
    page.type_text("final_score");
    page.wait("document.querySelectorAll('.list li').length < 10 && document.querySelectorAll('.list li').length > 0");
    page.press("Tab", 9, 0);
    page.press("Enter", 13, 0);
    page.wait("!document.querySelector('.details').hidden && document.querySelector('.details').innerText.includes('final_score')");
    page.wait("document.querySelector('.source .here')");
    assert!(page.text(".details").to_lowercase().contains("parameters"));
    page.wait("document.querySelector('.histogram')");
    assert!(page.eval("location.hash").clone() != Json::Text("#/plan/for_you".to_owned()));
    page.click(".details .link");
    page.wait("document.querySelector('.details').hidden");
    page.click("[data-form=written]");
    page.wait("document.querySelector('[data-form=written]').getAttribute('aria-pressed') === 'true'");
    page.click(".tools button:last-child");
    page.wait("document.querySelectorAll('.list li').length > 0");
    let click = "(() => { const canvas = document.querySelector('canvas'); const box = canvas.getBoundingClientRect(); for (let y = 5; y < box.height; y += 10) for (let x = 5; x < box.width; x += 10) { canvas.dispatchEvent(new MouseEvent('click', { clientX: box.left + x, clientY: box.top + y })); if (!document.querySelector('.details').hidden) return true; } return false; })()";
    assert_eq!(page.eval(click), Json::Bool(true));
}

#[test]
fn nothing_in_a_plan_becomes_markup() {
    let folder = Folder::new();
    let nodes = [
        node("n0", "fixed_source", &[], &format!("\"row_count\":3,\"trace\":\"{EVIL}\"")),
        node("n1", "take", &["n0"], &format!("\"count\":2,\"trace\":\"{EVIL}\"")),
    ];
    folder.write("evil.plan.json", &plan_text("evil", &nodes, "n1"));
    folder.write("worse.plan.json", &plan_text("worse", &[node(EVIL, "srot", &[], "")], "n1"));
    let server = Server::start(&folder.0, &["--console", "127.0.0.1:0", "--trace-every", "1"]);
    let Some(mut page) = open(&server, "#/plan/evil") else { return };
    page.wait("document.querySelectorAll('.list li').length === 2");
    assert!(page.text(".list").contains("<img src=x"), "{}", page.text(".list"));
    page.click(".list button");
    page.wait("document.querySelector('.details').innerText.includes('<img src=x')");
    page.go("#/request/evil");
    page.click("button.primary");
    page.wait("document.querySelectorAll('[role=tab]').length === 3");
    page.eval("document.querySelectorAll('[role=tab]')[1].click()");
    page.wait("document.querySelector('.lanes') && document.querySelector('main').innerText.includes('<img src=x')");
    page.go("#/plans");
    page.wait("document.querySelector('tr.trouble')");
    page.go(&format!("#/plan/{}", "%3Cimg%20src%3Dx%20onerror%3D%22window.evil%3D1%22%3E"));
    page.wait("document.querySelector('.problem')");
    assert_eq!(page.eval("typeof window.evil"), Json::Text("undefined".to_owned()));
    assert_eq!(page.number("document.querySelectorAll('main img, main script').length"), 0.0);
}

#[test]
fn a_request_is_asked_and_a_row_explained() {
    let server = start(&[]);
    let Some(mut page) = open(&server, "#/request/complex_dag") else { return };
    page.wait("document.querySelector('.params').innerText.includes('weight')");
    is_usable(&mut page);
    page.click("button.primary");
    page.wait("document.querySelectorAll('tbody tr').length === 50");
    is_usable(&mut page);
    assert!(page.text(".result").contains("50 rows"));
    page.click("td .link");
    page.wait("document.querySelector('.story h2')?.innerText.includes('is in the answer')");
    page.eval("document.querySelector('input[aria-label=\"Id to ask about\"]').focus()");
    page.type_text("99999");
    page.press("Enter", 13, 0);
    page.wait("document.querySelector('.story h2')?.innerText === '99999 was in no source'");
    page.eval("document.querySelectorAll('[role=tab]')[1].click()");
    page.wait("document.querySelectorAll('.lanes rect.critical').length > 2");
    is_usable(&mut page);
    page.eval("document.querySelectorAll('[role=tab]')[2].click()");
    page.wait("document.querySelector('pre.json').innerText.includes('candidates')");
    // A parameter of the plan, by a click.
    page.click(".params .link");
    page.wait("JSON.parse(document.querySelector('textarea').value).params");
    // What is wrong is told where it is.
    for (text, told) in
        [("{", "This is not JSON"), ("{\"user_id\": 0}", "E105"), ("{\"user_id\": 1, \"parms\": {}}", "E103")]
    {
        page.eval(&format!("(() => {{ const t = document.querySelector('textarea'); t.value = {}; t.focus(); t.dispatchEvent(new Event('input')); }})()", quoted(text)));
        page.press("Enter", 13, 2);
        page.wait(&format!("document.querySelector('main').innerText.includes({})", quoted(told)));
    }
}

#[test]
fn long_ids_keep_all_their_digits_and_rows_come_in_pages() {
    let folder = Folder::new();
    folder.plan("many", &rows("many", 120).1, "n0");
    folder.plan("given", &[node("n0", "candidates", &[], "")], "n0");
    let server = Server::start(&folder.0, &["--console", "127.0.0.1:0"]);
    let Some(mut page) = open(&server, "#/request/given") else { return };
    let id = "9007199254740993";
    let request = format!("{{\"user_id\": 1, \"candidates\": [{{\"id\": {id}}}]}}");
    page.wait("document.querySelector('#plan option')");
    page.eval(&format!("document.querySelector('textarea').value = {}", quoted(&request)));
    page.click("button.primary");
    page.wait(&format!("document.querySelector('td.number')?.innerText === '{id}'"));
    page.click("td .link");
    page.wait(&format!("document.querySelector('.story h2')?.innerText.startsWith('{id} is in the answer')"));
    page.go("#/request/many");
    page.wait("document.querySelector('#plan')?.value === 'many'");
    page.click("button.primary");
    page.wait("document.querySelector('.pager')?.innerText.includes('1 to 50 of 120')");
    page.eval("document.querySelectorAll('.pager button')[1].click()");
    page.wait("document.querySelector('.pager').innerText.includes('51 to 100 of 120')");
}

#[test]
fn stores_tables_and_models_are_listed() {
    let server = start(&[]);
    let Some(mut page) = open(&server, "#/stores") else { return };
    page.wait("document.querySelector('td.name')?.innerText === 'redis_default'");
    assert!(page.text("main").contains("in this process") && page.text("main").contains("No models"));
    is_usable(&mut page);
    page.go("#/nowhere");
    page.wait("document.querySelector('main').innerText.includes('There is no such page')");
}

#[test]
fn a_token_is_handed_over_in_the_address_and_leaves_it() {
    let folder = Folder::new();
    let token = "abcdef0123456789";
    folder.write("token", token);
    let server = start(&["--console-token", folder.0.join("token").to_str().unwrap()]);
    let Some(mut page) = open(&server, &format!("#token={token}")) else { return };
    page.wait("document.querySelector('td.name')");
    assert_eq!(page.eval("location.hash"), Json::Text("#/plans".to_owned()));
    assert!(page.asked().iter().all(|url| !url.contains("api") || !url.contains(token)));
    assert_eq!(page.number("localStorage.length + sessionStorage.length + document.cookie.length"), 0.0);
    // Loaded again, it has forgotten, and asks.
    page.call("Page.reload", "{}");
    page.wait("document.querySelector('#token')");
    for (given, shown) in [
        ("wrong-wrong-wrong", "document.querySelector('#token')?.value === ''"),
        (token, "document.querySelector('td.name')"),
    ] {
        page.eval("document.querySelector('#token').focus()");
        page.type_text(given);
        page.press("Enter", 13, 0);
        page.wait(shown);
    }
}

#[test]
fn nothing_is_asked_while_the_page_is_hidden() {
    let server = start(&[]);
    let Some(mut page) = open(&server, "#/plan/complex_dag") else { return };
    page.wait("document.querySelectorAll('.list li').length > 0");
    let hide = |hidden: bool| {
        format!(
            "Object.defineProperty(document, 'hidden', {{ configurable: true, get: () => {hidden} }}); document.dispatchEvent(new Event('visibilitychange'));"
        )
    };
    page.eval(&hide(true));
    // What was on its way has arrived after this.
    page.eval("new Promise((done) => setTimeout(done, 500))");
    let before = page.asked().len();
    page.eval("new Promise((done) => setTimeout(done, 3000))");
    assert_eq!(page.asked().len(), before);
    page.eval(&hide(false));
    page.eval("new Promise((done) => setTimeout(done, 1500))");
    assert!(page.asked().len() > before);
}

#[test]
fn a_page_says_when_the_server_is_gone_and_goes_on_when_it_is_back() {
    let server = start(&[]);
    let address = server.console();
    let Some(mut page) = open(&server, "") else { return };
    page.wait("document.querySelector('.status.answers') && document.querySelector('td.name')");
    drop(server);
    page.wait("document.querySelector('.status.silent')");
    let server = Server::start(&repository().join("plans"), &["--console", &address]);
    page.wait("document.querySelector('.status.answers')");
    assert_eq!(server.console(), address);
}

#[test]
fn two_thousand_nodes_are_drawn_and_found() {
    let folder = Folder::new();
    folder.write("large.plan.json", &large_plan(2000));
    let server = Server::start(&folder.0, &["--console", "127.0.0.1:0", "--no-trial"]);
    let Some(mut page) = open(&server, "#/plan/large") else { return };
    page.wait("document.querySelectorAll('.list li').length === 400");
    page.keep("large-light");
    page.eval("document.querySelector('.find input').focus()");
    page.type_text("n1999");
    page.wait("document.querySelectorAll('.list li').length === 1");
    page.click(".list button");
    page.wait("document.querySelector('.details h1')?.innerText.includes('n1999')");
    // Moving the picture stays fluent: a coarse guard, far from what it takes.
    let move_it = "new Promise((done) => { const canvas = document.querySelector('canvas'); const began = performance.now(); let left = 20; const turn = () => { canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown' })); if (left-- > 0) requestAnimationFrame(turn); else done(performance.now() - began); }; turn(); })";
    let took = page.number(move_it);
    assert!(took < 20.0 * 1000.0, "{took} ms for 20 frames");
}

#[test]
fn any_sub_path_works_and_another_build_is_noticed() {
    let server = start(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, console) = (listener.local_addr().unwrap(), server.console());
    let build = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changed = build.clone();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let (console, changed) = (console.clone(), changed.clone());
            thread::spawn(move || forward(client, &console, changed.load(std::sync::atomic::Ordering::Relaxed)));
        }
    });
    let Some(mut page) = Page::open(&format!("http://{own}/ops/rankd/"), "#/plan/diamond") else { return };
    page.wait("document.querySelectorAll('.list li').length > 0");
    page.eval("window.same = true");
    build.store(true, std::sync::atomic::Ordering::Relaxed);
    page.wait("window.same === undefined && document.querySelectorAll('.list li').length > 0");
}

/// A proxy that serves the console under a path, as one in front of it might, and after an update of the server.
fn forward(client: TcpStream, console: &str, is_other_build: bool) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.replacen("/ops/rankd/", "/", 1).replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let lines = head.lines().filter(|line| !line.to_lowercase().starts_with("connection: keep-alive"));
    let head: String = lines.map(|line| format!("{line}\r\n")).collect();
    let mut server = TcpStream::connect(console).ok()?;
    server.write_all(head.as_bytes()).ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    let at = answer.windows(13).position(|bytes| bytes == b"rankd-build: ")?;
    if is_other_build {
        answer[at + 13] = b'X';
    }
    (&client).write_all(&answer).ok()
}

#[test]
fn every_page_in_both_colours_and_at_twice_the_size() {
    let server = start(&["--trace-every", "1"]);
    let Some(mut page) = open(&server, "#/plan/for_you") else { return };
    page.wait("document.querySelectorAll('.list li').length === 38");
    page.eval("fetch('api/live/for_you')");
    rank(&server, "for_you", 40);
    rank(&server, "complex_dag", 20);
    post(&server.url("/rank/diamond"), r#"{"user_id":1,"arms":{"none":"none"}}"#);
    for scheme in ["light", "dark"] {
        page.colours(scheme);
        for (name, path, ready) in [
            ("plans", "#/plans", "document.querySelectorAll('td.name').length > 5"),
            (
                "plan",
                "#/plan/for_you",
                "[...document.querySelectorAll('.took')].some((one) => one.innerText.includes('s'))",
            ),
            ("request", "#/request/complex_dag", "document.querySelector('.params p')"),
            ("stores", "#/stores", "document.querySelector('td.name')"),
        ] {
            page.go(path);
            page.wait(ready);
            for (size, width, height, scale) in [("", 1280, 800, 1), ("-twice", 640, 400, 2)] {
                page.size(width, height, scale);
                if name == "request" {
                    page.eval("document.querySelector('.result').replaceChildren()");
                    page.click("button.primary");
                    page.wait("document.querySelector('td .link')");
                    page.click("td .link");
                    page.wait("document.querySelector('.story')");
                    is_usable(&mut page);
                    page.keep(&format!("why-{scheme}{size}"));
                    page.click(".story button");
                    page.eval("document.querySelectorAll('[role=tab]')[1].click()");
                    page.keep(&format!("timeline-{scheme}{size}"));
                    page.eval("document.querySelectorAll('[role=tab]')[0].click()");
                }
                page.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
                is_usable(&mut page);
                let bytes = page.keep(&format!("{name}-{scheme}{size}"));
                assert!(bytes > 5000, "{name} {scheme}");
            }
            page.size(1280, 800, 1);
        }
    }
    page.colours("light");
    page.go("#/plan/for_you");
    page.wait("[...document.querySelectorAll('.took')].some((one) => one.innerText.includes('s'))");
    page.size(1160, 720, 1);
    page.eval("[...document.querySelectorAll('.list button')].find((one) => one.innerText.includes('n18')).click()");
    page.wait("document.querySelector('.histogram') && document.querySelector('.source')");
    page.eval("document.activeElement.blur()");
    page.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    let png = page.screenshot();
    assert!(png.len() < 150 << 10, "{}", png.len());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(repository().join("docs/console.png"), &png).unwrap();
    }
}
