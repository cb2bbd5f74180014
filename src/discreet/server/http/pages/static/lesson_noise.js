// Two towns that differ in one person, and how alike their noisy answers are.
import { numbers } from "./axis.js";
import { plot } from "./chart.js";
import { coin, laplace, laplaceDensity, laplaceMargin } from "./chance.js";
import { button, make } from "./elements.js";
import { marginText, short } from "./numbers.js";
import { slider } from "./slider.js";

const WITHOUT = 41;
const ANSWERS = 400;
const CELLS = 24;

export function noise(root) {
  const state = { epsilon: 0.5, last: null };
  const drawn = make("div");
  const told = make("div", { "aria-live": "polite" });
  const many = make("div");

  function paint() {
    const scale = 1 / state.epsilon;
    const reach = Math.max(6, 3.2 * scale);
    const even = Array.from({ length: 161 }, (_, i) => WITHOUT + 0.5 - reach + (2 * reach * i) / 160);
    const places = [...even, WITHOUT, WITHOUT + 1].sort((a, b) => a - b); // with both peaks
    const curve = (center) => places.map((x) => [x, laplaceDensity(x - center, scale)]);
    const across = numbers(places[0], places.at(-1), "noisy number of ill people");
    const up = numbers(0, laplaceDensity(0, scale), "how likely");
    const curves = [{ name: `without Karrie: ${WITHOUT} are ill`, color: 0, points: curve(WITHOUT) }, { name: `with Karrie: ${WITHOUT + 1}`, color: 1, points: curve(WITHOUT + 1) }];
    if (state.last !== null) curves.push({ name: "an answer", color: 2, kind: "dash", points: [[state.last, 0], [state.last, up.high]] });
    drawn.replaceChildren(plot(curves, across, up, "How likely each noisy answer is, with and without Karrie"));
    const sure = Math.exp(state.epsilon) / (1 + Math.exp(state.epsilon));
    told.replaceChildren(
      make("p", {}, `At ε = ${short(state.epsilon)} every answer is at most ${marginText(Math.exp(state.epsilon))} times as likely with Karrie as without. Somebody who sees one answer and guesses whether she is ill is right at most ${marginText(100 * sure)} times in a hundred. In 95 of 100 answers the noise is at most ${marginText(laplaceMargin(scale))}.`),
      state.last === null ? make("p", { class: "soft" }, "Draw an answer, and guess which town it came from.")
        : make("p", {}, `The answer ${short(state.last)} is ${short(ratio(state.last, scale))} times as likely with Karrie as without.`));
  }

  function sample() {
    const scale = 1 / state.epsilon;
    const reach = Math.max(6, 3.2 * scale);
    const low = WITHOUT + 0.5 - reach;
    const rows = [WITHOUT, WITHOUT + 1].map((center, color) => {
      const counts = new Array(CELLS).fill(0);
      for (let i = 0; i < ANSWERS; i++) {
        const cell = Math.floor(CELLS * (center + laplace(scale) - low) / (2 * reach));
        if (cell >= 0 && cell < CELLS) counts[cell]++;
      }
      return { name: color ? "with Karrie" : "without Karrie", color, kind: "column", opacity: 0.55, points: counts.map((count, cell) => [low + (2 * reach * cell) / CELLS, count, low + (2 * reach * (cell + 1)) / CELLS]) };
    });
    const top = Math.max(...rows.flatMap((row) => row.points.map(([, count]) => count)));
    many.replaceChildren(make("h3", {}, `${ANSWERS} answers from each town`), plot(rows, numbers(low, low + 2 * reach, "noisy number"), numbers(0, top, "answers"), "Answers of both towns"));
  }

  root.append(make("h2", {}, "Noise, and what ε means"),
    make("p", {}, "Two towns are the same, except for one person: Karrie, who is ill. Each town publishes a noisy count of ill people. With a smaller ε it is harder to tell the two towns apart, and the margin is wider."),
    slider("ε", { least: 0.05, most: 4, value: state.epsilon }, (value) => { state.epsilon = value; state.last = null; many.replaceChildren(); paint(); }),
    make("div", { class: "row-of" }, button("Draw an answer", () => { state.last = WITHOUT + (coin(0.5) ? 1 : 0) + laplace(1 / state.epsilon); paint(); }), button(`Draw ${ANSWERS} of each`, sample)),
    told, drawn, many);
  paint();
}

const ratio = (x, scale) => laplaceDensity(x - WITHOUT - 1, scale) / laplaceDensity(x - WITHOUT, scale);
