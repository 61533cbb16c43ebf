// A page from a web server works without that server once it was loaded.

export function offline(): void {
  if (!('serviceWorker' in navigator) || !location.protocol.startsWith('http')) return;
  // A page that a program serves needs that program.
  if (document.querySelector('meta[name="lasthop-served"]')) return;
  navigator.serviceWorker.register('sw.js').catch(() => {
    // Without the service worker the page only needs its server.
  });
}
