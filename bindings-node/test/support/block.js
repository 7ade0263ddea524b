/** Keeps the thread, and so the event loop, for so many milliseconds. */
export function block(milliseconds) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
