import type { Netdev, Port } from './port.js';

/** What a port looks like from outside its thread. */
export interface PortInfo {
  name: string;
  driver: string;
  region: string;
  txRings: number;
  rxRings: number;
  txSlots: number;
  rxSlots: number;
  bufSize: number;
  notes: readonly string[];
  /** The interface whose link is the port's. */
  netdev?: Netdev;
}

export function portInfo(port: Port): PortInfo {
  const [tx] = [...port.tx, ...port.hostTx];
  const [rx] = [...port.rx, ...port.hostRx];
  return {
    name: port.name,
    driver: port.driver,
    region: port.region.id,
    txRings: port.tx.length,
    rxRings: port.rx.length,
    txSlots: (tx as typeof tx | undefined)?.numSlots ?? 0,
    rxSlots: (rx as typeof rx | undefined)?.numSlots ?? 0,
    bufSize: ((tx as typeof tx | undefined) ?? rx).bufSize,
    notes: port.notes,
    ...(port.netdev !== undefined && { netdev: port.netdev }),
  };
}
