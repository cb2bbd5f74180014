// A text area above its own colors: what is typed is a plain text area's, so that keys, screen readers and phones know it.
import { make } from "./elements.js";

export class Editor {
  constructor({ label, words, rows = 6, changed }) {
    this.words = words;
    this.marks = [];
    this.colors = make("pre", { class: "colors", "aria-hidden": true });
    this.area = make("textarea", { "aria-label": label, rows, spellcheck: "false", autocapitalize: "none", autocomplete: "off", wrap: "soft" });
    this.root = make("div", { class: "editor" }, this.colors, this.area);
    this.changed = changed;
    this.area.addEventListener("input", () => { this.marks = []; this.paint(); this.changed?.(this.text); });
    this.area.addEventListener("scroll", () => { this.colors.scrollTop = this.area.scrollTop; });
    this.paint();
  }

  get text() { return this.area.value; }

  set text(value) {
    if (value === this.area.value) return;
    this.area.value = value;
    this.marks = [];
    this.paint();
  }

  // Replaces a part as if it were typed, so that undo takes it back.
  replace(from, to, text) {
    this.area.focus();
    this.area.setSelectionRange(from, to);
    if (!document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, from, to, "end");
      this.area.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  // Underlines parts: [[from, to]].
  mark(spans) {
    this.marks = spans;
    this.area.setAttribute("aria-invalid", spans.length ? "true" : "false");
    this.paint();
  }

  paint() {
    const parts = [];
    let at = 0;
    for (const word of this.words(this.text)) {
      const end = at + word.text.length;
      let from = at;
      for (const [begin, until] of this.marks) {
        if (begin >= end || until <= from) continue;
        if (begin > from) parts.push([this.text.slice(from, begin), word.kind, false]);
        parts.push([this.text.slice(Math.max(begin, from), Math.min(until, end)), word.kind, true]);
        from = Math.min(until, end);
      }
      if (from < end) parts.push([this.text.slice(from, end), word.kind, false]);
      at = end;
    }
    this.colors.replaceChildren(...parts.map(([text, kind, wrong]) => {
      const names = [kind ? `w-${kind}` : "", wrong ? "underline" : ""].join(" ").trim();
      return names ? make("span", { class: names }, text) : text;
    }), "\n");
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(Math.max(this.area.scrollHeight + 2, 80), 600)}px`;
  }

  // Where a letter stands, in pixels from the editor's corner.
  placeOf(offset) {
    const walker = document.createTreeWalker(this.colors, NodeFilter.SHOW_TEXT);
    let left = offset;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (left <= node.length) {
        const range = document.createRange();
        range.setStart(node, left);
        range.setEnd(node, left);
        const [box, own] = [range.getBoundingClientRect(), this.root.getBoundingClientRect()];
        return { left: box.left - own.left, top: box.bottom - own.top };
      }
      left -= node.length;
    }
    return { left: 0, top: 0 };
  }
}
