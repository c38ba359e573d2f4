// A bridge in a process of its own, as the tool is, for tests that kill it: node bridge-process.js WAIT PORT PORT.
// What happens goes to standard output, a line each.
import { startBridge } from '../../lib/run.js';
import type { WaitMode } from '../../lib/wait.js';

const [wait, ...names] = process.argv.slice(2);
const bridge = startBridge(names, {
  wait: wait as WaitMode,
  onSay: (sentence) => {
    console.log(sentence);
  },
});
process.on('SIGTERM', () => {
  bridge.stop();
});
try {
  await bridge.running;
  console.log('running');
  const { reason } = await bridge.ended;
  console.log(`ended: ${reason}`);
} catch (error) {
  console.log(`failed: ${(error as Error).message}`);
  process.exitCode = 1;
}
