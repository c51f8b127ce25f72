// Pictures of cards: towers for the fleet, which are one element each, and bars for the pages of single things.

import { colour } from "./colours.js";
import { address, element, link, named } from "./element.js";
import { cardInWords, counted, held, holder, mib, part, strandedBecause, strandedShort } from "./words.js";

/// The smallest part of a card that is drawn, in percent: any share can be seen.
const VISIBLE = 3;

/// The shares of a card from the bottom up, as a CSS gradient over what is free.
function stacked(card, amount, whole, highlighted) {
  const stops = [];
  let from = 0;
  for (const share of card.shares ?? []) {
    if (!(share[amount] > 0) || from >= 100) continue;
    const to = Math.min(100, from + Math.max(VISIBLE, (share[amount] / whole) * 100));
    const fill = colour(share, highlighted);
    stops.push(`${fill} ${from}% calc(${to}% - 1px)`, `var(--gap) calc(${to}% - 1px) ${to}%`);
    from = to;
  }
  return stops.length === 0 ? "none" : `linear-gradient(to top, ${stops.join(", ")}, transparent ${from}%)`;
}

/// Says of a tower what its card is like. `paint` shows what is in use.
export function describe(tower, card) {
  tower.classList.toggle("unhealthy", card.healthy === false);
  tower.classList.toggle("stranded", card.stranded !== undefined && card.healthy !== false);
  tower.setAttribute("aria-label", cardInWords(card));
}

export function paint(tower, card, highlighted) {
  tower.style.setProperty("--memory", stacked(card, "memory", card.memory, highlighted));
  tower.style.setProperty("--compute", stacked(card, "cores", card.cores, highlighted));
}

export function tower(card) {
  const made = element("a.tower", { href: address(["cards", card.id]), tabindex: "-1" });
  describe(made, card);
  return made;
}

export function swatch(share) {
  return element("span.swatch", { "aria-hidden": "true", style: { "--fill": colour(share) } });
}

/// Whose share it is, with its colour, and links where the viewer may see it.
export function holderLink(share) {
  if (share.others !== undefined) return element("span.holder", null, swatch(share), holder(share));
  const namespace = link(["namespaces", share.namespace], named(share.namespace));
  return element("span.holder", null, swatch(share), namespace, element("span.of", null, "/"), link(["pods", share.namespace, share.pod], named(share.pod)));
}

function segments(card, amount, whole, chosen) {
  return (card.shares ?? []).filter((share) => share[amount] > 0).map((share) => {
    const dim = chosen !== undefined && !chosen(share);
    return element(dim ? "span.segment.dim" : "span.segment", {
      title: `${holder(share)}: ${held(share, card.cores)}`,
      style: { "--fill": colour(share), "--part": `${(share[amount] / whole) * 100}%` },
    });
  });
}

function bar(kind, words, parts, stranded) {
  return element(stranded ? `div.bar.${kind}.stranded` : `div.bar.${kind}`, { role: "img", "aria-label": words }, parts);
}

/// A card as two bars with their numbers. `chosen` says which shares stand out.
export function bars(card, chosen) {
  const free = card.memory - card.memoryUsed;
  const memory = `Memory: ${card.memoryUsed} of ${mib(card.memory)}`;
  const cores = `Compute: ${card.coresUsed} of ${card.cores}${card.cores === 100 ? " %" : ""}`;
  return element(
    card.healthy === false ? "div.bars.unhealthy" : "div.bars",
    null,
    element("div.numbers", null, element("span", null, memory), element("span.muted", null, `${part(card.memoryUsed, card.memory)} % used, ${mib(free)} free`)),
    bar("memory", memory, segments(card, "memory", card.memory, chosen), card.stranded !== undefined),
    element("div.numbers", null, element("span", null, cores), card.slots !== undefined && element("span.muted", null, `${card.slotsUsed} of ${counted(card.slots, "slot")}`)),
    bar("compute", cores, segments(card, "cores", card.cores, chosen), false),
    marks(card),
  );
}

/// What is not as it should be with a card, in words.
export function marks(card) {
  const unhealthy = card.healthy === false && element("p.mark.bad", null, element("span.sign", { "aria-hidden": "true" }, "✕"), "Unhealthy: it gets no pods.");
  const stranded =
    card.stranded !== undefined &&
    element("p.mark", null, element("span.hatch", { "aria-hidden": "true" }), `What is free is of no use now: ${strandedBecause(card.stranded)}.`);
  return [unhealthy, stranded];
}

/// What is shown beside a tower while one points at it.
export function tip(card, node) {
  const lines = (card.shares ?? []).slice(0, 12).map((share) =>
    element("li", null, swatch(share), named(holder(share)), element("span.amount", null, held(share, card.cores))),
  );
  const more = (card.shares ?? []).length - lines.length;
  return [
    element("p.tip-title", null, named(`${node} · card ${card.index ?? card.id}`)),
    element("p.muted", null, named(card.model ?? "unknown model")),
    element("p", null, `${card.memoryUsed} of ${mib(card.memory)} · ${card.coresUsed} of ${card.cores} compute`, card.slots !== undefined && ` · ${card.slotsUsed} of ${card.slots} slots`),
    lines.length > 0 && element("ul", null, lines),
    more > 0 && element("p.muted", null, `and ${more} more`),
    card.healthy === false && element("p.mark.bad", null, element("span.sign", null, "✕"), "unhealthy"),
    card.stranded !== undefined && element("p.mark", null, element("span.hatch", null), `free part of no use: ${strandedShort(card.stranded)}`),
  ].filter(Boolean);
}
