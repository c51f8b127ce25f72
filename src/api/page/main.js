// Shows the view that the address names, and keeps it as the cluster is.

import { Refusal, ask, follow, hasToken, keepToken } from "./ask.js";
import * as card from "./card.js";
import { element, same } from "./element.js";
import * as fits from "./fits.js";
import * as fleet from "./fleet.js";
import { listen } from "./keys.js";
import * as namespace from "./namespace.js";
import * as node from "./node.js";
import * as pod from "./pod.js";
import * as queue from "./queue.js";
import { tick } from "./words.js";

/// The view for each first part of the address, and how many names follow.
const VIEWS = {
  "": { view: fleet, names: 0, kept: true },
  queue: { view: queue, names: 0, kept: true },
  fits: { view: fits, names: 0 },
  nodes: { view: node, names: 1 },
  cards: { view: card, names: 1 },
  namespaces: { view: namespace, names: 1 },
  pods: { view: pod, names: 2 },
};

/// A view is read again this long after the last time at the earliest, or after this many times as long as reading takes.
const SHORTEST = 1_000;
const TIMES = 4;
/// When to ask again where there was no answer.
const AGAIN = 2_000;

const main = document.getElementById("main");
const search = document.getElementById("search");
const state = document.getElementById("state");
const stateWords = document.getElementById("state-words");

const kept = new Map();
const scrolled = new Map();
let shown;
let data;
let readAt;
let connection = "connecting";
let following;

// The state of the connection.

function tell(next = connection) {
  connection = next;
  const at = readAt === undefined ? "" : ` · as of ${readAt.toLocaleTimeString([], { hour12: false })}`;
  const words = { live: "live", connecting: "connecting", reconnecting: `reconnecting${at}`, paused: `paused${at}`, refused: "no access" };
  if (state.dataset.state !== connection) state.dataset.state = connection;
  if (stateWords.textContent !== words[connection]) stateWords.textContent = words[connection];
}

function connect() {
  following?.stop();
  following = document.hidden ? undefined : follow(() => reading.soon(), tell);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    following?.stop();
    reading.stop();
    tell("paused");
  } else {
    tell("connecting");
    connect();
  }
});

// Reading the view that is shown.

const reading = {
  timer: undefined,
  running: undefined,
  wanted: false,
  started: -Infinity,
  pause: SHORTEST,

  /// Reads at once, whatever is being read.
  now() {
    this.stop();
    this.read();
  },

  /// Reads as soon as that is not too often.
  soon() {
    if (this.running !== undefined) this.wanted = true;
    else if (this.timer === undefined) this.timer = setTimeout(() => this.read(), Math.max(0, this.started + this.pause - performance.now()));
  },

  stop() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.running?.abort();
    this.running = undefined;
    this.wanted = false;
  },

  async read() {
    this.timer = undefined;
    if (shown === undefined) return;
    const own = new AbortController();
    const view = shown;
    this.running = own;
    this.started = performance.now();
    try {
      const asked = (path, query) => ask(path, own.signal, query);
      const answer = await (view.load ? view.load(asked) : asked(view.path));
      if (this.running !== own) return;
      readAt = new Date();
      present(view, answer);
    } catch (error) {
      if (this.running !== own || error.name === "AbortError") return;
      refuse(error);
    }
    this.running = undefined;
    this.pause = Math.max(SHORTEST, TIMES * (performance.now() - this.started));
    tell();
    if (this.wanted) {
      this.wanted = false;
      this.soon();
    }
  },
};

function present(view, answer) {
  if (main.firstElementChild === view.root && same(data, answer)) return;
  const focused = document.activeElement?.getAttribute?.("href");
  const within = view.root.contains(document.activeElement);
  performance.mark("berth-show");
  view.show(answer);
  view.root.dataset.filled = "true";
  data = answer;
  if (main.firstElementChild !== view.root) {
    main.replaceChildren(view.root);
    arrive(view);
  } else if (within && focused && !view.root.contains(document.activeElement)) {
    view.root.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
  }
  performance.measure("berth-show", "berth-show");
  document.body.dataset.shown = location.hash || "#/";
}

/// Puts a view where the reader left it, or where it begins.
function arrive(view) {
  const top = scrolled.get(location.hash || "#/") ?? 0;
  if (document.activeElement !== search) {
    const place = (top > 0 && view.focus?.()) || view.root.querySelector("h1");
    place?.focus({ preventScroll: true });
  }
  window.scrollTo(0, top);
}

