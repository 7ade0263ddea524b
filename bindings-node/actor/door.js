// The package the actor speaks through.
export { connect, FencelockError } from 'fencelock';
export const language = 'node';
