/**
 * Handles of runs: the events as a stream, beside the result.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { channel, type Sink } from "../../stream/channel.ts";
import type { RunResult } from "../hooks/points/run.ts";
import type { NumberedEvent } from "../run/events.ts";
import type { DeepPartial, OutputStream } from "./output_stream.ts";
import type { Started } from "../start/options.ts";

/** A run that has started. */
export interface RunHandle<O> {
  /** The session's id. */
  readonly session: string;
  /**
   * The events. They are kept until they are read, except that of the progress of a call only the latest event is kept while 10,000 events wait. A reader
   * that stops does not stop the run.
   */
  readonly events: ReadableStream<Event>;
  /**
   * The partial values of the structured output, until the run ends or pauses. They are not validated, and a slow reader skips values. Needs `streamed()` of
   * `@jizai/jizai/output`; without it, reading this property throws a `TypeError`.
   */
  readonly output: AsyncIterable<DeepPartial<O>>;
  /** The result. It resolves whether or not the events are read. */
  readonly result: Promise<RunResult<O>>;
  /** Stops the run. Default reason: "stop". */
  readonly stop: Started["stop"];
  /**
   * Sends a message to the run, which receives it at the next safe place. Resolves once it is accepted; of a run that is saved as it works, once it is
   * saved. Rejects with a `RangeError` if ten messages wait, and with a `SessionError` if the run is over.
   */
  readonly send: Started["send"];
  /**
   * Asks the run to end with one more answer, without tools. Calls that have not begun are skipped. A call that asks a person still pauses the run, which
   * then ends when it continues. Resolves as `send()` does. Rejects with a `SessionError` if the run is over, or ends before the request is saved. Callers
   * need not wait.
   */
  readonly finish: Started["finish"];
}

/** The number of unread events from which on only the latest progress of each call is kept. */
const maxUnread = 10_000;

/** Starts a run, and returns its handle. */
export function runHandle<O>(
  start: (sink: Sink<NumberedEvent>) => Started,
  outputStream?: OutputStream,
): RunHandle<O> {
  const collector = outputStream?.collect();
  const { sink, stream } = channel<NumberedEvent, Event[], Event>({
    keep({ event }) {
      collector?.add(event);
      return [event];
    },
    merge(events, added) {
      events.push(...added);
      return events;
    },
    pack: (events, send) => events.forEach(send),
    highWater: Infinity, // the reader never slows the run
    congestedAt: maxUnread,
  });
  const run = start(sink);
  return {
    session: run.session,
    events: stream,
    get output() {
      if (collector) return collector.values as AsyncIterable<DeepPartial<O>>; // the text is written for the schema of O
      throw new TypeError("Cannot read run.output: expected `output: streamed(schema)` of @jizai/jizai/output");
    },
    result: run.result as Promise<RunResult<O>>, // validated by the output's schema
    stop: (reason, options) => run.stop(reason, options),
    send: (message, options) => run.send(message, options),
    finish: () => run.finish(),
  };
}
