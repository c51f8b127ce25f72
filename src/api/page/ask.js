// Asks the API, as the person whose token this tab keeps.

/// Relative, so that the page also works behind the API server's proxy.
const API = new URL("../api/v1/", document.baseURI);

const KEPT = "berth.token";

/// The longest silence of the stream of changes; a comment comes every 15 s.
const SILENCE = 45_000;
const SHORTEST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;
/// The most that is kept of a message that does not end.
const LONGEST_MESSAGE = 65_536;

/// An answer that is none: the status is 0 where the API can't be reached.
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function keepToken(token) {
  if (token) sessionStorage.setItem(KEPT, token);
  else sessionStorage.removeItem(KEPT);
}

export function hasToken() {
  return sessionStorage.getItem(KEPT) !== null;
}

/// The token goes into two headers, since the API server's proxy removes the first.
function headers() {
  const token = sessionStorage.getItem(KEPT);
  return token === null ? {} : { Authorization: `Bearer ${token}`, "X-Berth-Token": token };
}

async function answer(parts, signal, query) {
  if (parts.some((part) => part === "" || part === "." || part === "..")) throw new Refusal(404, "there is nothing of this name");
  let found;
  try {
    const place = new URL(parts.map(encodeURIComponent).join("/"), API);
    place.search = new URLSearchParams(query);
    found = await fetch(place, { headers: headers(), cache: "no-store", credentials: "same-origin", redirect: "error", signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "Berth can't be reached");
  }
  if (found.ok) return found;
  let message = `Berth answers with status ${found.status}`;
  try {
    const told = await found.json();
    if (typeof told.message === "string") message = told.message;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    // A proxy in between has answered, and not with JSON: the status says enough.
  }
  throw new Refusal(found.status, message);
}

/// What the API answers at this path, given as its parts, to this query, given as an object.
export async function ask(parts, signal, query = {}) {
  const found = await answer(parts, signal, query);
  try {
    return await found.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "the answer can't be read");
  }
}

/// Calls `changed` when the cluster has changed, and `told` with `live` or `reconnecting`. It stays connected until `stop` of what it
/// returns is called.
export function follow(changed, told) {
  let wait = SHORTEST_WAIT;
  let timer;
  let connection;
  let stopped = false;

  async function connect() {
    connection = new AbortController();
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => connection.abort(), SILENCE);
    };
    try {
      heard();
      const stream = await answer(["changes"], connection.signal, {});
      told("live");
      // What happened before is in no message.
      changed();
      await read(stream.body.pipeThrough(new TextDecoderStream()).getReader(), heard);
    } catch (error) {
      // Why it ended does not matter: the view says why it can't be read, and the stream is tried again.
      if (stopped) return;
    } finally {
      clearTimeout(silence);
    }
    if (stopped) return;
    told("reconnecting");
    timer = setTimeout(connect, wait * (0.5 + Math.random() / 2));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }

  async function read(reader, heard) {
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      wait = SHORTEST_WAIT;
      const messages = (rest + value).split("\n\n");
      rest = messages.pop();
      if (rest.length > LONGEST_MESSAGE) throw new Refusal(0, "a message does not end");
      if (messages.some((message) => /^event: ?change\r?$/m.test(message))) changed();
    }
  }

  connect();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
      connection.abort();
    },
  };
}
