// Numbers as people read them. A margin is rounded up: one that is told must hold.
export function rational(text) {
  const [over, under = "1"] = String(text).split("/");
  return Number(over) / Number(under);
}

export function short(value) {
  if (value === null || !Number.isFinite(value)) return "?";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toPrecision(3).replace(/\.?0+(e|$)/, "$1").replace("e+", "e").replace("-", "−");
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en-US", { maximumFractionDigits: Math.min(digits, 8) }).replace("-", "−");
}

export function marginText(margin) {
  if (margin === null || margin === undefined) return "?";
  if (Number.isInteger(margin)) return margin.toLocaleString("en-US");
  const digits = Math.max(0, 2 - Math.floor(Math.log10(margin)));
  const unit = 10 ** digits;
  return short(Math.ceil(margin * unit - 1e-6) / unit);
}

// As many digits as the margin leaves worth reading.
export function valueText(value, margin) {
  if (value === null) return "–";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value !== "number") return String(value);
  if (margin === null || margin === undefined) return Number.isInteger(value) ? plain(value) : short(value);
  const places = margin > 0 ? Math.max(0, 1 - Math.floor(Math.log10(margin))) : 4;
  return value.toLocaleString("en-US", { maximumFractionDigits: Number.isInteger(value) ? 0 : Math.min(places, 8) })
    .replace("-", "−");
}

// A decimal comes as a text, so that no digit is lost.
export function decimalText(text, margin) {
  const value = Number(text);
  if (margin !== null && Math.abs(value) < 2 ** 53) return valueText(value, margin);
  const [whole, part] = text.split(".");
  const digits = whole.replace("-", "");
  const told = digits.length > 4 ? digits.replace(/\B(?=(\d{3})+$)/g, ",") : digits;
  return `${whole.startsWith("-") ? "−" : ""}${told}${part === undefined ? "" : `.${part}`}`;
}

const plain = (value) => (Math.abs(value) < 10_000 ? String(value) : value.toLocaleString("en-US")).replace("-", "−");

export const amount = (budget) => (budget.rho === null ? budget.epsilon : budget.rho);

export function budgetText(budget) {
  const delta = budget.delta ? `, δ = ${short(budget.delta)}` : "";
  const rho = budget.rho === null ? "" : ` (ρ = ${short(budget.rho)})`;
  return `ε = ${short(budget.epsilon)}${delta}${rho}`;
}

// How many more questions of this price fit; rounded down, and unknown where nothing is paid.
export function timesMore(cost, left) {
  if (!amount(cost)) return null;
  const byDelta = cost.delta && cost.rho === null ? left.delta / cost.delta : Infinity;
  return Math.floor(Math.min(amount(left) / amount(cost), byDelta) + 1e-9);
}
