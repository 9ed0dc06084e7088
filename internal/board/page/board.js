"use strict";
(() => {
const $ = id => document.getElementById(id);
const runs = new Map(), lines = new Map(), charts = new Map();
const view = {x: "step", from: null, to: null, log: false, filter: ""};
const shown = new Map(); // by name: a restarted server has other numbers
let current = null, boot = null, skew = 0, token = sessionStorage.getItem("lazo-token") || "", stream = null, tried = 0;

// The token comes in the fragment, which no server sees, and leaves the address bar.
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.get("token")) {
  token = fragment.get("token");
  sessionStorage.setItem("lazo-token", token);
  history.replaceState(null, "", location.pathname + location.search);
}

const headers = more => token ? {Authorization: "Bearer " + token, ...more} : {...more};
const element = (name, attributes, ...content) => {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...content.filter(c => c !== null && c !== undefined));
  return e;
};
const number = v => {
  if (v === null || v === undefined || Number.isNaN(v)) return "–";
  const a = Math.abs(v);
  return a !== 0 && (a < 1e-3 || a >= 1e7) ? v.toExponential(3) : String(+v.toPrecision(5));
};
const count = n => n.toLocaleString("en");
const duration = s => {
  s = Math.round(s);
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  return d ? `${d} d ${h} h` : h ? `${h} h ${m} min` : m ? `${m} min ${s % 60} s` : `${s} s`;
};
const bytes = b => b >= 2 ** 30 ? (b / 2 ** 30).toFixed(2) + " GiB" : (b / 2 ** 20).toFixed(0) + " MiB";
const dark = matchMedia("(prefers-color-scheme: dark)");
const palette = () => dark.matches
  ? ["#6ea8fe", "#ff9f5a", "#5bd28a", "#ff7f9f", "#c59bff", "#4dd4d4", "#e6cc55", "#b8a38f", "#9fb4c8", "#f291e0"]
  : ["#1f6fd6", "#d9630b", "#178a4a", "#c8264f", "#7a45c8", "#0a8a8f", "#97800a", "#7b5a3c", "#4d6478", "#b03a9c"];
const colorOf = run => palette()[(run.id - 1) % 10];
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const statusOf = run => run.status || "unknown";
const isShown = run => shown.get(run.name) ?? false;

// Events.

async function connect() {
  const control = new AbortController();
  stream?.abort();
  stream = control;
  let alive = Date.now();
  const watch = setInterval(() => { if (Date.now() - alive > 40000) control.abort(); }, 5000);
  try {
    const answer = await fetch("events", {headers: headers(), signal: control.signal, cache: "no-store"});
    if (answer.status === 401) return ask(await answer.text());
    if (!answer.ok) throw new Error(await answer.text());
    $("login").hidden = true;
    lines.clear();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const {value, done} = await reader.read();
      if (done) break;
      alive = Date.now();
      tried = 0;
      connected(true);
      text += value;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) receive(text.slice(0, end));
    }
  } catch (err) {
    if (stream !== control || document.hidden) return;
  } finally {
    clearInterval(watch);
  }
  if (stream === control) again();
}

function again() {
  const wait = Math.min(5000, 500 * 2 ** tried++);
  connected(false);
  setTimeout(() => { if (!document.hidden) connect(); }, wait);
}

function connected(on) {
  $("connection").className = on ? "on" : "off";
  const text = on ? "live" : "no connection, trying again …";
  if ($("connection").textContent !== text) $("connection").textContent = text;
}

function ask(why) {
  connected(false);
  $("connection").textContent = "token needed";
  $("login").hidden = false;
  $("login-problem").textContent = token ? why : "";
  $("token").focus();
}

$("login").addEventListener("submit", e => {
  e.preventDefault();
  token = $("token").value.trim();
  sessionStorage.setItem("lazo-token", token);
  connect();
});

function receive(text) {
  const event = /^event: (.*)$/m.exec(text)?.[1], data = /^data: (.*)$/m.exec(text)?.[1];
  if (!event || !data) return;
  const content = JSON.parse(data);
  if (event === "runs") takeRuns(content);
  if (event === "lines") {
    const all = lines.get(content.run) || [];
    all.push(...content.lines);
    lines.set(content.run, all.slice(-1000));
    if (content.run === current) showLines();
  }
}

