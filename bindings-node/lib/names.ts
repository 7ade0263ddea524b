import { sound } from './defect.js';
import { invalid } from './error.js';
import { options as table } from './native.js';

/** A name of the core's, as JavaScript writes it. */
export function camelCase(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

let known: Map<string, string> | undefined;

/** The core's names of options, by JavaScript's, asked for when they are first needed. */
function names(): Map<string, string> {
  return (known ??= new Map((JSON.parse(sound(table)) as { name: string }[]).map(({ name }) => [camelCase(name), name])));
}

/** Options, which are refused unless they are an object: `acquire(5000)` would wait for ever. */
export function objectOf<T extends object>(options: T): T {
  if (typeof options === 'object' && (options as object | null) !== null && !Array.isArray(options)) return options;
  throw invalid('options', `options are an object, such as \`{ wait: 5000 }\`, and not \`${String(options)}\``);
}

/** An object, which is refused if it has other keys: a misspelt `token` for instance would have the effect of none. */
export function objectWith<T extends object>(object: T, argument: string, ...keys: string[]): T {
  const stranger = Object.keys(object).find((key) => !keys.includes(key));
  if (stranger === undefined) return object;
  throw invalid(argument, `\`${argument}\` has no \`${stranger}\`; it has \`${keys.join('`, `')}\``);
}

/** Options as the core calls them. A name that it does not know goes as it is, for it to say so. */
export function optionsForCore(options: object): Record<string, unknown> {
  objectOf(options);
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [names().get(name) ?? name, value as unknown]));
}

/** An object of the core's with JavaScript's names, and those inside it likewise. */
export function camelCased<T>(value: unknown): T {
  if (Array.isArray(value)) return value.map((inner) => camelCased<unknown>(inner)) as T;
  if (typeof value !== 'object' || value === null) return value as T;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [camelCase(name), camelCased(inner)])) as T;
}
