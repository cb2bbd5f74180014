// Elements made by code: texts are texts, never markup.
const NOTICED = 8_000; // milliseconds that a notice stays
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export const make = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const draw = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// Places an element by the object model: the pages' security policy allows no style attribute.
export function placed(element, styles) {
  for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value);
  return element;
}

export const button = (text, act, attributes = {}) => make("button", { type: "button", onclick: act, ...attributes }, text);

export function field(label, control, note = "") {
  control.id ||= `f${Math.random().toString(36).slice(2)}`;
  return make("div", { class: "field" }, make("label", { for: control.id }, label), control,
    note ? make("span", { class: "soft small" }, note) : null);
}

export function choice(values, chosen, act) {
  const control = make("select", { onchange: () => act?.(control.value) },
    values.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
  return control;
}

export function tableOf(heads, rows, { caption = "", numeric = [] } = {}) {
  const side = (place) => (numeric.includes(place) ? "n" : null);
  return make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption || "Table" }, make("table", {},
    make("thead", {}, make("tr", {}, heads.map((head, place) => make("th", { scope: "col", class: side(place) }, head)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, place) => make("td", { class: side(place) }, cell)))))));
}

export function notice(text, { bad = false } = {}) {
  const box = document.getElementById("notices");
  const line = make("div", { class: bad ? "notice wrong" : "notice" }, make("span", {}, text),
    button("×", () => line.remove(), { class: "plain", "aria-label": "Close" }));
  box.replaceChildren(line);
  if (!bad) setTimeout(() => line.remove(), NOTICED);
}

export function later(wait, act) {
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}
