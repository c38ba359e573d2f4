// The rooms of lib/, from the top of the house to its foundations: code in one uses those below it, never one above
// (docs/architecture.md). `npm run lint` checks it.
const HOUSE = [
  ['cli'],
  ['measure/report'],
  ['measure/compare'],
  ['measure/matrix'],
  ['measure/search'],
  ['measure/trial'],
  ['measure/results'],
  ['gen'],
  ['forward'],
  ['programs'],
  ['threads'],
  ['ports'],
  ['names', 'capture'],
  ['rings'],
  ['shim'],
  ['stats', 'text'],
];
/** Rooms of one floor know nothing of each other. */
const APART = ['cli/(bridge|pkt-gen|measure)', 'ports/(netmap|xdp|sim|pipe|pcap)'];

const path = (rooms) => rooms.map((room) => `^lib/${room}/`);

export default {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-orphans', severity: 'error', from: { path: '^lib/', orphan: true }, to: {} },
    ...HOUSE.slice(1).map((rooms, i) => ({
      name: `nothing-above-${rooms.join('-').replace('/', '-')}`,
      severity: 'error',
      from: { path: path(rooms) },
      to: { path: path(HOUSE.slice(0, i + 1).flat()) },
    })),
    ...APART.map((rooms) => ({
      name: `apart-${rooms.split('/')[0]}`,
      severity: 'error',
      from: { path: `^lib/${rooms}/` },
      to: { path: `^lib/${rooms}/`, pathNot: `^lib/${rooms.split('/')[0]}/$1/` },
    })),
    {
      name: 'names-apart-from-captures',
      severity: 'error',
      from: { path: '^lib/(names|capture)/' },
      to: { path: '^lib/(names|capture)/', pathNot: '^lib/$1/' },
    },
    { name: 'index-is-the-front-door', severity: 'error', from: { path: '^lib/' }, to: { path: '^lib/index' } },
    {
      name: 'tools-use-the-command-line',
      severity: 'error',
      from: { path: '^tools/' },
      to: { path: '^lib/', pathNot: '^lib/cli/' },
    },
    { name: 'product-without-tests', severity: 'error', from: { path: '^(lib|tools)/' }, to: { path: '^test/' } },
    {
      name: 'no-packages',
      severity: 'error',
      from: { path: '^(lib|tools)/' },
      to: { dependencyTypes: ['npm', 'npm-dev'] },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { extensions: ['.ts', '.js'] },
  },
};
