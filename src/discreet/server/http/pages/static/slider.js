// A slider on which equal factors are equally far apart, with its number beside it.
import { field, make } from "./elements.js";
import { short } from "./numbers.js";

const STEPS = 100;

export function slider(label, { least, most, value, linear = false, unit = "" }, act) {
  const at = linear ? (value - least) / (most - least) : Math.log(value / least) / Math.log(most / least);
  const shown = make("output", {}, short(value) + unit);
  const control = make("input", { type: "range", min: 0, max: STEPS, value: Math.round(STEPS * at) });
  const read = () => {
    const share = control.value / STEPS;
    return linear ? least + share * (most - least) : Number((least * (most / least) ** share).toPrecision(2));
  };
  control.setAttribute("aria-valuetext", short(value) + unit);
  control.addEventListener("input", () => {
    const now = read();
    shown.textContent = short(now) + unit;
    control.setAttribute("aria-valuetext", short(now) + unit);
    act(now);
  });
  return make("div", { class: "row-of" }, field(label, control), shown);
}
