// Caches the page, so that it opens without network. `pack.mjs` fills in its files and a name that depends on their content.
const NAME = '%NAME%';
const FILES = ['%FILES%'];

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()));
});

self.addEventListener('activate', (event) => {
  const old = (names) => names.filter((name) => name.startsWith('lasthop-') && name !== NAME);
  const gone = caches.keys().then((names) => Promise.all(old(names).map((name) => caches.delete(name))));
  event.waitUntil(gone.then(() => self.clients.claim()));
});

self.addEventListener('fetch', (event) => {
  if (event.request.method !== 'GET' || new URL(event.request.url).origin !== location.origin) return;
  const cached = caches.match(event.request, { ignoreSearch: true, cacheName: NAME });
  event.respondWith(cached.then((found) => found ?? fetch(event.request)));
});
