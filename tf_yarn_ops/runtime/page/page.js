(function () {
  "use strict";
  var body = document.body, tip = document.getElementById("tip"), stale = document.getElementById("stale");
  var shown = {marks: body.dataset.marks || ""}, failures = 0, hold = 2, task = null, stacks = false, ended = false;
  var order = {}, find = "", smooth = 0;

  function all(root, selector) { return Array.from(root.querySelectorAll(selector)); }

  // -- tips: of a piece of the timeline, and the values of a chart ------------------------------

  function show(text, left, top) {
    tip.hidden = !text;
    if (!text) return;
    if (tip.textContent !== text) tip.textContent = text;
    if (top + 18 + tip.offsetHeight > window.innerHeight) top -= tip.offsetHeight + 30;
    tip.style.left = Math.max(4, Math.min(left + 14, window.innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, top + 18) + "px";
  }

  function points(line) {
    return line.getAttribute("points").split(" ").map(function (point) { return point.split(",").map(Number); });
  }

  function number(value) { return String(Number(value.toPrecision(4))); }

  // The values of all curves at a place of a chart, 0 to 1 from its left.
  function values(plot, place) {
    var x = plot.dataset.x.split(" ").map(Number), y = plot.dataset.y.split(" ").map(Number), seen = {};
    var width = plot.viewBox.baseVal.width, height = plot.viewBox.baseVal.height;
    all(plot, "polyline").forEach(function (line) {
      var near = points(line).reduce(function (a, b) {
        return Math.abs(b[0] - place * width) < Math.abs(a[0] - place * width) ? b : a;
      });
      var away = Math.abs(near[0] - place * width), name = line.dataset.name;
      if (seen[name] && seen[name].away <= away) return;
      seen[name] = {away: away, text: name + " " + number(y[0] + (height - 5 - near[1]) / (height - 10) * (y[1] - y[0]))};
    });
    var lines = Object.keys(seen).map(function (name) { return seen[name].text; }).reverse();
    return ["step " + number(x[0] + place * (x[1] - x[0]))].concat(lines).join("\n");
  }

  function explain(event) {
    var target = event.target.closest ? event.target.closest("[data-tip], .plot") : null;
    if (target && target.dataset.x) {
      var box = target.getBoundingClientRect();
      show(values(target, Math.min(1, Math.max(0, (event.clientX - box.left) / box.width))), event.clientX, event.clientY);
    } else show(target ? target.dataset.tip : "", event.clientX, event.clientY);
  }
  document.addEventListener("mousemove", explain);
  document.addEventListener("click", explain);

  // Arrow keys step through the pieces of a focused bar, and along a focused chart.
  function step(event) {
    var svg = document.activeElement, way = {ArrowRight: 1, ArrowLeft: -1}[event.key] || 0;
    if (event.key === "Escape") show("");
    if (!svg || !svg.matches("svg[tabindex]") || !way && event.type !== "focusin") return;
    var pieces = all(svg, "[data-tip]"), most = svg.dataset.x ? 20 : pieces.length - 1, box = svg.getBoundingClientRect();
    var at = Math.min(most, Math.max(0, Number(svg.dataset.at || (svg.dataset.x ? most : 0)) + way));
    svg.dataset.at = at;
    if (way) event.preventDefault();
    if (svg.dataset.x) show(values(svg, at / most), box.left + box.width * at / most, box.bottom - 18);
    else if (pieces[at]) show(pieces[at].dataset.tip, pieces[at].getBoundingClientRect().left, box.bottom - 18);
  }
  document.addEventListener("keydown", step);
  document.addEventListener("focusin", step);
  document.addEventListener("focusout", function () { show(""); });

  // -- what the reader has chosen: order and filter of tables, smoothing of charts --------------

  function cell(row, column) { return row.cells[column] ? row.cells[column].textContent.trim() : ""; }

  function arrange(root) {
    all(root, "table.sorted").forEach(function (table) {
      var rows = Array.from(table.tBodies[0].rows), heads = Array.from(table.tHead.rows[0].cells);
      heads.forEach(function (head, column) {
        if (order.column === column) head.setAttribute("aria-sort", order.way > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      if (order.column !== undefined) {
        rows.sort(function (a, b) {
          return order.way * cell(a, order.column).localeCompare(cell(b, order.column), "en", {numeric: true});
        }).forEach(function (row) { table.tBodies[0].append(row); });
      }
      rows.forEach(function (row) {
        var text = row.textContent.toLowerCase(), group = row.hasAttribute("data-group");
        var found = find.toLowerCase().split(" ").every(function (word) { return text.includes(word); });
        if (row.dataset.key) row.hidden = find ? group || !found : row.hasAttribute("data-member");
      });
    });
    all(root, ".plot polyline").forEach(function (line) {
      if (!line.dataset.raw) line.dataset.raw = line.getAttribute("points");
      line.setAttribute("points", line.dataset.raw);
      var last = null;
      line.setAttribute("points", points(line).map(function (point) {
        last = last === null ? point[1] : smooth * last + (1 - smooth) * point[1];
        return point[0] + "," + last.toFixed(1);
      }).join(" "));
    });
  }

  document.addEventListener("click", function (event) {
    var head = event.target.closest("table.sorted th");
    if (head && event.target.closest("button")) {
      order = {column: head.cellIndex, way: order.column === head.cellIndex ? -order.way : 1};
      arrange(document);
    }
    var button = event.target.closest("button[data-find]"), input = document.getElementById("find");
    if (button && input) {
      input.value = find = button.dataset.find;
      input.focus();
      arrange(document);
      ask();
    }
  });
  document.addEventListener("input", function (event) {
    if (event.target.id === "find") find = event.target.value;
    else if (event.target.id === "smooth") smooth = Number(event.target.value);
    else return;
    arrange(document);
    if (event.target.id === "find") ask();
  });

  // Changes only what is different, so that focus, selection and scrolling stay.
  function sync(old, fresh) {
    var next = old.firstChild;
    Array.from(fresh.childNodes).forEach(function (node) {
      var key = node.dataset && node.dataset.key, mine = next && next.dataset && next.dataset.key, found = next;
      if (key !== mine) found = key ? Array.from(old.children).find(function (one) { return one.dataset.key === key; }) : null;
      if (!found || found.nodeName !== node.nodeName) return old.insertBefore(node, next);
      if (found === next) next = next.nextSibling;
      else old.insertBefore(found, next);
      if (node.nodeType === 3) {
        if (found.data !== node.data) found.data = node.data;
        return;
      }
      Array.from(found.attributes).forEach(function (one) {
        if (!node.hasAttribute(one.name) && one.name !== "open" && one.name !== "data-at") found.removeAttribute(one.name);
      });
      Array.from(node.attributes).forEach(function (one) {
        if (found.getAttribute(one.name) !== one.value) found.setAttribute(one.name, one.value);
      });
      sync(found, node);
    });
    while (next) {
      var gone = next;
      next = next.nextSibling;
      gone.remove();
    }
  }

  function renew(id, html) {
    var place = document.getElementById(id), fresh = document.createElement("template"), focused = document.activeElement;
    if (!place) return;
    fresh.innerHTML = html;
    arrange(fresh.content);
    sync(place, fresh.content);
    if (document.activeElement !== focused && focused.isConnected) focused.focus();
  }

  function ask() {}
  if (body.dataset.live !== "true") return;

  // Answers with text; ends the page after an answer that is not the job's: YARN's own page or error.
  function get(path, type, seconds) {
    var control = new AbortController(), silent = false;
    var timer = setTimeout(function () { silent = true; control.abort(); }, 1000 * seconds);
    if (type === "application/vnd.tf-yarn-ops+json") current = control;
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
    var home = body.querySelector("[data-home]");
    stale.textContent = "The job has ended. For the result run: " + command();
    stale.hidden = false;
    if (home || answer.redirected) {
      stale.append(", or open ", Object.assign(document.createElement("a"), home
        ? {href: home.dataset.home, textContent: "the job's page"} : {href: answer.url, textContent: "YARN's page"}));
    }
    all(document, "button[data-log], button[data-stack]").forEach(function (button) { button.remove(); });
    if (document.querySelector("#verdict > div")) return;
    document.title = document.title.replace(/[^:]*$/, " ENDED");
    var badge = body.querySelector(".badge");
    badge.textContent = "ENDED";
    badge.className = "badge";
    body.querySelector(".sentence").textContent = "The job has ended.";
  }

  // The coordinator holds the request for `hold` seconds, or until it has news; if it does not, the page pauses itself.
  // A filter that changes asks at once.
  var waiting = null, current = null;
  function refresh() {
    waiting = null;
    if (document.hidden) return void (waiting = setTimeout(refresh, 1000));
    var began = Date.now(), asked = find === shown.find ? hold : 0, known = shown.news || "0", words = find;
    get("parts.json?hold=" + asked + "&news=" + known + "&find=" + encodeURIComponent(words) + "&marks=" +
        encodeURIComponent(shown.marks), "application/vnd.tf-yarn-ops+json", asked + 10).then(function (text) {
      var parts = JSON.parse(text);
      Object.keys(parts).forEach(function (id) { renew(id, parts[id]); });
      Object.assign(shown, {marks: parts.marks, news: parts.news, find: words, live: parts.live || shown.live});
      document.title = body.querySelector("[data-title]").dataset.title;
      failures = 0;
      if (!ended) stale.hidden = true;
      ended = ended || shown.live === "false";
    }).catch(function (fault) {
      if (ended || find !== words) return;
      failures += 1;
      stale.textContent = (fault.silent ? "The proxy does not answer. " : "This page gets no news: the job has ended, " +
        "or its application master is not reachable. ") + "For the result run: " + command();
      stale.hidden = failures < 2 && !fault.silent;
    }).then(function () {
      if (ended) return;
      var spent = (Date.now() - began) / 1000;
      if (asked) hold = Math.min(5, Math.max(2, Math.ceil(10 * (spent < asked ? spent : spent - asked))));
      // A request that was held, on a slow way too, is followed by the next one: a pause could miss the job's end.
      var next = asked && spent >= asked || known !== (shown.news || "0") || find !== words;
      var pause = next ? 0 : Math.max(0, 1000 * (hold - spent));
      waiting = setTimeout(refresh, failures && find === words ? Math.min(30000, 2000 * failures) : pause);
    });
  }
  ask = function () {
    if (waiting === null) return current.abort();
    clearTimeout(waiting);
    refresh();
  };

  function readLog() {
    var name = task, kind = stacks, wanted = function () { return name === task && kind === stacks; };
    if (!name) return;
    var log = document.getElementById("log"), title = document.getElementById("logname");
    get((kind ? "stack.txt?task=" : "log.txt?task=") + encodeURIComponent(name), "text/plain", 15).then(function (text) {
      if (!wanted()) return;
      var atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
      title.textContent = name;
      log.textContent = text || "(nothing yet)";
      if (atEnd) log.scrollTop = log.scrollHeight;
    }).catch(function () {
      if (wanted()) title.textContent = name + ": its agent does not answer";
    }).then(function () {
      setTimeout(function () { if (wanted() && !kind && !ended) readLog(); }, 5000);
    });
  }
  document.addEventListener("click", function (event) {
    var button = event.target.closest("button[data-log], button[data-stack]");
    if (!button || ended) return;
    var name = button.dataset.stack || button.dataset.log, kind = "stack" in button.dataset;
    task = name === task && kind === stacks ? null : name;
    stacks = kind;
    document.getElementById("logkind").textContent = kind ? "Stacks" : "End of the log";
    document.getElementById("logbox").hidden = !task;
    document.getElementById("logname").textContent = task || "";
    document.getElementById("log").textContent = "";
    readLog();
  });
  refresh();
})();
