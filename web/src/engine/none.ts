// One file needs nothing to work without network.

export function offline(): void {}
