// The time, pauses and chance.

const SLEEP_MAX_MS = 3_600_000; // a timer takes no more than 24 days; who sleeps looks at the clock again

/** An object, so that a test can steer it. */
export const clock = {
  /** Milliseconds that only grow. */
  now: (): number => performance.now(),

  /** Below 1. */
  random: (): number => Math.random(),

  /** Until `ms` are over, an hour at most, or the signal is aborted. */
  sleep: (ms: number, wakes: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        wakes.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, Math.min(ms, SLEEP_MAX_MS));
      wakes.addEventListener("abort", end);
    }),
};

/** Until that time, or until somebody wakes it. Throws the reason of the signal once it is aborted. */
export async function pause(until: number, signal?: AbortSignal, waking = new AbortController()): Promise<void> {
  const wake = (): void => waking.abort();
  signal?.throwIfAborted();
  signal?.addEventListener("abort", wake);
  await clock.sleep(until - clock.now(), waking.signal);
  signal?.removeEventListener("abort", wake);
  signal?.throwIfAborted();
}
