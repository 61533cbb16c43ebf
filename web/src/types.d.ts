declare module '#platform' {
  export function newWorker(): Worker;
  export function theModule(): Promise<WebAssembly.Module>;
}
declare module '#offline' {
  export function offline(): void;
}
declare module '#module?url' {
  const url: string;
  export default url;
}
