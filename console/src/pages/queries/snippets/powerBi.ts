import { type Subject, TOKEN, toMField, toMLiteral } from "./text.ts";

const TYPES: Record<string, string> = {
  bool: "type logical",
  int: "Int64.Type",
  long: "Int64.Type",
  real: "type number",
  decimal: "type number",
  datetime: "type datetimezone",
};

/** Returns the call as a Power BI query (Power Query M): Home, Transform data, New source, Blank query, Advanced editor. */
export function buildPowerBi({ ask, origin, columns }: Subject): string {
  const options = [`RelativePath = ${toMLiteral(ask.path.slice(1))}`];
  const headers = [`Authorization = "Bearer " & Token`, `Accept = "application/json"`];
  if (ask.body) {
    headers.push(`#"Content-Type" = "application/json"`);
    const members = Object.entries(ask.body).map(
      ([name, value]) => `${toMField(name)} = ${typeof value === "number" ? JSON.stringify(value) : toMLiteral(value)}`,
    );
    options.push(`Content = Json.FromValue([${members.join(", ")}])`);
  } else if (ask.query.length > 0) {
    const pairs = ask.query.map(([name, value]) => `${toMField(name)} = ${toMLiteral(value)}`);
    options.push(`Query = [${pairs.join(", ")}]`);
  }
  options.push(`Headers = [${headers.join(", ")}]`);
  return `let
    Token = "${TOKEN}",
    Answer = Json.Document(Web.Contents(${toMLiteral(origin)}, [
        ${options.join(",\n        ")}
    ])),
${formatRows(columns)}
`;
}

function formatRows(columns: Subject["columns"]): string {
  if (columns.length === 0) {
    return `    Rows = Table.FromRecords(Answer[results])
in
    Rows`;
  }
  const names = columns.map(({ name }) => toMLiteral(name)).join(", ");
  const typed = columns
    .filter(({ type }) => TYPES[type])
    .map(({ name, type }) => `{${toMLiteral(name)}, ${TYPES[type]}}`);
  return `    Rows = Table.FromRecords(Answer[results], {${names}}, MissingField.UseNull),
    Typed = Table.TransformColumnTypes(Rows, {${typed.join(", ")}}, "en-US")
in
    Typed`;
}
