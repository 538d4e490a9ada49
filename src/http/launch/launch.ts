/**
 * Step 4 of the request path: launches a run that writes its events to the response.
 *
 * @module
 */
import type { LaunchInput, LiveRun } from "../../session/record/run_host.ts";
import type { ClientGone } from "../options.ts";
import { expectClientGone } from "../server_options.ts";
import { RequestError } from "../respond/error_response.ts";
import { accepted, type Launched, prefersAsync, type ResponseFormat } from "../respond/response_format.ts";
import type { RequestScope } from "../server.ts";

const onCancel: { readonly [key in ClientGone]: (run: LiveRun) => unknown } = {
  stop: (run) => run.stop("client-gone"),
  drain: (run) => run.drain("client-gone"),
  detach: () => {},
};

/** Launches a run for a client. Its response is in `format`. A client that prefers not to wait receives the address of the run instead. */
export async function launch(scope: RequestScope, input: LaunchInput, format: ResponseFormat): Promise<Launched> {
  const { c, server: { runs, options: { heartbeat, onClientGone } }, client } = scope;
  if (prefersAsync(c, format)) return await launchInBackground(scope, input);
  const onGone = typeof onClientGone === "function" ? expectClientGone(await onClientGone(c)) : onClientGone;
  const { out, respond } = format(c, { heartbeat, onCancel: () => onCancel[onGone](run) }); // no client can leave before `respond`, which follows the launch
  const run = await runs.launch(input, client, out).catch((error) => {
    out.close();
    throw error;
  });
  client.onLeave(() => onCancel[onGone](run));
  return { run, respond };
}

/** Launches a run whose client does not wait for it. */
async function launchInBackground(
  { c, server: { runs }, client }: RequestScope,
  input: LaunchInput,
): Promise<Launched> {
  if (!runs.hasStore && !runs.records) {
    const expected = "the server keeps neither sessions nor events; expected a `log`";
    throw new RequestError(400, "invalid", `Cannot run in the background: ${expected}`, "prefer");
  }
  const run = await runs.launch(input, client);
  return { run, respond: () => accepted(c, input, runs.records !== undefined) };
}
