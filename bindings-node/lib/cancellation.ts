interface Followers {
  readonly cancels: Set<() => void>;
  readonly listener: () => void;
}

/** One listener for each signal, however many wait for it: Node warns of more than ten. */
const followed = new WeakMap<AbortSignal, Followers>();

/** Calls `cancel` once when the signal aborts. What is returned undoes that; the last one takes the listener away. */
export function onAbort(signal: AbortSignal, cancel: () => void): () => void {
  const followers = followed.get(signal) ?? follow(signal);
  followers.cancels.add(cancel);
  return () => {
    if (followers.cancels.delete(cancel) && followers.cancels.size === 0) {
      signal.removeEventListener('abort', followers.listener);
      followed.delete(signal);
    }
  };
}

function follow(signal: AbortSignal): Followers {
  const cancels = new Set<() => void>();
  const listener = (): void => {
    followed.delete(signal);
    const all = [...cancels];
    cancels.clear();
    for (const cancel of all) cancel();
  };
  const followers = { cancels, listener };
  followed.set(signal, followers);
  signal.addEventListener('abort', listener, { once: true });
  return followers;
}
