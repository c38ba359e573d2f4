import { native } from '../shim/native.js';

/** Whether reading (POLLIN) or writing (POLLOUT) would not block: something can be done, or fails at once. */
export function isReady(fd: number, event: number): boolean {
  return native.poll(Int32Array.of(fd, event), 1, 0) > 0;
}
