/**
 * Attacks the adapters of providers with canonical responses that combine the quirks of servers, and `mcp()` with servers in odd forms.
 *
 * @module
 */
import { dialects } from "../model/dialects/all.ts";
import { randomForm } from "../model/dialects/dialect.ts";
import { framing } from "../model/dialects/framing.ts";
import { checkLaw } from "../model/dialects/law.ts";
import { checkOddServer, oddServer } from "../support/odd_mcp_server.ts";
import type { Attack } from "./attack.ts";

/** Plays one response of each API with random quirks. Fails if an adapter loses or changes its content. */
export const dialectsAttack: Attack = {
  name: "dialects",
  async attempt(chance) {
    for (const dialect of dialects) {
      await checkLaw(dialect, randomForm(dialect.aspects, chance, 2), randomForm(framing, chance, 2), chance);
    }
    return dialects.length;
  },
};

/** Lists and calls the tools of one MCP server with odd forms. Fails if a tool or a content is lost in silence. */
export const mcpForms: Attack = {
  name: "mcp_forms",
  async attempt(chance) {
    await checkOddServer(oddServer(chance, "memory"), "memory");
    return 1;
  },
};
