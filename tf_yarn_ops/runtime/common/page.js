(function () {
  "use strict";
  var body = document.body, tip = document.getElementById("tip"), stale = document.getElementById("stale");
  var shown = {}, failures = 0, task = null, ended = false;

  function explain(event) {
    var target = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !target;
    if (!target) return;
    tip.textContent = target.getAttribute("data-tip");
    var left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    var top = event.clientY + 18;
    if (top + tip.offsetHeight > window.innerHeight) top = event.clientY - tip.offsetHeight - 12;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, top) + "px";
  }
  document.addEventListener("mousemove", explain);
  document.addEventListener("click", explain);

  if (body.dataset.live !== "true") return;

  function get(path) {
    return fetch(body.dataset.place + path, {cache: "no-store", credentials: "same-origin"}).then(function (answer) {
      if (!answer.ok) throw new Error("HTTP " + answer.status);
      return answer;
    });
  }

  function refresh() {
    if (document.hidden) return setTimeout(refresh, 1000);
    var began = Date.now();
    get("parts.json").then(function (answer) { return answer.json(); }).then(function (parts) {
      Object.keys(parts).forEach(function (id) {
        if (shown[id] === parts[id]) return;
        shown[id] = parts[id];
        var place = document.getElementById(id);
        if (place) place.innerHTML = parts[id];
      });
      document.title = body.querySelector("[data-title]").dataset.title;
      ended = parts.live === "false";
      failures = 0;
      stale.hidden = true;
    }).catch(function () {
      failures += 1;
      stale.textContent = "This page gets no news: the job has ended, or its application master is not reachable. " +
        "For the result run: ytf report " + body.querySelector("[data-application]").dataset.application;
      stale.hidden = failures < 2;
    }).then(function () {
      if (ended) return closeLog();
      setTimeout(refresh, failures ? Math.min(30000, 2000 * failures) : Math.max(2000, 10 * (Date.now() - began)));
    });
  }

  function closeLog() {
    task = null;
    document.getElementById("logbox").hidden = true;
  }

  function readLog() {
    var name = task;
    if (!name) return;
    get("log.txt?task=" + encodeURIComponent(name)).then(function (answer) { return answer.text(); })
      .catch(function () { return "The agent of " + name + " does not answer."; })
      .then(function (text) {
        if (name !== task) return;
        var log = document.getElementById("log"), atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
        log.textContent = text || "(nothing yet)";
        if (atEnd) log.scrollTop = log.scrollHeight;
        setTimeout(function () { if (name === task) readLog(); }, 5000);
      });
  }
  document.addEventListener("click", function (event) {
    var button = event.target.closest("button[data-log]");
    if (!button) return;
    task = button.getAttribute("data-log") === task ? null : button.getAttribute("data-log");
    document.getElementById("logbox").hidden = !task;
    document.getElementById("logname").textContent = task || "";
    document.getElementById("log").textContent = "";
    readLog();
  });
  setTimeout(refresh, 1000);
})();
