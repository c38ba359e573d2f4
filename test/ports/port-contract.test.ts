// The port contract, for the kinds of ports that need nothing around them; and for the kernel's where it is asked for:
//     NETMAP_PORTS="netmap:x{1 netmap:x}1" npm test ports/port-contract
import { openPorts } from '../../lib/ports/open.js';
import { PROMISES, portContract, type ContractPair, type Promises } from './port-contract.js';

function pairOf(names: readonly [string, string], promises: Promises): () => ContractPair {
  return () => {
    const [a, b] = openPorts(names);
    return { a, b, promises };
  };
}

const quiet = 'load=0,clock=virtual,step=10us';
portContract('sim', pairOf([`sim:a@${quiet}`, `sim:b@${quiet}`], PROMISES.sim));
portContract(
  'sim, tx slots by a timer',
  pairOf([`sim:a@${quiet},txtimer=90us`, `sim:b@${quiet},txtimer=90us`], PROMISES.sim),
);
portContract(
  'sim, several rings',
  pairOf([`sim:a@${quiet},rings=3,slots=64`, `sim:b@${quiet},rings=3,slots=64`], PROMISES.sim),
);
portContract('sim, endless', pairOf(['sim:a@rate=max,slots=64', 'sim:b@rate=max,slots=64'], PROMISES.sim));

const pipe = `pipe:contract-${process.pid}`;
portContract('pipe', pairOf([`${pipe}{1`, `${pipe}}1`], PROMISES.pipe));
portContract('pipe, few slots', pairOf([`${pipe}{2@slots=8`, `${pipe}}2@slots=8`], PROMISES.pipe));

/** What the kernel's ports promise, by their names. */
function promisesOf(name: string): Promises {
  if (/[{}]/.test(name)) return PROMISES['netmap pipe'];
  return name.startsWith('vale') ? PROMISES.VALE : PROMISES['netmap NIC'];
}

const kernel = process.env['NETMAP_PORTS']?.split(' ');
if (kernel !== undefined) portContract(kernel.join(' '), pairOf([kernel[0], kernel[1]], promisesOf(kernel[0])));