function takeRuns(e) {
  if (boot !== e.boot) { // a new server, with new numbers
    const name = runs.get(current)?.name;
    boot = e.boot;
    runs.clear();
    for (const c of charts.values()) c.cache.clear();
    current = e.runs.find(r => r.name === name)?.id ?? null;
  }
  skew = Date.now() / 1000 - e.now;
  for (const id of e.gone) runs.delete(id);
  for (const r of e.runs) {
    if (!shown.has(r.name)) shown.set(r.name, [...runs.values()].filter(isShown).length < 10);
    runs.set(r.id, r);
  }
  if (!runs.has(current)) current = [...runs.keys()].at(-1) ?? null;
  for (const r of e.runs) if (r.samples_shown !== r.shown) r.samples_shown = r.shown;
  show();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { stream?.abort(); stream = null; }
  else connect();
});

// The list of runs.

function show() {
  const running = [...runs.values()].filter(r => r.status === "running").length;
  document.title = (running ? `▶ ${running} · ` : "") + "lazo board";
  $("empty").hidden = runs.size > 0;
  $("details").hidden = current === null;
  showRuns();
  showDetails();
  showSearches();
  layoutCharts();
  refresh();
}

const mainValue = run => run.series?.find(s => s.name.startsWith("losses.")) ?? run.series?.[0];

function showRuns() {
  const list = $("runs");
  const there = new Map([...list.children].map(li => [+li.dataset.run, li]));
  const all = [...runs.values()];
  for (const [id, li] of there) if (!runs.has(id)) li.remove();
  all.forEach((run, i) => {
    let li = there.get(run.id);
    if (!li) {
      li = element("li", {role: "option", "data-run": run.id},
        element("span", {class: "swatch"}), element("span", {class: "name"}), element("span", {class: "status"}), element("span", {class: "about"}));
      li.addEventListener("click", e => { choose(run.id); if (e.target.classList.contains("swatch")) toggle(run.id); });
    }
    if (list.children[i] !== li) list.insertBefore(li, list.children[i] ?? null);
    const [swatch, name, status, about] = li.children;
    swatch.style.borderColor = colorOf(run);
    swatch.style.background = isShown(run) ? colorOf(run) : "transparent";
    if (name.textContent !== run.name) name.textContent = name.title = run.name;
    status.textContent = run.search ? "search" : statusOf(run);
    status.className = "status " + statusOf(run);
    const value = mainValue(run);
    const ended = run.search?.trials.filter(t => t.ended).length;
    about.textContent = run.search ? `${ended} trials` + (run.search.trials[0]?.value !== undefined && run.search.trials[0]?.value !== null ? ` · best ${number(run.search.trials[0].value)}` : "") : `step ${count(run.steps)}` + (value ? ` · ${value.name.split(".").slice(1).join(".")} ${number(parseFloat(value.value))}` : "");
    li.setAttribute("aria-selected", isShown(run));
    li.setAttribute("aria-current", run.id === current);
    li.tabIndex = run.id === current ? 0 : -1;
  });
}

function choose(id) {
  current = id;
  showRuns();
  showDetails(true);
}

function toggle(id) {
  const run = runs.get(id);
  shown.set(run.name, !isShown(run));
  show();
}

$("runs").addEventListener("keydown", e => {
  const ids = [...runs.keys()], at = ids.indexOf(current);
  const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: ids.length - 1}[e.key];
  if (to !== undefined && ids[to] !== undefined) {
    choose(ids[to]);
    document.querySelector(`#runs [data-run="${current}"]`).focus();
  } else if (e.key === " ") toggle(current);
  else if (to === undefined) return;
  e.preventDefault();
});

// The selected run.

let built = null; // the run of the panel

