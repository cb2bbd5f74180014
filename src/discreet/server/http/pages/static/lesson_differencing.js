// Two harmless questions whose difference is one person's income; and the same with noise.
import { laplace, laplaceMargin } from "./chance.js";
import { numbers } from "./axis.js";
import { bars } from "./chart.js";
import { button, make, tableOf } from "./elements.js";
import { short } from "./numbers.js";
import { slider } from "./slider.js";

const PEOPLE = [["Ada", 1961, 41_200], ["Bea", 1974, 38_900], ["Carla", 1980, 52_300], ["Dora", 1985, 47_750], ["Edith", 1990, 33_100],
  ["Flora", 1992, 61_400], ["Karrie", 1993, 56_274], ["Grace", 1996, 29_800], ["Hanna", 1999, 44_650], ["Ines", 2001, 35_500]];
const HIGHEST = 200_000;
const sum = (people) => people.reduce((total, [, , income]) => total + income, 0);

export function differencing(root) {
  const state = { epsilon: 1, noise: null };
  const told = make("div", { "aria-live": "polite" });
  const drawn = make("div");
  const others = PEOPLE.filter(([name]) => name !== "Karrie");

  function ask() {
    const scale = HIGHEST / state.epsilon;
    state.noise = [laplace(scale), laplace(scale)];
    paint();
  }

  function paint() {
    const [all, but] = [sum(PEOPLE), sum(others)];
    const scale = HIGHEST / state.epsilon;
    const money = (value) => Math.round(value).toLocaleString("en-US").replace("-", "−");
    const reached = (value) => Math.ceil(value).toLocaleString("en-US"); // a margin is rounded up
    const margin = 4.12 * scale; // 95 % of the difference of two such noises: exp(-t) (1 + t / 2) = 0.05
    const noisy = state.noise && [all + state.noise[0], but + state.noise[1]];
    told.replaceChildren(tableOf(["question", "exact", "noisy"], [
      ["SELECT SUM(income) FROM women", money(all), noisy ? `${money(noisy[0])} ± ${reached(laplaceMargin(scale))}` : "–"],
      ["SELECT SUM(income) FROM women WHERE born <> 1993", money(but), noisy ? `${money(noisy[1])} ± ${reached(laplaceMargin(scale))}` : "–"],
      ["the difference: Karrie's income", money(all - but), noisy ? `${money(noisy[0] - noisy[1])} ± ${reached(margin)}` : "–"]], { caption: "Two questions and their difference", numeric: [1, 2] }),
    make("p", { class: noisy ? "good" : "bad" }, noisy ? "With noise the difference says nothing: its margin is larger than any income." : "Both answers are about many people. Their difference is about one, to the cent."));
    if (!noisy) { drawn.replaceChildren(); return; }
    const difference = noisy[0] - noisy[1];
    const reach = Math.abs(difference) + margin;
    drawn.replaceChildren(bars([{ name: "exact difference", value: all - but, text: money(all - but), color: 1 },
      { name: "noisy difference", value: difference, low: difference - margin, high: difference + margin, text: `± ${reached(margin)}`, color: 9 }],
    numbers(Math.min(-reach, 0), reach, "Karrie's income, as the attacker computes it"), "The difference, exact and noisy"));
  }

  root.append(make("h2", {}, "Differencing"),
    make("p", {}, "An attacker knows that Karrie is the only woman here who was born in 1993. The attacker asks two questions; neither is about her alone."),
    make("details", {}, make("summary", {}, "The made-up women"), tableOf(["name", "born", "income"], PEOPLE.map(([name, born, income]) => [name, String(born), income.toLocaleString("en-US")]), { caption: "The made-up women", numeric: [1, 2] })),
    slider("ε of each answer", { least: 0.05, most: 1, value: state.epsilon }, (value) => { state.epsilon = value; if (state.noise) ask(); }),
    make("div", { class: "row-of" }, button("Ask with noise", ask), button("Ask exactly", () => { state.noise = null; paint(); })), told, drawn);
  paint();
}
