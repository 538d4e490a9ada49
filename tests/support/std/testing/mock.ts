// The last release with this module.
// @ts-types="./mock.d.ts"
export * from "npm:deno-std@1.3.1/testing/mock.js";
