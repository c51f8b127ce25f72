// Gives each namespace a colour: the same one on every visit, as long as no other namespace that is shown has it already.

/// How many colours `page.css` defines as `--share-0` and so on.
const COLOURS = 10;

/// More namespaces than this are not kept.
const MOST_KEPT = 1_000;
/// Where this tab keeps them, so that a view that is opened afresh has the colours of the last one.
const KEPT = "berth.colours";

const given = new Map();
const taken = new Array(COLOURS).fill(0);

function remember() {
  let known;
  try {
    known = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  } catch {
    // Not ours: begin anew.
    known = [];
  }
  for (const [name, colour] of Array.isArray(known) ? known.filter(Array.isArray) : []) {
    if (Number.isInteger(colour) && colour >= 0 && colour < COLOURS) give(String(name), colour);
  }
}

function give(name, colour) {
  given.set(name, colour);
  taken[colour] += 1;
}

remember();

/// FNV-1a, so that a name starts at the same colour everywhere.
function hash(name) {
  let state = 0x811c9dc5;
  for (let at = 0; at < name.length; at += 1) {
    state = Math.imul(state ^ name.charCodeAt(at), 0x01000193);
  }
  return state >>> 0;
}

/// Gives these namespaces their colours, in the order of their names, so that it does not matter which of them came first.
export function meet(namespaces) {
  const fresh = [...namespaces].filter((name) => !given.has(name)).sort();
  fresh.forEach(slot);
  if (fresh.length > 0) sessionStorage.setItem(KEPT, JSON.stringify([...given].slice(0, MOST_KEPT)));
}

/// The number of a namespace's colour: where its name leads, or the next one that fewer namespaces have.
function slot(name) {
  const known = given.get(name);
  if (known !== undefined) return known;
  const first = hash(name) % COLOURS;
  const least = Math.min(...taken);
  let found = first;
  while (taken[found] !== least) found = (found + 1) % COLOURS;
  give(name, found);
  return found;
}

/// The colour of a share, as CSS. Pods that may not be seen are grey.
export function colour(share, highlighted) {
  if (share.others !== undefined || share.namespace === undefined) return "var(--share-others)";
  if (highlighted !== undefined && highlighted !== share.namespace) return "var(--share-dim)";
  return `var(--share-${slot(share.namespace)})`;
}
