// The page: asks, randomizes on this device, shows what would be sent, and sends it when told to.
"use strict";

const SURVEY = JSON.parse(document.getElementById("survey").textContent);

// What this browser remembers of all answers at this address, as discreet.local.device does in a file.
const LIMIT = "10";
const Memory = {
  load() {
    const all = JSON.parse(localStorage.getItem("discreet") || "null") || this.first();
    all.caps[SURVEY.survey] = least(all.caps[SURVEY.survey] || SURVEY.epsilon, SURVEY.epsilon);
    all.surveys[SURVEY.fingerprint] = all.surveys[SURVEY.fingerprint] || { name: SURVEY.survey, answered: {} };
    return all;
  },
  // Memories of the first shape had one entry for each name of a survey.
  first() {
    const all = { limit: LIMIT, caps: {}, surveys: {} };
    for (const key of Object.keys(localStorage).filter((each) => each.startsWith("discreet:"))) {
      const mine = JSON.parse(localStorage.getItem(key));
      const name = key.slice("discreet:".length);
      all.caps[name] = mine.epsilon;
      for (const [version, record] of Object.entries(mine.answered)) {
        const [question, fingerprint] = version.split(" ");
        all.surveys[fingerprint] = all.surveys[fingerprint] || { name, respondent: mine.respondent, answered: {} };
        all.surveys[fingerprint].answered[question] = record;
      }
    }
    return all;
  },
  save(all) {
    localStorage.setItem("discreet", JSON.stringify(all));
  },
};

const least = (a, b) => (Discreet.atMost(Discreet.rational(a), Discreet.rational(b)) ? a : b);
const cost = (surveys) =>
  surveys.flatMap((mine) => Object.values(mine.answered)).reduce((sum, each) => Discreet.plus(sum, Discreet.rational(each.cost)), [0n, 1n]);
const given = (all) => cost(Object.values(all.surveys));
const spent = (all) => cost(Object.values(all.surveys).filter((mine) => mine.name === SURVEY.survey));
const decimal = (ratio) => String(Number((Number((ratio[0] * 1000000n) / ratio[1]) / 1e6).toPrecision(4)));
const today = () => new Date().toISOString().slice(0, 10);

// Draw a report and note it, or take the one that was sent before: the same question never costs twice.
function answered(all, question, answer, round) {
  const mine = all.surveys[SURVEY.fingerprint];
  const key = Discreet.repeats(question) ? `${question.name}@${round}` : question.name;
  const known = mine.answered[question.name];
  if (known && known.reports[key] !== undefined) return { key, reports: { [key]: BigInt("0x" + known.reports[key]) }, before: true };
  const place = Discreet.place(question, answer); // refused before a coin is tossed
  const added = known ? [0n, 1n] : Discreet.rational(question.cost);
  if (!Discreet.atMost(Discreet.plus(spent(all), added), Discreet.rational(all.caps[SURVEY.survey]))) {
    throw new RangeError("This answer would cost more than this survey may have from you in a lifetime");
  }
  if (!Discreet.atMost(Discreet.plus(given(all), added), Discreet.rational(all.limit))) {
    throw new RangeError("This answer would cost more than you allow all surveys together");
  }
  const record = known || { cost: question.cost, reports: {}, remembered: {} };
  if (question.parameters.rounds && Object.keys(record.reports).length >= question.parameters.rounds) {
    throw new RangeError("You have answered this question in all of its rounds");
  }
  let reports;
  if (Discreet.numbered(question)) reports = byPlan(question, place, record.remembered, Number(round));
  else if (Discreet.repeats(question)) reports = { [key]: memoized(question, place, record.remembered) };
  else reports = { [key]: Discreet.respond(question, answer) };
  for (const [name, report] of Object.entries(reports)) record.reports[name] = report.toString(16);
  mine.answered[question.name] = record;
  return { key, reports, before: false };
}

