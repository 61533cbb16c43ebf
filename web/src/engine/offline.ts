// Once loaded, a folder on a web server also works without it.

export function offline(): void {
  if (!('serviceWorker' in navigator) || !location.protocol.startsWith('http')) return;
  // A page that a program serves is gone with the program.
  if (document.querySelector('meta[name="lasthop-served"]')) return;
  navigator.serviceWorker.register('sw.js').catch(() => {
    // Without it the page needs its server; nothing else changes.
  });
}