function refuse(error) {
  if (!(error instanceof Refusal)) {
    main.replaceChildren(notice("The answer of the API can't be shown", String(error)));
    throw error;
  }
  const again = error.status === 0 || error.status >= 500;
  if (again) setTimeout(() => reading.soon(), AGAIN);
  if (error.status === 401) {
    tell("refused");
    following?.stop();
    main.replaceChildren(tokenForm(hasToken() ? error.message : undefined));
    main.querySelector("input")?.focus();
  } else if (again) {
    if (data !== undefined) return;
    const title = error.status === 503 ? "Berth is not ready" : "There is no answer";
    main.replaceChildren(notice(title, `${error.message}. This page tries again by itself.`));
  } else if (error.status === 404) {
    const gone = data === undefined ? "There is no such thing" : "It is gone";
    main.replaceChildren(notice(gone, error.message));
  } else {
    const title = error.status === 403 ? "You may not see this" : "Berth refuses the question";
    main.replaceChildren(notice(title, error.message));
  }
}

function notice(title, words) {
  return element("div.notice", null, element("h1", { tabindex: "-1" }, title), element("p", null, element("bdi.named", null, words)), element("p", null, element("a", { href: "#/" }, "To the fleet")));
}

function tokenForm(refused) {
  const input = element("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const submit = (event) => {
    event.preventDefault();
    keepToken(input.value.trim());
    begin();
  };
  return element(
    "form.notice",
    { on: { submit } },
    element("h1", null, "Who are you?"),
    element("p", null, "Berth shows what your account may see. Paste a token of it:"),
    element("pre", null, "kubectl create token SERVICE-ACCOUNT -n NAMESPACE"),
    refused && element("p.mark.bad", { role: "alert" }, element("span.sign", { "aria-hidden": "true" }, "✕"), element("bdi.named", null, refused)),
    element("label", { for: "token" }, "Token"),
    input,
    element("button.primary", { type: "submit" }, "Show the cluster"),
    element("p.muted", null, "The token stays in this tab and is forgotten when you close it."),
  );
}

// The address.

/// Takes a token out of the address, so that it is in no history and no picture.
function takeToken() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (found === null) return;
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  keepToken(decoded(found[1]));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route() {
  takeToken();
  const [first = "", ...names] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  const known = Object.hasOwn(VIEWS, first) && VIEWS[first].names === names.length ? VIEWS[first] : undefined;
  shown?.hide?.();
  data = undefined;
  for (const place of document.querySelectorAll(".views a")) {
    if (place.dataset.view === first) place.setAttribute("aria-current", "page");
    else place.removeAttribute("aria-current");
  }
  if (known === undefined) {
    shown = undefined;
    reading.stop();
    document.title = "Berth";
    main.replaceChildren(notice("There is no such page", location.hash));
    return;
  }
  shown = known.kept ? (kept.get(first) ?? known.view.open()) : known.view.open(...names);
  if (known.kept) kept.set(first, shown);
  document.title = `${shown.title} · Berth`;
  shown.search?.(search.value);
  // A view that is kept is there at once, and brought up to date then.
  if (known.kept && shown.root.dataset.filled) {
    main.replaceChildren(shown.root);
    arrive(shown);
  }
  reading.now();
}

function begin() {
  takeToken();
  tell("connecting");
  connect();
  route();
}

search.addEventListener("input", () => {
  if (shown?.search === undefined) location.hash = "#/";
  else shown.search(search.value);
});

function clear() {
  search.value = "";
  shown?.search?.("");
  if (document.activeElement === search) search.blur();
}

// Dark and light.

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function changeTheme() {
  const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("berth.theme", next);
}

const theme = localStorage.getItem("berth.theme");
if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
document.getElementById("theme").addEventListener("click", changeTheme);
document.getElementById("skip").addEventListener("click", () => main.focus());

history.scrollRestoration = "manual";
let left = location.hash || "#/";
window.addEventListener("scroll", () => scrolled.set(left, window.scrollY), { passive: true });
window.addEventListener("hashchange", () => {
  left = location.hash || "#/";
  route();
});
listen({ search, help: document.getElementById("help"), dialog: document.getElementById("keys"), clear, theme: changeTheme });
setInterval(tick, 5_000);
begin();
