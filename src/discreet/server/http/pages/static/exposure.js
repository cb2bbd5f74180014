// What the policy exposes: what an analyst may know without asking, and what a question can reach.
import { get } from "./api.js";
import { make, tableOf } from "./elements.js";

const GROUPS = { public: "every value that it may have", unknown: "values that enough people share", never: "never shown, to join on" };

export async function exposure(root) {
  const { tables, unit } = await get("/tables");
  root.append(make("h2", {}, "What the policy exposes"),
    make("p", { class: "soft" }, `Analysts see these names, ranges and values without paying. Everything else is noisy, and hides each ${unit}.`));
  for (const table of tables) {
    const whose = table.comment + (table.max_groups ? `; in at most ${table.max_groups} groups` : "");
    root.append(make("h3", {}, table.name), make("p", { class: "soft" }, whose),
      tableOf(["column", "type", "what analysts see", "as a group"], table.columns.map((column) => [make("code", {}, column.name), column.type, column.contains, table.public ? "as you like" : GROUPS[column.groups]]), { caption: `Columns of ${table.name}` }));
  }
}
