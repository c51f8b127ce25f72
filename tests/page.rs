//! The web page in a real browser: what it shows, how it follows the cluster, the keyboard, a phone, names that would break out of it.
//!
//! Without a Chromium (`CHROMIUM`, or on the path) each case says so and passes; the check of accessibility also needs axe-core, which `.ci/run`
//! fetches.

#[path = "page/browser.rs"]
mod browser;
#[path = "page/fixture.rs"]
mod fixture;
#[path = "page/server.rs"]
mod server;

use std::{
    env, fs,
    path::Path,
    sync::{Mutex, OnceLock, PoisonError},
};

use browser::{Browser, Page};
use fixture::{Cluster, HOSTILE, NOW, card_of_two, company, hostile, large};
use serde_json::{Value, json};
use server::{FleetAnswer, Server};

/// The desk's and the phone's window.
const DESK: (u32, u32) = (1440, 900);
const PHONE: (u32, u32) = (390, 844);

/// One browser for all cases, which take turns.
static BROWSER: OnceLock<Option<Mutex<Browser>>> = OnceLock::new();

/// Runs a case in an empty page, or says that it did not run.
fn in_browser(case: impl FnOnce(&mut Page<'_>)) {
    let browser = BROWSER.get_or_init(|| browser::find().map(|program| Mutex::new(Browser::start(&program))));
    let Some(browser) = browser else {
        println!("NOT RUN: there is no Chromium, neither on the path nor as CHROMIUM names it");
        return;
    };
    let mut browser = browser.lock().unwrap_or_else(PoisonError::into_inner);
    let mut page = browser.page();
    page.size(DESK.0, DESK.1);
    case(&mut page);
}

/// Opens a view and waits until it shows the cluster.
fn open(page: &mut Page<'_>, server: &Server, view: &str) {
    page.open(&format!("{}/ui/{view}", server.origin()));
    page.until(&shown(view));
}

/// That the page shows this view.
fn shown(view: &str) -> String {
    let view = if view.is_empty() { "#/" } else { view };
    format!("document.body?.dataset.shown === {}", json!(view))
}

fn text(page: &mut Page<'_>, selector: &str) -> String {
    let expression = format!("document.querySelector({})?.innerText ?? ''", json!(selector));
    page.evaluate(&expression).as_str().expect("a text").to_owned()
}

fn nothing_went_wrong(page: &mut Page<'_>, server: &Server) {
    let faults = page.faults(&server.origin());
    assert!(faults.is_empty(), "{faults:#?}");
}

fn address(parts: &[&str]) -> String {
    let encoded = parts.iter().map(|part| {
        let byte = |byte: u8| {
            if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        };
        part.bytes().map(byte).collect::<String>()
    });
    format!("#/{}", encoded.collect::<Vec<_>>().join("/"))
}

/// The address of each kind of view for something in this cluster.
fn views(cluster: &Cluster) -> Vec<String> {
    let (node, card) = cluster.shared_card();
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    let (node, id, share) = (word(&node["name"]), word(&card["id"]), &card["shares"][0]);
    let (namespace, pod) = (word(&share["namespace"]), word(&share["pod"]));
    let waits = &cluster.queue["pods"][0];
    let (waits_in, waiting) = (word(&waits["namespace"]), word(&waits["pod"]));
    vec![
        "#/".to_owned(),
        "#/queue".to_owned(),
        "#/fits".to_owned(),
        address(&["nodes", &node]),
        address(&["cards", &id]),
        address(&["namespaces", &namespace]),
        address(&["pods", &namespace, &pod]),
        address(&["pods", &waits_in, &waiting]),
    ]
}

/// What would help a pod that waits is asked for apart from the pod.
const HELPED: &str = "document.querySelector('main').innerText.includes('What would help')";

#[test]
fn each_view_shows_what_the_api_answers() {
    in_browser(|page| {
        let server = Server::start(company(), "", None);
        let cluster = server.cluster();
        let views = views(&cluster);
        open(page, &server, "");
        page.until("document.querySelectorAll('.tower').length === 172");
        assert_eq!(page.evaluate("document.querySelectorAll('.tower.unhealthy').length"), 1);
        let stranded = page.evaluate("document.querySelector('.tower.stranded').getAttribute('aria-label')");
        assert!(
            stranded.as_str().is_some_and(|label| label.contains("what is free is of no use: ")),
            "{stranded}"
        );
        assert!(text(page, ".summary").contains("NVIDIA H100 80GB HBM3"));
        assert!(text(page, ".waits").contains("17 pods wait"));
        assert!(text(page, ".nodes").contains("cordoned"));
        let expected: [(&str, &[&str]); 7] = [
            (
                &views[1],
                &[
                    "17 pods",
                    "a pod that you may not see",
                    "CardInsufficientMemory",
                    "0/26 nodes are available",
                ],
            ),
            (&views[2], &["What fits now", "NVIDIA L40S", "⅛ card", "161"]),
            (&views[3], &["It takes pods", "topology.kubernetes.io/zone=eu-1a", "88500m", "dedicated="]),
            (&views[4], &["Memory: ", "Of the card", "10 slots"]),
            (&views[5], &["Quotas", "limits.nvidia.com/gpumem", "400000"]),
            (&views[6], &["bound on", "What it holds", "Its part of each card"]),
            (&views[7], &["waiting 1st of 17 pods", "34576", "Nearest is", "TaintToleration"]),
        ];
        for (view, words) in expected {
            open(page, &server, view);
            if *view == views[7] {
                page.until(HELPED);
            }
            let main = text(page, "main");
            for word in words {
                assert!(main.contains(word), "{view} lacks {word}:\n{main}");
            }
            for slip in ["undefined", "null", "NaN", "[object", "false", "true"] {
                assert!(!main.contains(slip), "{view} has {slip}:\n{main}");
            }
        }
        nothing_went_wrong(page, &server);
    });
}

#[test]
fn what_is_not_there_or_not_allowed_is_said_in_words() {
    in_browser(|page| {
        let server = Server::start(company(), "", None);
        let cases = [
            ("#/nodes/none", "There is no such thing"),
            ("#/namespaces/secret", "cannot list pods in namespace \"secret\""),
            ("#/somewhere/else", "There is no such page"),
            ("#/nodes/..", "There is no such thing"),
        ];
        for (view, words) in cases {
            page.open("about:blank");
            page.open(&format!("{}/ui/{view}", server.origin()));
            page.until(&format!("document.querySelector('main')?.innerText.includes({})", json!(words)));
        }
    });
}

#[test]
fn changes_are_shown_without_a_reload() {
    in_browser(|page| {
        let server = Server::start(company(), "", None);
        open(page, &server, "");
        page.until("document.getElementById('state').dataset.state === 'live'");
        page.evaluate("window.kept = [...document.querySelectorAll('.tower')]; true");
        let label = "kept[0].getAttribute('aria-label')";
        assert!(!page.evaluate(label).as_str().expect("a label").contains("newcomer"));
        server.change(|cluster| {
            let share = json!({"namespace": "vision", "pod": "newcomer", "memory": 5000, "cores": 10});
            cluster.fleet["nodes"][0]["cards"][0]["shares"] = json!([share]);
        });
        page.until(&format!("{label}.includes('vision/newcomer 5000 MiB')"));
        assert_eq!(
            page.evaluate("kept.every((tower) => tower.isConnected)"),
            true,
            "other cards stay as they are"
        );

        server.change(|cluster| {
            let nodes = cluster.fleet["nodes"].as_array_mut().expect("nodes");
            let mut new = nodes.remove(0);
            new["name"] = "a-new-node".into();
            nodes.push(new);
        });
        page.until("document.querySelector('.nodes').innerText.includes('a-new-node')");
        assert_eq!(page.evaluate("document.querySelectorAll('.node').length"), 26);

        // The stream ends, and what happens meanwhile is seen when there is a new one.
        server.hang_up();
        page.until("document.getElementById('state-words').textContent.startsWith('reconnecting · as of ')");
        page.until("document.getElementById('state').dataset.state === 'live'");
        page.evaluate("location.hash = '#/queue'");
        page.until(&shown("#/queue"));
        server.change(|cluster| {
            cluster.queue["of"] = 1.into();
            cluster.queue["pods"].as_array_mut().expect("pods").truncate(1);
        });
        page.until("document.querySelectorAll('tbody tr').length === 1");
        let pod = server.cluster().queue["pods"][0].clone();
        let place = address(&[
            "pods",
            pod["namespace"].as_str().expect("a name"),
            pod["pod"].as_str().expect("a name"),
        ]);
        page.evaluate(&format!("location.hash = {}", json!(place)));
        page.until(&shown(&place));
        server.change(|cluster| cluster.queue["pods"] = json!([]));
        page.until("document.querySelector('main').innerText.includes('It is gone')");
        nothing_went_wrong(page, &server);
    });
}

#[test]
fn a_change_fetches_only_the_nodes_that_it_is_about() {
    in_browser(|page| {
        let server = Server::start(company(), "", None);
        open(page, &server, "");
        page.until("document.getElementById('state').dataset.state === 'live'");
        let names = "[...document.querySelectorAll('.node h2 a')].map((name) => name.innerText).sort()";
        let shows_what_there_is = |page: &mut Page<'_>| {
            let fleet = server.cluster().fleet;
            let nodes = fleet["nodes"].as_array().expect("nodes");
            let mut there: Vec<_> = nodes.iter().filter_map(|node| node["name"].as_str()).collect();
            there.sort_unstable();
            page.until(&format!("JSON.stringify({names}) === {}", json!(json!(there).to_string())));
        };
        shows_what_there_is(page);
        assert_eq!(server.fleet_answers().first(), Some(&FleetAnswer::Whole(26)));
        let newcomer = |at: usize, pod: &str| {
            let share = json!({"namespace": "vision", "pod": pod, "memory": 5000, "cores": 10});
            server.change(|cluster| cluster.fleet["nodes"][at]["cards"][0]["shares"] = json!([share]));
        };
        let seen = |pod: &str| {
            format!(
                "[...document.querySelectorAll('.tower')].filter((tower) => tower.ariaLabel.includes('vision/{pod} 5000 MiB')).length === 1"
            )
        };
        newcomer(0, "first");
        page.until(&seen("first"));
        newcomer(1, "second");
        page.until(&format!("{} && {}", seen("first"), seen("second")));
        // The stream tells at its beginning too that something may have changed.
        let answers = server.fleet_answers();
        assert!(!answers.iter().any(|answer| matches!(answer, FleetAnswer::Whole(_))), "{answers:?}");
        let rows = answers.iter().filter(|answer| **answer == FleetAnswer::Changed(1)).count();
        assert_eq!(rows, 2, "{answers:?}");
        shows_what_there_is(page);

        // Which node is gone is not told: all are fetched once.
        server.change(|cluster| {
            let nodes = cluster.fleet["nodes"].as_array_mut().expect("nodes");
            nodes.remove(3);
            nodes[4]["name"] = "another".into();
        });
        shows_what_there_is(page);
        assert_eq!(server.fleet_answers(), [FleetAnswer::Changed(1), FleetAnswer::Whole(25)]);
        assert_eq!(page.evaluate(&seen("first")), true);

        // Another replica answers with all nodes to a version that is not its own, and knows nothing of what has changed since.
        server.replace();
        page.until("document.getElementById('state').dataset.state === 'reconnecting'");
        newcomer(2, "third");
        page.until(&seen("third"));
        assert!(server.fleet_answers().contains(&FleetAnswer::Whole(25)));
        newcomer(5, "fourth");
        page.until(&format!("{} && {}", seen("third"), seen("fourth")));
        assert_eq!(server.fleet_answers().last(), Some(&FleetAnswer::Changed(1)));
        shows_what_there_is(page);
        nothing_went_wrong(page, &server);
    });
}

