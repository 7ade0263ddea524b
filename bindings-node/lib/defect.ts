import { errorOf, FencelockError, type Failure } from './error.js';

/** What the native part throws is a defect of ours, whatever it was asked for. */
export const internal = (defect: unknown): Failure => ({
  code: 'internal',
  message: `a defect of fencelock, please report it: ${String(defect)}`,
  retryable: false,
});

/** Asks for what is answered at once. */
export function sound<T>(question: () => T): T {
  try {
    return question();
  } catch (defect) {
    throw defect instanceof FencelockError ? defect : errorOf(internal(defect));
  }
}
