// Three-way merge of a form with the version that another person stored meanwhile.

/** A merged form. */
export interface Merged<Draft> {
  draft: Draft;
  /** Fields that both changed to different values; the draft has the user's. */
  both: (keyof Draft & string)[];
}

/** Tells whether two drafts, or two values of a field, are equal. */
export function isEqual(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

/**
 * Keeps the fields that the user changed, and takes the others from the newer version.
 * @param base the version that the user began with
 * @param mine the form
 * @param theirs the newer version
 */
export function mergeDrafts<Draft extends object>(base: Draft, mine: Draft, theirs: Draft): Merged<Draft> {
  const fields = Object.keys(theirs) as (keyof Draft & string)[];
  const changed = fields.filter((field) => !isEqual(mine[field], base[field]));
  const draft = { ...theirs };
  for (const field of changed) {
    draft[field] = mine[field];
  }
  const both = changed.filter((field) => !isEqual(theirs[field], base[field]) && !isEqual(theirs[field], mine[field]));
  return { draft, both };
}