#[test]
fn everything_can_be_reached_with_the_keyboard() {
    in_browser(|page| {
        let server = Server::start(company(), "", None);
        open(page, &server, "");
        for (key, view) in [("q", "#/queue"), ("s", "#/fits"), ("f", "#/")] {
            page.press("g");
            page.press(key);
            page.until(&shown(view));
        }
        page.press("?");
        page.until("document.getElementById('keys').open");
        page.press("Escape");
        page.until("!document.getElementById('keys').open");

        // The cards are one stop of the Tab key, and the arrows lead from one to the other.
        assert_eq!(page.evaluate("document.querySelectorAll('.tower[tabindex=\"0\"]').length"), 1);
        page.evaluate("document.querySelector('.tower[tabindex=\"0\"]').focus()");
        let focused = |page: &mut Page<'_>| {
            page.evaluate("[...document.querySelectorAll('.tower')].indexOf(document.activeElement)")
        };
        assert_eq!(focused(page), 0);
        page.press("ArrowRight");
        assert_eq!(focused(page), 1);
        page.until("!document.querySelector('.tip').hidden");
        page.press("ArrowLeft");
        assert_eq!(focused(page), 0);
        page.press("ArrowDown");
        let below = "const [one, other] = [document.querySelector('.tower'), document.activeElement].map((tower) => tower.getBoundingClientRect())";
        assert_eq!(
            page.evaluate(&format!("{{ {below}; other.top > one.bottom && other.left === one.left }}")),
            true
        );
        page.press("End");
        assert_eq!(focused(page), 171);
        page.press("Home");
        assert_eq!(focused(page), 0);
        page.press("Enter");
        page.until("document.body.dataset.shown.startsWith('#/cards/')");
        assert_eq!(page.evaluate("document.activeElement.tagName"), "H1");
        page.evaluate("history.back()");
        page.until(&shown("#/"));
        page.evaluate("document.querySelector('.tower[tabindex=\"0\"]').focus()");
        page.press("n");
        page.until("document.body.dataset.shown.startsWith('#/nodes/')");

        page.press("/");
        assert_eq!(page.evaluate("document.activeElement.id"), "search");
        page.write("train-3");
        page.until("document.body.dataset.shown === '#/' && document.querySelectorAll('.node:not([hidden])').length === 1");
        assert_eq!(page.evaluate("document.activeElement.id"), "search", "typing goes on");
        page.press("Escape");
        page.until("document.querySelectorAll('.node:not([hidden])').length === 26");

        let before = page.evaluate("getComputedStyle(document.body).backgroundColor");
        page.press("t");
        page.until(&format!("getComputedStyle(document.body).backgroundColor !== {before}"));
        nothing_went_wrong(page, &server);
    });
}

