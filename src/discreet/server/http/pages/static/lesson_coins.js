// Randomized response: people toss a coin before they answer, and the share is estimated all the same.
import { coin } from "./chance.js";
import { numbers } from "./axis.js";
import { bars } from "./chart.js";
import { button, make } from "./elements.js";
import { short } from "./numbers.js";
import { slider } from "./slider.js";

const PEOPLE = 300;

export function coins(root) {
  const state = { truth: 0.5, share: 0.2, answers: [] };
  const crowd = make("div", { class: "people", role: "img" });
  const told = make("div", { "aria-live": "polite" });
  const drawn = make("div");

  function ask() {
    const yes = Math.round(state.share * PEOPLE);
    state.answers = Array.from({ length: PEOPLE }, (_, i) => (coin(state.truth) ? i < yes : coin(0.5)));
    paint();
  }

  function paint() {
    const said = state.answers.filter(Boolean).length;
    const rate = said / PEOPLE;
    const estimate = (rate - (1 - state.truth) / 2) / state.truth;
    const margin = 1.96 * Math.sqrt(Math.max(rate * (1 - rate), 0.01) / PEOPLE) / state.truth;
    const epsilon = Math.log((1 + state.truth) / (1 - state.truth));
    crowd.replaceChildren(...state.answers.map((yes) => make("span", { class: yes ? "person yes" : "person" })));
    crowd.setAttribute("aria-label", `${said} of ${PEOPLE} said yes`);
    const percent = (share) => `${short(100 * share)} %`;
    const axis = numbers(Math.min(0, 100 * (estimate - margin)), Math.max(60, 100 * (estimate + margin)), "% who smoke");
    drawn.replaceChildren(bars([
      { name: "said yes", value: 100 * rate, text: percent(rate), color: 9 },
      { name: "estimate", value: 100 * estimate, low: 100 * (estimate - margin), high: 100 * (estimate + margin), text: `${percent(estimate)} ± ${short(100 * margin)}` },
      { name: "truth", value: 100 * state.share, text: percent(state.share), color: 2 }], axis, "What was said, what is estimated, and the truth"));
    const belief = (state.share * (1 + state.truth)) / (state.share * (1 + state.truth) + (1 - state.share) * (1 - state.truth));
    told.replaceChildren(make("p", { class: "soft small" }, `A square is a person, and a colored one said yes. The first ${Math.round(state.share * PEOPLE)} smoke.`),
      make("p", {}, `ε = ${short(epsilon)} for each person. Of all people ${percent(state.share)} smoke; of those who say yes, ${percent(belief)}.`));
  }

  root.append(make("h2", {}, "Coins: privacy without trust"),
    make("p", {}, "“Do you smoke?” Everybody tosses a coin in secret. It tells some of them to answer the truth. The others toss a second coin, and say yes for heads and no for tails. So a yes proves nothing about one person, and the share of all can still be computed."),
    make("div", { class: "pair" },
      slider("share who answer the truth", { least: 0.1, most: 0.95, value: state.truth, linear: true }, (value) => { state.truth = value; ask(); }),
      slider("share who smoke", { least: 0.02, most: 0.6, value: state.share, linear: true }, (value) => { state.share = value; ask(); })),
    make("div", { class: "row-of" }, button("Ask all again", ask)), crowd, told, drawn);
  ask();
}
