// What a question would cost and how wrong it would be, before anything is paid; both follow the slider and the text.
import { decades, logarithmic } from "./axis.js";
import { plot } from "./chart.js";
import { post } from "./api.js";
import { button, field, later, make } from "./elements.js";
import { amount, budgetText, marginText, rational, short, timesMore } from "./numbers.js";

const STEPS = 200;
const ON_CURVE = 7;

function marginsText(margin, name) {
  if (typeof margin === "number") return `${name} ± ${marginText(margin)}`;
  if ("ranks" in margin) return `${name} within ${margin.ranks.toLocaleString("en-US")} ranks`;
  if ("most" in margin) return `${name} ± ${marginText(margin.least)} to ${marginText(margin.most)}`;
  const cases = margin.at_rows.map((rows, place) => `± ${marginText(margin.margin[place])} at ${rows.toLocaleString("en-US")} rows`);
  return `${name} ${cases.join(", ")}`;
}

// One number to draw: the widest, or that of the middle number of rows.
function marginNumber(margin) {
  if (typeof margin === "number") return margin;
  return margin.ranks ?? margin.most ?? margin.margin[Math.floor(margin.margin.length / 2)] ?? null;
}

export class Price {
  constructor(root, { budget, deadline, refused, ask }) {
    Object.assign(this, { root, budget, deadline, refused, ask, sql: "", quote: null, curve: [], number: 0 });
    this.most = Math.max(1e-4, rational(budget.most_per_question));
    this.least = this.most / 1000;
    const begin = budget.per_question ? rational(budget.per_question) : Math.min(0.1, this.most);
    this.slider = make("input", { type: "range", min: 0, max: STEPS, step: 1, oninput: () => this.slid() });
    this.box = make("input", { type: "text", inputmode: "decimal", size: 7, maxlength: 20, oninput: () => this.typed() });
    this.rows = make("input", { type: "number", min: 1, step: 1, oninput: () => this.change() });
    this.go = button("Ask", () => this.ask(), { class: "primary", disabled: true, title: "Ctrl + Enter" });
    this.told = make("div", { class: "told", "aria-live": "polite" });
    this.drawn = make("div", { class: "curve" });
    this.rowsField = field("Rows to assume", this.rows, "for margins of means");
    this.rowsField.hidden = true;
    this.slider.setAttribute("aria-label", "ε, by a slider");
    root.replaceChildren(
      make("div", { class: "pay" }, field("ε", this.box), make("div", { class: "slide" }, this.slider), this.rowsField, this.go),
      this.told, this.drawn);
    this.soon = later(250, () => this.refresh());
    this.curveSoon = later(700, () => this.refreshCurve());
    this.set(begin);
  }

  get epsilon() { return this.box.value.trim(); }

  get assuming() { return this.rows.value ? Number(this.rows.value) : null; }

  get question() {
    return { sql: this.sql, epsilon: this.epsilon, ...(this.assuming ? { assuming: this.assuming } : {}) };
  }

  set(value) {
    this.box.value = String(Number(value.toPrecision(2)));
    this.typed();
  }

  slid() {
    const value = this.least * (this.most / this.least) ** (this.slider.value / STEPS);
    this.box.value = String(Number(value.toPrecision(2)));
    this.describe();
    this.change();
  }

  typed() {
    const value = rational(this.epsilon);
    if (value > 0) this.slider.value = Math.round(STEPS * Math.log(value / this.least) / Math.log(this.most / this.least));
    this.describe();
    this.change();
  }

  describe() { this.slider.setAttribute("aria-valuetext", `ε = ${this.box.value}`); }

  // The text of the question is another one.
  about(sql) {
    if (sql === this.sql) return;
    this.sql = sql;
    this.curve = [];
    this.drawn.replaceChildren();
    this.change();
  }

  change() {
    this.go.disabled = true;
    if (this.sql.trim()) { this.soon(); return; }
    this.number++; // what is on its way is about another text
    this.refused(null);
    this.told.replaceChildren(make("span", { class: "soft" }, "Choose or write a question, and its price is told here."));
  }