#[test]
fn the_fleet_is_searched_filtered_and_sorted() {
    in_browser(|page| {
        let server = Server::start(company(), "", None);
        open(page, &server, "");
        let write = |page: &mut Page<'_>, text: &str| {
            page.evaluate(&format!(
                "search.value = {}; search.dispatchEvent(new Event('input'))",
                json!(text)
            ));
        };
        let lit = "document.querySelectorAll('.node:not([hidden]) .tower:not(.dim)').length";
        let cluster = server.cluster();
        let (_, card) = cluster.shared_card();
        let (id, share) = (card["id"].as_str().expect("an id").to_owned(), card["shares"][0].clone());
        for (search, least, most) in [
            (id.as_str(), 1, 1),
            (share["pod"].as_str().expect("a name"), 1, 9),
            ("L40S", 36, 36),
            ("nothing like it", 0, 0),
        ] {
            write(page, search);
            page.until(&format!("{least} <= {lit} && {lit} <= {most}"));
        }
        assert!(text(page, "main").contains("No card is like that."));
        write(page, "");
        page.evaluate("document.querySelectorAll('.filters .chip')[2].click()");
        assert_eq!(page.evaluate("document.querySelectorAll('.node:not([hidden])').length"), 3);
        page.evaluate("document.querySelectorAll('.filters .chip')[2].click()");
        page.evaluate("const model = document.querySelector('.filters select'); model.value = 'NVIDIA L40S'; model.dispatchEvent(new Event('change'))");
        assert_eq!(page.evaluate("document.querySelectorAll('.node:not([hidden])').length"), 9);
        page.evaluate("{ const order = document.querySelectorAll('.filters select')[1]; order.value = 'free'; order.dispatchEvent(new Event('change')) }");
        page.until("document.querySelectorAll('.node:not([hidden]) .tower').length === 36");
        let free = page.evaluate("[...document.querySelectorAll('.node:not([hidden])')].map((node) => [...node.querySelectorAll('.tower')].map((tower) => /memory (\\d+) of (\\d+)/.exec(tower.ariaLabel)).reduce((sum, [, used, all]) => sum + Number(all) - Number(used), 0))");
        let free: Vec<_> = free.as_array().expect("numbers").iter().filter_map(Value::as_u64).collect();
        assert!(free.len() == 9 && free.is_sorted_by(|one, next| one >= next), "{free:?}");
        // One namespace alone keeps its colour, and all others lose theirs.
        let colours = "new Set([...document.querySelectorAll('.node:not([hidden]) .tower')].filter((tower) => tower.getBoundingClientRect().top < innerHeight).flatMap((tower) => tower.style.getPropertyValue('--memory').match(/--share-\\w+/g) ?? [])).size";
        page.until(&format!("{colours} > 5"));
        page.evaluate("document.querySelector('.legend .chip').click()");
        // Its own, the one of hidden pods and the dim one.
        page.until(&format!("{colours} === 3"));
        nothing_went_wrong(page, &server);
    });
}

