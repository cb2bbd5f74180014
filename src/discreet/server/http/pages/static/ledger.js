// The ledger: who asked what, searchable, with the certificate of every charge.
import { get } from "./api.js";
import { button, choice, field, later, make, notice, tableOf } from "./elements.js";
import { budgetText } from "./numbers.js";

const PAGE = 50;

export async function ledger(root) {
  const state = { search: "", analyst: "", first: 0 };
  const found = make("div", { "aria-live": "polite" });
  const search = make("input", { type: "search", maxlength: 200, placeholder: "part of a question" });
  const { analysts } = await get("/users");
  const names = [["", "everybody"], ...[...new Set([...analysts, "curator"])].map((name) => [name, name])];

  async function show() {
    const query = new URLSearchParams({ first: state.first, most: PAGE });
    if (state.search) query.set("search", state.search);
    if (state.analyst) query.set("analyst", state.analyst);
    try {
      const told = await get(`/ledger?${query}`);
      found.replaceChildren(...listed(told, state, show));
    } catch (error) {
      found.replaceChildren(make("p", { class: "bad" }, error.message));
    }
  }

  search.addEventListener("input", later(250, () => { state.search = search.value; state.first = 0; show(); }));
  root.append(make("h2", {}, "Ledger"), make("div", { class: "row-of" }, field("Search", search),
    field("Who", choice(names, "", (name) => { state.analyst = name; state.first = 0; show(); }))), found);
  await show();
}

const brief = (text) => make("span", { class: "brief" }, text);

function listed(told, state, show) {
  const rows = told.entries.map((entry) => [entry.id, brief(entry.when.slice(0, 19).replace("T", " ")), entry.analyst,
    make("code", { class: "question" }, entry.question), brief(budgetText(entry.cost)), entry.state,
    button("Certificate", () => certificate(entry.id), { "aria-label": `Certificate of ${entry.id}` })]);
  const move = (by, text) => button(text, () => { state.first += by; show(); },
    { disabled: state.first + by < 0 || state.first + by >= told.total });
  return [make("p", { class: "soft" }, `${told.total.toLocaleString("en-US")} ${told.total === 1 ? "charge" : "charges"}`),
    tableOf(["id", "when", "who", "question", "cost", "state", "audit"], rows, { caption: "Charges" }),
    make("div", { class: "row-of" }, move(-PAGE, "Newer"), move(PAGE, "Older"))];
}

async function certificate(id) {
  try {
    const told = await get(`/ledger/${encodeURIComponent(id)}`);
    const box = make("dialog", { "aria-label": `Certificate of ${id}`, onclose: () => box.remove() }, make("h3", {}, `Certificate of charge ${id}`),
      make("pre", { tabindex: 0 }, JSON.stringify(told, null, 2)), button("Close", () => box.close()));
    document.body.append(box);
    box.showModal();
  } catch (error) {
    notice(error.message, { bad: true });
  }
}