function showDetails() {
  const run = runs.get(current), panel = $("details");
  if (!run) { panel.replaceChildren(); built = null; return; }
  const key = run.id + boot + (run.actions || []).join();
  if (built !== key) {
    built = key;
    const wide = innerWidth > 720;
    panel.replaceChildren(
      element("h2", {}, run.name),
      element("div", {id: "state"}),
      element("div", {id: "controls"}),
      element("dl", {id: "numbers"}),
      element("details", {id: "lines-box", open: wide}, element("summary", {}, "Log"), element("pre", {id: "lines", role: "log", tabindex: "0", "aria-label": "Log lines"})),
      element("details", {id: "samples-box"}, element("summary", {}, "Samples"), element("div", {id: "samples"})),
      element("details", {id: "values-box", open: wide}, element("summary", {}, "Newest values"), element("dl", {id: "values"})),
      element("details", {id: "settings-box"}, element("summary", {}, "Settings"), element("dl", {id: "settings"})));
    showControls(run);
    $("samples").dataset.shown = "";
    showLines();
  }
  const state = run.search ? [] : [element("span", {class: "status " + statusOf(run)}, statusOf(run))];
  if (run.why) state.push(element("p", {}, run.why));
  if (run.error) state.push(element("p", {class: "problem"}, run.error));
  if (run.progress > 0) state.push(element("progress", {value: run.progress, max: 1, "aria-label": "done of " + run.until}));
  $("state").replaceChildren(...state);
  const newest = name => { const s = run.series?.find(s => s.name === name); return s ? parseFloat(s.value) : null; };
  const remaining = run.status === "running" && run.progress > 0 && run.progress < 1 ? run.seconds / run.progress * (1 - run.progress) : null;
  const rows = run.search ? [["trials", count(run.search.trials.length)]] : [["steps", count(run.steps)], run.epochs ? ["epochs", count(run.epochs)] : null, run.samples ? ["examples", count(run.samples)] : null,
    ["active time", duration(run.seconds)], remaining !== null ? ["remaining, about", duration(remaining)] : null,
    run.until ? ["until", run.until] : null,
    pair("steps per second", newest("throughput.steps per second"), number), pair("examples per second", newest("throughput.examples per second"), number),
    pair("waiting for data", newest("throughput.waiting for data"), v => (100 * v).toFixed(1) + " %"),
    pair("memory", newest("resources.memory"), bytes), pair("CPU cores", newest("resources.CPU cores"), number),
    run.rate !== null && run.rate !== undefined ? ["learning rate", number(run.rate)] : null,
    ["updated", duration(Math.max(0, Date.now() / 1000 - skew - run.updated)) + " ago"]];
  fill($("numbers"), rows.filter(Boolean));
  fill($("values"), (run.series || []).filter(s => !/^(throughput|resources)\./.test(s.name)).map(s => [s.name, number(parseFloat(s.value)) === "–" ? s.value : number(parseFloat(s.value))]));
  const others = [...runs.values()].filter(r => r.settings && r !== run);
  fill($("settings"), Object.entries(run.settings || {}).sort().map(([k, v]) => [k, v, others.some(r => r.settings[k] !== v) ? "differs" : null]));
  $("settings-box").hidden = !run.settings || !Object.keys(run.settings).length;
  $("values-box").hidden = !run.series?.length;
  $("lines-box").hidden = !(lines.get(run.id) || []).length;
  $("samples-box").hidden = !run.shown;
  if (run.shown && $("samples").dataset.shown !== String(run.shown)) loadSamples(run);
}

const pair = (name, v, text) => v === null || Number.isNaN(v) ? null : [name, text(v)];

function fill(list, rows) {
  while (list.children.length > 2 * rows.length) list.lastChild.remove();
  rows.forEach(([name, value, kind], i) => {
    if (list.children.length <= 2 * i) list.append(element("dt"), element("dd"));
    const [dt, dd] = [list.children[2 * i], list.children[2 * i + 1]];
    if (dt.textContent !== name) dt.textContent = name;
    if (dd.textContent !== value) dd.textContent = value;
    dd.className = kind || "";
  });
}

function showLines() {
  const pre = $("lines");
  if (!pre) return;
  const all = lines.get(current) || [];
  $("lines-box").hidden = !all.length;
  const below = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 20;
  pre.textContent = all.map(l => new Date(1000 * (l.at + skew)).toLocaleTimeString() + "  " + l.text).join("\n");
  if (below) pre.scrollTop = pre.scrollHeight;
}

async function loadSamples(run) {
  const box = $("samples");
  box.dataset.shown = run.shown;
  const answer = await fetch("samples?run=" + run.id, {headers: headers()}).catch(() => null);
  if (!answer?.ok || current !== run.id) return;
  const all = await answer.json();
  box.replaceChildren(...all.reverse().map(s => element("figure", {}, element("figcaption", {}, `step ${count(s.Step)} · ${s.Name}`),
    s.PNG ? element("img", {src: "data:image/png;base64," + s.PNG, alt: `${s.Name} at step ${s.Step}`}) : element("pre", {}, s.Text))));
}