// From the permanent answer of this value, or of the last one if there were too many: silence would tell.
function memoized(question, place, remembered) {
  const values = Object.keys(remembered).filter((each) => each !== "now");
  if (!(String(place) in remembered) && values.length >= question.parameters.changes) {
    place = remembered.now ? BigInt("0x" + remembered.now) : BigInt(values[values.length - 1]);
  }
  if (!(String(place) in remembered)) remembered[String(place)] = Discreet.remember(question, question.values[Number(place)]).toString(16);
  remembered.now = place.toString(16);
  return Discreet.again(question, BigInt("0x" + remembered[String(place)]));
}

// A round that was left out counts as the one before it, and one before the first answer as the first answer.
function byPlan(question, place, remembered, round) {
  remembered.plan = remembered.plan || Discreet.planFor(question).toString(16);
  const places = [];
  while (remembered[places.length + 1] !== undefined) places.push(BigInt("0x" + remembered[places.length + 1]));
  const reports = {};
  while (places.length < round) {
    const last = places.length + 1 === round;
    places.push(Discreet.counted(question, places, last || !places.length ? place : places[places.length - 1]));
    remembered[places.length] = places[places.length - 1].toString(16);
    reports[`${question.name}@${places.length}`] = Discreet.inRound(question, BigInt("0x" + remembered.plan), places);
  }
  return reports;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function field(question) {
  const name = question.name;
  if (question.values && question.values.length <= 8) {
    return question.values.map((value) => element("label", { class: "choice" }, element("input", { type: "radio", name, value }), String(value)));
  }
  if (question.values) {
    const options = question.values.map((value) => element("option", { value }, String(value)));
    return [element("select", { name, "aria-label": question.ask }, element("option", { value: "" }, "choose ..."), ...options)];
  }
  if (question.number) {
    const [low, high, step] = [...question.number, question.step].map((text) => decimal(Discreet.rational(text)));
    const hint = element("span", { class: "hint" }, `${low} to ${high}, in steps of ${step}`);
    return [element("input", { type: "number", name, min: low, max: high, step, "aria-label": question.ask }), hint];
  }
  const many = question.parameters.items > 1 ? `, up to ${question.parameters.items} with commas between` : "";
  const hint = element("span", { class: "hint" }, `up to ${question.parameters.length} symbols${many}`);
  return [element("input", { type: "text", name, "aria-label": question.ask }), hint];
}

function typed(form, question) {
  const text = (new FormData(form).get(question.name) || "").toString().trim();
  if (!text) return null;
  if (question.text && question.parameters.items > 1) return text.split(",").map((part) => part.trim()).filter(Boolean);
  return text;
}

// Which round it is: the day, or the number that was typed.
function roundOf(form, question) {
  if (!Discreet.numbered(question)) return today();
  const text = (new FormData(form).get(`round-${question.name}`) || "").toString().trim();
  if (!/^[1-9]\d{0,3}$/.test(text) || Number(text) > question.parameters.rounds) {
    throw new RangeError(`Say which round this is, 1 to ${question.parameters.rounds}`);
  }
  return text;
}

// What a respondent is promised about a question that is asked again and again.
function overTime(question) {
  const p = question.parameters;
  const cost = decimal(Discreet.rational(question.cost));
  if (Discreet.numbered(question)) {
    const counts = p.tree ? `up to ${p.changes} of its changes count` : "every change counts";
    return `Asked in ${p.rounds} rounds. All your reports together cost ε = ${cost}, whether and whenever your answer changes; ${counts}.`;
  }
  if (p.changes === 1) return `Asked again and again. All your reports together cost ε = ${cost}: all are drawn from your first answer, and later ones do not count.`;
  const constant = decimal(Discreet.rational(question.epsilon));
  return `Asked in up to ${p.rounds} rounds. All your reports together cost ε = ${constant} if your answer never changes, and up to ${cost} if it does; up to ${p.changes} different answers count.`;
}

function says(question, report) {
  const direct = ["kary", "warner", "truthful", "two_coins", "memoized"].includes(question.protocol);
  return direct ? `"${question.values[Number(report)]}"` : String(Discreet.wire(question, report));
}

function build() {
  document.title = SURVEY.survey;
  document.getElementById("title").textContent = SURVEY.survey;
  const form = document.getElementById("questions");
  for (const question of SURVEY.questions) {
    const cost = decimal(Discreet.rational(question.cost));
    const legend = element("legend", {}, question.ask, element("span", { class: "cost", title: question.protocol }, ` ε = ${cost}`));
    const more = Discreet.repeats(question) ? [element("p", { class: "hint" }, overTime(question))] : [];
    if (Discreet.numbered(question)) {
      const rounds = { type: "number", name: `round-${question.name}`, min: 1, max: question.parameters.rounds, step: 1 };
      more.push(element("label", { class: "choice" }, "round ", element("input", rounds)));
    }
    form.append(element("fieldset", { id: `question-${question.name}` }, legend, ...field(question), ...more));
  }
  showSpent();
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("randomize").addEventListener("click", () => randomize(form));
  document.getElementById("send").addEventListener("click", send);
  document.getElementById("set-limit").addEventListener("click", setLimit);
}

function showSpent() {
  const all = Memory.load();
  const shown = (text) => decimal(Discreet.rational(text));
  document.getElementById("spent").textContent =
    `You have given this survey ε = ${decimal(spent(all))} of the ${shown(all.caps[SURVEY.survey])} that it may have in your lifetime, ` +
    `and all surveys at this address together ε = ${decimal(given(all))} of the ${shown(all.limit)} that you allow.`;
}

// The respondent's own limit for all surveys that this browser answers at this address.
function setLimit() {
  const text = document.getElementById("limit").value.trim();
  const limit = Discreet.rational(text);
  if (!limit || limit[0] <= 0n) return tell("The limit is a number greater than zero.", true);
  const all = Memory.load();
  all.limit = text;
  Memory.save(all);
  showSpent();
}

let line = null;

function randomize(form) {
  const all = Memory.load();
  const mine = all.surveys[SURVEY.fingerprint];
  const answers = {};
  const rows = [];
  try {
    for (const question of SURVEY.questions) {
      const answer = typed(form, question);
      if (answer === null) continue;
      const { key, reports, before } = answered(all, question, answer, roundOf(form, question));
      for (const [name, each] of Object.entries(reports)) answers[name] = Discreet.wire(question, each);
      const report = reports[key];
      const ratio = decimal([BigInt(Math.round(Math.exp(Number(decimal(Discreet.rational(question.cost)))) * 1000)), 1000n]);
      const meaning = before
        ? "sent before, and sent again as it was: new coins would cost you twice"
        : `drawn now; whatever you answered this could have come out, and your answer makes it at most ${ratio} times likelier than another would`;
      rows.push(element("tr", {}, element("th", { scope: "row" }, question.ask), element("td", {}, says(question, report)), element("td", {}, meaning)));
    }
  } catch (refusal) {
    return tell(`${refusal.message}. Nothing was drawn and nothing is sent.`, true);
  }
  if (!rows.length) return tell("Answer at least one question.", true);
  mine.respondent = mine.respondent || Discreet.system.bits(128).toString(16).padStart(32, "0");
  Memory.save(all); // before anything leaves
  line = Discreet.submission(SURVEY.fingerprint, mine.respondent, answers);
  document.getElementById("drawn").replaceChildren(...rows);
  document.getElementById("bytes").textContent = line;
  document.getElementById("what").textContent = "What would be sent";
  document.getElementById("review").hidden = false;
  document.getElementById("send").disabled = false;
  showSpent();
  tell("Your answers stay here. Only what is below would be sent.", false);
}

async function send() {
  document.getElementById("send").disabled = true;
  try {
    const reply = await fetch(`${SURVEY.collector}/reports`, { method: "POST", body: line, headers: { "Content-Type": "text/plain" }, credentials: "omit", referrerPolicy: "no-referrer" });
    const receipt = await reply.json();
    if (!reply.ok) throw new Error(receipt.error.message);
    const kept = receipt.accepted + receipt.repeated;
    document.getElementById("what").textContent = "What was sent";
    tell(`Sent. The collector has ${kept} of your reports${kept < Object.keys(JSON.parse(line).answers).length ? " and refused the others" : ""}.`, false);
  } catch (failure) {
    document.getElementById("send").disabled = false;
    tell("The collector did not take it. Sending again is safe: it is the same report.", true);
  }
}

function tell(text, wrong) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.className = wrong ? "wrong" : "";
}

build();
