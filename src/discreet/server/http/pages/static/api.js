// Requests to the API of this host: who is logged in, one shape of errors, and what to do when the network is lost.
const ROOT = "/api/v1";
let csrf = null;

export class Refusal extends Error {
  constructor(status, error) {
    super(error.sentence);
    this.status = status;
    Object.assign(this, { kind: error.kind, hint: error.hint, line: error.line, column: error.column });
    this.problems = error.problems ?? [];
  }
}

export class Offline extends Error {
  constructor() {
    super("The server cannot be reached. Nothing is lost: ask again when it is back, and it is charged once.");
  }
}

async function send(method, path, { body, headers = {}, signal } = {}) {
  const options = { method, headers: { Accept: "application/json", ...headers }, signal, credentials: "same-origin" };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  if (method !== "GET" && csrf !== null) options.headers["X-CSRF-Token"] = csrf;
  let reply;
  try {
    reply = await fetch(ROOT + path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Offline();
  }
  if (reply.status === 204) return null;
  const told = await reply.json().catch(() => ({}));
  if (!reply.ok) {
    const error = told.error ?? { kind: "internal", sentence: "The server's answer cannot be read." };
    if (reply.status === 401 && path !== "/login") toLogin();
    throw new Refusal(reply.status, error);
  }
  return told;
}

export function toLogin() {
  const here = location.pathname + location.search;
  location.assign(`/login?expired=1&next=${encodeURIComponent(here)}${location.hash}`);
}

export const get = (path, options) => send("GET", path, options);
export const post = (path, body, options) => send("POST", path, { body, ...options });
export const put = (path, body) => send("PUT", path, { body });
export const remove = (path) => send("DELETE", path);

export async function openSession() {
  const session = await get("/session");
  csrf = session.csrf;
  document.getElementById("logout")?.addEventListener("click", logOut);
  return session;
}

async function logOut() {
  sessionStorage.clear();
  try {
    await post("/logout", {});
  } finally {
    location.assign("/login");
  }
}

// Follows a job until it ends; `told` is handed what is being read and how much of it is done.
export function follow(job, told) {
  return new Promise((resolve, reject) => {
    const events = new EventSource(`${ROOT}/jobs/${encodeURIComponent(job.id)}/events`);
    const end = (then) => (event) => { events.close(); then(JSON.parse(event.data)); };
    events.addEventListener("progress", (event) => { const at = JSON.parse(event.data); told(at.of, at.share); });
    events.addEventListener("done", end(resolve));
    events.addEventListener("failed", end((content) => reject(new Refusal(500, content.error))));
    events.onerror = () => { if (events.readyState === EventSource.CLOSED) reject(new Offline()); };
  });
}
