// Bars with error bars and lines with bands, in the drawing that discreet.pages makes, whose style sheet they share.
import { draw, make, placed } from "./elements.js";

const WIDE = 1000;
const ROW = 10;
const LONG = 8;
const GAP = 2;
const DENSE = 44; // letters and gaps that a phone has room for

function ticksBelow(axis, atEdge) {
  const letters = axis.ticks.reduce((sum, [, text]) => sum + text.length + GAP, 0);
  return make("div", { class: letters > DENSE ? "ticks dense" : "ticks" }, axis.ticks.map(([value, text], place) => {
    const share = axis.at(value);
    const long = text.length > LONG;
    const side = share < 0.02 && long ? "first" : share > 0.95 && (long || atEdge) ? "last" : "";
    const inner = place > 0 && place < axis.ticks.length - 1;
    const spare = !inner ? "" : place % 2 ? "spare" : "half";
    return placed(make("span", { class: `${side} ${spare}`.trim() }, text), { left: `${(100 * share).toFixed(2)}%` });
  }));
}

export function legend(names) {
  const sample = (kind) => (kind === "fill" ? draw("rect", { class: "fill", width: 20, height: 10 })
    : draw("path", { class: kind, d: "M0 5H20" }));
  return make("div", { class: "legend" }, names.map(([name, color, kind]) => make("span", {},
    make("i", { class: `c${color}` }, draw("svg", { viewBox: "0 0 20 10", "aria-hidden": true, preserveAspectRatio: "none" }, sample(kind))), name)));
}

// rows: [{name, value, low, high, text, color}]
export function bars(rows, axis, label) {
  const lines = axis.ticks.map(([value]) => `M${WIDE * axis.at(value)} 0V${ROW}`).join("");
  const zero = WIDE * axis.at(0);
  const parts = rows.map((row) => {
    const at = WIDE * axis.at(row.value);
    const ends = row.low === undefined ? [] : [WIDE * axis.at(row.low), WIDE * axis.at(row.high)];
    const reach = ends.length ? `M${ends[0]} 5H${ends[1]}${ends.map((end) => `M${end} 3v4`).join("")}` : "";
    const spoken = `${row.name}: ${row.text ?? row.value}`;
    return [
      make("div", { class: "name" }, row.name),
      make("div", { class: "row" }, draw("svg", { class: "track", viewBox: `0 0 ${WIDE} ${ROW}`, preserveAspectRatio: "none", role: "img", "aria-label": spoken },
        draw("title", {}, spoken), draw("path", { class: "rule", d: lines }),
        axis.low <= 0 && axis.high >= 0 ? draw("path", { class: "zero", d: `M${zero} 0V${ROW}` }) : null,
        draw("g", { class: `c${row.color ?? 0}` },
          draw("rect", { class: "fill", x: Math.min(at, zero), y: 1.5, width: Math.abs(at - zero), height: ROW - 3 }),
          reach ? draw("path", { class: "error", d: reach }) : null))),
      make("div", { class: "value" }, row.text ?? ""),
    ];
  });
  return make("div", { class: "bars", role: "group", "aria-label": label }, parts, make("div"), ticksBelow(axis, false),
    make("div"), axis.title ? make("div", { class: "title" }, axis.title) : null);
}

// curves: [{name, color, points: [[x, y, low, high]], kind: "line" | "dash" | "step" | "spot" | "column"}]
export function plot(curves, across, up, label) {
  const x = (value) => (WIDE * across.at(value)).toFixed(1);
  const y = (value) => (WIDE * (1 - up.at(value))).toFixed(1);
  const floor = up.low <= 0 && up.high >= 0 ? 0 : up.low;
  const shapes = [
    draw("path", { class: "rule", d: up.ticks.map(([value]) => `M0 ${y(value)}H${WIDE}`).join("") }),
    draw("path", { class: "zero", d: `M0 ${y(floor)}H${WIDE}${across.ticks.map(([value]) => `M${x(value)} ${WIDE}v12`).join("")}` }),
    curves.map((curve) => draw("g", { class: `c${curve.color}` }, band(curve, x, y))),
    curves.map((curve) => draw("g", { class: `c${curve.color}` }, shape(curve, x, y, floor))),
  ];
  const named = curves.filter((curve) => curve.name);
  const kinds = { column: "fill", dash: "line dash", step: "line", spot: "spot" };
  const widest = up.ticks.reduce((best, [, text]) => (text.length > best.length ? text : best), "");
  const key = named.length > 1 ? legend(named.map((curve) => [curve.name, curve.color, kinds[curve.kind] ?? "line"])) : null;
  const marks = up.ticks.map(([value, text]) => placed(make("span", {}, text), { bottom: `${(100 * up.at(value)).toFixed(2)}%` }));
  return make("div", {}, key, make("div", { class: "plot" },
    up.title ? make("div", { class: "title" }, up.title) : null,
    make("div", { class: "up" }, make("b", { "aria-hidden": true }, widest), marks),
    make("div", { class: "area" }, draw("svg", { viewBox: `0 0 ${WIDE} ${WIDE}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, shapes)),
    make("div"), ticksBelow(across, true),
    across.title ? make("div", { class: "title across" }, across.title) : null));
}

// Bands lie below all lines.
function band(curve, x, y) {
  const { kind, points } = curve;
  if (kind === "column" || kind === "spot" || !points.length || points[0].length < 4) return null;
  const high = points.map(([at, , , top]) => `${x(at)} ${y(top)}`).join("L");
  const low = [...points].reverse().map(([at, , bottom]) => `${x(at)} ${y(bottom)}`).join("L");
  return draw("path", { class: "band", d: `M${high}L${low}Z` });
}

function shape(curve, x, y, floor) {
  const points = curve.points;
  if (curve.kind === "spot") {
    return points.map(([at, value]) => draw("path", { class: "spot", d: `M${x(at)} ${y(value)}h.01` }));
  }
  if (curve.kind === "column") {
    return points.map(([at, value, until]) => draw("rect", { class: "fill", x: x(at), width: Math.max(0, x(until) - x(at)),
      y: Math.min(y(value), y(floor)), height: Math.abs(y(floor) - y(value)), "fill-opacity": curve.opacity ?? 1 }));
  }
  const path = curve.kind === "step"
    ? points.map(([at, value], place) => (place ? `H${x(at)}V${y(value)}` : `M${x(at)} ${y(value)}`)).join("")
    : `M${points.map(([at, value]) => `${x(at)} ${y(value)}`).join("L")}`;
  return draw("path", { class: curve.kind === "dash" ? "line dash" : "line", d: path });
}
