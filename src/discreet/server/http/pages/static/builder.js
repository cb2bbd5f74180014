// A question for those who write no SQL: table, measure, by, where. What it makes is shown as SQL.
import { button, choice, field, make } from "./elements.js";
import { quoteName, quoteText } from "./sql_words.js";

const MEASURES = [["count", "Number of rows"], ["AVG", "Mean of"], ["SUM", "Sum of"], ["MEDIAN", "Median of"], ["STDDEV", "Spread of"]];
const COMPARISONS = [["=", "is"], ["<>", "is not"], [">=", "at least"], ["<=", "at most"]];

const mayBeAsked = (column) => column.groups !== "never";
const hasNumbers = (column) => /^(bigint|numeric|double)/.test(column.type);
const isMeasure = (column) => hasNumbers(column) && column.range !== null && mayBeAsked(column);
const isTime = (column) => /^(date|timestamp)/.test(column.type);

// Ways to group by a column: [[value, label, expression]].
function groupings(column) {
  if (!mayBeAsked(column)) return [];
  const name = quoteName(column.name);
  if (isTime(column)) {
    return ["month", "week", "day", "year"].map((part) => [`${column.name}:${part}`, `${column.name}, by ${part}`, `DATE_TRUNC('${part}', ${name})`]);
  }
  if (isMeasure(column)) {
    const width = Number(column.range[1]) - Number(column.range[0]);
    const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, width / 5))));
    return [[`${column.name}:${step}`, `${column.name}, in steps of ${step.toLocaleString("en-US")}`, `FLOOR(${name} / ${step}) * ${step}`]];
  }
  return [[column.name, column.name, name]];
}

function aliasOf(value) {
  return quoteName(value.replace(":", "_"));
}

function literal(column, value) {
  const text = String(value);
  if (hasNumbers(column) && /^-?\d+(\.\d+)?$/.test(text)) return text;
  if (column.type === "boolean") return text === "true" ? "TRUE" : "FALSE";
  return quoteText(text);
}

export class Builder {
  constructor(root, tables, changed) {
    Object.assign(this, { root, changed });
    this.tables = tables.filter((table) => !table.public);
    this.state = { table: this.tables[0]?.name, measure: "count", of: null, by: ["", ""], where: [] };
    this.paint();
  }

  get table() { return this.tables.find((table) => table.name === this.state.table); }

  column(name) { return this.table.columns.find((column) => column.name === name); }

  sql() {
    const { measure, of, by, where } = this.state;
    if (!this.table) return "";
    const ways = this.table.columns.flatMap(groupings);
    const keys = by.map((value) => ways.find(([known]) => known === value)).filter(Boolean)
      .map(([value, , expression]) => ({ alias: aliasOf(value), expression }));
    const value = measure === "count" ? "COUNT(*) AS n" : `${measure}(${quoteName(of)}) AS ${quoteName(`${measure.toLowerCase()}_${of}`)}`;
    const plain = ({ alias, expression }) => (alias === expression ? expression : `${expression} AS ${alias}`);
    const tests = where.filter((test) => test.value !== "").map((test) => {
      const column = this.column(test.column);
      return `${quoteName(test.column)} ${test.comparison} ${literal(column, test.value)}`;
    });
    return [`SELECT ${[...keys.map(plain), value].join(", ")}`, `FROM ${quoteName(this.table.name)}`,
      tests.length ? `WHERE ${tests.join(" AND ")}` : "",
      keys.length ? `GROUP BY ${keys.map(({ alias }) => alias).join(", ")}` : "",
      keys.length ? `ORDER BY ${keys.map(({ alias }) => alias).join(", ")}` : ""].filter(Boolean).join("\n");
  }

  change(changes, repaint = true) {
    Object.assign(this.state, changes);
    if (repaint) this.paint();
    this.changed(this.sql());
  }

  paint() {
    const { state, table } = this;
    if (!table) { this.root.replaceChildren(make("p", {}, "The policy has no private tables.")); return; }
    const numbers = table.columns.filter(isMeasure);
    const measures = numbers.length ? MEASURES : MEASURES.slice(0, 1);
    const ways = [["", "nothing"], ...table.columns.flatMap(groupings)];
    const focus = document.activeElement?.dataset?.part;
    const part = (name, control) => { control.dataset.part = name; return control; };
    this.root.replaceChildren(make("div", { class: "builder" },
      field("Table", part("table", choice(this.tables.map(({ name }) => [name, name]), table.name,
        (name) => this.change({ table: name, measure: "count", of: null, by: ["", ""], where: [] })))),
      field("What", part("what", choice(measures, state.measure, (measure) => this.change({ measure, of: measure === "count" ? null : (state.of ?? numbers[0].name) })))),
      state.measure === "count" ? null
        : field("of", part("of", choice(numbers.map(({ name }) => [name, name]), state.of, (of) => this.change({ of })))),
      field("By", part("by", choice(ways, state.by[0], (way) => this.change({ by: [way, way ? state.by[1] : ""] })))),
      state.by[0] ? field("and by", part("by2", choice(ways.filter(([way]) => way !== state.by[0]), state.by[1], (way) => this.change({ by: [state.by[0], way] })))) : null,
      ...state.where.map((test, place) => this.condition(test, place)),
      table.columns.some(mayBeAsked) ? button("Add a condition", () => this.change({ where: [...state.where, { column: table.columns.find(mayBeAsked).name, comparison: "=", value: "" }] }), { class: "plain", "data-part": "add" }) : null));
    if (focus) this.root.querySelector(`[data-part="${focus}"]`)?.focus();
  }

  condition(test, place) {
    const columns = this.table.columns.filter(mayBeAsked);
    const column = this.column(test.column);
    const change = (changes, repaint) => this.change({ where: this.state.where.map((each, at) => (at === place ? { ...each, ...changes } : each)) }, repaint);
    const date = column.type === "date" ? "date" : "text";
    const value = column.values
      ? choice([["", "…"], ...column.values.map((each) => [String(each), String(each)])], test.value, (given) => change({ value: given }))
      : make("input", { type: date, value: test.value, maxlength: 200, min: date === "date" ? column.range?.[0] : null, max: date === "date" ? column.range?.[1] : null });
    if (!column.values) value.addEventListener("input", () => change({ value: value.value }, false));
    value.setAttribute("aria-label", `Value of condition ${place + 1}`);
    const where = choice(columns.map(({ name }) => [name, name]), test.column, (name) => change({ column: name, value: "" }));
    const how = choice(column.values ? COMPARISONS.slice(0, 2) : COMPARISONS, test.comparison, (comparison) => change({ comparison }));
    where.setAttribute("aria-label", `Column of condition ${place + 1}`);
    how.setAttribute("aria-label", `Comparison of condition ${place + 1}`);
    return make("div", { class: "condition" }, make("span", {}, place ? "and" : "where"), where, how, value,
      button("×", () => this.change({ where: this.state.where.filter((_, at) => at !== place) }), { class: "plain", "aria-label": `Remove condition ${place + 1}` }));
  }
}