// Changes of a training.

function showControls(run) {
  const actions = run.actions || [], box = $("controls");
  if (!actions.length) return box.replaceChildren();
  const answer = element("p", {role: "status"});
  const act = async (action, value) => {
    answer.className = "";
    answer.textContent = "…";
    const body = JSON.stringify({run: run.id, action, value: value || 0});
    const got = await fetch("control", {method: "POST", headers: headers({"Content-Type": "application/json"}), body}).catch(err => ({ok: false, text: () => String(err)}));
    answer.textContent = got.ok ? {stop: "stops after this step", pause: "pauses after this step", save: "saves after this step", rate: "the rate changes after this step"}[action] : (await got.text()).trim();
    answer.className = got.ok ? "" : "problem";
    if (got.status === 401) { $("login").hidden = false; $("token").focus(); }
  };
  const sure = (action, label, title) => {
    const b = element("button", {type: "button", class: "danger", title, "data-action": action}, label);
    b.addEventListener("click", () => {
      if (b.classList.contains("sure")) { b.classList.remove("sure"); b.textContent = label; act(action); return; }
      b.classList.add("sure");
      b.textContent = "Really " + label.toLowerCase() + "?";
      setTimeout(() => { b.classList.remove("sure"); b.textContent = label; }, 4000);
    });
    return b;
  };
  const buttons = [];
  if (actions.includes("save")) buttons.push(element("button", {type: "button", "data-action": "save", onclick: () => act("save")}, "Save now"));
  if (actions.includes("pause")) buttons.push(sure("pause", "Pause", "End the run so that it can be resumed"));
  if (actions.includes("stop")) buttons.push(sure("stop", "Stop", "End the run as complete"));
  if (actions.includes("rate")) {
    const input = element("input", {type: "text", inputmode: "decimal", "aria-label": "Learning rate", value: run.rate ?? "", id: "rate"});
    buttons.push(element("form", {onsubmit: e => {
      e.preventDefault();
      const v = Number(input.value);
      if (input.value.trim() === "" || !Number.isFinite(v) || v < 0) { answer.className = "problem"; answer.textContent = "expected a number from 0 on, such as 3e-4"; return; }
      act("rate", v);
    }}, element("label", {}, "Learning rate ", input), element("button", {"data-action": "rate"}, "Set")));
  }
  box.replaceChildren(element("div", {class: "controls"}, ...buttons), answer);
}

// Curves.

// Values of evaluations are in the chart of the training's.
const baseOf = name => name.replace(/^([^.]*)\.(?:val_|test_)?(.*?)(?:_val|_test)?$/, "$1.$2");

const seen = new IntersectionObserver(entries => {
  for (const e of entries) e.target.chart.visible = e.isIntersecting;
  refresh();
}, {rootMargin: "200px"});
const resized = new ResizeObserver(entries => { for (const e of entries) e.target.chart.resize(); });

function layoutCharts() {
  const wanted = new Map();
  for (const run of runs.values()) {
    if (!isShown(run)) continue;
    for (const s of run.series || []) {
      if (view.filter && !s.name.toLowerCase().includes(view.filter)) continue;
      const base = baseOf(s.name);
      if (!wanted.has(base)) wanted.set(base, []);
      wanted.get(base).push({run, name: s.name, key: run.id + " " + s.name, n: s.n, step: s.step});
    }
  }
  for (const [name, chart] of charts) if (!wanted.has(name)) { chart.remove(); charts.delete(name); }
  const main = $("charts");
  const groups = new Map([...main.querySelectorAll("section[data-group]")].map(s => [s.dataset.group, s]));
  let before = null;
  for (const [name, curves] of wanted) {
    const group = name.split(".")[0];
    let section = groups.get(group);
    if (!section) {
      section = element("section", {"data-group": group}, element("h2", {}, group), element("div", {class: "grid"}));
      groups.set(group, section);
      if (before) before.after(section); else main.append(section);
    }
    before = section;
    let chart = charts.get(name);
    if (!chart) {
      charts.set(name, chart = new Chart(name));
      section.lastChild.append(chart.box);
    }
    chart.take(curves);
  }
  for (const section of groups.values()) if (!section.querySelector(".chart")) section.remove();
}

