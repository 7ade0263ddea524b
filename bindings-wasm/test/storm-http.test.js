// The storm over HTTP, where a request that is given up may still be carried out long after. The process ends by itself.
process.env.FENCELOCK_OVER = 'http';
process.env.FENCELOCK_STORES = 'redis';
await import('./storm.test.js');
