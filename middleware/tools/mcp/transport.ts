/**
 * Declares the transport of the official MCP client.
 *
 * @module
 */

/** Carries messages to a server and back. The transports of `@modelcontextprotocol/client` implement it. */
export interface McpTransport {
  /** Starts to receive messages. */
  start(): Promise<void>;
  /** Sends a message. */
  send(message: object, options?: object): Promise<void>;
  /** Closes the transport. */
  close(): Promise<void>;
  /** Called when the transport has closed. */
  onclose?(): void;
  /** Called when the transport fails. */
  onerror?(error: Error): void;
  /** Called for each message of the server. */
  onmessage?(message: object, extra?: object): void;
}