#[test]
fn nothing_is_wider_than_a_phone() {
    in_browser(|page| {
        page.size(PHONE.0, PHONE.1);
        for cluster in [company(), hostile()] {
            let server = Server::start(cluster, "", None);
            for view in views(&server.cluster()) {
                open(page, &server, &view);
                let wide = page.evaluate(
                    "[document.documentElement.scrollWidth, ...[...document.querySelectorAll('main *:not(.unseen)')]
                        .filter((one) => one.checkVisibility() && one.closest('thead, .tower, .unseen, .summary, .filters, .legend') === null)
                        .filter((one) => one.getBoundingClientRect().right > 390.5 && getComputedStyle(one.parentElement).overflow === 'visible')
                        .map((one) => one.outerHTML.slice(0, 200))]",
                );
                assert_eq!(wide, json!([390]), "{view}");
            }
        }
    });
}

#[test]
fn names_that_would_be_markup_stay_text() {
    in_browser(|page| {
        let server = Server::start(hostile(), "", None);
        let mut places: Vec<String> = ["#/", "#/queue", "#/fits"].map(str::to_owned).to_vec();
        for name in HOSTILE {
            places.push(address(&["nodes", name]));
            places.push(address(&["cards", &format!("GPU {name}")]));
            places.push(address(&["namespaces", name]));
            places.push(address(&["pods", name, name]));
        }
        for view in places {
            open(page, &server, &view);
            let made = page.evaluate("document.querySelectorAll('main :is(img, script, iframe, object, style), main [onerror], main [style*=\"url\"]').length");
            assert_eq!(made, 0, "{view}");
            let title = page.evaluate("document.title");
            assert!(title.as_str().is_some_and(|title| title.ends_with("· Berth")), "{view}: {title}");
            let elsewhere = page.evaluate("[...document.querySelectorAll('a')].filter((one) => !one.getAttribute('href').startsWith('#/')).length");
            assert_eq!(elsewhere, 0, "{view}");
        }
        // What is in the text is what was written, all of it.
        open(page, &server, "#/queue");
        let shown = page
            .evaluate("[...document.querySelectorAll('td .reason .named')].map((one) => one.textContent)");
        assert_eq!(shown, json!(HOSTILE));
        nothing_went_wrong(page, &server);
    });
}

