// Replaces the elements of the page that the server sends again. Only a visible page
// listens. Without this program the page has to be reloaded.
"use strict";
(() => {
  const path = document.body.dataset.stream, state = document.getElementById("state");
  let source, seen = "";
  document.documentElement.classList.add("scripted"); // shows what works only with this program

  const replace = ({ id, html }) => {
    const old = document.getElementById(id);
    const box = document.createElement("template");
    box.innerHTML = html;
    const fresh = box.content.firstElementChild;
    if (!old) {
      document.querySelector("main").insertBefore(fresh, document.getElementById("wait")); // a new round
      return;
    }
    for (const was of [old, ...old.querySelectorAll("details[id], input.split, input[type=search]")]) {
      const now = box.content.getElementById(was.id);
      if (now && was.matches("details")) now.open = was.open;
      else if (now) { now.checked = was.checked; now.value = was.value; }
    }
    const focused = document.activeElement;
    const again = focused && focused.id && old.contains(focused) ? focused.id : "";
    old.replaceWith(fresh);
    if (again && document.getElementById(again)) document.getElementById(again).focus();
    find();
    fresh.querySelectorAll(".log").forEach(filter);
  };

  // A log shows the lines that contain what is searched for.
  const filter = (log) => {
    const words = log.querySelector("input").value.toLowerCase(), text = log.querySelector("pre");
    text.lines ??= text.textContent.trimEnd().split("\n");
    const found = text.lines.filter((line) => line.toLowerCase().includes(words));
    text.textContent = found.join("\n");
    log.querySelector("[role=status]").textContent = words && found.length + " of " + text.lines.length + " lines";
  };

  // The list shows the runs that match the search and the chosen result, in the chosen order.
  let only = "", order = null;
  const find = () => {
    const list = document.getElementById("list");
    if (!list) return;
    const words = document.getElementById("search").value.toLowerCase().split(/\s+/);
    const rows = [...list.tBodies[0].rows];
    let found = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) || (only !== "" && row.dataset.result !== only);
      if (!row.hidden) found++;
    }
    document.getElementById("found").textContent = found < rows.length ? found + " of " + rows.length : "";
    for (const chip of document.querySelectorAll("[data-only]")) chip.setAttribute("aria-pressed", String(chip.dataset.only === only));
    [...list.tHead.rows[0].cells].forEach((head, i) => {
      if (!head.querySelector("button")) head.innerHTML = "<button type=button>" + head.textContent + "</button>";
      head.removeAttribute("aria-sort");
      if (order && order.column === i) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    });
    if (!order) return;
    const value = (row) => { const cell = row.cells[order.column]; return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v || -1); };
    rows.sort((a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * (order.down ? -1 : 1); });
    list.tBodies[0].append(...rows);
  };
  document.addEventListener("click", (e) => {
    const head = e.target.closest("#list thead th"), chip = e.target.closest("[data-only]");
    if (head) order = { column: head.cellIndex, down: !(order && order.column === head.cellIndex && order.down) };
    else if (chip) only = only === chip.dataset.only ? "" : chip.dataset.only;
    else return;
    find();
  });
  find();
  document.addEventListener("input", (e) => {
    if (e.target.id === "search") find();
    else if (e.target.closest(".log")) filter(e.target.closest(".log"));
  });

  // A link to something that is folded unfolds it.
  const unfold = () => {
    let at = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const target = at;
    for (; at; at = at.parentElement) if (at.matches("details")) at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  document.addEventListener("click", (e) => {
    if (!e.target.matches("[data-copy]")) return;
    const command = e.target.parentElement.querySelector("code").textContent.split("; ")[0];
    navigator.clipboard.writeText(command).then(() => { e.target.textContent = "copied"; }, () => { e.target.textContent = "not copied"; });
  });

  // j and k go from round to round or from run to run, / searches, ? says so.
  const steps = () => [...document.querySelectorAll(".round > summary, #list tbody tr:not([hidden]) a")];
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, textarea, select")) return;
    const all = steps(), at = all.indexOf(document.activeElement);
    if (e.key === "j" || e.key === "k") {
      const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + (e.key === "j" ? 1 : -1)))];
      if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
    } else if (e.key === "/" && document.getElementById("search")) {
      e.preventDefault();
      document.getElementById("search").focus();
    } else if (e.key === "?") {
      document.getElementById("state").textContent = "j next · k previous · / search · Enter opens";
    }
  });

  const listen = () => {
    source = new EventSource(path + (path.includes("?") ? "&" : "?") + "after=" + seen);
    source.onopen = () => { state.textContent = ""; };
    source.onerror = () => { state.textContent = "not connected"; };
    source.onmessage = (e) => {
      seen = e.lastEventId;
      held.push(...JSON.parse(e.data));
      if (!pressed) release();
    };
  };
  // A press and its release are a click only if what is pressed stays.
  let pressed = false, held = [];
  const release = () => { pressed = false; held.splice(0).forEach(replace); };
  addEventListener("pointerdown", () => { pressed = true; }, true);
  for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => setTimeout(release), true);
  const follow = () => {
    if (source) source.close();
    source = undefined;
    if (!document.hidden) listen();
  };
  if (path) {
    seen = document.body.dataset.seen || "";
    document.addEventListener("visibilitychange", follow);
    follow();
  }
})();
