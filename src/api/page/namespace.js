// One namespace: its quotas, and its pods that hold shares or wait.

import { meet } from "./colours.js";
import { element, heading, link, named, panel, refill, table } from "./element.js";
import { swatch } from "./picture.js";
import { counted, part, since } from "./words.js";
import { outcome } from "./pod.js";

const PODS = [{ head: "Pod" }, { head: "State" }, { head: "Node" }, { head: "Asks for" }, { head: "For", kind: "number" }];
const QUOTAS = [{ head: "Resource" }, { head: "Used", kind: "number" }, { head: "Limit", kind: "number" }, { head: "Part", kind: "wide" }];

export function open(name) {
  const root = element("div");

  function show({ pods, quotas }) {
    meet([name]);
    const waiting = pods.filter((pod) => pod.outcome === "Waiting").length;
    const pod = (one) => [
      link(["pods", one.namespace, one.name], named(one.name)),
      [outcome(one), one.queue && element("span.muted", null, ` ${one.queue.position} of ${one.queue.of}`), one.reason && element("span.message", null, named(one.reason))],
      one.node ? link(["nodes", one.node], named(one.node)) : "",
      named(one.asks ?? ""),
      since(one.since) ?? "",
    ];
    const quota = ({ resource, used, hard }) => {
      const percent = part(used, hard);
      const fill = percent >= 100 ? "var(--bad)" : "var(--accent)";
      return [named(resource), String(used), String(hard), element("div.bar.plain", { role: "img", "aria-label": `${percent} % used` }, element("span.segment", { style: { "--fill": fill, "--part": `${Math.min(100, percent)}%` } }))];
    };
    refill(
      root,
      heading("Namespace", name, element("p.muted", null, swatch({ namespace: name }), ` ${counted(pods.length, "pod")}${waiting > 0 ? `, ${waiting} of them waiting` : ""}`)),
      (quotas ?? []).length > 0 && panel("Quotas", table("Quotas", QUOTAS, quotas.map(quota))),
      panel("Pods", pods.length === 0 ? element("p.muted", null, "No pod of this namespace holds a share or waits.") : table("Pods", PODS, pods.map(pod))),
    );
  }

  return { title: name, path: ["namespaces", name], root, show };
}
