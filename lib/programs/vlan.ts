import { FORWARD, DROP, type ProgramFactory } from './program.js';
import { VLAN } from './protocols.js';

/** What is done to the outermost VLAN tag. */
type VlanChange =
  /** A tag is put around what is there, of EtherType `type`. */
  | { readonly add: number; readonly type?: number }
  /** The outermost tag is taken off. */
  | { readonly strip: true }
  /** The outermost tag gets another VLAN and keeps its priority. */
  | { readonly set: number };

/** Offset of the outermost tag. */
const TAG = 12;
const TAG_BYTES = 4;

/** Changes the VLAN tags of frames. Frames without a tag to strip or to change are forwarded as they are. */
export function vlan(change: VlanChange): ProgramFactory {
  if ('add' in change) return addTag(change.add, change.type ?? VLAN);
  return 'set' in change ? setVlan(change.set) : stripTag;
}

/** A frame whose slot has no room for four more bytes is dropped and counted. */
function addTag(id: number, type: number): ProgramFactory {
  return (setup) => {
    const noRoom = setup.counter('no room for a tag');
    return (frame) => {
      if (frame.insert(TAG, TAG_BYTES)) {
        frame.setU16(TAG, type);
        frame.setU16(TAG + 2, id);
        return FORWARD;
      }
      noRoom.add();
      return DROP;
    };
  };
}

const stripTag: ProgramFactory = () => (frame) => {
  if (frame.tags > 0) frame.remove(TAG, TAG_BYTES);
  return FORWARD;
};

function setVlan(id: number): ProgramFactory {
  return () => (frame) => {
    if (frame.tags > 0) frame.setU16(TAG + 2, (frame.u16(TAG + 2) & 0xf000) | id);
    return FORWARD;
  };
}