#[test]
fn a_token_is_asked_for_and_kept_in_the_tab_only() {
    in_browser(|page| {
        let server = Server::start(company(), "", Some("s3cret"));
        page.open(&format!("{}/ui/", server.origin()));
        page.until("document.querySelector('#token') !== null");
        assert!(text(page, "main").contains("kubectl create token"));
        page.write("wrong");
        page.press("Enter");
        page.until("document.querySelector('[role=alert]')?.innerText.includes('has no token')");
        page.write("s3cret");
        page.press("Enter");
        page.until(&shown("#/"));
        page.until("document.getElementById('state').dataset.state === 'live'");
        let kept = page.evaluate("[JSON.stringify(localStorage).includes('s3cret'), document.cookie, location.href.includes('s3cret')]");
        assert_eq!(kept, json!([false, "", false]));

        // A token in the address is taken once, and is in no history.
        page.evaluate("sessionStorage.clear()");
        page.open("about:blank");
        page.open(&format!("{}/ui/#token=s3cret", server.origin()));
        page.until(&shown("#/"));
        assert_eq!(page.evaluate("location.hash"), "#/");
        let history = page.ask("Page.getNavigationHistory", &json!({})).to_string();
        assert!(!history.contains("s3cret"), "{history}");
        nothing_went_wrong(page, &server);
    });
}

