// One card: what of it is in use, and by whom.

import { meet } from "./colours.js";
import { element, facts, heading, link, named, panel, refill, table } from "./element.js";
import { bars, holderLink } from "./picture.js";
import { compute, mib, part } from "./words.js";

const COLUMNS = [
  { head: "Pod" },
  { head: "Memory", kind: "number" },
  { head: "Of the card", kind: "number" },
  { head: "Compute", kind: "number" },
];

export function open(id) {
  const root = element("div");

  function show({ node, card }) {
    const shares = card.shares ?? [];
    meet(shares.flatMap(({ namespace }) => namespace ?? []));
    const row = (share) => [holderLink(share), mib(share.memory), `${part(share.memory, card.memory)} %`, compute(share.cores, card.cores)];
    refill(
      root,
      heading("Card", card.id, element("p.muted", null, "on ", link(["nodes", node], named(node)))),
      panel("In use", bars(card)),
      panel("Pods", shares.length === 0 ? element("p.muted", null, "No pod holds a part of this card.") : table("Pods of the card", COLUMNS, shares.map(row))),
      panel("Card", facts("short", [
        ["Node", link(["nodes", node], named(node))],
        ["Index", card.index === undefined ? undefined : String(card.index)],
        ["Model", card.model && named(card.model)],
        ["Health", card.healthy === false ? "unhealthy" : "healthy"],
        ["Memory", mib(card.memory)],
        ["Compute", compute(card.cores, card.cores)],
        ["Slots", card.slots === undefined ? undefined : `${card.slotsUsed} of ${card.slots} taken`],
      ])),
    );
  }

  return { title: id, path: ["cards", id], root, show };
}
