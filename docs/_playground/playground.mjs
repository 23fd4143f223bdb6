// The page of the playground. The files beside it are written by `python -m tools.playground`.
const element = id => document.getElementById(id);
const read = async name => (await fetch(name)).arrayBuffer();
const settings = await (await fetch("settings.json")).json();
const began = performance.now();

element("graph-code").value = settings.graph;
for (const {title, code} of settings.examples) element("examples").add(new Option(title, code));
const choose = () => { element("code").value = element("examples").value; element("output").textContent = ""; };
element("examples").onchange = choose;
choose();

const {loadPyodide} = await import(settings.pyodide + "pyodide.mjs");
const pyodide = await loadPyodide({indexURL: settings.pyodide});
if (settings.numpy) pyodide.unpackArchive(await read(settings.numpy), "whl");
else await pyodide.loadPackage("numpy");
pyodide.unpackArchive(await read("package.zip"), "zip", {extractDir: "/package"});
await pyodide.runPythonAsync("import sys; sys.path.insert(0, '/package'); import playground");
const python = pyodide.pyimport("playground");
const seconds = ((performance.now() - began) / 1000).toFixed(1);
element("status").textContent = `Ready after ${seconds} s.`;
for (const id of ["run", "record", "train"]) element(id).disabled = false;

// A moment for the page to draw before Python keeps it busy.
const drawn = () => new Promise(resolve => setTimeout(resolve, 20));

element("run").onclick = async () => {
  element("output").textContent = "running…";
  await drawn();
  element("output").textContent = python.run(element("code").value) || "(nothing printed)";
  element("output").dataset.runs = Number(element("output").dataset.runs || 0) + 1;
};

let steps = [], position = 0;
element("record").onclick = () => {
  const result = JSON.parse(python.backward_steps(element("graph-code").value));
  element("graph").innerHTML = result.svg || "";
  element("step").textContent = result.error || `${result.steps.length} nodes`;
  [steps, position] = [result.steps || [], 0];
  element("next").disabled = steps.length === 0;
};
element("next").onclick = () => {
  const boxes = element("graph").querySelectorAll("rect");
  for (const box of boxes) box.classList.replace("now", "done");
  const {name, arrives, leaves, source, box} = steps[position++];
  boxes[box].classList.add("now");
  boxes[box].scrollIntoView({block: "nearest"});
  element("step").textContent = `${position} of ${steps.length}: ${name}\n\narrives  ${arrives.join("\n         ")}\n` +
    `leaves   ${leaves.join("\n         ")}\n\n${source}`;
  element("next").disabled = position === steps.length;
};

element("train").onclick = async () => {
  element("train").disabled = true;
  const training = python.Training("/package/mnist5k.npz");
  const losses = [];
  while (losses.length < settings.steps) {
    const found = JSON.parse(training.steps(5));
    losses.push(...found.losses);
    const points = losses.map((loss, i) => `${i * 600 / (settings.steps - 1)},${195 - Math.min(loss, 2.5) * 75}`);
    element("curve").innerHTML =
      `<polyline points="${points.join(" ")}" fill="none" stroke="#d9480f" stroke-width="2"/>`;
    element("accuracy").textContent =
      `step ${found.done}, loss ${losses.at(-1).toFixed(3)}, ${(found.accuracy * 100).toFixed(1)} % right`;
    await drawn();
  }
  training.destroy();
  element("train").disabled = false;
  element("accuracy").dataset.done = "yes";
};
