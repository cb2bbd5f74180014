// Releases and publications: their prices before anything is charged, how far they are, and the buttons that go on.
import { get } from "./api.js";
import { button, make, tableOf } from "./elements.js";
import { budgetText, marginText, short } from "./numbers.js";
import { task } from "./upkeep.js";

const count = (number) => number.toLocaleString("en-US");
const KINDS = {
  releases: {
    price: releasePrice,
    before: "Not started yet.",
    reached: (told) => `Published ${count(told.published)} of ${told.periods === null ? "an unknown number of" : count(told.periods)} periods, for ${budgetText(told.cost)}.`,
    acts: [["Start", "Charges the release once, for all its periods.", "start"], ["Run", "Publishes every period that is over.", "run"]],
  },
  publications: {
    price: publicationPrice,
    before: "Not made from this snapshot yet.",
    reached: (told) => `Made: ${told.levels.map(({ level, places }) => `${level} ${count(places)}`).join(", ")}; tables ${told.tables.join(", ")}.`,
    acts: [["Run", "Makes the tables for one charge. Making them again is free.", "run"]],
  },
};

export async function publishing(root) {
  for (const [kind, title] of [["releases", "Releases"], ["publications", "Publications"]]) {
    const { names } = await get(`/${kind}`);
    root.append(make("h2", {}, title), names.length ? "" : make("p", { class: "soft" }, "The policy has none."));
    for (const name of names) root.append(await one(kind, name));
  }
}

async function one(kind, name) {
  const path = `/${kind}/${encodeURIComponent(name)}`;
  const told = make("div", { "aria-live": "polite" });
  const state = make("p", { class: "soft" });
  const price = button("Price", async () => {
    try {
      told.replaceChildren(...KINDS[kind].price(await get(`${path}/quote`)));
    } catch (error) {
      told.replaceChildren(make("p", { class: "bad" }, `${error.message} ${error.hint ?? ""}`));
    }
  }, { "aria-label": `Price of ${name}` });

  async function look() {
    try {
      state.replaceChildren(KINDS[kind].reached(await get(path)), " ",
        make("a", { href: `/api/v1${path}/page`, target: "_blank", rel: "noopener" }, `Page of ${name}`));
    } catch (error) {
      state.replaceChildren(error.kind === "usage" ? KINDS[kind].before : error.message);
    }
  }

  await look();
  const done = () => { look(); return make("p", { class: "good" }, "Done."); };
  return make("div", { class: "one" }, make("h3", {}, name), state, make("div", { class: "row-of" }, price), told,
    KINDS[kind].acts.map(([title, note, act]) => task(title, note, `${path}/${act}`, done, `${title} ${name}`)));
}

const paid = (quote) => make("p", {}, `Costs ${budgetText(quote.cost)}, once; left ${budgetText(quote.left)}. Looking at the price is free.`);

function releasePrice(quote) {
  const rows = quote.margins.map(({ publish, statistic, margins }) => [statistic, typeof publish === "number" ? `over ${publish} periods` : publish,
    ...[margins[0], margins.at(-1), Math.max(...margins)].map((margin) => `± ${marginText(margin)}`)]);
  return [paid(quote), tableOf(["what", "published", "first", "last", "widest"], rows, { caption: "Margins of 95 %", numeric: [2, 3, 4] }),
    make("p", { class: "soft small" }, `These are 95 % margins of the noise. Strategy: ${quote.strategy}.`)];
}

function publicationPrice(quote) {
  const rows = quote.errors.map((each) => [each.level, each.table, count(each.places), count(each.cells), short(each.deviation)]);
  return [paid(quote), tableOf(["level", "table", "places", "cells of each", "error of a cell"], rows, { caption: "Errors by level and table", numeric: [2, 3, 4] }),
    make("p", { class: "soft small" }, `An error is one standard deviation. ${quote.invariants}`)];
}