class Chart {
  constructor(name) {
    this.name = name;
    this.cache = new Map();
    this.curves = [];
    this.visible = false;
    this.plotBox = element("div", {class: "plot", tabindex: "0", role: "img"});
    this.tip = element("div", {class: "tip", hidden: true});
    this.box = element("div", {class: "chart", "data-chart": name}, element("h3", {}, name.split(".").slice(1).join(".")), this.plotBox, this.tip);
    this.box.chart = this.plotBox.chart = this;
    this.plotBox.addEventListener("keydown", e => keys(e));
    seen.observe(this.box);
    resized.observe(this.plotBox);
  }
  remove() { seen.unobserve(this.box); resized.unobserve(this.plotBox); this.plot?.destroy(); this.box.remove(); }
  resize() { if (this.plot && this.plotBox.clientWidth > 0) this.plot.setSize({width: this.plotBox.clientWidth, height: 210}); }

  take(curves) {
    const key = curves.map(c => c.key).join("\n");
    if (key !== this.key) { this.key = key; this.stale = true; }
    this.curves = curves;
    this.plotBox.setAttribute("aria-label", this.name + ": " + curves.map(c => `${c.run.name}, ${c.run.series.find(s => s.name === c.name).value} at step ${c.step}`).join("; "));
  }

  // wants lists the curves that have more points than the cache.
  wants() {
    return this.curves.filter(c => {
      const have = this.cache.get(c.key);
      return !have || have.view !== viewKey() || have.n !== c.n || have.step !== c.step;
    });
  }

  draw() {
    const log = view.log;
    const all = this.curves.map(c => ({c, data: this.cache.get(c.key)})).filter(a => a.data && a.data.x.length);
    const banded = all.map(a => a.data.bucket > 0);
    const positive = values => log ? values.map(v => v > 0 ? v : null) : values;
    const tables = all.map(({data}, i) => banded[i] ? [data.x, positive(data.mean), positive(data.low), positive(data.high)] : [data.x, positive(data.mean)]);
    const key = all.map((a, i) => a.c.key + banded[i]).join("\n") + log + view.x + dark.matches;
    const data = tables.length ? uPlot.join(tables) : [[]];
    if (key !== this.drawn || !this.plot) {
      this.drawn = key;
      this.plot?.destroy();
      this.plot = this.make(all, banded, data);
    } else this.plot.setData(data);
  }

  make(all, banded, data) {
    const series = [{}], bands = [];
    this.at = []; // the column of each curve's mean
    all.forEach(({c, data: of}, i) => {
      const color = colorOf(c.run), dash = c.name === this.name ? null : [6, 4];
      this.at.push({c, column: series.length, color});
      const points = of.x.length < 2 ? {show: true, size: 6} : {show: false};
      series.push({label: c.run.name, stroke: color, width: 1.5, dash, points, spanGaps: false});
      if (banded[i]) {
        const n = series.length;
        series.push({stroke: "transparent", width: 0, points: {show: false}}, {stroke: "transparent", width: 0, points: {show: false}});
        bands.push({series: [n + 1, n], fill: color + "30"});
      }
    });
    const axis = {stroke: css("--faint"), grid: {stroke: css("--grid"), width: 1}, ticks: {stroke: css("--grid"), width: 1}, font: "11px system-ui, sans-serif"};
    const x = view.x;
    return new uPlot({
      width: Math.max(120, this.plotBox.clientWidth), height: 210, series, bands, legend: {show: false}, padding: [8, 18, 0, 0],
      cursor: {y: false, sync: {key: "board", scales: ["x", null]}, drag: {x: true, y: false, setScale: false}, points: {show: false},
        bind: {dblclick: () => () => { zoom(null, null); return null; }}},
      scales: {x: {time: false, range: (u, min, max) => [view.from ?? min ?? 0, view.to ?? (max > min ? max : (min ?? 0) + 1)]},
        y: view.log ? {distr: 3} : {range: (u, min, max) => min === null || min === undefined ? [0, 1] : padded(min, max)}},
      axes: [{...axis, size: 28, values: (u, at) => at.map(v => x === "time" ? short(v) : compact(v))},
        {...axis, size: 52, values: (u, at) => at.map(v => v === null ? "" : compact(v))}],
      hooks: {
        setSelect: [u => {
          if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
        }],
        setCursor: [u => this.hover(u)],
      },
    }, data, this.plotBox);
  }

