(function () {
  "use strict";
  var body = document.body, tip = document.getElementById("tip"), stale = document.getElementById("stale");
  var shown = {}, failures = 0, hold = 2, task = null, ended = false;

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

  // Answers with text; ends the page after an answer that is not the job's: YARN's own page or error.
  function get(path, type, seconds) {
    var control = new AbortController(), silent = false;
    var timer = setTimeout(function () { silent = true; control.abort(); }, 1000 * seconds);
    return fetch(body.dataset.place + path, {cache: "no-store", credentials: "same-origin", signal: control.signal})
      .then(function (answer) {
        var given = answer.headers.get("content-type") || "", ours = !answer.redirected && given.indexOf(type) === 0;
        if (!ours && (answer.redirected || given.indexOf("text/plain") && [200, 404, 503].includes(answer.status))) end(answer);
        if (!ours || !answer.ok) throw new Error("HTTP " + answer.status);
        return answer.text();
      }).catch(function (fault) {
        fault.silent = silent;
        throw fault;
      }).finally(function () { clearTimeout(timer); });
  }

  function command() { return "ytf report " + body.querySelector("[data-application]").dataset.application; }

  function end(answer) {
    if (ended) return;
    ended = true;
    stale.textContent = "The job has ended. For the result run: " + command();
    stale.hidden = false;
    if (answer.redirected) {
      stale.append(", or open ", Object.assign(document.createElement("a"), {href: answer.url, textContent: "YARN's page"}));
    }
    document.querySelectorAll("button[data-log]").forEach(function (button) { button.remove(); });
    if (document.querySelector("#verdict > div")) return;
    document.title = document.title.replace(/[^:]*$/, " ENDED");
    var badge = body.querySelector(".badge");
    badge.textContent = "ENDED";
    badge.className = "badge";
    body.querySelector(".sentence").textContent = "The job has ended.";
  }

  // The coordinator holds the request for `hold` seconds, or until it has news; if it does not, the page pauses itself.
  function refresh() {
    if (document.hidden) return setTimeout(refresh, 1000);
    var began = Date.now(), asked = hold, known = shown.news || "0";
    get("parts.json?hold=" + asked + "&news=" + known, "application/json", asked + 10).then(function (text) {
      var parts = JSON.parse(text);
      Object.keys(parts).forEach(function (id) {
        if (shown[id] === parts[id]) return;
        shown[id] = parts[id];
        var place = document.getElementById(id);
        if (place) place.innerHTML = parts[id];
      });
      document.title = body.querySelector("[data-title]").dataset.title;
      failures = 0;
      if (!ended) stale.hidden = true;
      ended = ended || parts.live === "false";
    }).catch(function (fault) {
      if (ended) return;
      failures += 1;
      stale.textContent = (fault.silent ? "The proxy does not answer. " : "This page gets no news: the job has ended, " +
        "or its application master is not reachable. ") + "For the result run: " + command();
      stale.hidden = failures < 2 && !fault.silent;
    }).then(function () {
      if (ended) return;
      var spent = (Date.now() - began) / 1000;
      hold = Math.min(5, Math.max(2, Math.ceil(10 * (spent < asked ? spent : spent - asked))));
      var pause = known !== (shown.news || "0") ? 0 : Math.max(0, 1000 * (asked - spent));
      setTimeout(refresh, failures ? Math.min(30000, 2000 * failures) : pause);
    });
  }

  function readLog() {
    var name = task;
    if (!name) return;
    var log = document.getElementById("log"), title = document.getElementById("logname");
    get("log.txt?task=" + encodeURIComponent(name), "text/plain", 15).then(function (text) {
      if (name !== task) return;
      var atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
      title.textContent = name;
      log.textContent = text || "(nothing yet)";
      if (atEnd) log.scrollTop = log.scrollHeight;
    }).catch(function () {
      if (name === task) title.textContent = name + ": its agent does not answer";
    }).then(function () {
      setTimeout(function () { if (name === task && !ended) readLog(); }, 5000);
    });
  }
  document.addEventListener("click", function (event) {
    var button = event.target.closest("button[data-log]");
    if (!button || ended) return;
    task = button.getAttribute("data-log") === task ? null : button.getAttribute("data-log");
    document.getElementById("logbox").hidden = !task;
    document.getElementById("logname").textContent = task || "";
    document.getElementById("log").textContent = "";
    readLog();
  });
  refresh();
})();
