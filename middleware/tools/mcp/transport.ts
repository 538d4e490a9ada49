/**
 * What is asked of a transport: said here as types, as the official client has it.
 *
 * @module
 */

/** What carries messages to a server, and back. Those of `@modelcontextprotocol/client` are such. */
export interface McpTransport {
  /** Begins to listen. */
  start(): Promise<void>;
  /** Sends a message. */
  send(message: object, options?: object): Promise<void>;
  /** Ends it. */
  close(): Promise<void>;
  /** Called where it has ended. */
  onclose?(): void;
  /** Called where it fails. */
  onerror?(error: Error): void;
  /** Called for each message from the server. */
  onmessage?(message: object, extra?: object): void;
}
