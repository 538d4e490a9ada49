/**
 * Runs the checks of the installed package on a runtime with files. Prints a line per check, and throws if one fails.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import { run } from "./checks.ts";

const { exports } = JSON.parse(await readFile("node_modules/@jizai/jizai/package.json", "utf8"));
for (const entry of Object.keys(exports)) {
  if (!/\/(mcp|otel)\b/.test(entry)) await import(`@jizai/jizai${entry.slice(1)}`);
}
console.log("ok every entry loads that needs no optional peer");
const lines = await run();
console.log(lines.join("\n"));
if (lines.some((line) => line.startsWith("FAILED"))) throw new Error("Cannot pass: a check failed");
