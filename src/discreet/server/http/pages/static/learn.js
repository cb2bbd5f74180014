// Lessons, one at a time, chosen by the address.
import { coins } from "./lesson_coins.js";
import { composition } from "./lesson_composition.js";
import { differencing } from "./lesson_differencing.js";
import { noise } from "./lesson_noise.js";
import { make } from "./elements.js";

const LESSONS = { noise, coins, composition, differencing };

function show() {
  const name = location.hash.slice(1) in LESSONS ? location.hash.slice(1) : "noise";
  for (const link of document.querySelectorAll(".sections a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const root = make("section", { class: "lesson", "data-part": name });
  document.getElementById("section").replaceChildren(root);
  LESSONS[name](root);
}

document.getElementById("logout")?.addEventListener("click", async () => {
  const { openSession } = await import("./api.js");
  await openSession();
  document.getElementById("logout").click();
}, { once: true });
addEventListener("hashchange", show);
show();
