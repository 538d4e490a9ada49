/**
 * Step 5 of the request path: the response, from a run that has been launched or from its record.
 *
 * @module
 */
import type { Lines, LogPage } from "../../session/log.ts";
import type { RunPosition } from "../../session/record/run_host.ts";
import { endOfLines } from "../../stream/sse.ts";
import type { RequestScope } from "../server.ts";
import { notFound, reportError } from "./error_response.ts";
import { accepted, type EventOutput, headers, prefersAsync, type ResponseFormat } from "./response_format.ts";

/** Responds with the events of a run that the same request has begun before. A client that prefers not to wait receives the address of the run instead. */
export async function respondJoined(
  scope: RequestScope,
  position: RunPosition,
  format: ResponseFormat,
): Promise<Response> {
  if (prefersAsync(scope.c, format)) return accepted(scope.c, position, true);
  return await respondFromRecord(scope, position, format);
}

/** Responds with the logged events after a position, and with those that follow. Responds with 204 if the run is over and no event is left. */
export async function respondFromRecord(
  { c, server: { options: { heartbeat, onError }, runs: { records } }, client }: RequestScope,
  position: RunPosition,
  format: ResponseFormat,
): Promise<Response> {
  if (!records) throw notFound(`follow run "${position.run}"`);
  const leaving = new AbortController();
  const pages = await records.follow(position, client, leaving.signal);
  if (!pages) return c.body(null, 204);
  if (c.req.method === "HEAD") {
    leaving.abort(); // nothing reads the pages
    return c.body(null, 200, headers);
  }
  const { out, respond } = format(c, { heartbeat, onCancel: () => leaving.abort() });
  // it never rejects
  send(pages, out, (error) => reportError(onError, error));
  return await respond();
}

/** The number of characters of a part. */
const partLength = 65_536;

/** Yields the lines of a page in parts, since a client that does not read would otherwise hold a whole page in each form on the way to it. */
function* partsOf({ first, lines }: Lines): Iterable<Lines> {
  for (let begin = 0, end = 0; begin < lines.length; begin = end) {
    end = endOfLines(lines, begin, partLength);
    yield { first: first + begin, lines: lines.slice(begin, end) };
  }
}

async function send(
  pages: AsyncIterable<LogPage>,
  out: EventOutput,
  onError: (error: unknown) => void,
): Promise<void> {
  try {
    for await (const page of pages) {
      for (const part of partsOf(page)) {
        out.write(part);
        await out.full;
      }
    }
  } catch (error) {
    onError(error);
  } finally {
    out.close();
  }
}
