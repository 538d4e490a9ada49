/**
 * Names: what the model calls a tool of a server.
 *
 * @module
 */

/** How long a name may be, as the providers accept it. */
const longest = 64;

/** The name of a server's tool: `mcp__docs__search`, as hooks written for other agents know it. It is none of `taken`, and always the same for the same tool. */
export function nameOf(server: string, tool: string, taken: ReadonlySet<string>): string {
  const name = `mcp__${server}__${tool.replaceAll(/[^A-Za-z0-9_-]/g, "_")}`;
  if (name.length <= longest && !taken.has(name)) return name;
  return `${name.slice(0, longest - 9)}_${hash(tool)}`;
}

/** FNV-1a, in 8 digits: tells names apart that are cut to the same. */
function hash(text: string): string {
  let sum = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193);
  return (sum >>> 0).toString(16).padStart(8, "0");
}
