// Users: who may log in; passwords and tokens are told once.
import { get, post, remove } from "./api.js";
import { button, choice, field, make, tableOf } from "./elements.js";

export async function users(root) {
  const told = make("div", { role: "status" });
  const list = make("div");
  const name = make("input", { maxlength: 200, autocomplete: "off", spellcheck: "false", required: true });
  const role = choice([["analyst", "analyst"], ["curator", "curator"], ["auditor", "auditor"]], "analyst");

  async function act(work) {
    told.replaceChildren();
    try {
      const found = await work();
      if (found?.password) once(`Password of ${found.name}, told once:`, found.password);
      if (found?.token) once(`Token of ${found.name}, told once:`, found.token);
      await show();
    } catch (error) {
      told.replaceChildren(make("p", { class: "bad" }, `${error.message} ${error.hint ?? ""}`));
    }
  }
  const once = (text, secret) => told.replaceChildren(make("div", { class: "card" }, text, " ", make("span", { class: "once" }, secret)));

  async function show() {
    const found = await get("/users");
    list.replaceChildren(tableOf(["name", "role", "state", "tokens", "actions"], found.users.map((user) => {
      const path = `/users/${encodeURIComponent(user.name)}`;
      const tokens = user.tokens.map((token) => make("div", {}, token.expires ? `until ${new Date(1000 * token.expires).toISOString().slice(0, 10)} ` : "without end ",
        button("Revoke", () => act(() => remove(`${path}/tokens/${encodeURIComponent(token.id)}`)), { class: "plain danger", "aria-label": `Revoke token ${token.id} of ${user.name}` })));
      const sure = (event) => (event.currentTarget.dataset.sure ? act(() => remove(path))
        : (event.currentTarget.dataset.sure = "1", event.currentTarget.textContent = "Remove: sure?"));
      return [user.name, user.role, user.locked ? "locked" : "may log in", tokens, make("div", { class: "row-of" },
        button(user.locked ? "Unlock" : "Lock", () => act(() => post(`${path}/${user.locked ? "unlock" : "lock"}`, {})), { "aria-label": `${user.locked ? "Unlock" : "Lock"} ${user.name}` }),
        button("New token", () => act(() => post(`${path}/tokens`, { days: 30 })), { "aria-label": `New token for ${user.name}, for 30 days` }),
        button("Remove", sure, { class: "danger", "aria-label": `Remove ${user.name}` }))];
    }), { caption: "Users" }));
  }

  root.append(make("h2", {}, "Users"), make("form", { class: "row-of", onsubmit: (event) => { event.preventDefault(); act(() => post("/users", { name: name.value, role: role.value })); } },
    field("Name", name), field("Role", role), make("button", { type: "submit" }, "Let in")),
  make("p", { class: "soft small" }, "An analyst is one whom the policy names; curators and auditors have any name."), told, list);
  await show();
}
