// The login: where it leads to is a path of this host, whatever the address says.
import { post } from "./api.js";

const form = document.getElementById("login");
const refusal = document.getElementById("refusal");
const query = new URLSearchParams(location.search);

function tell(text) {
  refusal.textContent = text;
  refusal.hidden = false;
}

function next() {
  const wanted = query.get("next") ?? "/";
  const known = /^\/(curate|learn)?(\?[\w=&%-]*)?$/.test(wanted);
  return known ? wanted + (/^#\w+$/.test(location.hash) ? location.hash : "") : "/"; // a page's part stands behind #
}

if (query.has("expired")) tell("Your session has ended. Log in to go on where you were.");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  refusal.hidden = true;
  try {
    await post("/login", { user: form.user.value, password: form.password.value });
    location.assign(next());
  } catch (error) {
    tell(error.hint ? `${error.message} ${error.hint}` : error.message);
    form.password.select();
  }
});
form.user.focus();
