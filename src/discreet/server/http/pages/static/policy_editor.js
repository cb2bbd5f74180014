// The policy's text with all its mistakes at their places, what a change would do, and ranges as paid questions.
import { get, post, put } from "./api.js";
import { Editor } from "./editor.js";
import { button, choice, field, later, make } from "./elements.js";
import { budgetText } from "./numbers.js";
import { lineSpan, offsetOf, yamlWords } from "./sql_words.js";

export async function policyEditor(root) {
  const own = await get("/policy");
  const found = make("div", { "aria-live": "polite" });
  const save = button("Write the file", write, { class: "primary", disabled: true });
  const editor = new Editor({ label: "Policy in YAML", words: yamlWords, rows: 24, changed: later(300, preview) });
  editor.text = own.text;

  async function preview() {
    save.disabled = true;
    try {
      const told = await post("/policy/preview", { text: editor.text });
      editor.mark(told.problems.map((each) => lineSpan(editor.text, offsetOf(editor.text, each.line, each.column))));
      const changed = editor.text !== own.text;
      save.disabled = told.problems.length > 0 || !changed;
      found.replaceChildren(told.problems.length ? make("div", {}, make("h3", {}, "Mistakes"), told.problems.map(problem))
        : make("div", {}, make("h3", {}, "What this changes"), told.changes.length ? make("ul", {}, told.changes.map((each) => make("li", {}, each)))
          : make("p", { class: "soft" }, changed ? "Nothing that analysts or the ledger would notice." : "Nothing was changed.")));
    } catch (error) {
      found.replaceChildren(make("p", { class: "bad" }, error.message));
    }
  }

  function problem(each) {
    return button(`${each.line}:${each.column}: ${each.message}`, () => {
      const at = offsetOf(editor.text, each.line, each.column);
      editor.area.focus();
      editor.area.setSelectionRange(...lineSpan(editor.text, at));
    }, { class: "problem" });
  }

  async function write() {
    try {
      await put("/policy", { text: editor.text });
      own.text = editor.text;
      found.replaceChildren(make("p", { class: "good" }, "Written. The server answers by it when it is started again."));
      save.disabled = true;
    } catch (error) {
      found.replaceChildren(make("p", { class: "bad" }, `${error.message} ${error.hint ?? ""}`));
    }
  }

  root.append(make("h2", {}, "Policy"), make("p", { class: "soft" }, `${own.file}; ${own.served ? "the server answers by this text." : "the server still answers by an older text."}`),
    editor.root, make("div", { class: "row-of" }, save), found, await bounds());
  editor.paint();
  await preview();
}

async function bounds() {
  const { tables } = await get("/tables");
  const columns = tables.filter((table) => !table.public)
    .flatMap((table) => table.columns.filter((column) => column.range).map((column) => [`${table.name}\n${column.name}`, `${table.name}.${column.name}`]));
  const told = make("div", { "aria-live": "polite" });
  const column = choice(columns, columns[0]?.[0]);
  const epsilon = make("input", { type: "text", inputmode: "decimal", size: 6, value: "0.1", maxlength: 20 });
  const ask = button("Ask for a range", async () => {
    const [table, name] = column.value.split("\n");
    try {
      const found = await post("/bounds", { table, column: name, epsilon: epsilon.value.trim() });
      told.replaceChildren(make("p", {}, `${found.says} Paid ${budgetText(found.cost)}.`));
    } catch (error) {
      told.replaceChildren(make("p", { class: "bad" }, `${error.message} ${error.hint ?? ""}`));
    }
  });
  return make("div", { class: "card" }, make("h3", {}, "Which range would fit?"),
    make("p", { class: "soft" }, "A paid question: noisy quantiles of a column, charged to you. Values are never shown."),
    make("div", { class: "row-of" }, field("Column", column), field("ε", epsilon), ask), told);
}
