// Completion from the policy: tables, columns of the tables that are named, values of the column before, functions.
import { make, placed } from "./elements.js";
import { FUNCTIONS, KEYWORDS, quoteName, quoteText, sqlWords } from "./sql_words.js";

const MOST = 8;

export class Completion {
  constructor(editor, tables) {
    this.editor = editor;
    this.tables = tables;
    this.offers = [];
    this.chosen = 0;
    this.list = make("ul", { role: "listbox", id: "offers", class: "offers", "aria-label": "Completions", hidden: true });
    editor.root.append(this.list);
    const { area } = editor;
    area.setAttribute("aria-autocomplete", "list");
    area.setAttribute("aria-controls", "offers");
    area.addEventListener("input", () => this.look(false));
    area.addEventListener("keydown", (event) => this.press(event));
    area.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    area.addEventListener("click", () => this.close());
  }

  press(event) {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); this.look(true); return; }
    if (this.list.hidden) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      event.preventDefault();
      this.chosen = (this.chosen + move + this.offers.length) % this.offers.length;
      this.show();
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.take(this.chosen);
    } else if (event.key === "Escape") { event.preventDefault(); this.close(); }
  }

  look(asked) {
    const { area } = this.editor;
    const before = area.value.slice(0, area.selectionStart);
    const found = /('[^']*|[A-Za-z_][\w$]*)$/.exec(before);
    const word = found ? found[0] : "";
    if (area.selectionStart !== area.selectionEnd || (!asked && word.length < 2 && !word.startsWith("'"))) { this.close(); return; }
    this.from = before.length - word.length;
    const wanted = word.toLowerCase();
    this.offers = this.candidates(before.slice(0, this.from), wanted)
      .filter(({ text }) => text.toLowerCase().startsWith(wanted) && text.toLowerCase() !== wanted).slice(0, MOST);
    this.chosen = 0;
    if (this.offers.length) this.show(); else this.close();
  }

  candidates(before, wanted) {
    const words = sqlWords(before).filter((word) => word.text.trim());
    const last = words.at(-1)?.text.toLowerCase();
    const all = this.tables.flatMap((table) => table.columns.map((column) => ({ table, column })));
    const named = new Set(sqlWords(this.editor.text).map((word) => word.text.toLowerCase()));
    const near = all.filter(({ table }) => named.has(table.name.toLowerCase()));
    if (wanted.startsWith("'")) {
      const name = words.findLast((word) => word.kind === "name")?.text.replaceAll('"', "").toLowerCase();
      const column = (near.length ? near : all).find((each) => each.column.name.toLowerCase() === name)?.column;
      return (column?.values ?? []).map((value) => ({ text: quoteText(String(value)), note: column.name }));
    }
    const tables = this.tables.map((table) => ({ text: quoteName(table.name), note: table.public ? "public table" : "table" }));
    if (last === "from" || last === "join") return tables;
    const columns = (near.length ? near : all).map(({ table, column }) => ({ text: quoteName(column.name), note: `${table.name}: ${column.type}` }));
    const unique = [...new Map(columns.map((each) => [each.text, each])).values()];
    return [...unique, ...tables, ...FUNCTIONS.map((text) => ({ text, note: "function", call: true })),
      ...KEYWORDS.map((text) => ({ text: text.toUpperCase(), note: "" }))];
  }

  show() {
    this.list.replaceChildren(...this.offers.map(({ text, note }, place) => make("li", {
      role: "option", id: `offer-${place}`, "aria-selected": place === this.chosen ? "true" : "false",
      onmousedown: (event) => { event.preventDefault(); this.take(place); },
    }, make("span", {}, text), make("span", { class: "soft small" }, note))));
    const { left, top } = this.editor.placeOf(this.from);
    placed(this.list, { left: `${Math.max(0, left)}px`, top: `${top + 2}px` });
    this.list.hidden = false;
    this.editor.area.setAttribute("aria-activedescendant", `offer-${this.chosen}`);
  }

  take(place) {
    const { text, call } = this.offers[place];
    const to = this.editor.area.selectionStart;
    this.close();
    this.editor.replace(this.from, to, call ? `${text}(` : text);
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.editor.area.removeAttribute("aria-activedescendant");
  }
}
