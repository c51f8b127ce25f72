// One pod: where it is and what it holds, or why it waits and what would help.

import { meet } from "./colours.js";
import { element, facts, heading, link, named, panel, refill, table } from "./element.js";
import { bars, swatch } from "./picture.js";
import { compute, counted, mib, since } from "./words.js";

const OUTCOMES = {
  Bound: { words: "bound", kind: "good", sign: "✓" },
  Waiting: { words: "waiting", kind: "waits", sign: "…" },
  Denied: { words: "denied", kind: "bad", sign: "✕" },
  NotOurs: { words: "placed by another scheduler", kind: "other", sign: "–" },
};

/// So many of its cards are drawn; a pod of more has a table alone.
const DRAWN = 16;
/// So many names of nodes stand in the open.
const NAMES = 6;

const HOLDS = [{ head: "Card" }, { head: "Model" }, { head: "Memory", kind: "number" }, { head: "Compute", kind: "number" }];
const VERDICTS = [{ head: "Nodes" }, { head: "What they lack" }, { head: "Names" }];
const HISTORY = [{ head: "Tries", kind: "number" }, { head: "First" }, { head: "Last" }, { head: "What came of them" }];
const CHANGES = [{ head: "Field" }, { head: "Now" }, { head: "Would fit" }];

/// What became of a pod, as a word with a sign.
export function outcome(pod) {
  const known = Object.hasOwn(OUTCOMES, pod.outcome) ? OUTCOMES[pod.outcome] : { words: String(pod.outcome), kind: "other", sign: "–" };
  return element(`span.outcome.${known.kind}`, null, element("span", { "aria-hidden": "true" }, known.sign), ` ${known.words}`);
}

export function open(namespace, name) {
  const root = element("div");
  const path = ["namespaces", namespace, "pods", name];
  /// What would help, and for which message that was asked last: to find it, Berth judges all nodes many times.
  const help = element("div");
  let helped;

  async function findHelp(ask, { outcome, fitting, message }) {
    if (outcome !== "Waiting" || fitting !== 0) {
      helped = undefined;
      refill(help);
    } else if (helped !== message) {
      helped = message;
      try {
        refill(help, helps(await ask([...path, "change"])));
      } catch {
        // There may be an answer next time.
        helped = undefined;
      }
    }
  }

  /// The pod, with the cards that it holds parts of.
  async function load(ask) {
    const pod = await ask(path);
    findHelp(ask, pod);
    const ids = [...new Set((pod.holds ?? []).map(({ card }) => card))];
    const cards = ids.length > DRAWN ? [] : await Promise.all(ids.map((id) => ask(["cards", id]).catch(unlessGone)));
    return { pod, cards: cards.filter((card) => card !== undefined) };
  }

  function show({ pod, cards }) {
    meet([namespace, ...cards.flatMap(({ card }) => (card.shares ?? []).flatMap((share) => share.namespace ?? []))]);
    const waits = pod.outcome === "Waiting";
    refill(
      root,
      heading("Pod", pod.name, element("p.muted", null, "in ", swatch(pod), link(["namespaces", pod.namespace], named(pod.namespace)))),
      panel(
        waits ? "It waits" : "State",
        element("p.headline", null, outcome(pod), pod.node && [" on ", link(["nodes", pod.node], named(pod.node))], pod.queue && ` ${ordinal(pod.queue.position)} of ${counted(pod.queue.of, "pod")} in the queue`),
        waits && pod.message && element("p.said", null, named(pod.message)),
        facts("short", [
          ["Asks for", pod.asks && named(pod.asks)],
          [waits ? "Waits" : "For", since(pod.since)],
          ["Reason", pod.reason && named(pod.reason)],
          ["Tries", pod.attempts === undefined ? undefined : String(pod.attempts)],
          ["Priority", pod.priority === undefined ? undefined : String(pod.priority)],
          ["Fits now on", pod.fitting === undefined ? undefined : counted(pod.fitting, "node")],
        ]),
      ),
      help,
      verdicts(pod),
      attempts(pod),
      holds(pod),
      cards.length > 0 &&
        element(
          "section",
          { "aria-label": "Its cards" },
          element("h2", null, "Its part of each card"),
          element("div.cards", null, cards.map(({ card }) => drawn(card))),
        ),
    );
  }

  function drawn(card) {
    const own = (share) => share.namespace === namespace && share.pod === name;
    return element("article.card", null, element("h3", null, link(["cards", card.id], `Card ${card.index ?? ""} `, element("span.muted", null, named(card.id)))), bars(card, own));
  }

  return { title: name, path, root, load, show };
}

function unlessGone(error) {
  if (error.status === 404) return undefined;
  throw error;
}

function ordinal(number) {
  const last = number % 100 > 10 && number % 100 < 14 ? 0 : number % 10;
  return `${number}${{ 1: "st", 2: "nd", 3: "rd" }[last] ?? "th"}`;
}

function helps({ change }) {
  if ((change ?? []).length === 0) return undefined;
  const row = ({ field, from, to }) => [element("code", null, named(field)), named(String(from)), to === undefined || to === null ? "left out" : named(String(to))];
  return panel("What would help", element("p.muted", null, "The smallest change of the pod with which it would fit now:"), table("What would help", CHANGES, change.map(row)));
}

function lack({ reason, by, card }) {
  const amount = by === undefined ? "" : ` by ${/Memory/.test(reason) ? mib(by) : by}`;
  return element("li", null, named(reason), amount, card && [" on ", link(["cards", card], named(card))]);
}

function verdicts({ nodes, nearest }) {
  const row = ({ reasons, count, names }) => [String(count), element("ul.plain", null, (reasons ?? []).map(lack)), nodeNames(names ?? [], count)];
  const near = nearest?.node && element("div.nearest", null, "Nearest is ", link(["nodes", nearest.node], named(nearest.node)), (nearest.lacks ?? []).length > 0 && [", which lacks", element("ul.plain", null, nearest.lacks.map(lack))]);
  if ((nodes ?? []).length === 0) return near ? panel("Why no node takes it", near) : undefined;
  return panel("Why no node takes it", near, table("What nodes lack", VERDICTS, nodes.map(row)));
}

/// What came of its tries since the replica leads.
function attempts({ history }) {
  if ((history ?? []).length === 0) return undefined;
  const row = ({ reasons, message, first, last, count }) => [
    String(count),
    since(first),
    since(last),
    [element("strong", null, named((reasons ?? []).join(", "))), element("p.muted", null, named(message))],
  ];
  return panel("What came of its tries", table("What came of its tries", HISTORY, history.map(row)));
}

function nodeNames(names, count) {
  const links = names.map((name) => element("li", null, link(["nodes", name], named(name))));
  const open = element("ul.inline", null, links.slice(0, NAMES));
  if (links.length <= NAMES) return [open, count > names.length && element("span.muted", null, ` and ${count - names.length} more`)];
  return [open, element("details", null, element("summary", null, `${count - NAMES} more`), element("ul.inline", null, links.slice(NAMES)))];
}

function holds({ holds: held }) {
  if ((held ?? []).length === 0) return undefined;
  const row = ({ card, index, model, memory, cores }) => [link(["cards", card], named(index === undefined ? card : `${index} · ${card}`)), named(model ?? ""), mib(memory), compute(cores)];
  return panel("What it holds", table("What the pod holds", HOLDS, held.map(row)));
}
