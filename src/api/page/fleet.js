// The fleet: all nodes and their cards as pictures. A change redraws only the nodes that it is about.

import { meet } from "./colours.js";
import { address, element, link, named, same } from "./element.js";
import { describe, paint, swatch, tip, tower } from "./picture.js";
import { closedBecause, closedShort, counted, rounded, size, strandedShort } from "./words.js";

export const path = ["fleet"];

/// From so many cards on, their pictures are small.
const MANY_CARDS = 1_000;
/// More names are behind a button.
const SHORT_LEGEND = 16;
/// So many changed cards flash at most; more would be a flicker.
const MOST_FLASHES = 200;
/// So many cards stand in one row of a node.
const ROW = 8;
/// A node of more cards is twice as broad.
const NARROW = 4;
/// Up to so many cards, their pictures are large.
const FEW_CARDS = 24;
/// The least width of a column of nodes, in pixels, by the size of the pictures.
const COLUMNS = { small: 80, usual: 156, large: 240 };

const ORDERS = {
  name: { head: "By name", key: () => 0 },
  free: { head: "Most free memory", key: (node) => -node.free },
  used: { head: "Most used memory", key: (node) => -node.used },
  stranded: { head: "Most stranded cards", key: (node) => -node.stranded },
};

const FILTERS = [
  { name: "stranded", head: "Stranded", fits: (card) => card.stranded !== undefined },
  { name: "free", head: "Wholly free", fits: (card, node) => card.memoryUsed === 0 && card.slotsUsed !== card.slots && card.healthy !== false && !node.closed },
  { name: "trouble", head: "Unhealthy or closed", fits: (card, node) => card.healthy === false || node.closed !== undefined },
];

