// Gives each namespace a colour: the same one on every visit, as long as no other namespace that is shown has it already.

/// How many colours `page.css` defines as `--share-0` and so on.
const COLOURS = 10;

const given = new Map();
const taken = new Array(COLOURS).fill(0);

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
  for (const name of [...namespaces].filter((name) => !given.has(name)).sort()) slot(name);
}

/// The number of a namespace's colour: where its name leads, or the next one that fewer namespaces have.
function slot(name) {
  const known = given.get(name);
  if (known !== undefined) return known;
  const first = hash(name) % COLOURS;
  const least = Math.min(...taken);
  let found = first;
  while (taken[found] !== least) found = (found + 1) % COLOURS;
  taken[found] += 1;
  given.set(name, found);
  return found;
}

/// The colour of a share, as CSS. Pods that may not be seen are grey.
export function colour(share, highlighted) {
  if (share.others !== undefined || share.namespace === undefined) return "var(--share-others)";
  if (highlighted !== undefined && highlighted !== share.namespace) return "var(--share-dim)";
  return `var(--share-${slot(share.namespace)})`;
}
