// Draws what is written by hand into a 28 x 28 image as MNIST's are, asks the server, and shows what it says. Models with
// other inputs get a field for rows.
"use strict";

const SIDE = 28, BOX = 20, CLASSES = 10, PEN = 22;
const at = (id) => document.getElementById(id);
const pad = at("pad"), ink = pad.getContext("2d", { willReadFrequently: true });
let card = null, key = "", drawing = false, asked = 0;

function say(text) { at("wrong").textContent = text; }

async function ask(path, body) {
  const headers = key ? { Authorization: "Bearer " + key } : {};
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const said = await answer.json();
  if (answer.status === 401) { at("lock").hidden = false; throw new Error(key ? "This key is not taken." : ""); }
  if (!answer.ok) throw new Error(said.error || "The server answered " + answer.status + ".");
  return said;
}

// The shape of one row when it is an image of 28 x 28 numbers, else null.
function imageShape() {
  const [input] = card.inputs, [output] = card.outputs;
  const row = input.shape.slice(1), size = row.reduce((all, one) => all * one, 1);
  const numbers = /^(FP|U?INT)/.test(input.datatype);
  const labels = output.shape.length === 1 || output.shape[1] === CLASSES;
  return card.inputs.length === 1 && numbers && labels && size === SIDE * SIDE ? row : null;
}

function shaped(values, shape) {
  if (shape.length < 2) return values;
  const step = values.length / shape[0];
  return Array.from({ length: shape[0] }, (_, n) => shaped(values.slice(n * step, (n + 1) * step), shape.slice(1)));
}

// The drawing fitted into 20 x 20 pixels, its centre of mass in the middle of 28 x 28; null when nothing is drawn.
function image() {
  const { width, height } = pad, raw = ink.getImageData(0, 0, width, height).data;
  let left = width, right = -1, top = height, bottom = -1;
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (raw[4 * (y * width + x) + 3] > 0) {
    left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  if (right < 0) return null;
  const scale = BOX / Math.max(right - left + 1, bottom - top + 1);
  const small = document.createElement("canvas"), pen = small.getContext("2d");
  small.width = small.height = SIDE;
  const draw = (x, y) => {
    pen.clearRect(0, 0, SIDE, SIDE);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(pad, left, top, right - left + 1, bottom - top + 1, x, y,
      (right - left + 1) * scale, (bottom - top + 1) * scale);
    const data = pen.getImageData(0, 0, SIDE, SIDE).data;
    return Array.from({ length: SIDE * SIDE }, (_, n) => data[4 * n + 3] / 255);
  };
  const first = draw(4, 4);
  let mass = 0, x = 0, y = 0;
  first.forEach((one, n) => { mass += one; x += one * (n % SIDE); y += one * Math.floor(n / SIDE); });
  return draw(4 + Math.round(13.5 - x / mass), 4 + Math.round(13.5 - y / mass));
}

// Shares of ten classes out of logits, probabilities or a label.
function shares(prediction) {
  let scores = prediction;
  if (!Array.isArray(scores) && typeof scores === "object") scores = Object.values(scores).find(Array.isArray) ?? Object.values(scores)[0];
  if (!Array.isArray(scores)) return Array.from({ length: CLASSES }, (_, n) => Number(n === Number(scores)));
  const total = scores.reduce((all, one) => all + one, 0);
  if (scores.every((one) => one >= 0) && Math.abs(total - 1) < 0.01) return scores;
  const most = Math.max(...scores), parts = scores.map((one) => Math.exp(one - most));
  return parts.map((one) => one / parts.reduce((all, other) => all + other, 0));
}

function show(found) {
  const bars = at("bars");
  bars.replaceChildren(...found.map((share, n) => {
    const line = document.createElement("li"), bar = document.createElement("progress");
    bar.value = share;
    line.append(String(n), bar, (100 * share).toFixed(0) + " %");
    return line;
  }));
  at("digit").textContent = "It is a " + found.indexOf(Math.max(...found)) + ".";
}

async function recognise() {
  const pixels = image(), mine = ++asked;
  if (!pixels) return;
  const whole = /^U?INT/.test(card.inputs[0].datatype);
  const row = shaped(whole ? pixels.map((one) => Math.round(255 * one)) : pixels, imageShape());
  try {
    const said = await ask("predict", { instances: [row] });
    if (mine === asked) { show(shares(said.predictions[0])); say(""); }
  } catch (error) { say(error.message); }
}

function place(event) {
  const box = pad.getBoundingClientRect();
  return [(event.clientX - box.left) * pad.width / box.width, (event.clientY - box.top) * pad.height / box.height];
}

pad.addEventListener("pointerdown", (event) => {
  drawing = true;
  pad.setPointerCapture(event.pointerId);
  Object.assign(ink, { lineWidth: PEN, lineCap: "round", lineJoin: "round", strokeStyle: "#fff" });
  ink.beginPath();
  ink.moveTo(...place(event));
  ink.lineTo(...place(event));
  ink.stroke();
});
pad.addEventListener("pointermove", (event) => {
  if (!drawing) return;
  ink.lineTo(...place(event));
  ink.stroke();
});
for (const name of ["pointerup", "pointercancel"]) pad.addEventListener(name, () => {
  if (drawing) recognise();
  drawing = false;
});
at("clear").addEventListener("click", () => {
  ink.clearRect(0, 0, pad.width, pad.height);
  asked++;
  at("bars").replaceChildren();
  at("digit").textContent = "Draw a digit.";
});
at("lock").addEventListener("submit", (event) => { event.preventDefault(); key = at("key").value; begin(); });
at("plain").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const said = await ask("predict", { instances: JSON.parse(at("rows").value) });
    at("answer").textContent = JSON.stringify(said.predictions, null, 1);
    say("");
  } catch (error) { say(error.message); }
});

async function begin() {
  try {
    card = await ask("card");
  } catch (error) { return say(error.message); }
  say("");
  at("lock").hidden = true;
  at("title").textContent = card.name;
  document.title = card.name;
  const shown = (some) => some.map((one) => `${one.name} ${one.datatype} [${one.shape}]`).join(", ");
  at("about").textContent = `Version ${card.version}, ${card.framework}: ${shown(card.inputs)} to ${shown(card.outputs)}.`;
  const digits = imageShape() !== null;
  at("digits").hidden = !digits;
  at("plain").hidden = digits;
}
begin();
