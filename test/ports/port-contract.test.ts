// The port contract, for the kinds of ports that need nothing around them; and for the kernel's where it is asked for:
//     NETMAP_PORTS="netmap:x{1 netmap:x}1" npm test 22-port-contract
import { openPorts } from '../../lib/ports/open.js';
import { portContract, type ContractPair } from './port-contract.js';

function pairOf(names: readonly [string, string], joined: boolean): () => ContractPair {
  return () => {
    const [a, b] = openPorts(names);
    return { a, b, joined };
  };
}

const quiet = 'load=0,clock=virtual,step=10us';
portContract('sim', pairOf([`sim:a@${quiet}`, `sim:b@${quiet}`], false));
portContract('sim, tx slots by a timer', pairOf([`sim:a@${quiet},txtimer=90us`, `sim:b@${quiet},txtimer=90us`], false));
portContract(
  'sim, several rings',
  pairOf([`sim:a@${quiet},rings=3,slots=64`, `sim:b@${quiet},rings=3,slots=64`], false),
);
portContract('sim, endless', pairOf(['sim:a@rate=max,slots=64', 'sim:b@rate=max,slots=64'], false));

const pipe = `pipe:contract-${process.pid}`;
portContract('pipe', pairOf([`${pipe}{1`, `${pipe}}1`], true));
portContract('pipe, few slots', pairOf([`${pipe}{2@slots=8`, `${pipe}}2@slots=8`], true));

const kernel = process.env['NETMAP_PORTS']?.split(' ');
if (kernel !== undefined) portContract(kernel.join(' '), pairOf([kernel[0], kernel[1]], true));
