// The page: asks, randomizes on this device, shows what would be sent, and sends it when told to.
"use strict";

const SURVEY = JSON.parse(document.getElementById("survey").textContent);

// What this browser remembers of its answers, as discreet.local.device does in a file.
const Memory = {
  name: `discreet:${SURVEY.survey}`,
  load() {
    const mine = JSON.parse(localStorage.getItem(this.name) || "null") || { epsilon: SURVEY.epsilon, answered: {} };
    if (Discreet.atMost(Discreet.rational(SURVEY.epsilon), Discreet.rational(mine.epsilon))) mine.epsilon = SURVEY.epsilon;
    return mine;
  },
  save(mine) {
    localStorage.setItem(this.name, JSON.stringify(mine));
  },
};

const spent = (mine) => Object.values(mine.answered).reduce((sum, each) => Discreet.plus(sum, Discreet.rational(each.cost)), [0n, 1n]);
const decimal = (ratio) => String(Number((Number((ratio[0] * 1000000n) / ratio[1]) / 1e6).toPrecision(4)));
const today = () => new Date().toISOString().slice(0, 10);

// Draw a report and note it, or take the one that was sent before: the same question never costs twice.
function answered(mine, question, answer) {
  const key = Discreet.repeats(question) ? `${question.name}@${today()}` : question.name;
  const version = `${question.name} ${SURVEY.fingerprint}`;
  const known = mine.answered[version];
  if (known && known.reports[key] !== undefined) return { key, report: BigInt("0x" + known.reports[key]), before: true };
  const cost = known ? [0n, 1n] : Discreet.rational(question.cost);
  if (!Discreet.atMost(Discreet.plus(spent(mine), cost), Discreet.rational(mine.epsilon))) {
    throw new RangeError("This answer would cost more than this survey may have from you in a lifetime");
  }
  const record = known || { cost: question.cost, reports: {}, remembered: {} };
  let report;
  if (Discreet.repeats(question)) {
    const value = Discreet.place(question, answer).toString();
    if (!(value in record.remembered)) {
      if (Object.keys(record.remembered).length >= question.parameters.changes) {
        throw new RangeError("This would be one different answer more than you may ever give to this question");
      }
      record.remembered[value] = Discreet.remember(question, answer).toString(16);
    }
    report = Discreet.again(question, BigInt("0x" + record.remembered[value]));
  } else {
    report = Discreet.respond(question, answer);
  }
  record.reports[key] = report.toString(16);
  mine.answered[version] = record;
  return { key, report, before: false };
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

function given(form, question) {
  const text = (new FormData(form).get(question.name) || "").toString().trim();
  if (!text) return null;
  if (question.text && question.parameters.items > 1) return text.split(",").map((part) => part.trim()).filter(Boolean);
  return text;
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
    form.append(element("fieldset", { id: `question-${question.name}` }, legend, ...field(question)));
  }
  showSpent();
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("randomize").addEventListener("click", () => randomize(form));
  document.getElementById("send").addEventListener("click", send);
}

function showSpent() {
  const mine = Memory.load();
  document.getElementById("spent").textContent =
    `You have given this survey ε = ${decimal(spent(mine))} of the ${decimal(Discreet.rational(mine.epsilon))} that it may have in your lifetime.`;
}

let line = null;

function randomize(form) {
  const mine = Memory.load();
  const answers = {};
  const rows = [];
  try {
    for (const question of SURVEY.questions) {
      const answer = given(form, question);
      if (answer === null) continue;
      const { key, report, before } = answered(mine, question, answer);
      answers[key] = Discreet.wire(question, report);
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
  Memory.save(mine); // before anything leaves
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
