// The analyst's page. A question under way is remembered with its key, so that a reload asks again without paying again.
import { get, openSession, post, Offline } from "./api.js";
import { answerView } from "./answer_view.js";
import { Builder } from "./builder.js";
import { Completion } from "./completion.js";
import { Drafts } from "./drafts.js";
import { Editor } from "./editor.js";
import { button, make, notice } from "./elements.js";
import { amount, budgetText, short } from "./numbers.js";
import { Price } from "./price.js";
import { remedies } from "./remedies.js";
import { offsetOf, quoteName, spanAt, sqlWords } from "./sql_words.js";

const MOST_LETTERS = 90; // of a question in the history
const UNDER_WAY = "under way";
const part = (id) => document.getElementById(id);
const page = {};

async function begin() {
  const session = await openSession();
  const { tables } = await get("/tables");
  const mayAsk = session.role !== "auditor";
  showTables(tables);
  if (!mayAsk) {
    for (const id of ["drafts", "builder", "editor", "price", "history-box"]) part(id).hidden = true;
    document.querySelector(".ways").hidden = true;
    part("answer").append(make("p", {}, "Auditors open answers by their links, and ask nothing."));
    return openLink();
  }
  const budget = await get("/budget");
  page.editor = new Editor({ label: "Question in SQL", words: sqlWords, changed: written });
  part("editor").append(page.editor.root);
  page.completion = new Completion(page.editor, tables);
  page.builder = new Builder(part("builder"), tables, built);
  page.price = new Price(part("price"), { budget, deadline: session.deadline, refused, ask });
  page.drafts = new Drafts(part("drafts"), { first: page.builder.sql(), opened: openDraft });
  part("way-build").addEventListener("click", () => choose("build"));
  part("way-sql").addEventListener("click", () => choose("sql"));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); page.price.go.click(); }
  });
  addEventListener("popstate", openLink);
  openDraft(page.drafts.draft);
  for (const id of ["way-build", "way-sql"]) part(id).disabled = false;
  showHistory();
  const left = JSON.parse(sessionStorage.getItem(UNDER_WAY) ?? "null");
  if (left) await send(left); else await openLink();
}

function showTables(tables) {
  part("tables").replaceChildren(...tables.map((table) => make("details", { class: "table" },
    make("summary", {}, table.name), make("p", { class: "soft small" }, table.comment),
    make("ul", {}, table.columns.map((column) => make("li", {},
      button(column.name, () => insert(column.name), { class: "plain column", title: `Put ${column.name} into the question` }),
      make("span", { class: "soft small" }, table.public ? `${column.type}, public` : column.contains)))))));
}

function insert(name) {
  if (!page.editor) return;
  choose("sql");
  page.editor.replace(page.editor.area.selectionStart, page.editor.area.selectionEnd, quoteName(name));
}

function choose(way) {
  part("way-build").setAttribute("aria-pressed", way === "build" ? "true" : "false");
  part("way-sql").setAttribute("aria-pressed", way === "sql" ? "true" : "false");
  part("builder").hidden = way !== "build";
  page.editor.area.readOnly = way === "build";
  page.drafts.update({ way });
  if (way === "build") built(page.builder.sql());
}

function built(sql) {
  if (!page.drafts) return;
  page.editor.text = sql;
  page.drafts.update({ sql, built: page.builder.state });
  page.price.about(sql);
}

function written(sql) {
  page.drafts.update({ sql });
  page.price.about(sql);
}

function openDraft(draft) {
  if (draft.built) { page.builder.state = draft.built; page.builder.paint(); }
  page.editor.text = draft.sql;
  part("refusal").replaceChildren();
  part("answer").replaceChildren();
  choose(draft.way);
  page.price.about(page.editor.text);
  if (draft.link) showLink(draft.link);
}

