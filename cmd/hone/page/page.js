// Replaces the elements of the page that the server sends again. Only a visible page
// listens. Without this program the page has to be reloaded.
"use strict";
(() => {
  const path = document.body.dataset.stream, state = document.getElementById("state");
  let source, seen = "";

  const replace = ({ id, html }) => {
    const old = document.getElementById(id);
    const box = document.createElement("template");
    box.innerHTML = html;
    const fresh = box.content.firstElementChild;
    if (!old) {
      document.querySelector("main").insertBefore(fresh, document.getElementById("wait")); // a new round
      return;
    }
    for (const was of old.querySelectorAll("details[id], input.split")) {
      const now = box.content.getElementById(was.id);
      if (now && was.matches("details")) now.open = was.open;
      else if (now) now.checked = was.checked;
    }
    const search = old.querySelector("#search"), focused = document.activeElement;
    const again = focused && focused.id && old.contains(focused) ? focused.id : "";
    if (search) fresh.querySelector("#search").value = search.value;
    old.replaceWith(fresh);
    if (again && document.getElementById(again)) document.getElementById(again).focus();
    find();
  };

  const find = () => {
    const search = document.getElementById("search");
    if (!search) return;
    const words = search.value.toLowerCase().split(/\s+/);
    for (const run of document.querySelectorAll(".runs li")) {
      const text = run.textContent.toLowerCase();
      run.hidden = !words.every((word) => text.includes(word));
    }
  };
  document.addEventListener("input", (e) => { if (e.target.id === "search") find(); });

  const listen = () => {
    source = new EventSource(path + (path.includes("?") ? "&" : "?") + "after=" + seen);
    source.onopen = () => { state.textContent = ""; };
    source.onerror = () => { state.textContent = "not connected"; };
    source.onmessage = (e) => {
      seen = e.lastEventId;
      JSON.parse(e.data).forEach(replace);
    };
  };
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
