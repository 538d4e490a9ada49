import { assert, assertEquals } from "@std/assert";

/** The errors and interrupts that entries of the package export. A new one belongs here, and in `tests/platforms/second_copy_test.ts`. */
const expected = [
  "CapacityError",
  "ClientError",
  "End",
  "FinalError",
  "ModelError",
  "Pause",
  "Paused",
  "ResumeTokenError",
  "SessionError",
  "ShapeError",
  "SlowStoreError",
  "StoreDeadlineError",
  "ToolError",
];

type ErrorClass = new (...args: never) => Error;

const isErrorClass = (value: unknown): value is ErrorClass =>
  typeof value === "function" && value.prototype instanceof Error;

/** Imports every entry of the package, and returns the classes of errors that they export. */
async function errorClasses(): Promise<ErrorClass[]> {
  const config = (await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, "");
  const { exports }: { readonly exports: Readonly<Record<string, string>> } = JSON.parse(config);
  const classes = new Set<ErrorClass>();
  for (const path of Object.values(exports)) {
    const entry: Readonly<Record<string, unknown>> = await import(new URL(`../../${path}`, import.meta.url).href);
    for (const value of Object.values(entry)) if (isErrorClass(value)) classes.add(value);
  }
  return [...classes].sort((a, b) => a.name < b.name ? -1 : 1);
}

Deno.test("instanceof recognizes every exported error of another copy of the package", async () => {
  const classes = await errorClasses();
  assertEquals(classes.map(({ name }) => name), expected);
  for (const type of classes) {
    const foreign = Object.assign(new Error("m"), { [Symbol.for(`jizai.${type.name}`)]: true });
    assert(foreign instanceof type, type.name);
    assertEquals(classes.filter((other) => foreign instanceof other), [type]);
    assert(!(new Error("m") instanceof type), type.name);
  }
});

Deno.test("the name of every exported error is that of its class", async () => {
  for (const type of await errorClasses()) {
    const error: Error = Reflect.construct(type, type.name === "Pause" ? [[]] : ["m", "forged"]);
    assertEquals(error.name, type.name);
  }
});
