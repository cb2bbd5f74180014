// What a refusal's hint offers, as changes of the text that one click makes: [{label, from, to, text}].
import { FUNCTIONS, quoteName, spanAt } from "./sql_words.js";

function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, place) => place);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row.at(-1);
}

function nearest(word, names) {
  const far = names.map((name) => [distance(word.toLowerCase(), name.toLowerCase()), name]).sort((a, b) => a[0] - b[0]);
  return far.filter(([steps]) => steps <= Math.max(2, word.length / 2)).slice(0, 2).map(([, name]) => name);
}

export function remedies(refusal, sql, offset) {
  const hint = refusal.hint ?? "";
  const [from, to] = spanAt(sql, offset);
  const word = sql.slice(from, to);
  const name = /^[\w$]+/.exec(word)?.[0] ?? "";
  const found = [];
  const whole = /(SELECT\b[^.]*\bFROM\b[^.]*)\.?$/.exec(hint)?.[1];
  if (whole && !/\bFROM t\b/.test(whole)) found.push({ label: `Ask ${whole}`, from: 0, to: sql.length, text: whole });
  const listed = /(?:Tables|Columns) are ([^.]+)\./.exec(hint)?.[1]?.split(", ");
  if (listed && name) {
    for (const near of nearest(name, listed)) found.push({ label: `Write ${near}`, from, to: from + name.length, text: quoteName(near) });
  }
  if (/is not a function/.test(refusal.message) && name) {
    for (const near of nearest(name, FUNCTIONS)) found.push({ label: `Write ${near}`, from, to: from + name.length, text: near });
  }
  if (/add it to GROUP BY/.test(hint) && !/\bGROUP\s+BY\b/i.test(sql)) {
    const end = /\s*(\b(?:ORDER\s+BY|HAVING|LIMIT)\b[\s\S]*)?;?\s*$/i.exec(sql).index;
    found.push({ label: `Add GROUP BY ${word}`, from: end, to: end, text: ` GROUP BY ${word}` });
  }
  if (/semicolon/.test(hint)) found.push({ label: "Keep the first statement", from: sql.indexOf(";"), to: sql.length, text: "" });
  const written = /\b[Ww]rite ([A-Z_]+\([^\n]*?\))(?=[,.;]|$)/.exec(hint)?.[1];
  if (written) found.push({ label: `Write ${written}`, from, to, text: written });
  return found;
}