  hover(u) {
    const idx = u.cursor.idx, here = this.plotBox.matches(":hover");
    this.tip.hidden = idx === null || idx === undefined || !here;
    if (this.tip.hidden) return;
    const at = u.data[0][idx];
    const rows = this.at.map(({c, column, color}) => {
      const values = u.data[column];
      let i = idx;
      while (i > 0 && (values[i] === undefined || values[i] === null)) i--;
      const b = element("b");
      b.style.background = color;
      return element("div", {}, b, `${number(values[i])}  ${c.run.name}${c.name === this.name ? "" : " " + c.name.split(".").slice(1).join(".")}`);
    });
    this.tip.replaceChildren(element("div", {}, view.x === "step" ? "step " + count(Math.round(at)) : duration(at)), ...rows.slice(0, 12));
    const left = u.cursor.left + 60, width = this.box.clientWidth;
    this.tip.style.top = "2rem";
    this.tip.style.left = left > width / 2 ? "" : left + 20 + "px";
    this.tip.style.right = left > width / 2 ? width - left + 20 + "px" : "";
  }
}

const padded = (min, max) => {
  const pad = max > min ? .05 * (max - min) : Math.abs(max) / 10 || 1;
  return [min - pad, max + pad];
};

const compact = v => {
  const a = Math.abs(v);
  if (a >= 1e9) return +(v / 1e9).toPrecision(4) + "G";
  if (a >= 1e6) return +(v / 1e6).toPrecision(4) + "M";
  if (a >= 1e4) return +(v / 1e3).toPrecision(4) + "k";
  return a !== 0 && a < 1e-3 ? v.toExponential(0) : String(+v.toPrecision(5));
};
const short = s => s >= 86400 ? +(s / 86400).toFixed(1) + "d" : s >= 3600 ? +(s / 3600).toFixed(2) + "h" : s >= 60 ? +(s / 60).toFixed(2) + "min" : +s.toPrecision(3) + "s";

const viewKey = () => `${view.x} ${view.from} ${view.to} ${widthOf()}`;
const widthOf = () => {
  const any = [...charts.values()][0];
  return Math.min(2048, 2 ** Math.ceil(Math.log2(Math.max(128, any?.plotBox.clientWidth || 400))));
};

let busy = false, soon = null;

// refresh asks for the changed curves that are in sight, at most twice a second.
function refresh() {
  if (!soon) soon = setTimeout(async () => {
    try { await load(); } finally { soon = null; }
    if ([...charts.values()].some(c => c.visible && c.wants().length) && !failed) refresh();
  }, busy ? 500 : 60);
}

let failed = false;

async function load() {
  busy = true;
  failed = false;
  const key = viewKey(), wanted = [];
  for (const chart of charts.values()) if (chart.visible) for (const c of chart.wants()) wanted.push({chart, c});
  const touched = new Set([...charts.values()].filter(c => c.visible && c.stale));
  for (let i = 0; i < wanted.length; i += 50) {
    const part = wanted.slice(i, i + 50);
    const q = {x: view.x, width: widthOf(), from: view.from, to: view.to, series: part.map(({chart, c}) => {
      const have = chart.cache.get(c.key);
      return have && have.view === key && have.x.length ? {run: c.run.id, name: c.name, bucket: have.bucket, rewound: have.rewound, since: have.x.at(-1)} : {run: c.run.id, name: c.name};
    })};
    const from = boot;
    const answer = await fetch("series?q=" + encodeURIComponent(JSON.stringify(q)), {headers: headers()}).catch(() => null);
    if (!answer?.ok || from !== boot) { failed = true; return; }
    const columns = await answer.json();
    if (key !== viewKey()) return; // the range has changed meanwhile
    columns.forEach((got, k) => {
      const {chart, c} = part[k];
      const have = chart.cache.get(c.key);
      const entry = {...got, view: key, n: c.n, step: c.step};
      if (got.more) {
        const since = q.series[k].since, place = v => got.bucket ? Math.floor(v / got.bucket) : v;
        let keep = have.x.length;
        while (keep > 0 && place(have.x[keep - 1]) >= place(since)) keep--;
        for (const column of ["x", "mean", "low", "high"]) entry[column] = have[column].slice(0, keep).concat(got[column]);
      }
      chart.cache.set(c.key, entry);
      touched.add(chart);
    });
  }
  for (const chart of touched) { chart.stale = false; chart.draw(); }
  busy = wanted.length > 0;
}

