// Many answers to one question: their mean finds the truth, and the budget is what stops it.
import { laplace, laplaceMargin } from "./chance.js";
import { numbers } from "./axis.js";
import { bars, plot } from "./chart.js";
import { button, make } from "./elements.js";
import { marginText, short } from "./numbers.js";
import { slider } from "./slider.js";

const TRUTH = 41;
const BUDGET = 1;
const MANY = 200;

export function composition(root) {
  const state = { epsilon: 0.1, answers: [], ledger: true };
  const told = make("div", { "aria-live": "polite" });
  const drawn = make("div");
  const ask = button("Ask once", () => add(1));
  const askMany = button(`Ask ${MANY} times`, () => add(MANY));
  const stop = make("input", { type: "checkbox", id: "with-ledger", checked: true });
  stop.addEventListener("change", () => { state.ledger = stop.checked; reset(); });

  const fits = () => Math.floor(BUDGET / state.epsilon + 1e-9);
  function add(times) {
    for (let i = 0; i < times; i++) {
      if (state.ledger && state.answers.length >= fits()) break;
      state.answers.push(TRUTH + laplace(1 / state.epsilon));
    }
    paint();
  }

  function reset() { state.answers = []; paint(); }

  function paint() {
    const count = state.answers.length;
    const spent = count * state.epsilon;
    const over = state.ledger && count >= fits();
    ask.disabled = over;
    askMany.disabled = over;
    const limit = state.ledger ? BUDGET : Math.max(BUDGET, spent);
    const parts = [make("h3", {}, "Budget"), bars([{ name: "spent", value: spent, low: spent, high: limit, text: `${short(spent)} of ${state.ledger ? BUDGET : "no limit"}`, color: spent > BUDGET ? 1 : 0 }], numbers(0, limit, "ε"), "Budget")];
    if (count > 1) {
      let sum = 0;
      const means = state.answers.map((value, i) => { sum += value; return [i + 1, sum / (i + 1)]; });
      const values = [...means.map(([, value]) => value), TRUTH];
      const [low, high] = [Math.min(...values), Math.max(...values)];
      parts.push(make("h3", {}, "Mean of the answers so far"), plot([{ name: "mean", color: 0, points: means }, { name: "truth", color: 2, kind: "dash", points: [[1, TRUTH], [count, TRUTH]] }],
        numbers(1, count, "answers"), numbers(Math.min(low, TRUTH - 1), Math.max(high, TRUTH + 1), "number of ill people"), "Mean of answers against their number"));
    }
    drawn.replaceChildren(...parts);
    const mean = state.answers.reduce((sum, value) => sum + value, 0) / Math.max(1, count);
    const lines = [`Each answer costs ε = ${short(state.epsilon)}. In 95 of 100 answers the noise is at most ${marginText(laplaceMargin(1 / state.epsilon))}.`];
    if (count) lines.push(`${count} ${count === 1 ? "answer" : "answers"}: mean ${short(mean)}, off by about ${short(Math.SQRT2 / state.epsilon / Math.sqrt(count))}. In all ε = ${short(spent)}.`);
    if (over) lines.push("The budget is spent: nothing more is answered. That is what the ledger is for.");
    if (!state.ledger && spent > 5) lines.push("Without a ledger the mean comes close to the truth: at this total ε nobody is hidden any more.");
    told.replaceChildren(...lines.map((line) => make("p", {}, line)));
  }

  root.append(make("h2", {}, "How a budget is spent"),
    make("p", {}, "Somebody asks the same question again and again. If every answer had fresh noise, the noise would average out. The losses add up, so a budget limits them. (The real system gives the same answer to the same question, for free; this page pretends that it does not.)"),
    slider("ε of each answer", { least: 0.02, most: 0.5, value: state.epsilon }, (value) => { state.epsilon = value; reset(); }),
    make("div", { class: "row-of" }, ask, askMany, button("Begin again", reset), make("span", {}, stop, " ", make("label", { for: "with-ledger" }, `a ledger allows ε = ${BUDGET} in all`))),
    told, drawn);
  paint();
}
