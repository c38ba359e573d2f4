/**
 * Follows the sequence numbers of frames and tells loss, duplication and reordering apart.
 * A frame that is expected next costs one comparison in the caller's loop; everything else comes here.
 */
export class SequenceCheck {
  /** Per tag (where the frames come from): the sequence number expected next. Wraps with 32 bits. */
  readonly expected = new Int32Array(1 << 16);
  /** Frames passed over by a later one and not seen since: of all tags, and per tag. */
  lost = 0;
  readonly lostOf = new Float64Array(1 << 16);
  /** Frames seen again. */
  duplicates = 0;
  /** Frames that came after a later one. */
  reordered = 0;
  /** Frames whose stamp does not check out. */
  corrupt = 0;
  /** Frames that carry no stamp. */
  foreign = 0;

  static readonly MOST_GAPS = 4096;
  /** Gaps not yet closed, in triples: tag, first number, count (0: none). The oldest is overwritten first. */
  readonly #gaps = new Int32Array(3 * SequenceCheck.MOST_GAPS);
  /** Where the next gap goes. */
  #next = 0;

  /** A frame of `tag` was seen, whatever its number. */
  arrived(tag: number, seq: number): void {
    const ahead = (seq - this.expected[tag]) | 0;
    if (ahead >= 0) {
      if (ahead > 0) this.#miss(tag, this.expected[tag], ahead);
      this.expected[tag] = seq + 1;
      return;
    }
    if (this.#closeGap(tag, seq)) {
      // It was taken for lost: it is late.
      this.lost--;
      this.lostOf[tag]--;
      this.reordered++;
      return;
    }
    this.duplicates++;
  }

  /** `seq` was seen, which came before `first`, the lowest number seen until now. */
  preceded(tag: number, seq: number, first: number): void {
    this.#miss(tag, (seq + 1) | 0, (first - seq - 1) | 0);
    this.reordered++;
  }

  /** Numbers from `first` on were passed over. */
  #miss(tag: number, first: number, count: number): void {
    if (count <= 0) return;
    this.lost += count;
    this.lostOf[tag] += count;
    this.#addGap(tag, first, count);
  }

  #addGap(tag: number, first: number, count: number): void {
    const g = 3 * this.#next;
    this.#gaps[g] = tag;
    this.#gaps[g + 1] = first;
    this.#gaps[g + 2] = count;
    this.#next = (this.#next + 1) % SequenceCheck.MOST_GAPS;
  }

  /** Takes `seq` out of the gap it lies in, which splits around it. False: it lies in none. */
  #closeGap(tag: number, seq: number): boolean {
    const gaps = this.#gaps;
    for (let k = 1; k <= SequenceCheck.MOST_GAPS; k++) {
      const g = 3 * ((this.#next - k + SequenceCheck.MOST_GAPS) % SequenceCheck.MOST_GAPS);
      const into = (seq - gaps[g + 1]) | 0;
      const count = gaps[g + 2];
      if (gaps[g] !== tag || into < 0 || into >= count) continue;
      gaps[g + 2] = into;
      if (into + 1 < count) this.#addGap(tag, (seq + 1) | 0, count - into - 1);
      return true;
    }
    return false;
  }

  /** `tag`'s source stands still and every frame has had time to come: those before `next` that did not are lost. */
  settle(tag: number, next: number): void {
    const missing = (next - this.expected[tag]) | 0;
    if (missing <= 0) return;
    this.lost += missing;
    this.lostOf[tag] += missing;
    this.expected[tag] = next;
  }
}