#[test]
fn the_page_works_behind_a_proxy_that_puts_a_prefix_before_it() {
    in_browser(|page| {
        let server =
            Server::start(company(), "/api/v1/namespaces/berth/services/https:berth-api:443/proxy", None);
        page.open(&format!(
            "{}/api/v1/namespaces/berth/services/https:berth-api:443/proxy/ui",
            server.origin()
        ));
        page.until(&shown(""));
        page.until("document.getElementById('state').dataset.state === 'live'");
        nothing_went_wrong(page, &server);
    });
}

#[test]
fn the_page_is_accessible_in_dark_and_light() {
    let place = env::var_os("AXE_CORE").unwrap_or_else(|| "target/axe-core/package/axe.min.js".into());
    let Ok(axe) = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&place)) else {
        println!("NOT RUN: axe-core is not at {}; `.ci/run` fetches it from npm's registry", place.display());
        return;
    };
    in_browser(|page| {
        let server = Server::start(company(), "", None);
        // It asks for no rights of the page; the browser's own policy would stop it.
        page.ask("Page.setBypassCSP", &json!({"enabled": true}));
        let mut views = views(&server.cluster());
        views.push("#/nodes/none".to_owned());
        for (scheme, size) in [("light", DESK), ("dark", DESK), ("dark", PHONE)] {
            page.prefer(scheme);
            page.size(size.0, size.1);
            for view in &views {
                page.open("about:blank");
                page.open(&format!("{}/ui/{view}", server.origin()));
                page.until("document.querySelector('main')?.firstElementChild");
                page.evaluate(&axe);
                let found = page.evaluate(
                    "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) =>
                        violations.map(({ id, help, nodes }) => [id, help, nodes.length, nodes.slice(0, 4).map(({ html, failureSummary }) => [html, failureSummary])]))",
                );
                assert_eq!(found, json!([]), "{scheme}, {size:?}, {view}");
            }
        }
    });
}

/// What the page has spent on its thread so far, in ms: scripts, styles, layout.
fn spent(page: &mut Page<'_>) -> [f64; 3] {
    let metrics = page.ask("Performance.getMetrics", &json!({}));
    ["ScriptDuration", "RecalcStyleDuration", "LayoutDuration"].map(|name| {
        let mut metrics = metrics["metrics"].as_array().into_iter().flatten();
        let metric = metrics.find(|metric| metric["name"] == name).expect("it is measured");
        metric["value"].as_f64().expect("a number") * 1000.0
    })
}

