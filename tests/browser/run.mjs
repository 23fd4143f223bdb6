// Loads Pyodide with NumPy and the package, then runs the suite; the result is JSON. Used in node and in a page.
export async function runSuite({loadPyodide, indexURL, read}) {
  const began = performance.now();
  const pyodide = await loadPyodide({indexURL});
  pyodide.unpackArchive(await read("numpy.whl"), "whl");
  pyodide.unpackArchive(await read("package.zip"), "zip", {extractDir: "/package"});
  pyodide.FS.writeFile("/records.pickle", new Uint8Array(await read("records.pickle")));
  const started = (performance.now() - began) / 1000;
  const text = await pyodide.runPythonAsync(`
import json, sys, warnings
sys.path.insert(0, "/package")
warnings.simplefilter("ignore")
from tests.browser.suite import run
json.dumps({**run("/records.pickle"), "python": sys.version.split()[0], "platform": sys.platform})`);
  return {...JSON.parse(text), start: Math.round(started * 100) / 100};
}