function refused(error) {
  const box = part("refusal");
  box.replaceChildren();
  page.editor.mark([]);
  if (error === null) return;
  const sql = page.editor.text;
  if (error.line) {
    const offset = offsetOf(sql, error.line, error.column);
    page.editor.mark([spanAt(sql, offset)]);
    const changes = remedies(error, sql, offset);
    box.append(make("div", { class: "refusal" }, make("p", {}, make("b", {}, `Line ${error.line}, column ${error.column}: `), error.message, " ", make("span", { class: "soft" }, error.hint ?? "")),
      changes.map((change) => button(change.label, () => { choose("sql"); page.editor.replace(change.from, change.to, change.text); }, { class: "remedy" }))));
  } else {
    box.append(make("div", { class: "refusal" }, make("p", {}, error.message, " ", make("span", { class: "soft" }, error.hint ?? ""))));
  }
}

function ask() {
  return send({ question: page.price.question, key: crypto.randomUUID(), draft: page.drafts.current });
}

async function send(work) {
  sessionStorage.setItem(UNDER_WAY, JSON.stringify(work));
  const { go } = page.price;
  go.disabled = true;
  part("answer").replaceChildren(make("p", { class: "soft", role: "status" }, "Asking…"));
  try {
    const answer = await post("/ask", work.question, { headers: { "Idempotency-Key": work.key } });
    sessionStorage.removeItem(UNDER_WAY);
    page.drafts.update({ link: answer.link });
    history.pushState({}, "", `/?answer=${encodeURIComponent(answer.link)}`);
    showAnswer(answer);
    showHistory();
    page.price.change();
    notice(amount(answer.cost) ? `Answered for ${budgetText(answer.cost)}; left ${budgetText(answer.left)}.` : "Answered for free.");
  } catch (error) {
    part("answer").replaceChildren();
    if (error instanceof Offline) {
      part("answer").append(make("div", { class: "refusal" }, make("p", {}, error.message), button("Ask again", () => send(work), { class: "remedy" })));
    } else if (error.status !== 401) { // who logs in again goes on with it
      sessionStorage.removeItem(UNDER_WAY);
      refused(error);
    }
    go.disabled = false;
  }
}

function showAnswer(answer) {
  part("answer").replaceChildren(answerView(answer));
  part("answer").focus({ preventScroll: false });
}

async function showLink(link) {
  try {
    showAnswer(await get(`/answers/${encodeURIComponent(link)}`));
  } catch (error) {
    part("answer").replaceChildren(make("p", { class: "bad" }, error.message));
  }
}

async function openLink() {
  const link = new URLSearchParams(location.search).get("answer");
  if (link === null) {
    if (page.drafts) part("answer").replaceChildren();
    return;
  }
  try {
    const answer = await get(`/answers/${encodeURIComponent(link)}`);
    if (page.drafts && page.drafts.draft.sql !== answer.question) {
      const known = page.drafts.drafts.findIndex((draft) => draft.sql === answer.question);
      if (known >= 0) page.drafts.show(known); else page.drafts.add({ sql: answer.question, link });
    }
    showAnswer(answer);
  } catch (error) {
    part("answer").replaceChildren(make("p", { class: "bad" }, error.message));
  }
}

function briefly(question) {
  const line = question.replace(/\s+/g, " ");
  return line.length > MOST_LETTERS ? `${line.slice(0, MOST_LETTERS - 1)}…` : line;
}

async function showHistory() {
  const { answers } = await get("/history");
  part("history").replaceChildren(answers.length ? make("ol", { class: "past" }, answers.slice(0, 100).map((each) => make("li", {},
    make("a", { href: `/?answer=${encodeURIComponent(each.link)}` }, briefly(each.question)),
    make("span", { class: "soft small" }, `${each.when.slice(0, 16).replace("T", " ")} · ${each.cost.epsilon ? `ε = ${short(each.cost.epsilon)}` : "free"}`))))
    : make("p", { class: "soft small" }, "Nothing asked here yet."));
}

begin().catch((error) => notice(error.message, { bad: true }));
