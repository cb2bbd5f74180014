// The curator's page: one part at a time, chosen by the address, so that the back button goes through them.
import { openSession } from "./api.js";
import { make, notice } from "./elements.js";
import { budgets } from "./budgets.js";
import { exposure } from "./exposure.js";
import { ledger } from "./ledger.js";
import { policyEditor } from "./policy_editor.js";
import { publishing } from "./publishing.js";
import { upkeep } from "./upkeep.js";
import { users } from "./users.js";

const PARTS = { budgets, ledger, exposure, upkeep, users, publishing, policy: policyEditor };

async function show() {
  const name = location.hash.slice(1) in PARTS ? location.hash.slice(1) : "budgets";
  for (const link of document.querySelectorAll(".sections a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close(); // the back button leaves it, too
  const root = make("section", { "data-part": name, "aria-busy": "true" });
  document.getElementById("section").replaceChildren(root);
  try {
    await PARTS[name](root);
  } catch (error) {
    root.append(make("p", { class: "bad" }, `${error.message} ${error.hint ?? ""}`));
  }
  root.removeAttribute("aria-busy");
}

addEventListener("hashchange", show);
openSession().then(show, (error) => notice(error.message, { bad: true }));
