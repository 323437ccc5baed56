// What is on the page, as a text for a link's fragment, which browsers never send to anybody.

export interface Shared {
  readonly kind: string;
  readonly text: string;
  readonly sglang: string;
  readonly gpu: string;
  /** The second release and GPU when two are compared; null when none is. */
  readonly beside: { readonly sglang: string; readonly gpu: string } | null;
}

const MOST = 1_000_000;

export async function toFragment(shared: Shared): Promise<string> {
  const packed = await through(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream("deflate-raw"));
  const binary = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** What a fragment holds; null when it is none of ours, or damaged. */
export async function fromFragment(fragment: string): Promise<Shared | null> {
  try {
    const binary = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const text = new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
    return readShared(JSON.parse(text));
  } catch {
    return null;
  }
}

function readShared(value: unknown): Shared | null {
  if (typeof value !== "object" || value === null) return null;
  const { kind, text, sglang, gpu, beside } = value as Record<string, unknown>;
  if (typeof text !== "string") return null;
  return { kind: word(kind), text, sglang: word(sglang), gpu: word(gpu), beside: readBeside(beside) };
}

function readBeside(value: unknown): Shared["beside"] {
  if (typeof value !== "object" || value === null) return null;
  const { sglang, gpu } = value as Record<string, unknown>;
  return { sglang: word(sglang), gpu: word(gpu) };
}

function word(value: unknown): string {
  return typeof value === "string" ? value : "";
}

async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = new Blob([bytes])
    .stream()
    .pipeThrough(stream as ReadableWritablePair<Uint8Array, BufferSource>)
    .getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MOST) throw new Error("too long"); // a link that unpacks without end
    parts.push(value);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