// The range.

function zoom(from, to) {
  view.from = from;
  view.to = to;
  $("reset").hidden = from === null;
  for (const c of charts.values()) if (c.visible) c.plot?.redraw(true, true), c.stale = true; else c.stale = true;
  for (const c of charts.values()) if (c.plot) c.plot.setScale("x", {min: from ?? c.plot.data[0][0] ?? 0, max: to ?? c.plot.data[0].at(-1) ?? 1});
  busy = false;
  refresh();
}

function keys(e) {
  const all = [...charts.values()].filter(c => c.plot?.data[0].length);
  const low = Math.min(...all.map(c => c.plot.data[0][0])), high = Math.max(...all.map(c => c.plot.data[0].at(-1)));
  const from = view.from ?? low, to = view.to ?? high, span = to - from;
  const change = {ArrowLeft: [from - span / 5, to - span / 5], ArrowRight: [from + span / 5, to + span / 5], "+": [from + span / 4, to - span / 4],
    "=": [from + span / 4, to - span / 4], "-": [from - span / 2, to + span / 2], "0": [null, null], Escape: [null, null]}[e.key];
  if (!change || !(span > 0)) return;
  e.preventDefault();
  zoom(...change);
}

$("reset").addEventListener("click", () => zoom(null, null));
$("axis").addEventListener("change", e => { view.x = e.target.value; view.from = view.to = null; $("reset").hidden = true; redraw(); });
$("log").addEventListener("change", e => { view.log = e.target.checked; redraw(); });
$("filter").addEventListener("input", e => { view.filter = e.target.value.trim().toLowerCase(); show(); });
dark.addEventListener("change", () => { showRuns(); redraw(); showSearches(true); });
setInterval(() => { if (current !== null) showDetails(); }, 5000);

function redraw() {
  for (const c of charts.values()) c.stale = true;
  refresh();
}

// Searches of hyperparameters.

const searches = new Map(); // by run: what is drawn

function showSearches(again) {
  for (const [id, s] of searches) if (!runs.get(id)?.search || !isShown(runs.get(id))) { s.box.remove(); searches.delete(id); }
  for (const run of runs.values()) {
    if (!run.search || !isShown(run)) continue;
    const text = JSON.stringify(run.search);
    let s = searches.get(run.id);
    if (s && s.text === text && !again) continue;
    if (!s) {
      searches.set(run.id, s = {box: element("section", {class: "search", "aria-label": run.name})});
      $("charts").prepend(s.box);
    }
    s.text = text;
    buildSearch(s, run);
  }
}

const shownTrials = 200;

function buildSearch(s, run) {
  const of = run.search, ended = of.trials.filter(t => t.ended).length;
  const canvas = element("canvas", {role: "img", "aria-label": `Parallel coordinates of ${of.trials.length} trials`});
  const rows = of.trials.slice(0, shownTrials).map(t => {
    const tr = element("tr", {tabindex: "0"}, element("td", {}, String(t.number)), element("td", {}, t.value === null ? (t.failed ? "failed" : "…") : number(t.value)),
      element("td", {}, t.ended ? String(t.epochs) : "in progress"), ...of.names.map(n => element("td", {}, cellOf(t.parameters?.[n]))),
      element("td", {title: t.failed || null}, t.failed ? t.failed.split("\n")[0].slice(0, 60) : t.pruned ? "pruned" : ""));
    const mark = on => () => { tr.classList.toggle("mark", on); drawTrials(canvas, of, on ? t.number : null); };
    for (const [event, on] of [["mouseenter", true], ["focus", true], ["mouseleave", false], ["blur", false]]) tr.addEventListener(event, mark(on));
    return tr;
  });
  s.box.replaceChildren(element("h2", {}, `${run.name}: ${of.best} ${of.entry}, ${of.method}`),
    element("p", {class: "help"}, `${ended} of ${of.trials.length} begun trials have ended` + (of.trials.length > shownTrials ? `; the table has the best ${shownTrials}` : "")),
    canvas,
    element("h3", {title: "The share of the variance of the trials' ranks that groups of the parameter's values explain (eta squared of Kruskal and Wallis's H). Few trials say little."}, "Importance"),
    element("div", {class: "bars"}, ...of.importance.flatMap(i => {
      const bar = element("i");
      bar.style.width = Math.max(1, 100 * i.share) + "%";
      return [element("span", {}, i.name), bar, element("span", {}, (100 * i.share).toFixed(0) + " %")];
    })),
    element("h3", {}, "Trials"),
    element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, ...["trial", of.entry, "epochs", ...of.names, ""].map(t => element("th", {}, t)))), element("tbody", {}, ...rows))));
  drawTrials(canvas, of, null);
  s.resize?.disconnect();
  s.resize = new ResizeObserver(() => drawTrials(canvas, of, null));
  s.resize.observe(canvas);
}

