// Releases and publications: their prices, their pages, and the buttons that start and run them.
import { get } from "./api.js";
import { button, make } from "./elements.js";
import { task } from "./upkeep.js";

export async function publishing(root) {
  const [releases, publications] = [(await get("/releases")).names, (await get("/publications")).names];
  root.append(make("h2", {}, "Releases"), releases.length ? "" : make("p", { class: "soft" }, "The policy has none."));
  for (const name of releases) root.append(one("releases", name, [["Start", "Charges it once, for its whole horizon.", "start"], ["Run", "Publishes every period that is over.", "run"]]));
  root.append(make("h2", {}, "Publications"), publications.length ? "" : make("p", { class: "soft" }, "The policy has none."));
  for (const name of publications) root.append(one("publications", name, [["Run", "Makes it, for one charge; again it is free.", "run"]]));
}

function one(kind, name, acts) {
  const path = `/${kind}/${encodeURIComponent(name)}`;
  const told = make("div", { "aria-live": "polite" });
  const price = button("Price", async () => {
    try {
      told.replaceChildren(make("pre", { tabindex: 0 }, JSON.stringify(await get(`${path}/quote`), null, 2)));
    } catch (error) {
      told.replaceChildren(make("p", { class: "bad" }, `${error.message} ${error.hint ?? ""}`));
    }
  }, { "aria-label": `Price of ${name}` });
  return make("div", {}, make("h3", {}, name), make("div", { class: "row-of" }, price,
    make("a", { href: `/api/v1${path}/page`, target: "_blank", rel: "noopener" }, `Page of ${name}`)), told,
  acts.map(([title, note, act]) => task(title, note, `${path}/${act}`, () => make("p", { class: "good" }, "Done."))));
}
