// The words for what the API answers with a name or a number.

import { element } from "./element.js";

const STRANDED = {
  cpu: "the node has too little cpu left for the pods that usually come",
  memory: "the node has too little memory left for the pods that usually come",
  partlyUsed: "the card is partly used, and the pods that usually come need more than is left",
  model: "no pod that usually comes takes this model",
  slots: "the card has no free slot",
};

const STRANDED_SHORT = {
  cpu: "no cpu left",
  memory: "no memory left",
  partlyUsed: "partly used",
  model: "model not asked for",
  slots: "no slot left",
};

const CLOSED = {
  cordoned: "cordoned",
  notReady: "not ready",
  tainted: "tainted",
  silentAgent: "device plugin silent",
};

/// Why the free part of a card is of no use, as a clause.
export function strandedBecause(reason) {
  return Object.hasOwn(STRANDED, reason) ? STRANDED[reason] : spaced(reason);
}

export function strandedShort(reason) {
  return Object.hasOwn(STRANDED_SHORT, reason) ? STRANDED_SHORT[reason] : spaced(reason);
}

/// The same for a badge.
export function closedShort(reason) {
  return reason === "silentAgent" ? "silent" : closedBecause(reason);
}

/// Why a node takes no pods.
export function closedBecause(reason) {
  return Object.hasOwn(CLOSED, reason) ? CLOSED[reason] : spaced(reason);
}

/// `notReady` as `not ready`.
function spaced(name) {
  return String(name).replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}

export function mib(amount) {
  return `${amount} MiB`;
}

/// Compute of a card: percent where the card has 100 units, else its own units.
export function compute(amount, whole = 100) {
  return whole === 100 ? `${amount} %` : `${amount} of ${whole} units`;
}

/// A number of cards, with two decimals at most.
export function rounded(amount) {
  return String(Math.round(amount * 100) / 100);
}

export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/// How much of a whole, in percent without decimals; something never rounds to 0.
export function part(amount, whole) {
  if (!(whole > 0)) return 0;
  const percent = (amount / whole) * 100;
  return percent > 0 && percent < 1 ? 1 : Math.round(percent);
}

/// How long ago a time is, in the unit that says most.
function ago(time) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (Number.isNaN(seconds)) return String(time);
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

/// How long something has been so; `tick` keeps it right.
export function since(time) {
  if (!time) return undefined;
  return element("time", { datetime: time, title: time }, ago(time));
}

/// Sets every age of the page anew.
export function tick() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const words = ago(time.dateTime);
    if (time.textContent !== words) time.textContent = words;
  }
}

/// The size of a request, such as `½ card` or `8 cards`.
export function size({ cards, percent, memoryPercent, coresPercent }) {
  const memory = percent ?? memoryPercent ?? 100;
  const cores = percent ?? coresPercent ?? memory;
  if (memory !== cores) return `${cards} × ${rounded(memory)} % memory, ${rounded(cores)} % compute`;
  const fraction = { 12.5: "⅛ card", 25: "¼ card", 50: "½ card", 75: "¾ card", 100: "1 card" }[memory];
  if (cards === 1) return fraction ?? `${rounded(memory)} % of a card`;
  return memory === 100 ? `${cards} cards` : `${cards} × ${rounded(memory)} %`;
}

/// What one share holds.
export function held(share, whole) {
  return `${mib(share.memory)}, ${compute(share.cores, whole)} compute`;
}

/// Whose share it is, for reading aloud and for tooltips.
export function holder(share) {
  return share.others === undefined ? `${share.namespace}/${share.pod}` : counted(share.others, "other pod");
}

/// A card in one sentence.
export function cardInWords(card) {
  const words = [
    `Card ${card.index ?? card.id}, ${card.model ?? "unknown model"}`,
    card.healthy === false && "unhealthy",
    `memory ${card.memoryUsed} of ${mib(card.memory)}`,
    `compute ${card.coresUsed} of ${card.cores}`,
    card.slots !== undefined && `${card.slotsUsed} of ${counted(card.slots, "slot")}`,
    ...(card.shares ?? []).map((share) => `${holder(share)} ${mib(share.memory)}`),
    card.stranded && `what is free is of no use: ${strandedBecause(card.stranded)}`,
  ];
  return words.filter(Boolean).join("; ");
}
