// The words of KQL that the editor highlights and completes, apart from the names in languageNames.ts.

const split = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Other words of the language. */
export const KEYWORDS = split(`
  and asc between by contains contains_cs datatable declare default desc endswith endswith_cs from has has_all has_any
  has_cs hasprefix hassuffix in inner isfuzzy kind leftanti leftouter leftsemi let like matches materialize not nulls
  on or outer pattern query_parameters range regex rightouter startswith startswith_cs step string to toscalar
  typeof view with withsource innerunique fullouter first last
`);

/** Scalar types. */
export const TYPES = split("bool datetime decimal dynamic guid int long real string timespan");

/** The table of the telemetry, and its columns with their types. */
export const TABLE = "Telemetry";
export const COLUMNS: Readonly<Record<string, string>> = {
  Timestamp: "datetime",
  ConnectionLookup: "string",
  SurfaceLookups: "dynamic",
  DeviceId: "string",
  MessageId: "string",
  Payload: "dynamic",
};
