// The encoders of discreet.local, for a respondent's browser. Given the same words they send the same reports as the
// Python ones, byte for byte; shared vectors test that. All arithmetic that decides anything is on BigInt.
"use strict";

const Discreet = (() => {
  const WORD = 1n << 64n;

  // Where randomness comes from: the browser's cryptographic generator, in whole 64-bit words, the lowest first.
  const system = {
    bits(k) {
      const words = new BigUint64Array(Math.ceil(k / 64));
      crypto.getRandomValues(words);
      let value = 0n;
      for (let i = words.length - 1; i >= 0; i--) value = (value << 64n) | words[i];
      return value & ((1n << BigInt(k)) - 1n);
    },
  };

  const coin = (source, threshold) => source.bits(64) < threshold;

  function below(source, n) {
    const width = 64 * Math.max(1, Math.ceil(bitLength(n - 1n) / 64));
    const all = 1n << BigInt(width);
    const whole = (all / n) * n;
    for (;;) {
      const drawn = source.bits(width);
      if (drawn < whole) return drawn % n;
    }
  }

  const bitLength = (n) => (n === 0n ? 0 : n.toString(2).length);
  const other = (source, count, place) => {
    const drawn = below(source, count - 1n);
    return drawn + (drawn >= place ? 1n : 0n);
  };

  // Finite fields of g elements, g a prime or a power of two.
  const MODULUS = { 1: 0b11, 2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0b100011011 };
  const binary = (g) => (g & (g - 1)) === 0;
  const add = (a, b, g) => (binary(g) ? a ^ b : (a + b) % g);

  function times(a, b, g) {
    if (!binary(g)) return (a * b) % g;
    const degree = Math.log2(g);
    let product = 0;
    for (let bit = 0; bit < degree; bit++) product ^= (a << bit) * ((b >> bit) & 1);
    for (let bit = 2 * degree - 1; bit >= degree; bit--) product ^= (MODULUS[degree] << (bit - degree)) * ((product >> bit) & 1);
    return product;
  }

  function dot(a, b, g) {
    const base = BigInt(g);
    let total = 0;
    while (a && b) {
      total = add(total, times(Number(a % base), Number(b % base), g), g);
      a /= base;
      b /= base;
    }
    return BigInt(total);
  }

  const parity = (n) => BigInt(n.toString(2).split("1").length - 1) & 1n;

  // One function for each protocol: parameters (BigInt), the answer's place, a source; every draw is always made.
  function kary(p, place, source, keep = p.keep) {
    const kept = coin(source, keep);
    const another = other(source, p.values, place);
    return kept ? place : another;
  }

  function unary(p, place, source) {
    let report = 0n;
    for (let value = 0n; value < p.values; value++) {
      if (coin(source, value === place ? p.true : p.false)) report |= 1n << value;
    }
    return report;
  }

  // The truth and the first w - 1 of the other values in a random order, or the first w of them.
  function anySet(p, place, source) {
    const held = coin(source, p.keep);
    const others = [];
    for (let value = 0n; value < p.values; value++) if (value !== place) others.push(value);
    for (let first = 0; first < Number(p.w); first++) {
      const drawn = first + Number(below(source, BigInt(others.length - first)));
      [others[first], others[drawn]] = [others[drawn], others[first]];
    }
    const chosen = held ? [place, ...others.slice(0, Number(p.w) - 1)] : others.slice(0, Number(p.w));
    return chosen.reduce((report, value) => report | (1n << value), 0n);
  }

  function sliding(p, step, source) {
    const near = coin(source, p.inside);
    const within = below(source, p.width);
    const beyond = below(source, p.steps);
    return near ? step + within : beyond + (beyond >= step ? p.width : 0n);
  }

  function duchi(p, step, source, keep = p.keep) {
    const high = below(source, p.steps) < step;
    const kept = coin(source, keep);
    return high === kept ? 1n : 0n;
  }

  const ENCODERS = {
    warner: (p, place, source) => (coin(source, p.keep) ? place : 1n - place),
    truthful: (p, place, source) => (below(source, p.of) < p.true ? place : 1n - place),
    two_coins(p, place, source) {
      const first = coin(source, WORD / 2n);
      const second = coin(source, WORD / 2n);
      return first ? place : second ? 1n : 0n;
    },
    kary,
    symmetric_unary: unary,
    optimized_unary: unary,
    local_hashing(p, place, source) {
      const fn = below(source, p.functions);
      const kept = coin(source, p.keep);
      const truth = dot(fn + 1n, place, Number(p.g));
      const another = other(source, p.g, truth);
      return fn * p.g + (kept ? truth : another);
    },
    subset_selection(p, place, source) {
      if (!p.modulus) return anySet(p, place, source);
      const a = 1n + below(source, p.modulus - 1n);
      const held = coin(source, p.keep);
      const within = below(source, p.w);
      const beyond = p.w + below(source, p.modulus - p.w);
      const b = (place - a * (held ? within : beyond)) % p.modulus;
      return (a - 1n) * p.modulus + (b < 0n ? b + p.modulus : b);
    },
    hadamard(p, place, source) {
      const row = below(source, p.rows);
      const kept = coin(source, p.keep);
      return 2n * row + ((parity((row + 1n) & place) + (kept ? 0n : 1n)) % 2n);
    },
    duchi,
    piecewise: sliding,
    square_wave: sliding,
    hybrid(p, step, source) {
      const mixed = coin(source, p.mix);
      const cell = sliding(p, step, source);
      const end = duchi(p, step, source, p.duchi);
      return mixed ? cell : p.steps + p.width + end;
    },
    heavy_hitters(p, codes, source) {
      const level = below(source, p.levels);
      const item = below(source, p.items);
      const fn = below(source, 1n << p.code_bits);
      const kept = coin(source, p.keep);
      const code = item < BigInt(codes.length) ? codes[Number(item)] : 0n;
      const truth = dot(fn, code & ((1n << (16n * (level + 1n))) - 1n), Number(p.g));
      const another = other(source, p.g, truth);
      return (fn * p.g + (kept ? truth : another)) * p.levels + level;
    },
  };

  // Whole histories: a plan for all rounds, and a bit a round (see few_changes.py for what they mean).
  const comb = (n, k) => {
    let found = 1n;
    for (let i = 0n; i < k; i++) found = (found * (n - i)) / (i + 1n);
    return k < 0n || k > n ? 0n : found;
  };
  const combs = (n, least, most) => {
    let found = 0n;
    for (let k = least < 0n ? 0n : least; k <= most && k <= n; k++) found += comb(n, k);
    return found;
  };

  function pattern(rank, k, agree, leans) {
    let found = 0n;
    let kept = 0n;
    for (let place = 0n; place < k; place++) {
      const rest = k - 1n - place;
      const flipped = leans ? combs(rest, agree - kept, rest) : combs(rest, 0n, agree - 1n - kept);
      if (rank >= flipped) {
        rank -= flipped;
        found |= 1n << place;
        kept++;
      }
    }
    return found;
  }

  function plan(p, source) {
    const part = below(source, p.parts);
    const row = below(source, p.rows);
    const kept = coin(source, p.keep);
    const leans = coin(source, p.lean);
    const many = combs(p.changes, p.agree, p.changes);
    const high = below(source, many);
    const low = below(source, (1n << p.changes) - many);
    const signs = p.tree && part ? pattern(leans ? high : low, p.changes, p.agree, leans) : kept ? 1n : 0n;
    return ((row * p.parts + part) << p.changes) | signs;
  }

  // The place that counts in the next round: the one before, if the answer has changed as often as it may.
  function held(p, places, place) {
    if (!p.tree || !places.length) return place;
    const changed = places.filter((each, i) => i && each !== places[i - 1]).length;
    return BigInt(changed) === p.changes ? places[places.length - 1] : place;
  }

  function said(p, part, signs) {
    if (!p.tree || !part) return BigInt(signs.length) === (p.tree ? 1n : part + 1n) ? [signs[signs.length - 1], 0n] : null;
    const length = 2 ** Number(part - 1n);
    const ends = [];
    for (let end = 0; end <= signs.length; end += length) ends.push(signs[Math.max(end - 1, 0)]);
    const last = ends.length - 1;
    if (signs.length % length || ends[last] === ends[last - 1]) return null;
    return [ends[last], BigInt(ends.filter((each, i) => i && i < last && each !== ends[i - 1]).length)];
  }

  function planned(p, drawn, places, source) {
    const spoken = drawn >> p.changes;
    const fair = coin(source, WORD / 2n) ? 1n : 0n;
    const row = spoken / p.parts;
    const found = said(p, spoken % p.parts, places.map((place) => parity((row + 1n) & place)));
    if (!found) return 2n * spoken + fair;
    return 2n * spoken + (found[0] ^ ((drawn >> found[1]) & 1n) ^ 1n);
  }

  // Questions that are asked again: a permanent answer, kept on the device, and reports drawn from it.
  const REPEATED = {
    memoized: {
      remember: kary,
      report: (p, permanent, source) => kary(p, permanent, source, p.then),
    },
    memoized_unary: {
      remember: unary,
      report(p, permanent, source) {
        for (let value = 0n; value < p.values; value++) if (!coin(source, p.then)) permanent ^= 1n << value;
        return permanent;
      },
    },
  };

  function parameters(question) {
    const found = {};
    for (const [name, value] of Object.entries(question.parameters)) found[name] = name === "alphabet" ? value : BigInt(value);
    return found;
  }

  // Exact numbers: "0.5", "1/2" and "-3" are [numerator, denominator].
  function rational(text) {
    const match = /^(-?)(\d{1,25})(?:\/([1-9]\d{0,24})|\.(\d{0,25}))?$/.exec(String(text).trim());
    if (!match) return null;
    const scale = match[3] ? BigInt(match[3]) : 10n ** BigInt((match[4] || "").length);
    const top = match[3] ? BigInt(match[2]) : BigInt(match[2] + (match[4] || ""));
    return [match[1] ? -top : top, scale];
  }
  const plus = (a, b) => [a[0] * b[1] + b[0] * a[1], a[1] * b[1]];
  const atMost = (a, b) => a[0] * b[1] <= b[0] * a[1];

  const REFUSED = "This is not an answer to the question";

  // The place of an answer in its domain; an answer outside it is refused before a coin is tossed.
  function place(question, answer) {
    if (question.values) {
      const found = question.values.findIndex((value) => String(value) === String(answer));
      if (found < 0) throw new RangeError(REFUSED);
      return BigInt(found);
    }
    if (question.number) {
      const [value, low, high, step] = [answer, ...question.number, question.step].map(rational);
      if (!value || !atMost(low, value) || !atMost(value, high)) throw new RangeError(REFUSED);
      const above = plus(value, [-low[0], low[1]]);
      const steps = above[0] * step[1];
      if (steps % (above[1] * step[0])) throw new RangeError(REFUSED);
      return steps / (above[1] * step[0]);
    }
    return codes(question, typeof answer === "string" ? [answer] : [...new Set(answer)].sort(byCodePoint));
  }

  function codes(question, strings) {
    const p = question.parameters;
    if (strings.length > p.items) throw new RangeError(REFUSED);
    return strings.map((string) => {
      const symbols = p.alphabet === undefined ? [...new TextEncoder().encode(string)] : [...string].map((s) => [...p.alphabet].indexOf(s) + 1);
      if (symbols.length > p.length || symbols.includes(0)) throw new RangeError(REFUSED);
      return symbols.reduce((code, symbol, i) => code | (BigInt(symbol) << BigInt(p.bits * i)), 0n);
    });
  }

  const byCodePoint = (a, b) => {
    const [x, y] = [[...a], [...b]];
    for (let i = 0; i < Math.min(x.length, y.length); i++) if (x[i] !== y[i]) return x[i].codePointAt(0) - y[i].codePointAt(0);
    return x.length - y.length;
  };

  const respond = (question, answer, source = system) => ENCODERS[question.protocol](parameters(question), place(question, answer), source);
  const remember = (question, answer, source = system) => REPEATED[question.protocol].remember(parameters(question), place(question, answer), source);
  const again = (question, permanent, source = system) => REPEATED[question.protocol].report(parameters(question), permanent, source);
  const numbered = (question) => question.protocol === "few_changes";
  const repeats = (question) => numbered(question) || question.protocol in REPEATED;
  const planFor = (question, source = system) => plan(parameters(question), source);
  const inRound = (question, drawn, places, source = system) => planned(parameters(question), drawn, places, source);
  const counted = (question, places, place) => held(parameters(question), places, place);

  const wire = (question, report) => (question.digits ? report.toString(16).padStart(question.digits, "0") : Number(report));

  // One line: all that leaves the device.
  const submission = (fingerprint, respondent, answers) => JSON.stringify({ survey: fingerprint, respondent, answers }) + "\n";

  return { respond, remember, again, repeats, numbered, planFor, inRound, counted, place, wire, submission, system, rational, plus, atMost };
})();

if (typeof module !== "undefined") module.exports = Discreet;
