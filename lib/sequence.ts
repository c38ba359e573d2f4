/**
 * Follows the sequence numbers of frames and tells loss, duplication and reordering apart.
 * A frame that is expected next costs one comparison in the caller's loop; everything else comes here.
 */
export class SequenceCheck {
  /** Per tag (where the frames come from): the sequence number expected next. Wraps with 32 bits. */
  readonly expected = new Int32Array(1 << 16);
  /** Frames passed over by a later one and not seen since. */
  lost = 0;
  /** Frames seen again. */
  duplicates = 0;
  /** Frames that came after a later one. */
  reordered = 0;
  /** Frames whose stamp does not check out. */
  corrupt = 0;
  /** Frames that carry no stamp. */
  foreign = 0;

  /** Gaps not yet closed: tag, first, count, one triple each; the oldest is forgotten first. */
  readonly #gaps: { tag: number; first: number; count: number }[] = [];
  static readonly MOST_GAPS = 4096;

  /** A frame of `tag` was seen, whatever its number. */
  arrived(tag: number, seq: number): void {
    const ahead = (seq - this.expected[tag]) | 0;
    if (ahead >= 0) {
      if (ahead > 0) {
        this.lost += ahead;
        this.#gaps.push({ tag, first: this.expected[tag], count: ahead });
        if (this.#gaps.length > SequenceCheck.MOST_GAPS) this.#gaps.shift();
      }
      this.expected[tag] = seq + 1;
      return;
    }
    for (let g = this.#gaps.length - 1; g >= 0; g--) {
      const gap = this.#gaps[g];
      const at = (seq - gap.first) | 0;
      if (gap.tag !== tag || at < 0 || at >= gap.count) continue;
      // It was taken for lost: it is late. The gap splits around it.
      this.lost--;
      this.reordered++;
      const rest = gap.count - at - 1;
      this.#gaps.splice(
        g,
        1,
        ...(at > 0 ? [{ tag, first: gap.first, count: at }] : []),
        ...(rest > 0 ? [{ tag, first: (seq + 1) | 0, count: rest }] : []),
      );
      return;
    }
    this.duplicates++;
  }

  /** `tag`'s source stands still and every frame has had time to come: those before `next` that did not are lost. */
  settle(tag: number, next: number): void {
    const missing = (next - this.expected[tag]) | 0;
    if (missing <= 0) return;
    this.lost += missing;
    this.expected[tag] = next;
  }
}
