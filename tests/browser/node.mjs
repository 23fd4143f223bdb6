// node node.mjs FOLDER_OF_PYODIDE FOLDER_OF_FILES
import {readFile} from "node:fs/promises";
import path from "node:path";
import {pathToFileURL} from "node:url";
import {runSuite} from "./run.mjs";

const [dist, files] = process.argv.slice(2).map(each => path.resolve(each));
const {loadPyodide} = await import(pathToFileURL(path.join(dist, "pyodide.mjs")));
const read = async name => {
  const bytes = await readFile(path.join(files, name));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};
console.log("RESULT " + JSON.stringify(await runSuite({loadPyodide, indexURL: dist + path.sep, read})));
process.exit(0);
