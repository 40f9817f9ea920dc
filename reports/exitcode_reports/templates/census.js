"use strict";
(() => {
  const SIDE = 16;
  const map = document.querySelector(".map");
  const panel = document.querySelector(".panel");
  const hint = panel.querySelector(".hint");
  const places = [...map.children];
  const codes = places.filter((one) => one.tagName === "A");
  const ofHash = (hash) => document.getElementById(decodeURIComponent(hash.slice(1)));

  // One stop for Tab; from there the arrow keys lead through the map.
  const stop = (link) => {
    for (const one of codes) one.tabIndex = one === link ? 0 : -1;
  };
  const show = (link) => {
    for (const one of panel.querySelectorAll(".shown")) one.classList.remove("shown");
    for (const one of codes) one.removeAttribute("aria-current");
    ofHash(link.hash).classList.add("shown");
    link.setAttribute("aria-current", "true");
    hint.hidden = true;
    stop(link);
  };
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -SIDE, ArrowDown: SIDE };

  map.addEventListener("focusin", (event) => {
    const link = event.target.closest("a");
    if (link) show(link);
  });
  map.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    history.replaceState(null, "", link.hash);
    show(link);
    panel.scrollIntoView({ block: "nearest" });
  });
  map.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    let at = places.indexOf(event.target) + step;
    while (places[at] && places[at].tagName !== "A") at += step;
    if (!places[at]) return;
    places[at].focus();
    show(places[at]);
  });

  const reveal = () => {
    const target = location.hash ? ofHash(location.hash) : null;
    if (!target) return;
    const link = codes.find((one) => one.hash === location.hash);
    if (link) {
      show(link);
      map.scrollIntoView({ block: "nearest" });
      return;
    }
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView({ block: "start" });
  };
  panel.classList.add("alive");
  const first = codes.find((one) => one.classList.contains("leaves"));
  if (first && !location.hash) show(first);
  else if (codes.length) stop(codes[0]);
  addEventListener("hashchange", reveal);
  reveal();
})();
