// Draws the page from its data. All text goes in as text nodes, never as markup.
// The search and the filters are kept in the address, after the #, so that they can be saved and linked to:
//   q=words  show=changed|flagged  group=name  first=1 (to check first)  open=3 (number in the file)  theme=dark
"use strict";
(() => {
  const STRONG = 2; // PMI of a token that has the full colour, as on the terminal; less where all are weak
  const CHUNK = 40; // rows that are drawn at a time
  const ROW = 50; // pixels of a row that is not drawn yet
  const THEMES = { "": "Theme: auto", light: "Theme: light", dark: "Theme: dark" };

  const by = (id) => document.getElementById(id);
  const data = JSON.parse(by("data").textContent);
  const segments = data.segments;
  const [sourceName, comparedName, textName] = data.columns;
  const groups = [...new Set(segments.map((segment) => segment.group))];
  const flagged = (segment) => Boolean(segment.flags);
  const KINDS = { "": () => true, changed: (segment) => segment.changed, flagged };
  const has = {
    compared: segments.some((segment) => segment.compared),
    notes: segments.some((segment) => segment.flags || segment.notes || "confidence" in segment),
    confidence: segments.some((segment) => "confidence" in segment),
    tokens: segments.some((segment) => segment.parts?.some((part) => part.tokens)),
  };
  const strong = fullColour();
  const rows = new Map(); // index → its element, made once
  let state = {};

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  const figure = (value) => (value === null ? "" : value.toFixed(2).replace("-", "−"));
  const signed = (value) => (value > 0 ? "+" : "") + figure(value);
  const count = (number) => number.toLocaleString("en");
  const plain = (runs) => runs.map((run) => (typeof run === "string" ? run : run[0])).join("");

  // ---- texts

  // A high temperature makes every PMI small: the strongest hundredth of the page's tokens has the full colour.
  function fullColour() {
    const all = segments.flatMap((one) => (one.parts ?? []).flatMap((part) => (part.tokens ?? []).map(([, pmi]) => Math.abs(pmi))));
    all.sort((a, b) => a - b);
    return Math.min(STRONG, Math.max(STRONG / 8, all[Math.floor(all.length * 0.99)] ?? STRONG));
  }

  function tinted(element, pmi) {
    element.style.setProperty("--tint", pmi < 0 ? "var(--less)" : "var(--more)");
    element.style.setProperty("--strength", `${Math.round(Math.min(1, Math.abs(pmi) / strong) * 60)}%`);
    return element;
  }

  function drawnRun(run) {
    if (run.length < 3 || run[2] === null) return run[0];
    return tinted(make("span", { class: "token", "data-pmi": signed(run[2]) }, run[0]), run[2]);
  }

  // Neighbouring runs that differ are one mark, whatever tokens they are made of.
  function drawnText(runs) {
    const drawn = [];
    let mark = null;
    for (const run of runs) {
      if (typeof run === "string" || !run[1]) {
        mark = null;
        drawn.push(typeof run === "string" ? run : drawnRun(run));
      } else {
        if (!mark) drawn.push((mark = make("mark")));
        mark.append(drawnRun(run));
      }
    }
    return drawn;
  }

  // ---- an open segment

  function tokenRow(name, tokens, language) {
    const total = tokens.reduce((sum, [, pmi]) => sum + (pmi ?? 0), 0);
    const drawn = tokens.map(([text, pmi], place) => {
      const end = place === tokens.length - 1;
      const word = make("span", end ? { class: "end", title: "end of the sentence" } : {}, end ? "■" : text.trim() || "␣");
      const begins = text.startsWith(" ") || end ? " begins" : "";
      return tinted(make("span", { class: `token${begins}` }, word, make("small", {}, signed(pmi))), pmi ?? 0);
    });
    return make("div", {},
      make("h3", {}, `${name}, PMI `, make("b", {}, signed(total))),
      make("div", { class: "tokens", dir: "auto", lang: language }, ...drawn));
  }

  // The words that a text shares with the chosen one at its beginning and at its end are dim.
  function against(text, chosen) {
    const [words, others] = [text.split(" "), chosen.split(" ")];
    const shorter = Math.min(words.length, others.length);
    let head = 0;
    let tail = 0;
    while (head < shorter && words[head] === others[head]) head += 1;
    while (tail < shorter - head && words.at(-1 - tail) === others.at(-1 - tail)) tail += 1;
    const part = (from, to) => words.slice(from, to).join(" ");
    const end = words.length - tail;
    return [
      make("span", { class: "shared" }, part(0, head) + (head && head < words.length ? " " : "")),
      part(head, end) + (tail && end > head ? " " : ""),
      make("span", { class: "shared" }, part(end)),
    ];
  }

  function hypotheses(list) {
    const chosen = list.find((one) => one[4])?.[0] ?? "";
    const columns = [["score", 1], ["log p(y|x)", 2], ["PMI", 3]].filter(([, place]) => list.some((one) => one[place] !== null));
    const head = make("tr", {}, make("th", { class: "wide", scope: "col" }, `${list.length} ${data.details}`),
      ...columns.map(([name]) => make("th", { scope: "col" }, name)));
    const body = list.map((one) => {
      const [text, , , pmi, isChosen, note] = one;
      const words = isChosen ? [text] : against(text, chosen);
      const tag = note ? make("span", { class: "tag", lang: "en" }, note) : null;
      return make("tr", { class: isChosen ? "chosen" : "" },
        make("td", { class: "wide", dir: "auto", lang: data.languages[1] }, ...words, tag),
        ...columns.map(([name, place]) => make("td", {
          "data-label": name,
          class: place === 3 && Math.abs(pmi) >= 0.05 ? (pmi > 0 ? "up" : "down") : "",
        }, place === 3 ? signed(one[place]) : figure(one[place]))));
    });
    return make("table", { class: "hypotheses" }, make("thead", {}, head), make("tbody", {}, ...body));
  }

  function context(sentences) {
    const lines = sentences.map((text) => make("li", { dir: "auto", lang: data.languages[1] }, text));
    return sentences.length
      ? make("div", {}, make("h3", {}, "context"), make("ol", { class: "context" }, ...lines))
      : make("h3", {}, "no context: nothing stands before it");
  }

  function drawnPart(part) {
    return [
      part.context ? context(part.context) : null,
      part.tokens ? tokenRow(textName, part.tokens, data.languages[1]) : null,
      part.compared ? tokenRow(comparedName, part.compared, data.languages[1]) : null,
      part.hypotheses ? hypotheses(part.hypotheses) : null,
    ];
  }

  function toggle(index, open) {
    const row = drawnRow(index);
    const button = row.querySelector("button.number");
    if (!button) return;
    let details = row.querySelector(".details");
    if (!details) {
      const where = groups.length > 1 ? make("h3", {}, `${segments[index].group} · ${segments[index].label}`) : null;
      details = make("div", { class: "details", id: `details-${index}` }, ...[where, ...segments[index].parts.flatMap(drawnPart)].filter(Boolean));
      row.append(details);
    }
    const opened = open ?? !row.classList.contains("open");
    details.hidden = !opened;
    row.classList.toggle("open", opened);
    button.setAttribute("aria-expanded", String(opened));
  }

  // ---- a segment

  function notes(segment) {
    const remarks = (kind) => (segment[`${kind}s`] ?? []).map((text) => make("span", { class: kind }, text));
    const drawn = [...remarks("flag"), ...remarks("note")];
    if ("confidence" in segment) {
      drawn.push(make("span", { class: "confidence", title: "confidence" }, figure(segment.confidence)));
    }
    return make("div", { class: "notes" }, ...drawn);
  }

  function drawnRow(index) {
    if (rows.has(index)) return rows.get(index);
    const segment = segments[index];
    const [source, target] = data.languages;
    const opens = Boolean(segment.parts);
    const name = `${segment.group}, ${segment.label}: ${data.details}`;
    const number = opens
      ? make("button", { class: "number", type: "button", "aria-expanded": "false", "aria-controls": `details-${index}`, "aria-label": name }, segment.label)
      : make("span", { class: "number" }, segment.label);
    const text = (kind, label, language, runs) => make("p", { class: kind, "data-label": label, dir: "auto", lang: language }, ...drawnText(runs));
    const row = make("article", {
      class: `row${segment.changed ? "" : " same"}${flagged(segment) ? " flagged" : ""}`,
      "data-index": index,
      "data-opens": opens,
    }, number, text("source", sourceName, source, [segment.source]),
      has.compared ? text("compared", comparedName, target, segment.compared ?? []) : null,
      text("text", textName, target, segment.text), has.notes ? notes(segment) : null);
    rows.set(index, row);
    return row;
  }

  // ---- which segments, and in which order

  const folded = (text) => text.normalize("NFKC").toLowerCase();
  let haystacks = null;

  function chosen() {
    const query = folded(state.q).trim();
    if (query) {
      haystacks ??= segments.map((one) => folded([one.source, plain(one.compared ?? []), plain(one.text), ...(one.flags ?? [])].join("\n")));
    }
    const fits = (one, index) => KINDS[state.show](one) && (!state.group || one.group === state.group) && (!query || haystacks[index].includes(query));
    const kept = segments.map((_, index) => index).filter((index) => fits(segments[index], index));
    if (!state.first) return kept;
    const doubt = (index) => (flagged(segments[index]) ? segments[index].confidence ?? 1 : Infinity);
    return kept.sort((a, b) => (doubt(a) === doubt(b) ? a - b : doubt(a) - doubt(b)));
  }

  // ---- the list, a chunk at a time: visible rows first, the rest when there is time

  let drawing = 0;
  let listed = []; // indexes of the segments that are shown
  let chunks = [];
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) entry.target.fill?.();
  }, { rootMargin: "1200px" });
  const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 30));

  function newChunk(indexes, before, after) {
    const chunk = make("div", { class: "chunk" });
    chunk.style.minHeight = `${indexes.length * ROW}px`;
    chunk.style.containIntrinsicSize = `auto ${indexes.length * ROW}px`;
    const heads = groups.length > 1 && !state.first;
    const same = (one, other) => one !== undefined && other !== undefined && (!heads || segments[one].group === segments[other].group);
    chunk.fill = () => {
      chunk.fill = null;
      near.unobserve(chunk);
      indexes.forEach((index, place) => {
        const row = drawnRow(index);
        const begins = !same(place ? indexes[place - 1] : before, index);
        row.classList.toggle("first", begins);
        row.classList.toggle("last", !same(index, place + 1 < indexes.length ? indexes[place + 1] : after));
        if (begins && heads) chunk.append(make("h2", { class: "group", dir: "auto" }, segments[index].group));
        chunk.append(row);
      });
      chunk.style.minHeight = "";
      markFound(chunk);
    };
    return chunk;
  }

  function draw() {
    const mine = (drawing += 1);
    listed = chosen();
    near.disconnect();
    CSS.highlights?.clear();
    chunks = [];
    for (let start = 0; start < listed.length; start += CHUNK) {
      chunks.push(newChunk(listed.slice(start, start + CHUNK), listed[start - 1], listed[start + CHUNK]));
    }
    chunks[0]?.fill();
    const nothing = make("p", { class: "empty" }, segments.length ? `No ${data.what} like that.` : data.empty);
    by("list").replaceChildren(...(chunks.length ? chunks : [nothing]));
    chunks.forEach((chunk) => chunk.fill && near.observe(chunk));
    by("count").textContent = `${count(listed.length)} of ${count(segments.length)} ${data.what}`;
    // All of it is there in the end: the browser's own search finds it too.
    const rest = () => {
      if (mine !== drawing) return;
      const next = chunks.find((chunk) => chunk.fill);
      if (!next) return;
      next.fill();
      whenIdle(rest);
    };
    whenIdle(rest);
    onbeforeprint = () => chunks.forEach((chunk) => chunk.fill?.());
  }

  function markFound(chunk) {
    const query = state.q.trim().toLowerCase();
    if (!query || !window.Highlight) return;
    const found = CSS.highlights.get("found") ?? new Highlight();
    const walker = document.createTreeWalker(chunk, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.data.toLowerCase();
      for (let place = text.indexOf(query); place >= 0; place = text.indexOf(query, place + query.length)) {
        const range = new Range();
        range.setStart(walker.currentNode, place);
        range.setEnd(walker.currentNode, Math.min(place + query.length, walker.currentNode.length));
        found.add(range);
      }
    }
    CSS.highlights.set("found", found);
  }

  // ---- the state, and the controls that show it

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const known = (name, values) => (values.includes(given.get(name)) ? given.get(name) : "");
    state = {
      q: given.get("q") ?? "",
      show: known("show", Object.keys(KINDS)),
      group: known("group", groups),
      first: given.get("first") === "1",
      open: given.get("open") ?? "",
      theme: known("theme", Object.keys(THEMES)),
    };
    by("q").value = state.q;
    by("group").value = state.group;
    by("first").checked = state.first;
    const choice = document.querySelector(`#show input[value="${state.show}"]`);
    if (choice) choice.checked = true;
    document.documentElement.dataset.theme = state.theme;
    by("theme").textContent = THEMES[state.theme];
  }

  function change(changes, redraw = true) {
    Object.assign(state, changes);
    const kept = new URLSearchParams();
    for (const [name, value] of Object.entries(state)) if (value) kept.set(name, value === true ? "1" : value);
    history.replaceState(null, "", `#${kept}`);
    read();
    if (redraw) draw();
  }

  function drawFrame() {
    const total = (kind) => segments.filter(KINDS[kind]).length;
    const counts = [[segments.length, data.what], ...(data.changed ? [[total("changed"), data.changed]] : []), ...(has.confidence ? [[total("flagged"), "to check"]] : [])];
    by("summary").append(...counts.flatMap(([number, what], place) => [place ? " · " : "", make("b", {}, count(number)), ` ${what}`]));
    by("facts").append(...data.facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", { dir: "auto" }, value))));
    by("figures").hidden = !(data.figures.length || data.pictures.length);
    by("figures").append(...data.figures.map(drawnFigures), ...data.pictures.map((picture) =>
      make("figure", { class: "figure" }, make("img", { src: picture.uri, alt: picture.title }))));
    by("segments").hidden = false;
    document.querySelector(".bar").hidden = !segments.length;
    const kinds = [["", "all"], ["changed", "changed"], ["flagged", "to check"]].filter(([kind]) => !kind || (total(kind) && total(kind) < segments.length));
    if (kinds.length > 1) {
      by("show").append(...kinds.map(([kind, name]) => make("label", {}, make("input", { type: "radio", name: "show", value: kind }), name, " ", make("small", {}, count(total(kind))))));
    }
    by("show").hidden = kinds.length < 2;
    by("group").append(make("option", { value: "" }, `all ${data.groups}`), ...groups.map((name) => make("option", { value: name }, name)));
    by("group-label").hidden = groups.length < 2;
    by("first-label").hidden = !segments.some(flagged);
    by("legend").hidden = !has.tokens;
    by("legend").title = `full colour from a PMI of ±${figure(strong)}`;
    by("columns").append(...data.columns.filter((_, place) => place !== 1 || has.compared).map((name) => make("span", {}, name)));
    if (has.confidence) by("columns").append(make("span", { class: "end" }, "confidence"));
    document.documentElement.style.setProperty("--texts", has.compared ? 3 : 2);
    const longest = segments.reduce((most, segment) => Math.max(most, segment.label.length), 0);
    if (longest > 4) document.documentElement.style.setProperty("--label", `${longest * 0.5 + 1.5}rem`);  // times are longer than numbers
    document.documentElement.toggleAttribute("data-notes", has.notes);
  }

  function drawnFigures(table) {
    const head = make("tr", {}, ...table.columns.map((name) => make("th", { scope: "col" }, name)));
    const body = table.rows.map(([first, ...cells]) => make("tr", {}, make("th", { scope: "row" }, first), ...cells.map((cell) => make("td", {}, cell))));
    return make("div", { class: "figure" }, make("h2", {}, table.title),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))),
      table.note ? make("p", { class: "note" }, table.note) : null);
  }

  function listen() {
    let waiting = 0;
    by("q").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => change({ q: by("q").value }), 120);
    });
    by("controls").addEventListener("submit", (event) => event.preventDefault());
    by("show").addEventListener("change", (event) => change({ show: event.target.value }));
    by("group").addEventListener("change", () => change({ group: by("group").value }));
    by("first").addEventListener("change", () => change({ first: by("first").checked }));
    by("theme").addEventListener("click", () => {
      const names = Object.keys(THEMES);
      change({ theme: names[(names.indexOf(state.theme) + 1) % names.length] }, false);
    });
    by("skip").addEventListener("click", () => by("list").focus());
    by("list").addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      const selecting = String(getSelection()) && !event.target.closest("button");
      if (!row || selecting || event.target.closest(".details")) return;
      const index = Number(row.dataset.index);
      toggle(index);
      change({ open: row.classList.contains("open") ? String(index + 1) : "" }, false);
    });
    by("list").addEventListener("mouseover", (event) => tell(event.target.closest("p .token")));
    by("list").addEventListener("mouseleave", () => tell(null));
    addEventListener("scroll", () => tell(null), { passive: true });
    addEventListener("hashchange", () => { read(); draw(); openLinked(); });
    addEventListener("keydown", keyPressed);
  }

  function keyPressed(event) {
    const typing = event.target.matches?.("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      by("q").focus();
    } else if (/^Arrow(Up|Down)$/.test(event.key) && event.target.matches?.("button.number")) {
      const buttons = [...document.querySelectorAll("button.number")];
      buttons[buttons.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
      event.preventDefault();
    }
  }

  function tell(token) {
    const tip = by("tip");
    tip.hidden = !token;
    if (!token) return;
    tip.textContent = `PMI ${token.dataset.pmi}`;
    const box = token.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${box.top - tip.offsetHeight - 4 < 0 ? box.bottom + 4 : box.top - tip.offsetHeight - 4}px`;
  }

  function openLinked() {
    const index = Number(state.open) - 1;
    const place = listed.indexOf(index);
    if (place < 0) return;
    chunks[Math.floor(place / CHUNK)].fill?.();
    toggle(index, true);
    rows.get(index).scrollIntoView({ block: "nearest" });
  }

  drawFrame();
  read();
  draw();
  openLinked();
  listen();
  document.documentElement.dataset.ready = Math.round(performance.now()); // milliseconds, for benchmarks
})();
