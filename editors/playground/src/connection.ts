// The WebSocket to the server that served this page, opened again when it breaks.

export interface Transport {
  send(message: string): void;
  subscribe(handler: (message: string) => void): void;
  unsubscribe(handler: (message: string) => void): void;
}

export async function connect(onClose: (reason: string) => void): Promise<Transport> {
  const address = new URL("lsp", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  address.hash = "";
  const socket = new WebSocket(address);
  const handlers = new Set<(message: string) => void>();
  socket.addEventListener("message", (event) => {
    for (const handler of handlers) handler(String(event.data));
  });
  await new Promise<void>((opened, failed) => {
    socket.addEventListener("open", () => opened(), { once: true });
    socket.addEventListener("error", () => failed(new Error("The server does not answer.")), { once: true });
  });
  socket.addEventListener("close", (event) => onClose(event.reason));
  return {
    send: (message) => socket.send(message),
    subscribe: (handler) => handlers.add(handler),
    unsubscribe: (handler) => handlers.delete(handler),
  };
}
