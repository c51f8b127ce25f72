// What fits now: for each model and each usual size, how many such pods would fit one after the other.

import { element, named } from "./element.js";
import { counted, rounded, size } from "./words.js";

export function open() {
  const body = element("div");
  const root = element(
    "div",
    null,
    element(
      "div.heading",
      null,
      element("h1", { tabindex: "-1" }, "What fits now"),
      element("p.muted", null, "How many pods of a size would fit, one after the other, if no others came. Closed nodes are left out; cpu, memory and quotas are not considered."),
    ),
    body,
  );

  function show({ sizes }) {
    const models = [...new Set(sizes.map(({ model }) => model))];
    const requests = [...new Map(sizes.map(({ request }) => [size(request), request])).values()];
    const most = Math.max(1, ...sizes.map(({ fits }) => fits));
    const heads = requests.map((request) => element("div.size", { role: "columnheader" }, picture(request), element("span", null, size(request))));
    const cell = (model, request) => {
      const found = sizes.find((one) => one.model === model && size(one.request) === size(request));
      const fits = found?.fits ?? 0;
      // A few more count for much where there are few.
      const heat = Math.log1p(fits) / Math.log1p(most);
      return element(
        fits === 0 ? "div.room.none" : "div.room",
        { role: "cell", style: { "--heat": `${rounded(heat * 42)}%` } },
        element("b", null, String(fits)),
        element("span.label", null, size(request)),
      );
    };
    const row = (model) => element("div.row", { role: "row" }, element("div.of-model", { role: "rowheader" }, named(model ?? "any model")), requests.map((request) => cell(model, request)));
    const grid = element(
      "div.grid",
      { role: "table", "aria-label": "How many pods fit, by model and size", style: { "--sizes": String(requests.length) } },
      element("div.row.heads", { role: "row" }, element("div", { role: "columnheader" }, "Model"), heads),
      models.map(row),
    );
    body.replaceChildren(sizes.length === 0 ? element("p.note", null, "There are no cards.") : grid);
  }

  return { title: "What fits now", path: ["fits"], root, show };
}

/// A request as towers, one for each card.
function picture(request) {
  const percent = request.memoryPercent ?? request.percent ?? 100;
  const cards = Math.min(request.cards, 8);
  const towers = Array.from({ length: cards }, () => element("span.mini", { style: { "--part": `${percent}%` } }));
  return element("span.minis", { role: "img", "aria-label": counted(request.cards, "card") }, towers);
}
