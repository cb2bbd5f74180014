// Several questions side by side, remembered by this browser tab alone and forgotten at the log-out.
import { button, make } from "./elements.js";

const KEY = "drafts";

export class Drafts {
  constructor(root, { first, opened }) {
    Object.assign(this, { root, opened });
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
    this.drafts = kept?.drafts?.length ? kept.drafts : [{ sql: first, built: null, way: "build", link: null }];
    this.current = Math.min(kept?.current ?? 0, this.drafts.length - 1);
    this.paint();
  }

  get draft() { return this.drafts[this.current]; }

  update(changes) {
    Object.assign(this.draft, changes);
    this.keep();
  }

  keep() { sessionStorage.setItem(KEY, JSON.stringify({ drafts: this.drafts, current: this.current })); }

  add(draft) {
    this.drafts.push({ sql: "", built: null, way: "sql", link: null, ...draft });
    this.show(this.drafts.length - 1);
  }

  show(place) {
    this.current = place;
    this.keep();
    this.paint();
    this.opened(this.draft);
  }

  close(place) {
    if (this.drafts.length === 1) return;
    this.drafts.splice(place, 1);
    this.show(Math.min(this.current > place ? this.current - 1 : this.current, this.drafts.length - 1));
  }

  paint() {
    const many = this.drafts.length > 1;
    this.root.replaceChildren(make("ul", { "aria-label": "Questions" }, this.drafts.map((_, place) => make("li", {},
      button(`Question ${place + 1}`, () => this.show(place), { "aria-current": place === this.current ? "true" : null, class: "draft" }),
      many ? button("×", () => this.close(place), { class: "plain", "aria-label": `Close question ${place + 1}` }) : null)),
    make("li", {}, button("+", () => this.add({}), { class: "plain", "aria-label": "New question" }))));
  }
}
