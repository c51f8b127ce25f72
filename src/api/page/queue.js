// The pods that wait, in the order in which they are decided.

import { element, link, named, table } from "./element.js";
import { swatch } from "./picture.js";
import { counted, since } from "./words.js";

const COLUMNS = [
  { head: "Place", kind: "number" },
  { head: "Pod" },
  { head: "Asks for" },
  { head: "Why it waits" },
  { head: "Waits", kind: "number" },
  { head: "Tries", kind: "number" },
  { head: "Priority", kind: "number" },
];

export function open() {
  let queue;
  let reason;
  let text = "";
  const count = element("p.count", { role: "status" });
  const reasons = element("ul.legend", { "aria-label": "Reasons" });
  const rows = element("div");
  const root = element(
    "div",
    null,
    element("div.heading", null, element("h1", { tabindex: "-1" }, "Queue"), element("p.muted", null, "Pods that wait, in the order in which Berth decides them: by priority, then age.")),
    reasons,
    count,
    rows,
  );

  function show(answer) {
    queue = answer;
    const sums = new Map();
    for (const pod of answer.pods) sums.set(pod.reason, (sums.get(pod.reason) ?? 0) + 1);
    if (!sums.has(reason)) reason = undefined;
    const chip = ([name, pods]) =>
      element(
        "li",
        null,
        element("button.chip", { type: "button", "aria-pressed": String(name === reason), on: { click: () => choose(name) } }, element("b", null, String(pods)), " ", named(name ?? "not tried yet")),
      );
    reasons.replaceChildren(...[...sums].sort((one, other) => other[1] - one[1]).map(chip));
    arrange();
  }

  function choose(name) {
    reason = name === reason ? undefined : name;
    const at = [...reasons.querySelectorAll("button")].indexOf(document.activeElement);
    show(queue);
    reasons.querySelectorAll("button")[at]?.focus();
  }

  function arrange() {
    const fits = (pod) =>
      (reason === undefined || pod.reason === reason) &&
      (text === "" || [pod.namespace, pod.pod, pod.reason, pod.asks].some((one) => one?.toLowerCase().includes(text)) || (pod.pod !== undefined && `${pod.namespace}/${pod.pod}`.toLowerCase().includes(text)));
    const shown = queue.pods.filter(fits);
    const listed = queue.of > queue.pods.length ? `, the first ${queue.pods.length} of them listed` : "";
    count.textContent = shown.length === queue.pods.length ? `${counted(queue.of, "pod")}${listed}` : `${shown.length} of ${counted(queue.of, "pod")}`;
    const cells = (pod) => [
      String(pod.position),
      pod.pod === undefined
        ? element("span.holder", null, swatch({ others: 1 }), "a pod that you may not see")
        : element("span.holder", null, swatch(pod), link(["namespaces", pod.namespace], named(pod.namespace)), element("span.of", null, "/"), link(["pods", pod.namespace, pod.pod], named(pod.pod))),
      named(pod.asks ?? ""),
      [element("span.reason", null, named(pod.reason ?? "not tried yet")), pod.message && element("span.message", null, named(pod.message))],
      since(pod.since) ?? "",
      String(pod.attempts ?? 0),
      String(pod.priority ?? 0),
    ];
    if (queue.pods.length === 0) rows.replaceChildren(element("p.note", null, "No pod waits."));
    else rows.replaceChildren(table("Waiting pods", COLUMNS, shown.map(cells)));
  }

  return {
    title: "Queue",
    path: ["queue"],
    root,
    show,
    search(words) {
      text = words.trim().toLowerCase();
      if (queue !== undefined) arrange();
    },
  };
}
