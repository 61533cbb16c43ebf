// The types of `lzma1` that are used here: its own are source files, which do not pass our stricter checks.

/** Decompresses a file of `xz --format=lzma` whose header has the size. */
export function decompress(data: Uint8Array | ArrayBuffer): Uint8Array;
