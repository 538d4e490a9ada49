/**
 * Handlers of type `http`: the input is posted as JSON, and the body of the response is the output.
 *
 * @module
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { expectNames, wildcard } from "../../../../src/core/kit.ts";
import { readBody } from "../../kit/body.ts";
import { parseJson } from "../../kit/fields.ts";
import { commandError, denialOf, outputOf } from "../output.ts";
import type { HttpHook } from "../handler_config.ts";
import type { Handler } from "./handler.ts";

/** The addresses that handlers of type `http` may post to. */
export interface HttpHandlerOptions {
  /** The addresses, with `*` as a wildcard. Default: all. */
  readonly allow?: readonly string[];
  /** Whether private addresses and this machine are allowed. Default: false. */
  readonly privateAddresses?: boolean;
  /** Sends the request. Default: the platform's `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
}

/** Throws a `TypeError` for options that would allow more addresses than they say. */
export function checkHttpOptions(options: HttpHandlerOptions): void {
  const subject = "Cannot create command_hooks(): `http`";
  expectNames(subject, options, ["allow", "privateAddresses", "fetch"]);
  const { allow = [], privateAddresses = false } = options;
  if (!Array.isArray(allow)) throw new TypeError(`${subject}: \`allow\` is ${allow}; expected a list of addresses`);
  if (typeof privateAddresses !== "boolean") {
    throw new TypeError(`${subject}: \`privateAddresses\` is ${privateAddresses}; expected true or false`);
  }
}

/** The most bytes of a response. */
const most = 1_000_000;

/** Creates the handler. Throws a `TypeError` for an address that is not allowed. */
export function httpHandler(
  { url, headers = {}, allowedEnvVars = [] }: HttpHook,
  { allow, privateAddresses = false, fetch: send = fetch }: HttpHandlerOptions,
  env: Readonly<Record<string, string>>,
): Handler {
  const { hostname, protocol } = URL.parse(url) ?? {};
  if (hostname === undefined || !/^https?:$/.test(protocol ?? "")) {
    throw new TypeError(`expected a URL with http:// or https://, got "${url}"`);
  }
  if (allow && !allow.some((pattern) => wildcard(pattern)(url))) {
    throw new TypeError(`expected an address in the allow-list, got "${url}"`);
  }
  const host = hostname.replace(/^\[|\]$/g, "");
  if (!privateAddresses && isPrivate(host)) throw new TypeError(`expected a public address, got "${url}"`);
  const filled = (text: string) =>
    text.replace(/\$\{(\w+)\}|\$(\w+)/g, (_, braced, plain) => {
      const name = braced ?? plain;
      return allowedEnvVars.includes(name) ? env[name] ?? "" : "";
    });

  async function checkAddress(): Promise<void> {
    if (privateAddresses || isIP(host)) return;
    const addresses = await lookup(host, { all: true });
    if (addresses.some(({ address }) => isPrivate(address))) throw commandError("it is at a private address", url);
  }

  return async (input, { signal, dialect }) => {
    await checkAddress();
    const sent = Object.entries(headers).map(([name, value]): [string, string] => [name, filled(value)]);
    const response = await send(url, {
      method: "POST",
      headers: [["content-type", "application/json"], ...sent],
      body: JSON.stringify(input),
      redirect: "error",
      signal,
    });
    const stdout = await readBody(response, most);
    const event = input.hook_event_name;
    if (response.ok) return outputOf({ code: 0, stdout, stderr: "" }, { event, dialect, name: url });
    const denial = denialOf(event, parseJson(stdout));
    if (!denial) throw commandError(`status ${response.status}`, url);
    return denial;
  };
}

/** Address ranges of private networks, of this machine, and of links, as prefixes of the text form. */
const privateRanges =
  /^(0|10|127)\.|^169\.254\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\.|^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|^::1?$|^f[cd]|^fe[89ab]/;

/** Whether a host is this machine or in a private network. */
function isPrivate(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (!isIP(name)) return /^(.*\.)?(localhost|local|internal)$/.test(name);
  const [, mapped] = name.match(/^::ffff:(.*)$/) ?? [];
  return mapped === undefined ? privateRanges.test(name) : !mapped.includes(".") || privateRanges.test(mapped);
}
