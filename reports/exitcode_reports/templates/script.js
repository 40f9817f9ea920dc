"use strict";
(() => {
  const filters = document.querySelector(".filters");
  const requirements = [...document.querySelectorAll(".req")];
  const groups = [...document.querySelectorAll(".group")];
  const search = filters.querySelector("input");
  const told = filters.querySelector("output");
  const buttons = [...filters.querySelectorAll("button")];
  const opened = new Set();

  const chosen = (key) =>
    new Set(buttons.filter((b) => b.dataset[key] && b.getAttribute("aria-pressed") === "true").map((b) => b.dataset[key]));

  const apply = () => {
    const verdicts = chosen("verdict");
    const levels = chosen("level");
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = verdicts.size > 0 || words.length > 0;
    let shown = 0;
    let all = 0;
    const open = [];
    for (const requirement of requirements) {
      const title = requirement.firstElementChild.textContent.toLowerCase();
      let here = 0;
      for (const row of requirement.querySelectorAll("tbody tr")) {
        const text = words.length ? title + " " + row.textContent.toLowerCase() : "";
        const fits =
          (levels.size === 0 || levels.has(requirement.dataset.level)) &&
          (verdicts.size === 0 || verdicts.has(row.dataset.v)) &&
          words.every((word) => text.includes(word));
        row.hidden = !fits;
        all += 1;
        here += fits ? 1 : 0;
      }
      requirement.hidden = here === 0;
      shown += here;
      if (here) open.push(requirement);
    }
    for (const group of groups) group.hidden = !group.querySelector(".req:not([hidden])");
    for (const requirement of opened) requirement.open = false;
    opened.clear();
    if (active && shown <= 120) {
      for (const requirement of open.filter((one) => !one.open)) {
        requirement.open = true;
        opened.add(requirement);
      }
    }
    told.textContent = active || levels.size ? `${shown} of ${all} cases` : "";
  };

  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      apply();
    });
  }
  search.addEventListener("input", apply);
  filters.classList.add("alive");

  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
