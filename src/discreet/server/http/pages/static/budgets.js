// Budgets of everybody and of each analyst: what is spent of what, now and over time.
import { get } from "./api.js";
import { days, numbers } from "./axis.js";
import { bars, plot } from "./chart.js";
import { make, tableOf } from "./elements.js";
import { amount, budgetText, short } from "./numbers.js";

const MOST_LINES = 5;

export async function budgets(root) {
  const told = await get("/ledger?most=1000");
  const accounts = [["everybody", told.everybody], ...Object.entries(told.analysts)];
  const unit = told.everybody.limit.rho === null ? "ε" : "ρ";
  const most = Math.max(...accounts.map(([, account]) => amount(account.limit)));
  const rows = accounts.map(([name, account]) => ({
    name, value: amount(account.spent), low: amount(account.spent), high: amount(account.limit),
    text: `${short(amount(account.spent))} of ${short(amount(account.limit))}`,
  }));
  root.append(make("h2", {}, "Budgets"),
    make("figure", {}, make("figcaption", {}, "Spent ", make("span", {}, "the thin line goes to the limit")), bars(rows, numbers(0, most, unit), "Spent by analyst")),
    tableOf(["who", "limit", "spent", "left"], accounts.map(([name, account]) => [name, budgetText(account.limit), budgetText(account.spent), budgetText(account.left)]), { caption: "Budgets" }));
  overTime(root, told, unit);
}

function overTime(root, told, unit) {
  const entries = [...told.entries].reverse().filter((entry) => amount(entry.cost));
  if (!entries.length) { root.append(make("p", { class: "soft" }, "Nothing was spent yet.")); return; }
  const spenders = [...new Set(entries.map((entry) => entry.analyst))].slice(0, MOST_LINES);
  const [first, last] = [Date.parse(entries[0].when), Math.max(Date.now(), Date.parse(entries.at(-1).when) + 60_000)];
  let highest = 0;
  const curves = spenders.map((name, color) => {
    let sum = 0;
    const points = [[first, 0]];
    for (const entry of entries.filter((each) => each.analyst === name)) {
      sum += amount(entry.cost);
      points.push([Date.parse(entry.when), sum]);
    }
    highest = Math.max(highest, sum);
    return { name, color, kind: "step", points: [...points, [last, sum]] };
  });
  const shown = told.total > told.entries.length ? `, the last ${told.entries.length} charges` : "";
  root.append(make("figure", {}, make("figcaption", {}, "Spent over time ", make("span", {}, `by ${spenders.length === 1 ? spenders[0] : "whom"}${shown}`)),
    plot(curves, days(first, last, "when, in UTC"), numbers(0, highest, unit), "Spent over time by analyst")));
}
