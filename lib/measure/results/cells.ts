/** Settings of cells: what all of them share is said once, and each is named by the rest. */
import { type Cell, cellKey } from './result.js';

/** The settings that every cell has, with the same value. */
export function commonSettings(cells: readonly Cell[]): Cell {
  const [first = {}, ...rest] = cells;
  return Object.fromEntries(
    Object.entries(first).filter(([axis, value]) =>
      rest.every((cell) => Object.hasOwn(cell, axis) && cell[axis] === value),
    ),
  );
}

/** A cell without some of its settings. */
export function without(cell: Cell, axes: readonly string[]): Cell {
  return Object.fromEntries(Object.entries(cell).filter(([axis]) => !axes.includes(axis)));
}

/** Names cells by their settings but `axes`; one that has no other, beside cells that have, is at its defaults. */
export function namerWithout(cells: readonly Cell[], axes: readonly string[]): (cell: Cell) => string {
  const name = (cell: Cell): string => cellKey(without(cell, axes));
  const unset = cells.some((cell) => name(cell) !== '') ? 'default' : '';
  return (cell) => name(cell) || unset;
}

/** Names cells by the settings in which they differ. `common` is what they share, as text; '' when that is nothing. */
export function cellNamer(cells: readonly Cell[]): { common: string; nameOf: (cell: Cell) => string } {
  const common = commonSettings(cells);
  const axes = Object.keys(common);
  return { common: cellKey(common), nameOf: namerWithout(cells, axes) };
}
