// One node: its cards, why it takes no pods if it does not, and what else its pods need.

import { meet } from "./colours.js";
import { element, facts, heading, link, named, panel, refill, table } from "./element.js";
import { bars, holderLink } from "./picture.js";
import { closedBecause, counted, held, part } from "./words.js";

const RESOURCES = [{ head: "Resource" }, { head: "Requested", kind: "number" }, { head: "Allocatable", kind: "number" }, { head: "Used", kind: "wide" }];

const SUFFIXES = { n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };

/// A quantity as a number that is good enough for a picture.
function number(quantity) {
  const found = /^([0-9.]+)([a-zA-Z]*)$/.exec(String(quantity));
  return found !== null && Object.hasOwn(SUFFIXES, found[2]) ? Number(found[1]) * SUFFIXES[found[2]] : Number.NaN;
}

export function open(name) {
  const root = element("div");

  function show(node) {
    meet(node.cards.flatMap((card) => (card.shares ?? []).flatMap(({ namespace }) => namespace ?? [])));
    const card = (one) =>
      element(
        "article.card",
        null,
        element("h3", null, link(["cards", one.id], `Card ${one.index ?? ""} `, element("span.muted", null, named(one.id)))),
        one.model && element("p.muted", null, named(one.model)),
        bars(one),
        element("ul.holders", null, (one.shares ?? []).map((share) => element("li", null, holderLink(share), element("span.amount", null, held(share, one.cores))))),
      );
    const resource = ({ resource: what, allocatable, requested }) => {
      const used = part(number(requested), number(allocatable));
      return [named(what), requested ?? "0", allocatable, Number.isNaN(used) ? "" : element("div.bar.plain", { role: "img", "aria-label": `${used} %` }, element("span.segment", { style: { "--fill": "var(--accent)", "--part": `${Math.min(100, used)}%` } }))];
    };
    const taint = ({ key, value, effect }) => element("li.tag", null, named(`${key}${value ? `=${value}` : ""}:${effect}`));
    const label = ([key, value]) => element("li.tag", null, named(value === "" ? key : `${key}=${value}`));
    refill(
      root,
      heading(
        "Node",
        node.name,
        node.closed
          ? element("p.mark.bad", null, element("span.sign", { "aria-hidden": "true" }, "✕"), `It takes no pods: ${node.closed.map(closedBecause).join(", ")}.`)
          : element("p.mark.good", null, element("span.sign", { "aria-hidden": "true" }, "✓"), "It takes pods."),
      ),
      element("section", { "aria-label": "Cards" }, element("h2", null, counted(node.cards.length, "card")), element("div.cards", null, node.cards.map(card))),
      (node.resources ?? []).length > 0 && panel("Other resources", table("Resources of the node", RESOURCES, node.resources.map(resource))),
      panel("Node", facts("long", [
        ["Models", (node.models ?? []).length > 0 && element("ul.tags", null, node.models.map((model) => element("li.tag", null, named(model))))],
        ["Taints", (node.taints ?? []).length > 0 ? element("ul.tags", null, node.taints.map(taint)) : "none"],
        ["Labels", Object.keys(node.labels ?? {}).length > 0 ? element("ul.tags", null, Object.entries(node.labels).map(label)) : "none"],
      ])),
    );
  }

  return { title: name, path: ["nodes", name], root, show };
}
