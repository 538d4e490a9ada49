/**
 * Speech of models that answer with audio, which chat completions stream in pieces beside a transcript.
 *
 * @module
 */
import type { UnknownObject } from "../../protocol/shape.ts";
import type { ModelEvent } from "../model.ts";
import { stringIn } from "../response_members.ts";

/** Collects the speech of one response. */
export interface AudioParser {
  /** Adds a piece. Returns its transcript. */
  readonly add: (audio: UnknownObject) => string;
  /** Returns the event of the recording; nothing if there is none. */
  readonly end: () => readonly ModelEvent[];
}

/** Creates a parser for one response of `model`. Streams contain samples of 16 bits, at 24 kHz, without a header. */
export function audioParser(model: string): AudioParser {
  const pieces: string[] = [];
  let id = "";
  return {
    add(audio) {
      id = stringIn(audio, "id") || id;
      pieces.push(atob(stringIn(audio, "data")));
      return stringIn(audio, "transcript");
    },
    end() {
      const bytes = pieces.join("");
      if (bytes === "") return [];
      const meta = { model, audio: id }; // the provider keeps the recording for an hour
      return [{ type: "part", part: { type: "media", mediaType: "audio/pcm;rate=24000", data: btoa(bytes), meta } }];
    },
  };
}
