// Makes elements. What comes from the cluster becomes text or the value of an attribute, never markup.

/// An element, such as `element("a.name", { href: "#/" }, "Fleet")`. Attributes and children that are undefined, null or false are left out;
/// `on` holds listeners, and `style` properties of CSS.
export function element(kind, attributes, ...children) {
  const [tag, ...classes] = kind.split(".");
  const made = document.createElement(tag);
  if (classes.length > 0) made.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, amount] of Object.entries(value)) made.style.setProperty(property, amount);
    } else if (isThere(value)) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children.flat(2).filter(isThere));
  return made;
}

function isThere(value) {
  return value !== undefined && value !== null && value !== false;
}

/// Puts children into an element in place of those it has, by the rules of `element`.
export function refill(parent, ...children) {
  parent.replaceChildren(...children.flat(2).filter(isThere));
}

/// A name from the cluster, which can't change the direction of the text around it.
export function named(text) {
  return element("bdi.named", null, text);
}

/// A link to a view, by the parts of its address.
export function link(parts, ...children) {
  return element("a.name", { href: address(parts) }, ...children);
}

export function address(parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/// A table. Each column is `{ head, kind }`, and each row an array of as many cells. On a phone every cell stands below its head.
export function table(caption, columns, rows) {
  const heads = columns.map(({ head, kind }) => element(`th.${kind ?? "text"}`, { role: "columnheader", scope: "col" }, head));
  const cell = (content, at) => {
    const { head, kind } = columns[at];
    return element(`td.${kind ?? "text"}`, { role: "cell", "data-head": head }, content);
  };
  const row = (cells) => element("tr", { role: "row" }, cells.map(cell));
  return element(
    "table",
    { role: "table", "aria-label": caption },
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, heads)),
    element("tbody", { role: "rowgroup" }, rows.map(row)),
  );
}

/// A list of facts, of which `short` ones stand side by side. Those whose value is absent are left out.
export function facts(length, pairs) {
  const there = pairs.filter(([, value]) => isThere(value));
  return element(`dl.facts.${length}`, null, there.map(([name, value]) => element("div", null, element("dt", null, name), element("dd", null, value))));
}

/// The title of a view, with what kind of thing it is about.
export function heading(kind, name, ...more) {
  return element("div.heading", null, element("p.kind", null, kind), element("h1", { tabindex: "-1" }, named(name)), ...more);
}

export function panel(title, ...children) {
  return element("section.panel", null, element("h2", null, title), ...children);
}

/// Whether two answers of the API say the same.
export function same(one, other) {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => same(one[key], other[key]));
}