#[test]
fn a_thousand_nodes_of_eight_cards_are_drawn_and_kept_up_to_date() {
    in_browser(|page| {
        let server = Server::start(large(), "", None);
        page.ask("Performance.enable", &json!({}));
        page.open(&format!("{}/ui/#/fits", server.origin()));
        page.until(&shown("#/fits"));
        page.evaluate("document.fonts.ready.then(() => true)");
        let frame =
            "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))";
        let mut before = spent(page);
        let mut report = |page: &mut Page<'_>, what: &str| {
            page.evaluate(frame);
            let after = spent(page);
            let of = |at: usize| after[at] - before[at];
            let took = page.evaluate("performance.getEntriesByName('berth-show', 'measure').at(-1).duration");
            println!(
                "{what}: {:.0} ms in the view; with fetching and reading the answer {:.0} ms of scripts, {:.0} ms of styles, {:.0} ms of layout",
                took.as_f64().unwrap_or_default(),
                of(0),
                of(1),
                of(2)
            );
            before = after;
        };
        page.evaluate("location.hash = '#/'");
        page.until(&shown("#/"));
        assert_eq!(page.evaluate("document.querySelectorAll('.node').length"), 1000);
        let count = page.evaluate("document.querySelector('.filters .count').textContent");
        assert_eq!(count, "1000 nodes, 8000 cards");
        report(page, "1,000 nodes x 8 cards, first drawn");
        // Only what is in sight, or soon will be, has pictures.
        page.until("document.querySelectorAll('.tower').length > 80");
        page.evaluate("window.kept = [...document.querySelectorAll('.tower')]; true");
        // Nodes stand by name as people count: gpu-2 before gpu-10.
        for turn in [1000, 2000] {
            server.change(|cluster| {
                for node in 0..10 {
                    cluster.fleet["nodes"][node]["cards"][0] = card_of_two(node as u64, 0, turn);
                }
            });
            let label = card_of_two(9, 0, turn)["shares"][1]["memory"].clone();
            page.until(&format!("kept[72].ariaLabel.includes('pod-9-0-1 {label} MiB')"));
            report(page, "10 cards changed");
        }
        page.evaluate("search.value = 'pod-512-'; search.dispatchEvent(new Event('input'))");
        assert_eq!(page.evaluate("document.querySelectorAll('.node:not([hidden])').length"), 1);
        page.evaluate("search.value = ''; search.dispatchEvent(new Event('input'))");
        report(page, "searched and cleared");
        page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)");
        page.until("document.querySelector('.node:last-child').querySelectorAll('.tower').length === 8");
        report(page, "scrolled to the end");
        page.size(PHONE.0, PHONE.1);
        assert_eq!(page.evaluate("document.documentElement.scrollWidth"), 390);
        nothing_went_wrong(page, &server);
    });
}

/// Writes the pictures of the documentation, if asked to: `BERTH_WRITE_PICTURES=1 cargo test --test page pictures`.
#[test]
fn the_pictures_of_the_documentation_are_taken_from_the_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    let write = env::var_os("BERTH_WRITE_PICTURES").is_some();
    in_browser(|page| {
        let server = Server::start(company(), "", None);
        let views = views(&server.cluster());
        let pictures =
            [("fleet.png", "dark", DESK, "#/"), ("pod.png", "light", (1200, 760), views[7].as_str())];
        // How long pods wait is the same on every picture.
        let clock = format!("Date.now = () => Date.parse({})", json!(NOW));
        page.ask("Page.addScriptToEvaluateOnNewDocument", &json!({"source": clock}));
        for (name, scheme, size, view) in pictures {
            page.prefer(scheme);
            page.size(size.0, size.1);
            open(page, &server, view);
            page.until("document.getElementById('state').dataset.state === 'live'");
            if view == views[7] {
                page.until(HELPED);
            }
            let picture = page.picture();
            assert!(picture.starts_with(b"\x89PNG"), "{name}");
            assert!(picture.len() < 150_000, "{name} has {} bytes", picture.len());
            if write {
                fs::create_dir_all(&folder).expect("the folder can be made");
                fs::write(folder.join(name), picture).expect("the picture can be written");
            }
        }
    });
}
