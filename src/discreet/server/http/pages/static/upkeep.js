// Check and snapshot: long work with its progress.
import { follow, post } from "./api.js";
import { button, make } from "./elements.js";

export async function upkeep(root) {
  root.append(make("h2", {}, "Check and snapshot"),
    task("Check", "Compares the policy with its source. Costs nothing.", "/check", checked),
    task("Take a snapshot", "Reads the source again, as a new snapshot. After it every question is charged again, even if the data did not change. The report is for your eyes only.", "/snapshot", taken));
}

export function task(name, note, path, show, label = name) {
  const bar = make("progress", { max: 1, "aria-label": `Progress of ${label}`, hidden: true });
  const now = make("span", { class: "soft small" });
  const result = make("div", { "aria-live": "polite" });
  const start = button(name, async () => {
    start.disabled = true;
    bar.hidden = false;
    bar.removeAttribute("value");
    result.replaceChildren();
    try {
      const job = await post(path, {});
      const told = await follow(job, (of, share) => { bar.value = share; now.textContent = `${of}: ${Math.round(100 * share)} %`; });
      result.replaceChildren(...[show(told)].flat());
    } catch (error) {
      result.replaceChildren(make("p", { class: "bad" }, `${error.message} ${error.hint ?? ""}`));
    }
    now.textContent = "";
    bar.hidden = true;
    start.disabled = false;
  }, { "aria-label": label });
  return make("div", { class: "card task" }, make("p", {}, note), make("div", { class: "row-of" }, start, bar, now), result);
}

function checked(told) {
  const problems = told.problems.map((each) => make("li", { class: "bad" }, `${each.line}:${each.column}: ${each.message}`));
  const groups = Object.entries(told.groups).filter(([, notes]) => notes.length).map(([title, notes]) => make("div", {}, make("h3", {}, title), make("ul", {}, notes.map((note) => make("li", {}, note)))));
  return [problems.length ? make("ul", {}, problems) : make("p", { class: "good" }, "The policy fits its source."), ...groups, make("h3", {}, "Next"), make("pre", { tabindex: 0 }, told.next)];
}

function taken(told) {
  return [make("p", { class: "good" }, `Snapshot ${told.number} is taken.`), make("pre", { tabindex: 0 }, told.report.join("\n"))];
}