const cellOf = v => v === undefined ? "" : v.trim() !== "" && Number.isFinite(Number(v)) ? number(Number(v)) : v;

function drawTrials(canvas, of, marked) {
  const width = canvas.clientWidth, height = canvas.clientHeight, scale = devicePixelRatio || 1;
  if (!width) return;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const c = canvas.getContext("2d");
  c.scale(scale, scale);
  const trials = of.trials.filter(t => t.value !== null), names = [...of.names, of.entry];
  const textOf = (t, i) => i < of.names.length ? t.parameters?.[of.names[i]] : String(t.value);
  const axes = names.map((name, i) => {
    const texts = trials.map(t => textOf(t, i)).filter(v => v !== undefined), values = texts.map(Number);
    const numeric = texts.length > 0 && values.every(Number.isFinite);
    if (!numeric) {
      const all = [...new Set(texts)].sort();
      return {name, at: v => all.length < 2 ? .5 : all.indexOf(v) / (all.length - 1), ends: all.length > 6 ? [all[0], all.at(-1)] : all};
    }
    const low = Math.min(...values), high = Math.max(...values), log = low > 0 && high / low >= 15, f = log ? Math.log : v => v;
    return {name: name + (log ? " (log)" : ""), at: v => high > low ? (f(Number(v)) - f(low)) / (f(high) - f(low)) : .5, ends: [...new Set([low, high])].map(v => number(+v.toPrecision(3)))};
  });
  const top = 30, bottom = height - 12, side = Math.min(60, width / 6), x = i => side + i * (width - 2 * side) / Math.max(1, names.length - 1), y = a => bottom - a * (bottom - top);
  const value = axes.at(-1), good = of.best === "highest" ? v => value.at(v) : v => 1 - value.at(v);
  const line = (t, strong) => {
    c.beginPath();
    let begun = false;
    axes.forEach((a, i) => {
      const v = textOf(t, i);
      if (v === undefined) return;
      if (begun) c.lineTo(x(i), y(a.at(v))); else c.moveTo(x(i), y(a.at(v)));
      begun = true;
    });
    const g = good(String(t.value));
    c.strokeStyle = strong ? css("--text") : css("--mark");
    c.globalAlpha = strong ? 1 : .08 + .8 * g * g * g;
    c.lineWidth = strong ? 2.5 : 1.3;
    c.stroke();
    c.globalAlpha = 1;
  };
  for (const t of [...trials].reverse()) line(t, false);
  const chosen = trials.find(t => t.number === marked);
  if (chosen) line(chosen, true);
  c.font = "11px system-ui, sans-serif";
  axes.forEach((a, i) => {
    c.strokeStyle = css("--line");
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(x(i), top);
    c.lineTo(x(i), bottom);
    c.stroke();
    c.fillStyle = css("--text");
    c.textAlign = i === 0 ? "left" : i === axes.length - 1 ? "right" : "center";
    const room = (width - 2 * side) / Math.max(1, names.length - 1) - 6;
    c.fillText(shorten(c, a.name, room), i === 0 ? 2 : i === axes.length - 1 ? width - 2 : x(i), 12);
    c.fillStyle = css("--faint");
    c.textAlign = i === axes.length - 1 ? "left" : "right";
    a.ends.forEach((text, k) => c.fillText(shorten(c, text, i === 0 || i === axes.length - 1 ? side : room), x(i) + (i === axes.length - 1 ? 5 : -5), y(a.ends.length < 2 ? .5 : k / (a.ends.length - 1)) + 4));
  });
}

function shorten(c, text, room) {
  if (c.measureText(text).width <= room) return text;
  while (text.length > 2 && c.measureText(text + "…").width > room) text = text.slice(0, -1);
  return text + "…";
}

connect();
})();
