// An answer: its table with ±, its chart, what it cost, its link and its files.
import { days, moment, numbers } from "./axis.js";
import { bars, plot } from "./chart.js";
import { button, make, notice, tableOf } from "./elements.js";
import { decimalText, marginText, valueText } from "./numbers.js";

const MOST_BARS = 60;
const MOST_LINES = 5;
const MOST_ROWS = 500;

const isTime = (type) => /^(date|timestamp)/.test(type);

function measuresOf(answer) {
  return answer.columns.map((_, place) => place).filter((place) => answer.margins.some((row) => row[place] !== null));
}

// How far a quantile may be off, in ranks; or the range, where its group may be so small that it could be any of it.
function rankText(answer, place, at) {
  const found = answer.ranks?.[answer.columns[place]];
  if (found === undefined || answer.rows[at][place] === null) return null;
  if (found.told[at] === false && found.range) return ` in [${found.range.join(", ")}]`;
  return ` ± ${found.ranks.toLocaleString("en-US")} rank${found.ranks === 1 ? "" : "s"}`;
}

function table(answer) {
  const without = answer.certificate?.without_margin ?? {};
  const measures = measuresOf(answer);
  const numeric = answer.columns.map((_, place) => place).filter((place) => measures.includes(place) || /int|float|double|decimal/.test(answer.types[place]));
  const rows = answer.rows.slice(0, MOST_ROWS).map((row, at) => row.map((value, place) => {
    const margin = answer.margins[at][place];
    const number = typeof value === "string" && numeric.includes(place) ? decimalText(value, margin) : valueText(value, margin);
    const ranks = rankText(answer, place, at);
    if (ranks !== null) return make("span", {}, number, make("span", { class: "pm" }, ranks));
    if (margin === null && !(answer.columns[place] in without && value !== null)) return number;
    const small = margin !== null && Math.abs(Number(value)) <= margin;
    return make("span", { class: small ? "pale" : null, title: small ? "not larger than its margin" : null }, number, make("span", { class: "pm" }, ` ± ${marginText(margin)}`));
  }));
  return make("div", {}, tableOf(answer.columns, rows, { caption: "Answer", numeric }),
    answer.rows.length > MOST_ROWS ? make("p", { class: "soft" }, `The first ${MOST_ROWS} of ${answer.rows.length.toLocaleString("en-US")} rows; the files below have all.`) : null);
}

export function chart(answer, measure) {
  const measures = measuresOf(answer);
  const keys = answer.columns.map((_, place) => place).filter((place) => !measures.includes(place));
  const place = measure ?? measures[0];
  if (place === undefined || keys.length < 1 || keys.length > 2) return null;
  const time = keys.find((key) => isTime(answer.types[key]));
  const first = time ?? keys[0];
  const second = keys.find((key) => key !== first);
  const points = answer.rows.map((row, at) => ({ key: row[first], series: second === undefined ? "" : valueText(row[second]), value: Number(row[place]), margin: answer.margins[at][place] }))
    .filter((point) => point.margin !== null && Number.isFinite(point.value) && point.key !== null | time === undefined);
  if (points.length < 2) return null;
  const lows = points.map((point) => point.value - point.margin);
  const highs = points.map((point) => point.value + point.margin);
  const scale = numbers(Math.min(0, ...lows), Math.max(0, ...highs), answer.columns[place]);
  const label = `${answer.columns[place]} by ${keys.map((key) => answer.columns[key]).join(" and ")}`;
  const kinds = [...new Set(points.map((point) => point.series))];
  if (time !== undefined && kinds.length <= MOST_LINES) {
    const moments = points.map((point) => moment(point.key));
    const across = days(Math.min(...moments), Math.max(...moments), answer.columns[first]);
    const curves = kinds.map((name, color) => ({ name, color, points: points.filter((point) => point.series === name)
      .map((point) => [moment(point.key), point.value, point.value - point.margin, point.value + point.margin]).sort((a, b) => a[0] - b[0]) }));
    return figure(answer.columns[place], "with its 95 % margin as a band", plot(curves, across, scale, label));
  }
  if (points.length > MOST_BARS) return null;
  const rows = points.map((point, at) => ({
    name: [valueText(point.key), point.series].filter(Boolean).join(" · "), value: point.value, low: lows[at], high: highs[at],
    text: `${valueText(point.value, point.margin)} ± ${marginText(point.margin)}`, color: Math.abs(point.value) <= point.margin ? 9 : 0,
  }));
  const pale = rows.some((row) => row.color === 9) ? "; grey: not larger than its margin" : "";
  return figure(answer.columns[place], `with its 95 % margin as a line${pale}`, bars(rows, scale, label));
}

const figure = (title, note, content) => make("figure", {}, make("figcaption", {}, `${title} `, make("span", {}, note)), content);

// Tabs as the patterns of ARIA have them: arrows move between them.
function tabs(label, parts) {
  const id = `t${Math.random().toString(36).slice(2)}`;
  const heads = parts.map(([name], place) => make("button", { type: "button", role: "tab", id: `${id}-${place}`, "aria-controls": `${id}-panel-${place}` }, name));
  const panels = parts.map(([, content], place) => make("div", { role: "tabpanel", id: `${id}-panel-${place}`, "aria-labelledby": `${id}-${place}` }, content));
  const choose = (chosen, focus) => heads.forEach((head, place) => {
    head.setAttribute("aria-selected", place === chosen ? "true" : "false");
    head.tabIndex = place === chosen ? 0 : -1;
    panels[place].hidden = place !== chosen;
    if (place === chosen && focus) head.focus();
  });
  heads.forEach((head, place) => {
    head.addEventListener("click", () => choose(place, false));
    head.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (move) choose((place + move + heads.length) % heads.length, true);
    });
  });
  choose(0, false);
  return make("div", { class: "tabs" }, make("div", { role: "tablist", "aria-label": label }, heads), panels);
}

export function answerView(answer) {
  const drawn = measuresOf(answer).map((place) => chart(answer, place)).filter(Boolean);
  const parts = [["Table", table(answer)], ["Certificate", make("pre", { tabindex: 0 }, JSON.stringify(answer.certificate, null, 2))]];
  if (drawn.length) parts.splice(0, 0, ["Chart", make("div", {}, drawn)]);
  const link = `${location.origin}/?answer=${encodeURIComponent(answer.link)}`;
  const share = button("Copy the link", async () => {
    await navigator.clipboard.writeText(link).then(() => notice("The link is copied. Whoever may log in can open it."),
      () => notice(link));
  });
  const files = ["csv", "json", "arrow", "parquet"].map((format) => make("a", { href: `/api/v1/answers/${encodeURIComponent(answer.link)}?format=${format}`, download: `answer.${format}` }, format));
  return make("div", {}, make("h2", {}, "Answer"), make("ul", { class: "notes soft small" }, answer.notes.map((note) => make("li", {}, note.replaceAll("   ", " · ")))),
    tabs("Views of the answer", parts),
    make("div", { class: "share" }, share, make("span", { class: "soft" }, "Download:"), files));
}
