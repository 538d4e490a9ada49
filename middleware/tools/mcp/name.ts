/**
 * Names the tools of MCP servers for the model.
 *
 * @module
 */

/** The longest name that all providers accept. */
const maxLength = 64;

/**
 * Returns the name of each tool of a server, by the server's own name: `mcp__docs__search`, as hooks written for other agents expect it. A name that providers
 * accept never changes. Any other is folded, and ends with a hash of the tool's own name. If two names are equal, the tool with the exact name keeps it,
 * else the first one; the other tool is left out.
 */
export function toolNames(server: string, tools: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const used = new Set<string>();
  const [exact, folded] = [
    tools.filter((tool) => isExact(server, tool)),
    tools.filter((tool) => !isExact(server, tool)),
  ];
  for (const tool of [...exact, ...folded]) {
    const name = nameOf(server, tool);
    if (!used.has(name)) names.set(tool, name);
    used.add(name);
  }
  return names;
}

function isExact(server: string, tool: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(tool) && prefixOf(server).length + tool.length <= maxLength;
}

function nameOf(server: string, tool: string): string {
  if (isExact(server, tool)) return `${prefixOf(server)}${tool}`;
  const folded = `${prefixOf(server)}${tool.replaceAll(/[^A-Za-z0-9_-]/g, "_")}`;
  return `${folded.slice(0, maxLength - 9)}_${hash(tool)}`;
}

/** Returns the beginning of the names of a server's tools. No other server's names have it. */
export function prefixOf(server: string): string {
  return `mcp__${server}__`;
}

/** Returns the FNV-1a hash of a text in 8 hexadecimal digits. */
function hash(text: string): string {
  let sum = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193);
  return (sum >>> 0).toString(16).padStart(8, "0");
}