/// The fleet, which is kept while other views are open.
export function open() {
  const nodes = new Map();
  const wanted = { text: "", model: "", filters: new Set(), order: "name", namespace: undefined, wholeLegend: false };
  let fleet;
  let shownOrder = [];
  let current;
  let picture = "usual";
  let width = 0;

  const summary = element("section.summary", { "aria-label": "Models" });
  const rights = element("p.rights", { hidden: true }, "You see the pods of namespaces whose pods you may list. Of all others only amounts are shown, in grey.");
  const list = element("ul.nodes", { "aria-label": "Nodes" });
  const legend = element("ul.legend", { "aria-label": "Namespaces" });
  const count = element("p.count", { role: "status" });
  const empty = element("p.note", { hidden: true });
  const bubble = element("div.tip", { hidden: true, "aria-hidden": "true" });
  const models = element("select", { "aria-label": "Model", on: { change: () => { wanted.model = models.value; arrange(); } } });
  const orders = element("select", { "aria-label": "Order", on: { change: () => { wanted.order = orders.value; arrange(); } } });
  for (const [name, { head }] of Object.entries(ORDERS)) orders.append(element("option", { value: name }, head));
  const filters = FILTERS.map(({ name, head }) =>
    element("button.chip", { type: "button", "aria-pressed": "false", on: { click: (event) => toggle(name, event.currentTarget) } }, head),
  );
  const root = element(
    "div.fleet.usual",
    null,
    element("h1.unseen", { tabindex: "-1" }, "Fleet"),
    summary,
    rights,
    element("div.filters", null, models, filters, orders, count),
    legend,
    list,
    empty,
    bubble,
  );

  function toggle(name, button) {
    const on = !wanted.filters.delete(name);
    if (on) wanted.filters.add(name);
    button.setAttribute("aria-pressed", String(on));
    arrange();
  }

  // Nodes.

  function add(data) {
    const towers = element("div.towers", { role: "group", "aria-label": `Cards of ${data.name}` });
    const badge = element("span.badges");
    const head = element("h2", null, element("a.name", { href: address(["nodes", data.name]), tabindex: "-1" }, named(data.name)), badge);
    const item = element("li.node", null, head, towers);
    const node = { item, towers, badge, cards: new Map(), data: undefined, near: false, dim: [] };
    item.berth = node;
    nodes.set(data.name, node);
    nearness.observe(item);
    fill(node, data);
  }

  /// Nodes that are in sight, or soon will be. Only these get pictures of their cards, and new ones.
  const nearness = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        target.berth.near = isIntersecting;
        if (isIntersecting) build(target.berth);
      }
    },
    { rootMargin: "100% 0%" },
  );

  /// Brings the pictures of a node's cards up to date, and returns the towers of cards that changed.
  function build(node) {
    const changed = [];
    const colours = wanted.namespace ?? "";
    const seen = new Set();
    node.data.cards.forEach((card, at) => {
      seen.add(card.id);
      let known = node.cards.get(card.id);
      if (known === undefined) {
        const made = tower(card);
        known = { tower: made, card, name: node.data.name, painted: undefined, dim: false };
        made.berth = known;
        node.cards.set(card.id, known);
        node.towers.insertBefore(made, node.towers.children[at] ?? null);
      } else if (!same(known.card, card)) {
        known.card = card;
        known.painted = undefined;
        describe(known.tower, card);
        changed.push(known.tower);
      }
      if (known.painted !== colours) {
        known.painted = colours;
        paint(known.tower, card, wanted.namespace);
      }
      const dim = node.dim[at] ?? false;
      if (known.dim !== dim) {
        known.dim = dim;
        known.tower.classList.toggle("dim", dim);
      }
    });
    for (const [id, { tower: gone }] of node.cards) {
      if (!seen.has(id)) {
        gone.remove();
        node.cards.delete(id);
      }
    }
    return changed;
  }

  /// Takes in what is new of a node.
  function fill(node, data) {
    node.badge.replaceChildren(...(data.closed ?? []).map((reason) => element("span.badge", { title: `It takes no pods: ${closedBecause(reason)}` }, closedShort(reason))));
    node.item.classList.toggle("closed", data.closed !== undefined);
    node.item.classList.toggle("broad", data.cards.length > NARROW);
    node.item.style.setProperty("--cards", String(Math.min(ROW, Math.max(1, data.cards.length))));
    node.item.style.setProperty("--rows", String(Math.max(1, Math.ceil(data.cards.length / ROW))));
    node.data = data;
    node.text = undefined;
    node.used = data.cards.reduce((sum, card) => sum + card.memoryUsed, 0);
    node.free = data.cards.reduce((sum, card) => sum + card.memory - card.memoryUsed, 0);
    node.stranded = data.cards.filter((card) => card.stranded !== undefined).length;
  }

  /// The whole fleet, of which only the nodes are fetched that have changed since it was shown last.
  async function load(ask) {
    if (fleet?.version !== undefined) {
      const { nodesInAll, ...changed } = await ask(path, { since: fleet.version });
      // Another replica, or one that has restarted, does not know the version and answers with all nodes.
      if (nodesInAll === undefined) return changed;
      const rows = new Map(fleet.nodes.map((node) => [node.name, node]));
      for (const node of changed.nodes) rows.set(node.name, node);
      // Where there are more rows than nodes, some nodes are gone, and which ones is not told.
      if (rows.size === nodesInAll) return { ...changed, nodes: [...rows.values()] };
    }
    return ask(path);
  }

  function show(answer) {
    const first = fleet === undefined;
    fleet = answer;
    const namespaces = amounts(answer.nodes);
    meet(namespaces.keys());
    const names = new Set();
    const changed = [];
    for (const data of answer.nodes) {
      names.add(data.name);
      const known = nodes.get(data.name);
      if (known === undefined) add(data);
      else if (!same(known.data, data)) {
        fill(known, data);
        if (known.near) changed.push(...build(known));
      }
    }
    for (const [name, { item }] of nodes) {
      if (!names.has(name)) {
        nearness.unobserve(item);
        item.remove();
        nodes.delete(name);
      }
    }
    if (!first && changed.length <= MOST_FLASHES) changed.forEach(flash);
    if (wanted.namespace !== undefined && !namespaces.has(wanted.namespace)) highlight(undefined);
    summarise();
    explain(namespaces);
    arrange();
    if (!bubble.hidden && current !== undefined) point(current);
  }

  function flash(changed) {
    changed.classList.remove("changed");
    changed.addEventListener("animationend", () => changed.classList.remove("changed"), { once: true });
    requestAnimationFrame(() => changed.classList.add("changed"));
  }

  // What is shown of them.

  /// All that can be searched for of a node and of each of its cards, in small letters.
  function words(node) {
    if (node.text === undefined) {
      const { name, cards } = node.data;
      const of = (card) => [card.id, card.model, ...(card.shares ?? []).flatMap((share) => (share.pod === undefined ? [] : [`${share.namespace}/${share.pod}`]))];
      node.text = { name: name.toLowerCase(), cards: cards.map((card) => of(card).join("\n").toLowerCase()) };
    }
    return node.text;
  }

  /// Shows the nodes with a card that is asked for, and dims their other cards.
  function arrange() {
    const chosen = FILTERS.filter(({ name }) => wanted.filters.has(name));
    const all = wanted.text === "" && wanted.model === "" && chosen.length === 0;
    const shown = [];
    let cards = 0;
    for (const node of nodes.values()) {
      let matching = 0;
      const byName = wanted.text !== "" && words(node).name.includes(wanted.text);
      node.dim = node.data.cards.map((card, at) => {
        const fits =
          all ||
          ((wanted.model === "" || card.model === wanted.model) &&
            (wanted.text === "" || byName || words(node).cards[at].includes(wanted.text)) &&
            chosen.every((filter) => filter.fits(card, node.data)));
        matching += fits ? 1 : 0;
        return !fits;
      });
      if (node.near) build(node);
      const visible = all || matching > 0 || (byName && node.data.cards.length === 0);
      if (node.item.hidden === visible) node.item.hidden = !visible;
      if (visible) shown.push(node);
      cards += matching;
    }
    const { key } = ORDERS[wanted.order];
    shown.sort((one, other) => key(one) - key(other) || compare(one.data.name, other.data.name));
    if (shown.length !== shownOrder.length || shown.some((node, at) => node !== shownOrder[at])) {
      list.append(...shown.map(({ item }) => item));
      shownOrder = shown;
    }
    const total = [...nodes.values()].reduce((sum, node) => sum + node.data.cards.length, 0);
    const fitting = total >= MANY_CARDS ? "small" : total <= FEW_CARDS ? "large" : "usual";
    if (picture !== fitting) {
      root.classList.replace(picture, fitting);
      picture = fitting;
      spread();
    }
    count.textContent = all
      ? `${counted(nodes.size, "node")}, ${counted(total, "card")}`
      : `${shown.length} of ${counted(nodes.size, "node")}, ${cards} of ${counted(total, "card")}`;
    empty.hidden = shown.length > 0;
    empty.textContent = nodes.size === 0 ? "No node has registered a card yet." : "No card is like that. Esc clears the search.";
    if (current === undefined || current.closest("li")?.hidden !== false) rove(towersShown()[0]);
  }

  /// As many columns as there is room for; an even number, since a broad node takes two.
  function spread() {
    const columns = Math.floor(width / COLUMNS[picture]);
    list.style.setProperty("--columns", String(Math.max(2, columns - (columns % 2))));
  }
  new ResizeObserver(([{ contentRect }]) => {
    width = contentRect.width;
    spread();
  }).observe(list);

  /// Numbers within names count as numbers: gpu-2 stands before gpu-10.
  const { compare } = new Intl.Collator("en", { numeric: true });

  // Models and namespaces.

  function summarise() {
    const known = ["", ...fleet.models.map(({ model }) => model)];
    if (!same(known, [...models.options].map(({ value }) => value))) {
      models.replaceChildren(...known.map((model) => element("option", { value: model }, model || "All models")));
      if (!known.includes(wanted.model)) wanted.model = "";
      models.value = wanted.model;
    }
    summary.replaceChildren(...fleet.models.map(model), waiting());
    rights.hidden = fleet.viewer?.sees !== "some";
  }

  function model(one) {
    const stranded = (one.stranded ?? []).filter(({ gpus }) => gpus > 0);
    const sum = stranded.reduce((total, { gpus }) => total + gpus, 0);
    const of = (amount) => `${Math.min(100, (amount / (one.cards || 1)) * 100)}%`;
    const fits = (one.fits ?? []).filter(({ cards, percent }) => (cards === 1 && percent >= 50) || (cards === 8 && percent === 100));
    const words = `${rounded(one.allocated)} of ${counted(one.cards, "card")} given away, ${rounded(one.free)} free`;
    return element(
      "article.model",
      null,
      element("h2", null, named(one.model)),
      element("p.figure", null, element("strong", null, rounded(one.allocated)), element("span.muted", null, ` of ${counted(one.cards, "card")}`)),
      element(
        "div.gauge",
        { role: "img", "aria-label": words },
        element("span.given", { style: { "--part": of(one.allocated) } }),
        sum > 0 && element("span.hatched", { style: { "--part": of(sum) } }),
      ),
      element(
        "p.parts",
        null,
        element("span", null, `${rounded(one.free)} free`),
        one.fragmented > 0 && element("span", { title: "Free, and of no use to the pods that usually come, as the mean over them" }, `${rounded(one.fragmented)} fragmented`),
        sum > 0 && element("span", null, element("span.hatch", { "aria-hidden": "true" }), ` ${rounded(sum)} stranded: `, named(stranded.map(({ reason, gpus }) => `${rounded(gpus)} ${strandedShort(reason)}`).join(", "))),
      ),
      fits.length > 0 && element("p.fits", null, element("span.muted", null, "Fits "), fits.map(({ pods, ...one }) => element("span", null, element("b", null, String(pods)), ` × ${size(one)}`))),
    );
  }

  function waiting() {
    const { pods, reasons } = fleet.waiting ?? { pods: 0, reasons: [] };
    return element(
      pods === 0 ? "article.model.waits.none" : "article.model.waits",
      null,
      element("h2", null, link(["queue"], "Waiting pods")),
      element("p.figure", null, element("strong", null, String(pods)), element("span.muted", null, pods === 1 ? " pod waits" : " pods wait")),
      element("ul.reasons", null, (reasons ?? []).slice(0, 3).map((one) => element("li", null, element("b", null, String(one.pods)), " ", named(one.reason)))),
    );
  }

  /// How much memory each namespace holds.
  function amounts(all) {
    const sums = new Map();
    for (const node of all) {
      for (const card of node.cards) {
        for (const share of card.shares ?? []) {
          if (share.namespace !== undefined) sums.set(share.namespace, (sums.get(share.namespace) ?? 0) + share.memory);
        }
      }
    }
    return sums;
  }

  function explain(sums) {
    const names = [...sums.keys()].sort((one, other) => sums.get(other) - sums.get(one) || compare(one, other));
    const focused = document.activeElement?.dataset?.namespace;
    const shown = wanted.wholeLegend ? names : names.slice(0, SHORT_LEGEND);
    const items = shown.map((name) =>
      element(
        "li",
        null,
        element(
          "button.chip",
          { type: "button", "data-namespace": name, "aria-pressed": String(wanted.namespace === name), title: "Show the shares of this namespace alone", on: { click: () => highlight(wanted.namespace === name ? undefined : name) } },
          swatch({ namespace: name }),
          named(name),
        ),
        wanted.namespace === name && link(["namespaces", name], "open"),
      ),
    );
    if (shown.length < names.length) {
      const more = () => { wanted.wholeLegend = true; explain(sums); };
      items.push(element("li", null, element("button.chip", { type: "button", on: { click: more } }, `${names.length - shown.length} more`)));
    }
    if (fleet.nodes.some((node) => node.cards.some((card) => (card.shares ?? []).some((share) => share.others !== undefined)))) {
      items.push(element("li.key", null, swatch({ others: 1 }), "other pods"));
    }
    items.push(element("li.key", null, element("span.hatch", { "aria-hidden": "true" }), "free, and of no use now"));
    if (fleet.nodes.some((node) => node.cards.some((card) => card.healthy === false))) {
      items.push(element("li.key", null, element("span.sign", { "aria-hidden": "true" }, "✕"), "unhealthy"));
    }
    legend.replaceChildren(...items);
    if (focused !== undefined) legend.querySelector(`[data-namespace="${CSS.escape(focused)}"]`)?.focus();
  }

  /// Leaves its colour only to one namespace.
  function highlight(namespace) {
    wanted.namespace = namespace;
    for (const node of nodes.values()) {
      if (node.near) build(node);
    }
    explain(amounts(fleet.nodes));
  }

  // Keyboard and pointer.

  function towersShown() {
    const first = shownOrder.find((node) => node.data.cards.length > 0);
    if (first !== undefined) build(first);
    return first === undefined ? [] : [...first.towers.children];
  }

  /// Makes a card the one that the Tab key leads to.
  function rove(next) {
    if (current !== undefined) current.tabIndex = -1;
    current = next;
    if (current !== undefined) current.tabIndex = 0;
  }

  function step(from, key) {
    const item = from.closest("li");
    const at = shownOrder.findIndex((node) => node.item === item);
    const own = [...from.parentElement.children];
    const card = own.indexOf(from);
    const withCards = (start, by) => {
      for (let next = start; next >= 0 && next < shownOrder.length; next += by) {
        if (shownOrder[next].data.cards.length > 0) return built(shownOrder[next]);
      }
      return undefined;
    };
    if (key === "ArrowRight") return own[card + 1] ?? withCards(at + 1, 1)?.firstElementChild;
    if (key === "ArrowLeft") return own[card - 1] ?? withCards(at - 1, -1)?.lastElementChild;
    if (key === "Home") return withCards(0, 1)?.firstElementChild;
    if (key === "End") return withCards(shownOrder.length - 1, -1)?.lastElementChild;
    const by = key === "ArrowDown" ? 1 : -1;
    const row = own[card + by * ROW];
    if (row !== undefined) return row;
    // The node of the next line that is nearest to this one.
    const here = item.getBoundingClientRect();
    let best;
    for (let next = at + by; next >= 0 && next < shownOrder.length; next += by) {
      const there = shownOrder[next].item.getBoundingClientRect();
      if (Math.abs(there.top - here.top) < 4 || shownOrder[next].data.cards.length === 0) continue;
      if (best !== undefined && Math.abs(there.top - best.top) > 4) break;
      const distance = Math.abs(there.left - here.left);
      if (best === undefined || distance < best.distance) best = { top: there.top, distance, node: shownOrder[next] };
    }
    if (best === undefined) return undefined;
    const cards = built(best.node).children;
    return cards[Math.min(cards.length - 1, card)];
  }

  /// The towers of a node, wherever it is.
  function built(node) {
    build(node);
    return node.towers;
  }

  /// Shows what a card holds, beside it.
  function point(at) {
    bubble.replaceChildren(...tip(at.berth.card, at.berth.name));
    bubble.hidden = false;
    const place = at.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = bubble;
    const left = Math.max(8, Math.min(place.left + place.width / 2 - width / 2, document.documentElement.clientWidth - width - 8));
    const above = place.top - height - 8;
    bubble.style.setProperty("left", `${left}px`);
    bubble.style.setProperty("top", `${above >= 8 ? above : place.bottom + 8}px`);
  }

  list.addEventListener("keydown", (event) => {
    const from = event.target.closest(".tower");
    if (from === null || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "n") {
      location.hash = address(["nodes", from.berth.name]);
    } else if (["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
      step(from, event.key)?.focus();
    } else return;
    event.preventDefault();
  });
  list.addEventListener("focusin", (event) => {
    const at = event.target.closest(".tower");
    if (at === null) return;
    rove(at);
    if (at.matches(":focus-visible")) point(at);
  });
  list.addEventListener("focusout", () => { bubble.hidden = true; });
  list.addEventListener("pointerover", (event) => {
    const at = event.target.closest(".tower");
    if (at !== null && event.pointerType === "mouse") point(at);
    else bubble.hidden = true;
  });
  list.addEventListener("pointerleave", () => { bubble.hidden = true; });
  document.addEventListener("scroll", () => { bubble.hidden = true; }, { passive: true });

  return {
    title: "Fleet",
    path,
    root,
    load,
    show,
    hide() { bubble.hidden = true; },
    /// Where the keyboard is when one comes back.
    focus() { return current; },
    search(text) {
      wanted.text = text.trim().toLowerCase();
      arrange();
    },
  };
}