  async refresh() {
    if (!this.sql.trim()) return;
    const number = ++this.number;
    const question = this.question;
    try {
      const quote = await post("/quote", question);
      if (number !== this.number) return;
      this.quote = quote;
      this.refused(null);
      this.show(quote);
      this.go.disabled = false;
      if (this.curve.length) this.drawCurve(); else if (!this.deadline) this.curveSoon();
    } catch (error) {
      if (number !== this.number) return;
      this.quote = null;
      this.go.textContent = "Ask";
      this.told.replaceChildren(make("span", { class: "soft" }, "No price: the question is not understood yet."));
      this.drawn.replaceChildren();
      this.refused(error);
    }
  }

  show(quote) {
    const free = !amount(quote.cost);
    const more = timesMore(quote.cost, quote.left);
    const known = quote.statistics.filter((each) => "charge" in each).map((each) => each.name);
    const margins = Object.entries(quote.margins).map(([name, margin]) => make("li", {}, marginsText(margin, name)));
    this.rowsField.hidden = !Object.values(quote.margins).some((margin) => margin.at_rows) && !this.assuming;
    this.go.textContent = free ? "Show: free" : `Ask for ε = ${short(quote.cost.epsilon)}`;
    const price = free ? "Free: answered before, or public." : `Costs ${budgetText(quote.cost)} of ${budgetText(quote.left)} left`;
    const times = free || more === null ? "" : more > 0 ? `; ${more.toLocaleString("en-US")} such questions fit.` : "; more than is left.";
    this.told.replaceChildren(
      make("p", { class: more === 0 ? "bad" : "" }, price + times),
      margins.length ? make("div", {}, "In 95 of 100 such answers the noise is at most:", make("ul", {}, margins)) : "",
      known.length && !free ? make("p", { class: "soft small" }, `Free from earlier answers: ${known.join("; ")}.`) : "",
      (quote.shared_by ?? []).map((people) => make("p", { class: "soft small" }, `A value is shown if about ${people.toLocaleString("en-US")} people share it.`)).at(-1) ?? "",
      ...[...(quote.unlisted ?? []), ...(quote.savings ?? [])].map((each) => make("p", { class: "soft small" }, each)));
  }

  async refreshCurve() {
    const { sql, most } = this;
    const low = most / 100;
    const found = [];
    try {
      for (let place = 0; place < ON_CURVE; place++) {
        const epsilon = Number((low * (most / low) ** (place / (ON_CURVE - 1))).toPrecision(3));
        const quote = await post("/quote", { ...this.question, sql, epsilon: String(epsilon) });
        if (sql !== this.sql) return;
        const [name, margin] = Object.entries(quote.margins)[0] ?? [];
        if (margin !== undefined && amount(quote.cost)) found.push({ name, epsilon, margin: marginNumber(margin), ranks: margin.ranks !== undefined });
      }
    } catch { return; }
    this.curve = found.filter((each) => each.margin > 0);
    this.drawCurve();
  }

  drawCurve() {
    if (this.curve.length < 2) { this.drawn.replaceChildren(); return; }
    const margins = this.curve.map((each) => each.margin);
    const [low, high] = [this.curve[0].epsilon, this.curve.at(-1).epsilon];
    const across = logarithmic(low, high, decades(low, high), "ε");
    const [least, largest] = [Math.min(...margins), Math.max(...margins)];
    const [bottom, top] = largest > least ? [least, largest] : [least / 2, least * 2];
    const { name, ranks } = this.curve[0];
    const up = logarithmic(bottom, top, decades(bottom, top), ranks ? `ranks of ${name}` : `± of ${name}`);
    const line = this.curve.map((each) => [each.epsilon, each.margin]);
    const own = rational(this.epsilon);
    const [, margin] = Object.entries(this.quote?.margins ?? {})[0] ?? [];
    const here = margin !== undefined && own >= low && own <= high ? [[own, marginNumber(margin)]] : [];
    this.drawn.replaceChildren(make("figure", {}, make("figcaption", {}, "Margin against ε ", make("span", {}, "a larger ε gives a smaller margin")),
      plot([{ color: 0, points: line }, { color: 1, points: here, kind: "spot" }], across, up, `Margin of ${name} against ε: ${marginText(largest)} at ε = ${low}, ${marginText(least)} at ε = ${high}`)));
  }
}
