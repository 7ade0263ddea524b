import { errorOf, FencelockError, type Failure } from './error.js';

/** The failure for an exception of the native part, which is a defect of ours whatever was asked for. */
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
