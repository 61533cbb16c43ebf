// A page in one file works without network as it is.

export function offline(): void {}
