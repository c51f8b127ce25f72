// Keys that work everywhere, and the list of all keys.

import { element } from "./element.js";

const KEYS = [
  ["/", "search"],
  ["g f", "fleet"],
  ["g q", "queue"],
  ["g s", "sizes: what fits now"],
  ["← → ↑ ↓", "from card to card"],
  ["Enter", "open the card"],
  ["n", "open its node"],
  ["Esc", "clear the search"],
  ["t", "dark or light"],
  ["?", "this list"],
];

/// The longest time between `g` and the next key.
const PAUSE = 1_500;

const GO = { f: "#/", q: "#/queue", s: "#/fits" };

/// Listens to the keys. `clear` undoes the search, and `theme` changes between dark and light.
export function listen({ search, help, dialog, clear, theme }) {
  let leader = -Infinity;

  const key = ([keys, meaning]) => element("div", null, element("dt", null, keys.split(" ").map((one) => element("kbd", null, one))), element("dd", null, meaning));
  const close = element("button", { type: "button", on: { click: () => dialog.close() } }, "Close");
  dialog.append(element("h2", { id: "keys-title" }, "Keys"), element("dl.keys", null, KEYS.map(key)), close);
  help.addEventListener("click", () => dialog.showModal());

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || dialog.open) return;
    if (event.key === "Escape") {
      clear();
      return;
    }
    if (event.target.closest("input, select, textarea") !== null) return;
    const led = event.timeStamp - leader < PAUSE;
    leader = -Infinity;
    if (led && Object.hasOwn(GO, event.key)) location.hash = GO[event.key];
    else if (event.key === "g") leader = event.timeStamp;
    else if (event.key === "/") search.focus();
    else if (event.key === "t") theme();
    else if (event.key === "?") dialog.showModal();
    else return;
    event.preventDefault();
  });
}
