"use strict";
// Everything from tasks is put on the page as text nodes, never as markup.
(() => {
  const overview = document.getElementById("overview");
  const article = document.getElementById("task");
  const blocks = new Map([...document.querySelectorAll("script[data-task]")].map((one) => [one.dataset.task, one]));
  const title = document.title;
  let shown = null;

  function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "on") element.addEventListener("click", value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== ""));
    return element;
  }
  const hidden = () => make("span", { class: "mark" }, "hidden");
  const pre = (text) => make("pre", {}, text);
  const plain = (value) => (value === null || value === undefined ? "∅" : typeof value === "string" ? value : JSON.stringify(value));
  const rounded = (value) => (value === null || value === undefined ? "" : Math.round(value * 10000) / 10000);
  const amount = (value) => String(rounded(value));

  function pairs(...rows) {
    const list = make("dl", { class: "pairs" });
    for (const [name, value] of rows) {
      if (value !== "" && value !== null && value !== undefined) list.append(make("dt", {}, name), make("dd", {}, value));
    }
    return list;
  }

  function table(caption, columns, rows, classes) {
    const numeric = columns.map((_, place) => rows.some((row) => row[place] !== "") &&
      rows.every((row) => row[place] === "" || typeof row[place] === "number" || (row[place] instanceof Node && row[place].dataset.number !== undefined)));
    const head = columns.map((name, place) => make("th", { scope: "col", class: numeric[place] ? "n" : null }, name));
    const body = rows.map((row, number) => make("tr", { class: classes ? classes[number] : null }, row.map((cell, place) =>
      make(place ? "td" : "th", { scope: place ? null : "row", class: numeric[place] ? "n" : null },
        cell instanceof Node ? cell : Array.isArray(cell) ? cell : typeof cell === "number" ? String(cell) : plain(cell)))));
    return make("div", { class: "wide" }, make("table", {}, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
  }

  function value(content) {
    if (content && typeof content === "object" && "$cut" in content) {
      return [pre(content.$cut), make("p", { class: "soft" }, `cut: ${content.$characters} characters in all`)];
    }
    const rows = Array.isArray(content) && content.length > 0 && content.every((row) => row && typeof row === "object" && !Array.isArray(row));
    if (rows) {
      const columns = [...new Set(content.flatMap((row) => Object.keys(row)))];
      const fits = columns.length <= 9 && content.every((row) => Object.values(row).every((one) => plain(one).length < 200));
      if (fits) return [table(`${content.length} ${content.length === 1 ? "row" : "rows"}`, columns, content.map((row) => columns.map((name) => name in row ? row[name] : "")))];
    }
    return [pre(typeof content === "string" ? content : JSON.stringify(content, null, 1))];
  }

  // --- what one call changed ------------------------------------------------------------------------------

  function change(found) {
    const concealed = new Set(found.columns);
    const named = (name) => concealed.has(name) && !found.hidden ? [name, " ", hidden()] : name;
    const parts = [make("h5", {}, found.table, " ", found.hidden ? hidden() : "")];
    const whole = [...found.added.map((row) => ["added", row]), ...found.removed.map((row) => ["removed", row])];
    if (whole.length) {
      const columns = [...new Set(whole.flatMap(([, row]) => Object.keys(row)))];
      parts.push(table("Rows", ["", ...columns], whole.map(([what, row]) => [what, ...columns.map((name) => plain(row[name]))]),
        whole.map(([what]) => (what === "added" ? "added" : "gone"))));
    }
    if (found.changed.length) {
      const cells = found.changed.flatMap((row) => Object.entries(row.cells).map(([name, [before, after]]) =>
        [row.key.map(plain).join(", "), make("span", {}, named(name)), make("del", {}, plain(before)), make("ins", {}, plain(after))]));
      parts.push(table("Cells", ["row", "column", "before", "after"], cells));
    }
    if (found.more) parts.push(make("p", { class: "soft" }, `and ${found.more} more rows`));
    return parts;
  }

  function step(task, place, number, total) {
    const node = task.steps[place];
    const parts = [make("h5", {}, `Step ${number} of ${total}: `, make("code", {}, node.t || "no tool call"))];
    parts.push(make("p", { class: "soft" }, "Arguments"), ...value(task.texts[node.a]));
    if (node.r !== undefined) {
      parts.push(make("p", { class: node.ok ? "soft" : "bad" }, node.ok ? "Result" : "Refused"), ...value(task.texts[node.r]));
    } else parts.push(make("p", { class: "soft" }, "What came back is not recorded."));
    if (node.d === -1) parts.push(make("p", { class: "soft" }, "The state did not change."));
    if (node.d >= 0) parts.push(make("p", { class: "soft" }, "What it did to the state"), ...task.texts[node.d].flatMap(change));
    return make("div", { class: "step" }, parts);
  }

  function way(task, leaf) {
    const places = [];
    for (let place = leaf; place >= 0; place = task.steps[place].p) places.unshift(place);
    return places;
  }

  function grade(found, wanted) {
    if (!found) return null;
    const parts = [pairs(["reward", amount(found.reward)], ["outcome", amount(found.outcome)],
      ["must be", wanted === undefined ? "" : amount(wanted)], ["gate", amount(found.gate)], ["process", amount(found.process)])];
    const word = (held) => held === null ? "n/a" : make("span", { class: held ? "good" : "bad" }, held ? "yes" : "no");
    const rows = [...Object.entries(found.checks).map(([name, held]) => [name, "check", word(held), found.faults[name] || ""]),
      ...Object.entries(found.criteria).map(([name, held]) => [name, "criterion", word(held), found.faults[name] || ""]),
      ...Object.entries(found.penalties).map(([name, much]) => [name, "penalty", amount(much), ""])];
    parts.push(table("Graded as", ["name", "kind", "good", "why not"], rows));
    return parts;
  }

  function stepper(task, line) {
    const places = way(task, line.leaf);
    const box = make("section", { "aria-label": "Steps", tabindex: "-1" }, make("h4", {}, `Steps of ${line.label}`, line.k === undefined ? "" : ` ${line.k}`));
    if (line.trouble) box.append(make("p", { class: "bad" }, line.trouble));
    if (line.differs) box.append(make("p", { class: "bad" }, "Played for this report, a call answered otherwise than is recorded."));
    const [sums, parts] = grade(line.grade, line.wanted) || ["", ""];
    box.append(sums);
    if (!places.length) {
      box.append(make("p", { class: "none" }, "It makes no call."), parts);
      return { box, whole: () => {}, brief: () => {} };
    }
    const detail = make("div", { "aria-live": "polite" });
    let current = 0;
    const buttons = places.map((place, number) => make("button", { type: "button", on: () => go(number) },
      `${number + 1} ${task.steps[place].t || "no tool call"}`, task.steps[place].ok === false ? " ✗" : "", task.steps[place].d >= 0 ? " ●" : ""));
    const previous = make("button", { type: "button", on: () => go(current - 1) }, "← Previous");
    const next = make("button", { type: "button", on: () => go(current + 1) }, "Next →");
    function go(number) {
      current = number;
      buttons.forEach((one, place) => (place === number ? one.setAttribute("aria-current", "step") : one.removeAttribute("aria-current")));
      previous.disabled = number === 0;
      next.disabled = number === places.length - 1;
      detail.replaceChildren(step(task, places[number], number + 1, places.length));
    }
    box.append(make("p", { class: "soft" }, "● changed the state, ✗ was refused"),
      make("div", { class: "moves" }, previous, next),
      make("div", { class: "stepper" }, make("ol", {}, buttons.map((one) => make("li", {}, one))), detail), parts);
    go(0);
    // On paper there are no buttons: every step is laid out.
    const whole = () => detail.replaceChildren(...places.map((place, number) => step(task, place, number + 1, places.length)));
    return { box, whole, brief: () => go(current) };
  }

  // --- the page of a task ---------------------------------------------------------------------------------

  function tools(world) {
    return world.tools.map((tool) => make("details", {}, make("summary", {}, make("code", {}, tool.name), ` (${tool.kind}) ${tool.doc || ""}`),
      (tool.parameters || []).length ? table("Parameters", ["name", "type", "what"], tool.parameters.map((one) => [one.name, one.type,
        [one.doc || "", one.enum ? ` (${one.enum.join(", ")})` : "", one.required === false ? " (may be left out)" : ""].join("")])) : make("p", { class: "soft" }, "No parameters."),
      tool.cost ? make("p", {}, `Costs ${tool.cost}.`) : null,
      make("p", { class: "soft" }, "SQL ", hidden()),
      pre([...(tool.guards || []).map((guard) => `guard: ${guard.sql}\n  else: ${guard.error}`), ...(tool.effects || []).map((sql) => `effect: ${sql}`),
        tool.result ? `result: ${tool.result}` : ""].filter(Boolean).join("\n\n") || "none")));
  }

  function worldParts(world) {
    const columns = (one) => one.columns.flatMap(([name, type, role, concealed], place) =>
      [place ? ", " : "", `${name} ${type}${role === "hard" ? "" : ` ${role}`}`, concealed && !one.hidden ? [" ", hidden()] : ""].flat());
    return [make("h3", {}, `Tools (${world.tools.length})`), ...tools(world),
      make("h3", {}, `Tables (${world.tables.length})`),
      make("details", {}, make("summary", {}, `World ${world.id}, clock ${world.clock}`),
        table("Tables", ["table", "rows", "columns"], world.tables.map((one) =>
          [make("span", {}, one.name, " ", one.hidden ? hidden() : "", one.tolerated ? " (changes here never count)" : ""), one.rows, make("span", {}, columns(one))]))),
      world.invariants.length ? make("details", {}, make("summary", {}, `Invariants (${world.invariants.length}) `, hidden()),
        ...world.invariants.flatMap((one) => [make("p", {}, `${one.id}: ${one.enforced ? "kept by the tools" : `stated in ${one.stated_in}`}`), pre(one.sql)])) : null];
  }

  function workspaceParts(task) {
    const list = (name, keys) => keys && keys.length ? make("details", {}, make("summary", {}, `${name} (${keys.length}) `, hidden()), pre(keys.join("\n"))) : null;
    return [make("h3", {}, "Workspace"), pairs(["environment", task.recipe], ["tests", task.command]),
      list("FAIL_TO_PASS", task.tests.fail_to_pass), list("PASS_TO_PASS", task.tests.pass_to_pass), list("flickering", task.tests.flickering),
      task.patch ? make("details", {}, make("summary", {}, "Reference patch ", hidden()), pre(task.patch),
        task.patch_left ? make("p", { class: "soft" }, `and ${task.patch_left} more characters`) : null) : null];
  }

  function verifierParts(task) {
    const parts = [make("h3", {}, "Checks ", hidden())];
    for (const check of task.checks) parts.push(make("h4", {}, `${check.id} (${check.kind})`), check.text ? pre(check.text) : null);
    parts.push(make("p", {}, task.reward));
    if (task.utility) {
      parts.push(make("h3", {}, "Utility and references ", hidden()), pre(task.utility.sql),
        table("References", ["policy", "realised", "score", "expected"], task.utility.rows.map(([name, got, score, mean]) => [name, rounded(got), rounded(score), rounded(mean)])),
        pairs(["score 0", amount(task.utility.default)], ["score 1", amount(task.utility.reference)], ["at most, in hindsight", amount(task.utility.hindsight)]));
    }
    if (task.rubric.length) {
      parts.push(make("h3", {}, "Rubric ", hidden()));
      for (const line of task.rubric) {
        parts.push(make("details", {}, make("summary", {}, `${line.class}: ${line.text}`), line.sql ? pre(line.sql) : null,
          line.prompt ? make("p", {}, `A judge is asked: ${line.prompt}`) : null, make("p", { class: "soft" }, "Evidence"), pre(line.evidence)));
      }
    }
    if (task.read_back) parts.push(make("details", {}, make("summary", {}, "Executable read-back ", hidden()), pre(task.read_back)));
    return parts;
  }

  function trajectoryParts(task, place) {
    const button = (line, label) => make("button", { type: "button", on: () => {
      shown = stepper(task, line);
      place.replaceChildren(shown.box);
      shown.box.focus();
    } }, label);
    const reward = (line) => {
      if (!line.grade) return line.trouble ? make("span", { class: "bad" }, "error") : make("span", { class: "soft" }, "not played");
      const wrong = line.wanted !== undefined && Math.abs(line.grade.outcome - line.wanted) > 1e-9;
      return make("span", { class: wrong ? "bad" : null, "data-number": true }, amount(line.grade.reward) + (wrong ? " ≠" : ""));
    };
    const parts = [make("h3", {}, `Panel (${task.panel.length}) `, hidden()),
      table("Labelled trajectories: the outcome that each must get, and the reward that it got", ["trajectory", "calls", "must get", "reward", "process"],
        task.panel.map((line) => [button(line, line.label), line.calls, rounded(line.wanted), reward(line), line.grade ? rounded(line.grade.process) : ""]))];
    if (task.attempts.length) {
      parts.push(make("h3", {}, `Attempts (${task.attempts.length})`), table(task.attempts_left ? `The first; ${task.attempts_left} more have no steps here` : "Attempts of policies",
        ["attempt", "calls", "ending", "failure", "reward", "process"],
        task.attempts.map((line) => [button(line, `${line.label} ${line.k}`), line.calls, line.ending, line.failure, rounded(line.grade.reward), rounded(line.grade.process)])));
    }
    return [...parts, place];
  }

  function page(task) {
    const strength = Object.entries(task.strength).map(([name, count]) => `${name.replaceAll("_", " ")} ${amount(count)}`).join(", ");
    const world = task.world ? JSON.parse(document.getElementById(`world-${task.world}`).textContent) : null;
    article.append(...[
      make("p", { class: "back" }, make("a", { href: "#tasks" }, "← All tasks")),
      make("h2", {}, task.id),
      pairs(["tier", task.tier], ["source", `${task.source} at ${task.revision}`], ["made by", `${task.generator}, ${task.strategy}, ${task.ref}`],
        ["text by", task.author], ["budget", `${task.budget.turns} calls${task.budget.cost === null ? "" : `, cost ${task.budget.cost}`}`],
        ["grader", strength], ["verdicts", task.verdicts.map((one) => `${one[0]} ${one[1]}: ${one[2]}`).join(", ")]),
      task.trouble ? make("p", { class: "bad" }, task.trouble) : null,
      make("h3", {}, "Instruction"), make("div", { class: "instruction" }, task.instruction),
      ...(task.hint ? [make("h4", {}, "Hint ", hidden()), make("div", { class: "instruction" }, task.hint)] : []),
      ...(world ? worldParts(world) : task.trouble ? [] : workspaceParts(task)), ...verifierParts(task), ...trajectoryParts(task, make("div", {})),
    ].filter((one) => one !== null));
  }

  function route(first) {
    const found = /^#task=(.*)$/.exec(location.hash);
    const name = found ? decodeURIComponent(found[1]) : "";
    const block = blocks.get(name);
    article.replaceChildren();
    shown = null;
    overview.hidden = article.hidden = false;
    if (block) {
      page(JSON.parse(block.textContent));
      overview.hidden = true;
      document.title = `${name} – ${title}`;
      window.scrollTo(0, 0);
      article.focus({ preventScroll: true });
    } else {
      article.hidden = true;
      document.title = title;
      const target = location.hash.length > 1 && !found ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
      if (target && !first) target.scrollIntoView();
    }
  }

  const filter = document.getElementById("filter");
  if (filter) {
    const rows = [...document.querySelectorAll("#list tbody tr")];
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      document.getElementById("filtered").textContent = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
    });
  }
  let closed = [];
  window.addEventListener("beforeprint", () => {
    if (shown) shown.whole();
    closed = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.closest("[hidden]"));
    for (const one of closed) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    if (shown) shown.brief();
    for (const one of closed) one.open = false;
  });
  // The address names the task: the skip link moves the focus without changing it.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    (article.hidden ? document.getElementById("main") : article).focus();
  });
  window.addEventListener("hashchange", () => route(false));
  route(true);
})();
