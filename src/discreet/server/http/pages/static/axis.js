// Axes: from where to where a chart goes, and which round numbers or days are written on it.
const MOST_TICKS = 5;
const DAY = 86_400_000;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const within = (share) => Math.min(1, Math.max(0, share));

export function numbers(low, high, title = "") {
  if (!(high > low)) [low, high] = low ? [low - 1, high + 1] : [0, 1];
  const rough = (high - low) / (MOST_TICKS - 1);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => unit * factor).find((size) => size >= rough * (1 - 1e-9));
  const ticks = [];
  for (let place = Math.ceil(low / step - 1e-9); place <= Math.floor(high / step + 1e-9); place++) {
    ticks.push([place * step, written(place * step, step)]);
  }
  return { low, high, ticks, title, at: (value) => within((value - low) / (high - low)) };
}

function written(value, step) {
  if (Math.abs(value) < step * 1e-9) return "0";
  if (Math.max(Math.abs(value), step) >= 1e9) return value.toExponential(1).replace("e+", "e").replace("-", "−");
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const digits = places + (Math.abs(step * 10 ** places - Math.round(step * 10 ** places)) > 1e-9 ? 1 : 0);
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
}

export function logarithmic(low, high, ticks, title = "") {
  const span = Math.log(high / low);
  return {
    low, high, title, ticks: ticks.filter(([value]) => value >= low * 0.999 && value <= high * 1.001),
    at: (value) => within(Math.log(Math.max(value, low) / low) / span),
  };
}

// Ticks at 1, 2 and 5 times powers of ten, or at the powers alone where those are many.
export function decades(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of Math.log10(high / low) > 1.5 ? [1] : [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) found.push([value, value.toLocaleString("en-US", { maximumSignificantDigits: 2 })]);
    }
  }
  return found;
}

export const moment = (text) => Date.parse(/T|\d \d/.test(text) ? `${text.replace(" ", "T").replace(/Z?$/, "Z")}` : text);

export function days(first, last, title = "") {
  const high = last > first ? last : first + DAY;
  const found = calendars(first, high).find((ticks) => ticks.length >= 2 && ticks.length <= MOST_TICKS);
  const ticks = found ?? [...new Set([first, last])].map((at) => [at, high - first < DAY ? clock(at) : iso(at)]);
  return { low: first, high, ticks, title, at: (value) => within((value - first) / (high - first)) };
}

const clock = (at) => (at % DAY === 0 ? iso(at) : new Date(at).toISOString().slice(11, 16));
const iso = (at) => new Date(at).toISOString().slice(0, 10);

function* steps(first, last, size) {
  for (let at = Math.ceil(first / size) * size; at <= last; at += size) yield at;
}

function calendars(first, last) {
  const found = [];
  for (const hours of [1 / 60, 1 / 12, 1 / 4, 1 / 2, 1, 3, 6, 12]) {
    if ((last - first) / (hours * 3_600_000) > 2 * MOST_TICKS) continue;
    found.push([...steps(first, last, hours * 3_600_000)].map((at) => [at, clock(at)]));
  }
  for (const size of [1, 2, 7, 14]) {
    if ((last - first) / (size * DAY) <= MOST_TICKS) found.push([...steps(first, last, size * DAY)].map((at) => [at, iso(at)]));
  }
  const [from, to] = [new Date(first).getUTCFullYear(), new Date(last).getUTCFullYear()];
  const inside = ([at]) => at >= first && at <= last;
  for (const months of [1, 2, 3, 6]) {
    const ticks = [];
    for (let year = from; year <= to; year++) {
      for (let month = 0; month < 12; month += months) ticks.push([Date.UTC(year, month, 1), `${MONTHS[month]} ${year}`]);
    }
    found.push(ticks.filter(inside));
  }
  for (const years of [1, 2, 5, 10, 20, 50, 100]) {
    const ticks = [];
    for (let year = from; year <= to; year++) if (year % years === 0) ticks.push([Date.UTC(year, 0, 1), String(year)]);
    found.push(ticks.filter(inside));
  }
  return found;
}
