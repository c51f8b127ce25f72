//! A headless Chromium, driven through the DevTools protocol over two pipes, so that nothing but a shell stands between.

use std::{
    collections::VecDeque,
    fmt,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest wait for an answer of the browser.
const PATIENCE: Duration = Duration::from_mins(1);

/// One browser process. It ends when its pipes are closed, which happens at the latest with this process.
pub(crate) struct Browser {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    events: VecDeque<Value>,
    last: u64,
    _profile: TempDir,
}

/// The program: the one that `CHROMIUM` names, or the first on the path.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

impl Browser {
    pub(crate) fn start(program: &Path) -> Self {
        let profile = TempDir::new().expect("a temporary folder");
        let folder = format!("--user-data-dir={}", profile.path().display());
        // The browser reads what it is asked from file 3 and answers into file 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null", "sh"])
            .arg(program)
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--no-first-run",
                "--disable-gpu",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args(["--hide-scrollbars", "--force-color-profile=srgb", "--lang=en", &folder, "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let output = child.stdout.take().expect("it is piped");
        let (told, messages) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if told.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let input = child.stdin.take();
        Self { child, input, messages, events: VecDeque::new(), last: 0, _profile: profile }
    }

    /// Asks the browser, or one of its pages, and waits for the answer.
    fn ask(&mut self, session: Option<&str>, method: &str, parameters: &Value) -> Result<Value, Refused> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let input = self.input.as_mut().expect("it is open until the browser ends");
        input.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        input.flush().expect("the browser listens");
        loop {
            let message =
                self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer to {method}"));
            if message["id"] != self.last {
                self.events.push_back(message);
            } else if message.get("error").is_some() {
                return Err(Refused(format!("{method}: {}", message["error"])));
            } else {
                return Ok(message["result"].clone());
            }
        }
    }

    /// An empty page that shares nothing with others.
    pub(crate) fn page(&mut self) -> Page<'_> {
        let context = self.asked("Target.createBrowserContext", &json!({}))["browserContextId"].clone();
        let target =
            self.asked("Target.createTarget", &json!({"url": "about:blank", "browserContextId": context}));
        let attached =
            self.asked("Target.attachToTarget", &json!({"targetId": target["targetId"], "flatten": true}));
        let session = attached["sessionId"].as_str().expect("a session").to_owned();
        self.events.clear();
        let mut page = Page { browser: self, session, context };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.ask(&format!("{domain}.enable"), &json!({}));
        }
        page
    }

    fn asked(&mut self, method: &str, parameters: &Value) -> Value {
        self.ask(None, method, parameters).unwrap_or_else(|refused| panic!("{refused}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Err(error) = self.child.wait() {
            eprintln!("the browser does not end: {error}");
        }
    }
}

/// An answer of the browser that is none.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One page of the browser.
pub(crate) struct Page<'a> {
    browser: &'a mut Browser,
    session: String,
    context: Value,
}

impl Page<'_> {
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        let answer = self.browser.ask(Some(&self.session), method, parameters);
        answer.unwrap_or_else(|refused| panic!("{refused}"))
    }

    pub(crate) fn open(&mut self, address: &str) {
        let answer = self.ask("Page.navigate", &json!({"url": address}));
        assert!(answer.get("errorText").is_none(), "{address}: {answer}");
    }

    /// What an expression is in the page; a promise is awaited.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", &parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true; looks at every frame that the page draws.
    pub(crate) fn until(&mut self, condition: &str) {
        // The page may be on its way to another document, in which the expression is evaluated again.
        let watch = format!(
            "new Promise((found, failed) => {{
                const end = performance.now() + 30000;
                const look = () => {{
                    if ({condition}) found(true);
                    else if (performance.now() > end) failed(new Error('it stays untrue'));
                    else requestAnimationFrame(look);
                }};
                look();
            }})"
        );
        for _ in 0..3 {
            let parameters = json!({"expression": watch, "awaitPromise": true, "returnByValue": true});
            match self.browser.ask(Some(&self.session), "Runtime.evaluate", &parameters) {
                Ok(answer) if answer.get("exceptionDetails").is_none() => return,
                Ok(answer) => {
                    let shown = self.evaluate("location.href + '\\n' + document.body?.innerText");
                    panic!(
                        "{condition}: {}\nThe page shows:\n{}",
                        answer["exceptionDetails"],
                        shown.as_str().unwrap_or_default()
                    )
                }
                Err(_) => {}
            }
        }
        panic!("{condition}: the page does not stay");
    }

    /// Presses a key of the keyboard; `text` is what it types.
    pub(crate) fn press(&mut self, key: &str) {
        let mut parameters = json!({"type": "keyDown", "key": key, "code": key});
        if key.chars().count() == 1 {
            parameters["text"] = key.into();
        } else if key == "Enter" {
            parameters["text"] = "\r".into();
        }
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        parameters["windowsVirtualKeyCode"] = code.into();
        self.ask("Input.dispatchKeyEvent", &parameters);
        parameters["type"] = "keyUp".into();
        self.ask("Input.dispatchKeyEvent", &parameters);
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.ask("Input.insertText", &json!({"text": text}));
    }

    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let phone = width < 600;
        let parameters = json!({"width": width, "height": height, "deviceScaleFactor": if phone { 2 } else { 1 }, "mobile": phone});
        self.ask("Emulation.setDeviceMetricsOverride", &parameters);
    }

    pub(crate) fn prefer(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]);
        self.ask("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// A picture of what is in the window, as PNG.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let answer = self.ask("Page.captureScreenshot", &json!({"format": "png", "optimizeForSpeed": false}));
        BASE64_STANDARD.decode(answer["data"].as_str().expect("a picture")).expect("it is in base64")
    }

    /// What went wrong in the page so far: exceptions, what the browser has blocked, and requests to anywhere but `origin`.
    pub(crate) fn faults(&mut self, origin: &str) -> Vec<String> {
        // What has happened arrives before the answer to this.
        self.evaluate("1");
        let mut faults = Vec::new();
        for event in self.browser.events.iter().filter(|event| event["sessionId"] == *self.session) {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => faults.push(parameters["exceptionDetails"].to_string()),
                "Log.entryAdded" => {
                    let entry = &parameters["entry"];
                    // That an answer has a status of 400 or more is what some tests are about.
                    if entry["level"] == "error" && entry["source"] != "network" {
                        faults.push(entry.to_string());
                    }
                }
                "Network.requestWillBeSent" => {
                    let address = parameters["request"]["url"].as_str().unwrap_or_default();
                    if !address.starts_with(origin) {
                        faults.push(format!("a request to {address}"));
                    }
                }
                _ => {}
            }
        }
        faults
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        let parameters = json!({"browserContextId": self.context});
        if let Err(refused) = self.browser.ask(None, "Target.disposeBrowserContext", &parameters) {
            eprintln!("{refused}");
        }
    }
}
