// SQL cut into words, for colors and completion, and YAML cut likewise for the policy.
export const KEYWORDS = ("select from where group by order having limit as and or not in is null between like case when then else end "
  + "join inner left on using union all distinct with exists asc desc over partition cast interval date timestamp true false").split(" ");
export const FUNCTIONS = ("COUNT SUM AVG MEDIAN MIN MAX VAR_SAMP STDDEV QUANTILE_CONT MODE COVAR_SAMP CORR CLAMP ROUND FLOOR CEIL ABS "
  + "LEAST GREATEST COALESCE DATE_TRUNC EXTRACT YEAR MONTH UPPER LOWER LENGTH").split(" ");

const SQL = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([A-Za-z_][\w$]*)|(\s+)|([\s\S])/gi;
const YAML = /(#[^\n]*)|('(?:[^'\n]|'')*'?|"(?:[^"\n]|\\")*"?)|([\w-]+(?=\s*:))|(-?\d[\d.e-]*(?=[\s,\]}]|$))|(\s+)|([\s\S][^\s#'"\w]*)/g;

// [{text, at, kind}] without gaps.
export function sqlWords(text) {
  return Array.from(text.matchAll(SQL), (found) => {
    const [whole, comment, string, quoted, number, name] = found;
    const word = name?.toLowerCase();
    const call = name && /^\s*\(/.test(text.slice(found.index + whole.length, found.index + whole.length + 8));
    const kind = comment ? "comment" : string ? "string" : quoted ? "name" : number ? "number"
      : name ? (KEYWORDS.includes(word) ? "keyword" : call ? "function" : "name") : "";
    return { text: whole, at: found.index, kind };
  });
}

export function yamlWords(text) {
  return Array.from(text.matchAll(YAML), ([whole, comment, string, key, number], place) => {
    const kind = comment ? "comment" : string ? "string" : key ? "keyword" : number ? "number" : "";
    return { text: whole, at: 0, kind, place };
  });
}

export function offsetOf(text, line, column) {
  let at = 0;
  for (let number = 1; number < line; number++) {
    const end = text.indexOf("\n", at);
    if (end < 0) break;
    at = end + 1;
  }
  return Math.min(text.length, at + Math.max(0, column - 1));
}

// The word or call that stands at an offset: [from, to].
export function spanAt(text, offset) {
  const words = sqlWords(text);
  const place = words.findIndex((word) => offset >= word.at && offset < word.at + word.text.length && word.text.trim());
  if (place < 0) return [Math.max(0, text.trimEnd().length - 1), text.trimEnd().length];
  const word = words[place];
  let to = word.at + word.text.length;
  if (word.kind === "function") {
    let depth = 0;
    for (const each of words.slice(place + 1)) {
      if (each.text === "(") depth++;
      if (each.text === ")" && --depth === 0) { to = each.at + 1; break; }
    }
  }
  return [word.at, to];
}

export function lineSpan(text, offset) {
  const end = text.indexOf("\n", offset);
  const to = end < 0 ? text.length : end;
  return [offset, Math.max(to, offset + 1)];
}

export const quoteName = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) && !KEYWORDS.includes(name) ? name : `"${name.replaceAll('"', '""')}"`);
export const quoteText = (text) => `'${text.replaceAll("'", "''")}'`;
